"""Analysis: a search without a time limit, and the moves it is told to leave out.

An analysis is a search like any other, so its tree is there for the move or the analysis that comes next. It ends with
an interruption; a tree that has reached the limit of memory is only reported on from then on.
"""

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.go.geometry import PASS, cell_count
from engine.search.batch import MAX_DEPTH
from engine.search.report import Report, Watcher
from engine.search.search import Search


@dataclass(frozen=True)
class Bar:
    """Moves that one player is not to think of."""

    color: int
    points: Collection[int]
    """PASS may be one of them"""
    depth: int
    """how many moves ahead, 1 or more; 1 = at the root alone"""
    inverted: bool = False
    """all other moves are barred instead"""


def bars_by_depth(bars: Sequence[Bar], size: int, color: int) -> np.ndarray | None:
    """What :meth:`engine.search.search.Search.run` must be told to keep these moves out; None without any.

    Below the root nobody is barred from passing: there must always be a move.

    Args:
        color: to move at the root.
    Returns:
        bool[D, L]: by depth and point, True = barred.
    """
    barred = np.zeros((min(MAX_DEPTH, max((bar.depth for bar in bars), default=0)), cell_count(size)), bool)
    for bar in bars:
        named = np.zeros(cell_count(size), bool)
        named[list(bar.points)] = True
        first = 0 if bar.color == color else 1
        barred[first : bar.depth : 2] |= ~named if bar.inverted else named
    barred[1:, PASS] = False
    rows = np.flatnonzero(barred.any(axis=1))
    return barred[: rows[-1] + 1] if len(rows) else None


def analyze(search: Search, interrupted: threading.Event, watcher: Watcher, barred: np.ndarray | None) -> None:
    """Search the position that the search has been given, until interrupted.

    Raises:
        RuntimeError: the network failed.
    """
    if interrupted.is_set():
        return

    def tell(report: Report) -> None:
        # Who has interrupted wants no more of it, though the search still has some leaves to bring home.
        if not interrupted.is_set():
            watcher.on_report(report)

    last = search.run(watcher=replace(watcher, on_report=tell), interrupt=interrupted, barred=barred)
    due_s = time.perf_counter()
    while not interrupted.wait(max(0.0, due_s - time.perf_counter())):
        watcher.on_report(last)
        due_s += watcher.interval_s
