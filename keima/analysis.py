"""A search whose results come while it runs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from typing import Self

from engine.inference.server import NetworkFailed
from engine.search.report import Report
from keima.info import Info


class Analysis:
    """A running search, from :meth:`keima.Engine.analysis`: iterate over its results, in a loop or an async loop.

    A reader that is slower than the search gets the newest results. Leaving the loop, or the ``with`` block, stops the
    search. Threads: any; one iterates.
    """

    def __init__(self, info_of: Callable[[Report], Info], cancel: "Callable[[Future[Report | None]], None]") -> None:
        self._info_of, self._cancel = info_of, cancel
        self._lock = threading.Lock()
        """guards all that follows"""
        self._latest: Info | None = None
        self._is_new = False
        """whether the latest results have not been iterated over"""
        self._next: Future[None] | None = None
        """done once there are new results or the search has ended; None = no iterator waits"""
        self._search: Future[Report | None] | None = None
        self._is_done = False

    def _begin(self, search: "Future[Report | None]") -> None:
        """Follow a search, which may run already."""
        self._search = search
        search.add_done_callback(self._on_end)

    @property
    def info(self) -> Info | None:
        """The latest results; None = none yet."""
        return self._latest

    @property
    def is_done(self) -> bool:
        """Whether the search has ended."""
        return self._is_done

    def stop(self) -> None:
        """Stop the search; returns at once. The loop then ends with the last results."""
        if self._search is not None:
            self._cancel(self._search)

    def wait(self) -> Info | None:
        """Wait until the search has ended; returns its last results, None if it was stopped before it had any.

        Raises:
            RuntimeError: the network failed; one line.
        """
        while not self._is_done:
            self._news().result()
        self._raise()
        return self._latest

    def __iter__(self) -> Iterator[Info]:
        try:
            while True:
                self._news().result()
                if (info := self._take()) is None:
                    return
                yield info
        finally:
            self.stop()

    async def __aiter__(self) -> AsyncIterator[Info]:
        try:
            while True:
                await asyncio.wrap_future(self._news())
                if (info := self._take()) is None:
                    return
                yield info
        finally:
            self.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    def _on_report(self, report: Report) -> None:
        """Take results of the running search. Threads: the engine's."""
        self._keep(self._info_of(report))

    def _on_end(self, search: "Future[Report | None]") -> None:
        """Take the last results. Threads: the engine's, or one that cancels."""
        report = None if search.cancelled() or search.exception() else search.result()
        # Without a new visit, the latest results are the last ones.
        is_news = report is not None and report.visits and (self._latest is None or self._latest.visits < report.visits)
        self._keep(self._info_of(report) if report is not None and is_news else None, is_done=True)

    def _keep(self, info: Info | None, is_done: bool = False) -> None:
        """Keep new results, and wake the one who waits for them or for the end."""
        with self._lock:
            self._is_done = is_done
            if info is not None:
                self._latest, self._is_new = info, True
            waiting, self._next = self._next, None
        if waiting is not None and waiting.set_running_or_notify_cancel():
            waiting.set_result(None)

    def _news(self) -> "Future[None]":
        """A future that is done once there are new results or the search has ended."""
        with self._lock:
            if self._next is None or self._next.cancelled():
                self._next = Future()
            news = self._next
            if not (self._is_new or self._is_done):
                return news
            self._next = None
        news.set_result(None)
        return news

    def _take(self) -> Info | None:
        """The new results; None = there are none, and the search has ended.

        Raises:
            RuntimeError: the network failed.
        """
        with self._lock:
            if self._is_new:
                self._is_new = False
                return self._latest
        self._raise()
        return None

    def _raise(self) -> None:
        """Raise the error of the search, if there was one."""
        search = self._search
        if search is not None and search.done() and not search.cancelled() and (error := search.exception()):
            raise unwrapped(error) from None


def unwrapped(error: BaseException) -> BaseException:
    """The error that a caller gets: of a failed network itself, which the player turns into another for GTP."""
    return error.__cause__ if isinstance(error.__cause__, NetworkFailed) else error
