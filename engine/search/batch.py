"""A batch: the leaves one worker has in flight together, from selection to backup, as arrays.

One row a leaf. :func:`engine.search.selection.select` fills the path, :mod:`engine.search.leaves` what is known of
the position at its end, :func:`engine.search.backup.complete` carries that into the tree.
"""

from typing import NamedTuple

import numpy as np

MAX_DEPTH = 512
"""Moves below the root that a path may hold; a node that deep is not searched further."""

NEW, KNOWN, FINISHED, UNSCORED, ROLLED, ROLLOUT_BACKED_UP = range(6)
"""What a leaf is: to be evaluated; valued in the tree already; game over, scored; game over, dead stones unknown;
to be rolled out and nothing else; to be evaluated, its rollout being backed up already."""


class Batch(NamedTuple):
    """K leaves; A = N*N + 1 policy entries, D = MAX_DEPTH."""

    node: np.ndarray
    """int32[K, D]: nodes of the path, the root first, the leaf not among them"""
    edge_index: np.ndarray
    """int16[K, D]: which of that node's edges was chosen"""
    move: np.ndarray
    """int16[K, D]: and the point it plays"""
    depth: np.ndarray
    """int32[K]: edges of the path"""
    leaf: np.ndarray
    """int32[K]: the node at its end"""
    kind: np.ndarray
    """uint8[K]: NEW, KNOWN, FINISHED, UNSCORED, ROLLED or ROLLOUT_BACKED_UP"""
    captured: np.ndarray
    """int16[K]: stones that the last move of the path captured"""
    request_row: np.ndarray
    """int32[K]: row of the evaluation request, -1 if none was needed"""
    bucket_key: np.ndarray
    """uint64[K]: where values are corrected, key of the positions that the network errs about alike
    (:mod:`engine.search.value_bias`); else empty"""
    cache_key: np.ndarray
    """uint64[K]: key of the result cache"""
    symmetry: np.ndarray
    """uint8[K]: the symmetry in which the network sees the position"""
    n_listed: np.ndarray
    """int32[K]: moves the leaf's node will have"""
    listed: np.ndarray
    """uint16[K, A]: these moves' policy indices"""
    prior_codes: np.ndarray
    """uint16[K, A]: their priors, by policy index (see :mod:`engine.search.unchosen`)"""
    logits: np.ndarray
    """float32[K, A]: the network's move logits, back in the position's own orientation, policy order"""
    value: np.ndarray
    """float32[K]: network value or exact result, -1 to 1 for the side to move at the leaf"""
    rollout: np.ndarray
    """float32[K]: rollout or exact result, likewise"""
    lead: np.ndarray
    """float32[K]: lead in points, likewise; 0 where nothing estimates it"""
    scratch: np.ndarray
    """float32[2, A]: working memory of the ranking"""


def new_batch(size: int, capacity: int, corrects: bool = False) -> Batch:
    """Room for ``capacity`` leaves on boards of one size.

    Args:
        corrects: in a tree that corrects values (:mod:`engine.search.value_bias`).
    """
    k, moves = capacity, size * size + 1
    return Batch(
        np.zeros((k, MAX_DEPTH), np.int32),
        np.zeros((k, MAX_DEPTH), np.int16),
        np.zeros((k, MAX_DEPTH), np.int16),
        np.zeros(k, np.int32),
        np.zeros(k, np.int32),
        np.zeros(k, np.uint8),
        np.zeros(k, np.int16),
        np.zeros(k, np.int32),
        np.zeros(k if corrects else 0, np.uint64),
        np.zeros(k, np.uint64),
        np.zeros(k, np.uint8),
        np.zeros(k, np.int32),
        np.zeros((k, moves), np.uint16),
        np.zeros((k, moves), np.uint16),
        np.zeros((k, moves), np.float32),
        np.zeros(k, np.float32),
        np.zeros(k, np.float32),
        np.zeros(k, np.float32),
        np.zeros((2, moves), np.float32),
    )
