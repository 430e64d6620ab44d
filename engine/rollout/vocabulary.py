"""Which patterns a policy knows, and the number of each: from codes to places in one vector of weights.

A :class:`Vocabulary` is fixed before learning starts (:mod:`engine.train.pattern_learning` picks it by counts) and
stored with the weights. Patterns are kept folded (:func:`engine.rollout.patterns.folded`), sorted, one int64 each:

* *fine*: 3x3 codes; *coarse*: 3x3 codes without most liberties, which every move has, known or not;
* *responses*: a context (diamond code around the last move, above it the move's liberties) and the cell of the
  response, ``16 * context + cell``;
* *nakade*: 13-bit patterns of captured points;
* *diamonds* (tree policy only): diamond codes around the move.

In the vector of weights they follow one another in this order, and then come the single features named here.
:func:`unfold` spells out all symmetric images in tables that kernels index directly.
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
"""Bytes of a line of the processor's caches"""
FIRST_CELL = 4
"""Column of a row of contexts where the diamond's first cell stands; before it stands the key"""
DIAMOND_PLACE = 3
MOST_NUMBERS = 1 << 16
DISTANCES = 17
"""Manhattan distances 0 to 15, and 16 or more"""
UNSEEN, EDGE_NEIGHBOUR, CORNER_NEIGHBOUR, RESPONSE, SAVE, SELF_ATARI, LAST_DISTANCE = range(7)
SINGLE = LAST_DISTANCE + 2 * DISTANCES
"""Number of single features. UNSEEN stands for coarse codes that are not known; RESPONSE is the feature of all known
responses; the last ones are the Manhattan distances to the last move and to the one before."""


class Vocabulary(NamedTuple):
    """Folded patterns, each array int64[patterns], ascending."""

    fine: np.ndarray
    """3x3 codes of 24 bits"""
    coarse: np.ndarray
    """coarse 3x3 codes of 24 bits"""
    responses: np.ndarray
    """contexts of 38 bits and, below them, cells of 4"""
    nakade: np.ndarray
    """patterns of 13 bits"""
    diamonds: np.ndarray
    """diamond codes of 36 bits; empty for a rollout policy"""

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each array's weights start, where the single features start, and how many weights there are."""
        return tuple(np.cumsum([0, *(len(patterns) for patterns in self), SINGLE]).tolist())

    @property
    def is_tree(self) -> bool:
        """Whether this is a tree policy's."""
        return len(self.diamonds) > 0


class HashTable(NamedTuple):
    """Rows found by a key, open addressing. Both fields are the same memory, each row's key in front of its values.

    So a look costs one line of the caches instead of two or three; the rows do not straddle any.
    """

    keys: np.ndarray
    """int64[H + 1, n], H a power of two: the key in column 0, -1 = free. The last row stands for all other keys."""
    values: np.ndarray
    """[H + 1, m]: the row as the table's users read it"""


class Numbers(NamedTuple):
    """A vocabulary unfolded; *places* are those in the vector of weights, -1 = none."""

    square: np.ndarray
    """uint16[2**24]: number of a 3x3 code, the side to move black; 0 = no sensible move there"""
    square_places: np.ndarray
    """int32[numbers, 3]: places of what the codes of one number have in common: coarse, fine, save-atari"""
    contexts: HashTable
    """values int32[H + 1, 16]: places by cell of the diamond around the last move, from FIRST_CELL on"""
    nakade: np.ndarray
    """int32[8192]: places"""
    diamonds: HashTable
    """values int32[H + 1, 4]: the place, at DIAMOND_PLACE"""
    single: int
    """where the single features start"""
    is_tree: bool


def folded_responses(contexts: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The smallest image of each context and cell together under the symmetries of the board.

    Args:
        contexts: int64[n].
        cells: int64[n], 0 to 11: the cell of the response in the context's diamond.
    Returns:
        int64[n]: as in ``Vocabulary.responses``.
    """
    images = []
    for places in DIAMOND_IMAGES:
        # Cell ``to`` of the image shows cell ``places[to]``, so a cell moves to where it is shown.
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
    """Index of each pattern among the known ones, -1 where it is none of them.

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
    """Where the search for a key begins in a table of ``last`` rows."""
    return np.int64((np.uint64(key) * GOLDEN) >> np.uint64(30)) & (last - 1)


@inlined_kernel
def find(keys, key):
    """Row of a key in a hash table; the last one if the key is not there.

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
    """Give each key a row; a key that comes twice has the same both times."""
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
    """A hash table, two thirds full at most.

    Args:
        keys: int64[n], 0 or more.
        values: [n, m] of the table's dtype; they go into the last m columns.
        missing: what the last m columns hold where no key is.
        columns: of the table; the first 8 bytes of a row are the key.
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
    """Number the codes that are not fine: their coarse code's number, the next one if the move saves a chain."""
    for code in range(N_CODES):
        if square[code] == 0 and is_sensible_code(code):
            square[code] = coarse_number[coarse_code(code)] + is_rescue(code)


def _number_squares(words: Vocabulary) -> np.ndarray:
    """``square`` of :class:`Numbers`: fine codes from 1 on, then two for each coarse code, then two for unseen ones."""
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
    """``square_places`` of :class:`Numbers`."""
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
    """All images of all known contexts, and for each the places of its responses by cell, int32[n, 12]."""
    contexts, cells = words.responses >> CELL_BITS, words.responses & ((1 << CELL_BITS) - 1)
    images = np.concatenate([permuted(contexts, places) for places in DIAMOND_IMAGES])
    shown_at = np.concatenate([np.argsort(places)[cells] for places in DIAMOND_IMAGES])
    known, rows = np.unique(images, return_inverse=True)
    response = np.full((len(known), N_CELLS), -1, np.int32)
    response[rows, shown_at] = words.starts[2] + np.tile(np.arange(len(contexts)), len(DIAMOND_IMAGES))
    return known, response


def unfold(words: Vocabulary, like: tuple[Vocabulary, Numbers] | None = None) -> Numbers:
    """Spell a vocabulary out in tables.

    Args:
        like: another vocabulary, unfolded; if it has the same 3x3 patterns, their table is shared (32 MiB).
    Raises:
        ValueError: more 3x3 patterns than there are numbers.
    """
    starts = words.starts
    nakade = number(folded_nakade(), words.nakade)
    diamonds = np.concatenate([permuted(words.diamonds, places) for places in DIAMOND_IMAGES])
    diamond_places = starts[4] + np.tile(np.arange(len(words.diamonds)), len(DIAMOND_IMAGES))
    if like is not None and all(map(np.array_equal, words[:2], like[0][:2])):
        square = like[1].square
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
