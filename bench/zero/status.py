"""A run of ``keima zero`` on the terminal: one line that says what it does and waits for, and lines that stay."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench.terminal import say
from engine.selfplay.zero import Watch, Zero

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
        self._phase, self._said_s = "", 0.0

    def __enter__(self) -> "Shown":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._progress.stop()

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """See :class:`engine.selfplay.zero.Watch`."""
        count = f"{done:,.0f}/{total:,.0f}" if total > 1 else ""
        if phase != self._phase:
            self._progress.reset(self._task)
        self._progress.update(self._task, completed=done, total=total, phase=phase, count=count, words=words)
        is_due = phase != self._phase or time.monotonic() - self._said_s > LINES_S
        self._phase = phase
        if is_due and not self.console.is_terminal:
            self._said_s = time.monotonic()
            say(self.console, " ".join(filter(None, (f"{phase}:", count, words))))

    def say(self, line: str) -> None:
        """See :class:`engine.selfplay.zero.Watch`."""
        say(self.console, line)

    def measured(self, zero: Zero) -> None:
        """See :class:`engine.selfplay.zero.Watch`."""
