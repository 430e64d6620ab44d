"""Whole numbers of pieces of work, nearly all of them up to some number: as a set in memory, as ranges in files."""

from collections.abc import Iterable

import numpy as np


class Numbers:
    """A set of numbers from 0 that only grows; it takes memory for those above its first gap.

    Games end about in the order of their numbers, so a run of millions has a few hundred there.
    """

    def __init__(self, ranges: list[list[int]]) -> None:
        """Those of some ranges, as :func:`ranges_of` gives them."""
        self._below = 0
        """all numbers below are in the set, and this one is not"""
        self._above: set[int] = set()
        for first, last in ranges:
            if first <= self._below:
                self._below = max(self._below, last + 1)
            else:
                self._above.update(range(first, last + 1))

    def __len__(self) -> int:
        """How many there are."""
        return self._below + len(self._above)

    def __contains__(self, number: int) -> bool:
        """Whether a number is there."""
        return number < self._below or number in self._above

    def add(self, numbers: Iterable[int]) -> None:
        """Put numbers in, some of which may be there."""
        self._above.update(number for number in numbers if number >= self._below)
        while self._below in self._above:
            self._above.remove(self._below)
            self._below += 1

    def ranges(self) -> list[list[int]]:
        """All of them, as ranges."""
        lowest = [[0, self._below - 1]] if self._below else []
        return lowest + ranges_of(np.fromiter(self._above, np.int64))


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
