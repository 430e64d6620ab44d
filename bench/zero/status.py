"""A run of ``keima zero`` on the terminal: one line that says what it does and waits for, and lines that stay.

The same words stand on the run's page, which is drawn from here.
"""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench.zero.ladder import Ladder
from bench.zero.page import write_page
from engine.selfplay.zero import Zero
from engine.selfplay.zero_turn import Watch
from gtp.cli.terminal import say

PAGE_S = 20.0
"""Between two drawings of the page while nothing new was measured"""
LINES_S = 30.0
"""Between two lines of the status where standard error is no terminal"""


class Shown(Watch):
    """The status; use as a context manager."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.fields[phase]}"), BarColumn(bar_width=20), TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(), TextColumn("{task.fields[words]}"),
        )  # fmt: skip
        self.console = console
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", phase="", count="", words="")
        self._phase, self._status = "", ""
        self._said_s = self._drawn_s = 0.0
        self._zero: Zero | None = None
        self._ladder: Ladder | None = None

    def __enter__(self) -> "Shown":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._progress.stop()

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """See :class:`engine.selfplay.zero_turn.Watch`."""
        count = f"{done:,.0f}/{total:,.0f}" if total > 1 else ""
        is_due = phase != self._phase or time.monotonic() - self._said_s > LINES_S
        if phase != self._phase:
            self._progress.reset(self._task)
        self._phase, self._status = phase, " ".join(filter(None, (f"{phase}:", count, words)))
        self._progress.update(self._task, completed=done, total=total, phase=phase, count=count, words=words)
        if is_due and not self.console.is_terminal:
            self._said_s = time.monotonic()
            say(self.console, self._status)
        if time.monotonic() - self._drawn_s > PAGE_S:
            self._draw()

    def say(self, line: str) -> None:
        """See :class:`engine.selfplay.zero_turn.Watch`."""
        say(self.console, line)

    def begins(self, zero: Zero, ladder: Ladder) -> None:
        """Draw the page of a run from now on."""
        self._zero, self._ladder = zero, ladder
        self._draw()

    def measured(self) -> None:
        """See :class:`engine.selfplay.zero_turn.Watch`."""
        self._draw()

    def ends(self) -> None:
        """Say on the page that nothing is being done any more."""
        self._status = "stopped; the same command goes on"
        self._draw()

    def _draw(self) -> None:
        """Write the page anew."""
        if self._zero and self._ladder:
            self._drawn_s = time.monotonic()
            write_page(self._zero, self._ladder.matches, self._status)
