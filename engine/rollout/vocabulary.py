"""The vocabulary of a pattern policy: its patterns, and their places in the vector of weights.

A :class:`Vocabulary` is chosen before training, by counts (:mod:`engine.train.pattern_learning`), and stored with the
weights. Patterns are folded (:func:`engine.rollout.patterns.folded`), sorted, one int64 each:

* *fine*: 3x3 codes; *coarse*: 3x3 codes with fewer liberty classes, a feature of every move;
* *responses*: a context (diamond code around the last move, with the move's liberties) and the cell of the response,
  ``16 * context + cell``;
* *nakade*: 13-bit patterns of captured points;
* *diamonds* (tree policy only): diamond codes around the move.

The vector of weights has these in order, then the single features named here. :func:`unfold` expands all symmetric
images into tables that kernels index directly.
"""

from typing import NamedTuple

import numpy as np

from engine.go.random import GOLDEN
from engine.rollout.patterns import (
    DIAMOND,
    DIAMOND_IMAGES,
    N_CODES,
    SQUARE_IMAGES,
    coarse_code,
    folded,
    is_rescue,
    is_sensible_code,
    permuted,
)
from engine.system.jit import inlined_kernel, kernel

CELL_BITS = 4
N_CELLS = len(DIAMOND)
N_NAKADE = 1 << 13
LINE = 64
"""Bytes of a processor's cache line"""
FIRST_CELL = 4
"""Column of a ``contexts`` table that holds the value of the diamond's first cell; the key is in the columns before"""
DIAMOND_PLACE = 3
MOST_NUMBERS = 1 << 16
DISTANCES = 17
"""Number of features of a Manhattan distance: 0 to 15, and 16 or more"""
UNSEEN, EDGE_NEIGHBOUR, CORNER_NEIGHBOUR, RESPONSE, SAVE, SELF_ATARI, LAST_DISTANCE = range(7)
SINGLE = LAST_DISTANCE + 2 * DISTANCES
"""Number of single features, those without a pattern. UNSEEN is the feature of unknown coarse codes, RESPONSE that of
all known responses; the last ones are the Manhattan distances to the last move and to the one before."""


class Vocabulary(NamedTuple):
    """The folded patterns of a policy; each array is int64[patterns], ascending."""

    fine: np.ndarray
    """3x3 codes of 24 bits"""
    coarse: np.ndarray
    """3x3 codes of 24 bits, made coarse by :func:`engine.rollout.patterns.coarse_code`"""
    responses: np.ndarray
    """contexts of 38 bits, then cells in the lowest 4 bits"""
    nakade: np.ndarray
    """patterns of 13 bits"""
    diamonds: np.ndarray
    """diamond codes of 36 bits; empty for a rollout policy"""

    @property
    def starts(self) -> tuple[int, ...]:
        """Place of the first weight of each array, place of the first single feature, and total number of weights."""
        return tuple(np.cumsum([0, *(len(patterns) for patterns in self), SINGLE]).tolist())

    @property
    def is_tree(self) -> bool:
        """Whether this is the vocabulary of a tree policy."""
        return len(self.diamonds) > 0


class HashTable(NamedTuple):
    """A hash table with open addressing. Both fields are views of the same memory, with a row's key before its values.

    So a lookup reads one cache line instead of two or three; no row straddles cache lines.
    """

    keys: np.ndarray
    """int64[H + 1, n], H a power of two: the key in column 0, -1 = free. The last row is for missing keys."""
    values: np.ndarray
    """[H + 1, m]: the same rows as items of the values' dtype; the first 8 bytes of a row are the key"""


class Numbers(NamedTuple):
    """Tables of an unfolded vocabulary; their *places* are indices of the vector of weights, -1 = none."""

    square: np.ndarray
    """uint16[2**24]: number of each 3x3 code with black to move; 0 = no sensible move in its centre"""
    square_places: np.ndarray
    """int32[numbers, 3]: places of the coarse, fine and save-atari features, by number in ``square``"""
    contexts: HashTable
    """by context of the last move: int32[H + 1, 16], places of the cells of its diamond from column FIRST_CELL on"""
    nakade: np.ndarray
    """int32[8192]: place of each nakade pattern"""
    diamonds: HashTable
    """by diamond code: int32[H + 1, 4], its place in column DIAMOND_PLACE"""
    single: int
    """place of the first single feature"""
    is_tree: bool


def folded_responses(contexts: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The smallest image of each pair of context and cell under the symmetries of the board.

    Args:
        contexts: int64[n].
        cells: int64[n], 0 to 11: the cell of the response in the context's diamond.
    Returns:
        int64[n]: as in ``Vocabulary.responses``.
    """
    images = []
    for places in DIAMOND_IMAGES:
        # Cell ``to`` of the image is cell ``places[to]``, so cells move by the inverse permutation.
        shown_at = np.argsort(places)
        images.append((permuted(contexts, places) << CELL_BITS) | shown_at[cells])
    return np.min(images, axis=0)


def folded_nakade() -> np.ndarray:
    """int64[8192]: the smallest image of every nakade pattern."""
    offsets = sorted([*DIAMOND, (0, 0)])
    bits = (np.arange(N_NAKADE)[:, None] >> np.arange(len(offsets))) & 1
    images = []
    for places in DIAMOND_IMAGES:
        shows = {DIAMOND[to]: DIAMOND[of] for to, of in enumerate(places.tolist())} | {(0, 0): (0, 0)}
        of = [offsets.index(shows[offset]) for offset in offsets]
        images.append((bits[:, of] << np.arange(len(offsets))).sum(axis=1))
    return np.min(images, axis=0)


def number(patterns: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Index of each pattern in ``known``, -1 = not there.

    Args:
        patterns: int64 of any shape.
        known: int64[n], ascending.
    Returns:
        int64 of the patterns' shape.
    """
    if len(known) == 0:
        return np.full(np.shape(patterns), -1, np.int64)
    places = np.minimum(np.searchsorted(known, patterns), len(known) - 1)
    return np.where(known[places] == patterns, places, -1)


@inlined_kernel
def _first_row(key, last):
    """Row at which the search for a key begins, in a table of ``last`` rows."""
    return np.int64((np.uint64(key) * GOLDEN) >> np.uint64(30)) & (last - 1)


@inlined_kernel
def find(keys, key):
    """Row of a key in a hash table; the last row if the key is missing.

    Args:
        keys: int64[H + 1, n], of a :class:`HashTable`.
        key: int64, 0 or more.
    """
    last = len(keys) - 1
    place = _first_row(key, last)
    while keys[place, 0] != key:
        if keys[place, 0] < 0:
            return last
        place = (place + 1) & (last - 1)
    return place


@kernel
def _enter_keys(keys, new_keys, rows):
    """Enter new keys into a hash table, and write the row of each to ``rows``; equal keys share a row."""
    last = len(keys) - 1
    for i in range(len(new_keys)):
        row = find(keys, new_keys[i])
        if row == last:
            row = _first_row(new_keys[i], last)
            while keys[row, 0] >= 0:
                row = (row + 1) & (last - 1)
            keys[row, 0] = new_keys[i]
        rows[i] = row


def hash_table(keys: np.ndarray, values: np.ndarray, missing: int | np.ndarray, columns: int) -> HashTable:
    """Build a hash table that is two thirds full at most.

    Args:
        keys: int64[n], 0 or more.
        values: [n, m] of the table's dtype, for the last m columns.
        missing: values of the last m columns of rows without a key.
        columns: number of columns; the first 8 bytes of a row are the key.
    """
    rows = (1 << max(4, (3 * len(keys) // 2).bit_length())) + 1
    row_bytes = columns * values.itemsize
    memory = np.empty(rows * row_bytes + LINE, np.int8)
    start = -memory.ctypes.data % LINE
    memory = memory[start : start + rows * row_bytes]
    table = HashTable(memory.view(np.int64).reshape(rows, -1), memory.view(values.dtype).reshape(rows, -1))
    table.keys[:] = -1
    table.values[:, columns - values.shape[1] :] = missing
    at = np.zeros(len(keys), np.int64)
    _enter_keys(table.keys, np.ascontiguousarray(keys), at)
    table.values[at, columns - values.shape[1] :] = values
    return table


@kernel
def _spread_coarse(square, coarse_number):
    """Write the number of each code that is not fine: that of its coarse code, plus 1 if the move saves a chain."""
    for code in range(N_CODES):
        if square[code] == 0 and is_sensible_code(code):
            square[code] = coarse_number[coarse_code(code)] + is_rescue(code)


def _number_squares(words: Vocabulary) -> np.ndarray:
    """The table ``Numbers.square``: fine codes from 1 on, then two numbers for each coarse code and for UNSEEN."""
    n_fine, n_coarse = len(words.fine), len(words.coarse)
    unseen = n_fine + 1 + 2 * n_coarse
    if unseen + 2 > MOST_NUMBERS:
        raise ValueError(f"{unseen + 2} numbers for 3x3 patterns, expected {MOST_NUMBERS} at most")
    square, coarse = np.zeros(N_CODES, np.uint16), np.full(N_CODES, unseen, np.uint16)
    for places in SQUARE_IMAGES:
        square[permuted(words.fine, places)] = 1 + np.arange(n_fine)
        coarse[permuted(words.coarse, places)] = n_fine + 1 + 2 * np.arange(n_coarse)
    _spread_coarse(square, coarse)
    return square


def _place_squares(words: Vocabulary) -> np.ndarray:
    """The table ``Numbers.square_places``."""
    n_fine, n_coarse, starts = len(words.fine), len(words.coarse), words.starts
    found = np.full((n_fine + 1 + 2 * (n_coarse + 1), 3), -1, np.int32)
    coarse = number(folded(coarse_code.py_func(words.fine), SQUARE_IMAGES), words.coarse)
    found[1 : n_fine + 1, 0] = np.where(coarse >= 0, starts[1] + coarse, starts[5] + UNSEEN)
    found[1 : n_fine + 1, 1] = starts[0] + np.arange(n_fine)
    found[1 : n_fine + 1, 2] = [starts[5] + SAVE if is_rescue(code) else -1 for code in words.fine.tolist()]
    found[n_fine + 1 :, 0] = np.repeat(np.append(starts[1] + np.arange(n_coarse), starts[5] + UNSEEN), 2)
    found[n_fine + 2 :: 2, 2] = starts[5] + SAVE
    return found


def _place_responses(words: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """All images of all known contexts, int64[n], and the places of their responses by cell, int32[n, 12]."""
    contexts, cells = words.responses >> CELL_BITS, words.responses & ((1 << CELL_BITS) - 1)
    images = np.concatenate([permuted(contexts, places) for places in DIAMOND_IMAGES])
    shown_at = np.concatenate([np.argsort(places)[cells] for places in DIAMOND_IMAGES])
    known, rows = np.unique(images, return_inverse=True)
    response = np.full((len(known), N_CELLS), -1, np.int32)
    response[rows, shown_at] = words.starts[2] + np.tile(np.arange(len(contexts)), len(DIAMOND_IMAGES))
    return known, response


def unfold(words: Vocabulary, like: tuple[Vocabulary, np.ndarray] | None = None) -> Numbers:
    """Expand a vocabulary into tables of all symmetric images.

    Args:
        like: another vocabulary and its ``Numbers.square``, 32 MiB, which is shared if both have the same 3x3 patterns.
    Raises:
        ValueError: more 3x3 patterns than ``MOST_NUMBERS``.
    """
    starts = words.starts
    nakade = number(folded_nakade(), words.nakade)
    diamonds = np.concatenate([permuted(words.diamonds, places) for places in DIAMOND_IMAGES])
    diamond_places = starts[4] + np.tile(np.arange(len(words.diamonds)), len(DIAMOND_IMAGES))
    if like is not None and all(map(np.array_equal, words[:2], like[0][:2])):
        square = like[1]
    else:
        square = _number_squares(words)
    return Numbers(
        square,
        _place_squares(words),
        hash_table(*_place_responses(words), -1, FIRST_CELL + N_CELLS),
        np.where(nakade >= 0, starts[3] + nakade, -1).astype(np.int32),
        hash_table(diamonds, diamond_places[:, None].astype(np.int32), -1, DIAMOND_PLACE + 1),
        starts[5],
        words.is_tree,
    )
