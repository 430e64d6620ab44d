"""Whole numbers of pieces of work, nearly all of them up to some number: as a set in memory, as ranges in files."""

from collections.abc import Sequence

import numpy as np


class Numbers:
    """A set of numbers from 0 that only grows; it takes a byte for each up to the largest, gaps included."""

    def __init__(self, ranges: list[list[int]]) -> None:
        """Those of some ranges, as :func:`ranges_of` gives them."""
        self._is_there, self._count = np.zeros(0, bool), 0
        """bool, by number, as far as it was asked for; and how many are there"""
        self.add(numbers_of(ranges))

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def __contains__(self, number: int) -> bool:
        """Whether a number is there."""
        return number < len(self._is_there) and bool(self._is_there[number])

    def has(self, numbers: np.ndarray) -> np.ndarray:
        """bool[K]: which of these (int64[K]) are there."""
        if len(numbers) and (largest := int(numbers.max())) >= len(self._is_there):
            self._is_there = np.concatenate([self._is_there, np.zeros(largest + 1, bool)])
        return self._is_there[numbers]

    def add(self, numbers: np.ndarray | Sequence[int]) -> None:
        """Put numbers in, some of which may be there."""
        given = np.asarray(numbers, np.int64)
        new = np.unique(given[~self.has(given)])
        self._is_there[new] = True
        self._count += len(new)

    def ranges(self) -> list[list[int]]:
        """All of them, as ranges."""
        # A million numbers take 10 ms this way, and seconds where they are sorted as by ranges_of.
        edges = np.flatnonzero(np.diff(self._is_there, prepend=False, append=False))
        return [[first, after - 1] for first, after in edges.reshape(-1, 2).tolist()]


def ranges_of(numbers: np.ndarray) -> list[list[int]]:
    """Whole numbers as ranges: the first and the last of each."""
    numbers = np.unique(numbers)
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) > 1)
    return [[int(a), int(b)] for a, b in zip(numbers[[0, *(ends + 1)]], numbers[[*ends, -1]], strict=True)]


def numbers_of(ranges: list[list[int]]) -> np.ndarray:
    """int64: the numbers of :func:`ranges_of`."""
    return np.concatenate([np.zeros(0, np.int64), *(np.arange(a, b + 1) for a, b in ranges)])
