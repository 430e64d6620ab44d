"""The encoder contract and the registry of encoders.

An encoder turns a :class:`engine.go.position.Position` into planes and global values for the side to move. It
writes into the caller's arrays, in the caller's thread. Kernels cannot take functions as arguments and stay
cached on disk, so a kernel that encodes takes the encoder's ``id`` and calls :func:`encode` or :func:`key`.
"""

from typing import NamedTuple

import numpy as np

from engine.features import alphago, history, katago, keima
from engine.go.geometry import cell_count
from engine.go.ladder_search import LadderScratch, new_ladder_scratch
from engine.jit import kernel

KEIMA_ID, ALPHAGO_POLICY_ID, ALPHAGO_VALUE_ID, ZERO_ID, KEY_ID, LEELA_ID, KATAGO_ID, KATAGO_SUICIDE_ID = range(8)


class Encoder(NamedTuple):
    """What a network must know of its input."""

    name: str
    id: int
    planes: int
    """C: planes of size N x N"""
    globals: int
    """G: values that are not about points"""
    rules: str = "those of its training games"
    """for people: what a network that reads it knows of the rules in force"""
    komi: float | None = None
    """the only one that such networks judge by, where that is known; White's points"""


KEIMA = Encoder("keima-1", KEIMA_ID, keima.PLANES, keima.GLOBALS, "any: komi, scoring, ko, suicide, taxes are inputs")
ALPHAGO_POLICY = Encoder("alphago-48", ALPHAGO_POLICY_ID, alphago.POLICY_PLANES, 0)
ALPHAGO_VALUE = Encoder("alphago-49", ALPHAGO_VALUE_ID, alphago.VALUE_PLANES, 0)
ZERO = Encoder("zero-17", ZERO_ID, history.PLANES, 0)
LEELA = Encoder(
    "leela-18", LEELA_ID, history.LEELA_PLANES, 0, "area scoring, komi 7.5, positional superko, no suicide; no others",
    komi=7.5,
)  # fmt: skip
KATAGO_RULES = "any: komi, scoring, ko, suicide, taxes, button are inputs"
KATAGO = Encoder("katago-v7", KATAGO_ID, katago.PLANES, katago.GLOBALS, KATAGO_RULES)
KATAGO_SUICIDE = Encoder("katago-v7-suicide", KATAGO_SUICIDE_ID, katago.PLANES, katago.GLOBALS, KATAGO_RULES)
"""For KataGo's networks that want areas as if suicide were always legal"""
KEY = Encoder("key", KEY_ID, 0, 1)
"""No planes, and a number from -1 to 1 made of the position's key: nothing to learn from, for measuring searches"""
ENCODERS = {
    encoder.name: encoder for encoder in (KEIMA, ALPHAGO_POLICY, ALPHAGO_VALUE, ZERO, LEELA, KATAGO, KATAGO_SUICIDE)
}


class Scratch(NamedTuple):
    """Working memory of any encoder; one per thread and board size."""

    ladder: LadderScratch
    capture: np.ndarray
    """uint8[N*N]: ladder captures, policy order"""
    escape: np.ndarray
    """uint8[N*N]: ladder escapes"""
    marks: np.ndarray
    """int64[L]: marks of :func:`engine.features.tactics.after_move`; a rising stamp spares clearing them"""
    stamp: np.ndarray
    """int64[1]: the latest stamp; 32 bits would be used up within minutes of encoding"""
    numbers: np.ndarray
    """uint8[alphago.FEATURES, N*N]: numbers that :mod:`engine.features.alphago` turns into planes"""
    katago: katago.KatagoScratch


def new_scratch(size: int) -> Scratch:
    """Working memory for :func:`encode` on boards of one size; one per thread."""
    area = size * size
    return Scratch(
        new_ladder_scratch(size),
        np.zeros(area, np.uint8),
        np.zeros(area, np.uint8),
        np.zeros(int(cell_count(size)), np.int64),
        np.zeros(1, np.int64),
        np.zeros((alphago.FEATURES, area), np.uint8),
        katago.new_katago_scratch(size),
    )


@kernel
def encode(encoder_id, position, symmetry, scratch, planes, globals_):
    """Write a position's input for the side to move.

    Args:
        encoder_id: ``Encoder.id``.
        symmetry: 0 to 7 as in engine/features/symmetry.py; the planes show the board turned that way.
        scratch: working memory from :func:`new_scratch`, the caller's own.
        planes: float32[C, N, N], overwritten.
        globals_: float32[G], overwritten.
    """
    if encoder_id == KEIMA_ID:
        keima.encode(position, symmetry, scratch, planes, globals_)
    elif encoder_id == ZERO_ID:
        history.encode(position, symmetry, planes)
    elif encoder_id == LEELA_ID:
        history.encode_leela(position, symmetry, planes)
    elif encoder_id == KEY_ID:
        globals_[0] = (history.key(position) >> np.uint64(40)) / 8388608.0 - 1.0
    elif encoder_id in (KATAGO_ID, KATAGO_SUICIDE_ID):
        as_if_suicide = encoder_id == KATAGO_SUICIDE_ID
        katago.encode(position, symmetry, scratch.katago, scratch.ladder, as_if_suicide, planes, globals_)
    else:
        alphago.encode(position, symmetry, scratch, planes)


@kernel
def key(encoder_id, position):
    """uint64 that covers everything the encoder reads of a position: the key of the result cache."""
    if encoder_id == KEIMA_ID:
        return keima.key(position)
    if encoder_id in (ZERO_ID, KEY_ID, LEELA_ID):
        return history.key(position)
    if encoder_id in (KATAGO_ID, KATAGO_SUICIDE_ID):
        return katago.key(position)
    return alphago.key(position)
