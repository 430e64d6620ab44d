"""Analysis: a search without a time limit.

An analysis is a search like any other, so its tree is there for the move or the analysis that comes next. It ends with
an interruption; a tree that has reached the limit of memory is only reported on from then on.
"""

import threading
import time
from dataclasses import replace

from engine.search.endings import RootEnding
from engine.search.move_filter import MoveFilter
from engine.search.report import Report, Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits

OWNERSHIP_S = 0.1
"""The longest that an analysis waits for the network's ownership before its search: updates are to come at once"""


def analyze(
    search: Search,
    interrupted: threading.Event,
    watcher: Watcher,
    moves: MoveFilter,
    wide_root_noise: float = 0.0,
    ending: RootEnding | None = None,
) -> None:
    """Search the position that the search has been given, until interrupted.

    Args:
        wide_root_noise, ending: as of :meth:`engine.search.search.Search.run`; reports are given the ending.
    Raises:
        RuntimeError: the network failed.
    """
    if interrupted.is_set():
        return

    deadline_s = time.perf_counter() + OWNERSHIP_S
    shows_ending = ending is not None and ending.matters(
        lambda: search.network_ownership_black(deadline_s, interrupted)
    )

    def tell(report: Report) -> None:
        # After an interruption no more is wanted, though the search still has some leaves to bring home.
        if not interrupted.is_set():
            watcher.on_report(ending.applied(report) if shows_ending and ending is not None else report)

    telling = replace(watcher, on_report=tell)
    limits = SearchLimits(interrupt=interrupted)
    last = search.run(limits, moves, telling, wide_root_noise=wide_root_noise, ending=ending)
    due_s = time.perf_counter()
    while not interrupted.wait(max(0.0, due_s - time.perf_counter())):
        tell(last)
        due_s += watcher.interval_s
