"""Terminal output of the commands: bars, tables and lines."""

import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from engine.config.declaration import core_count

RESUMES = "run the same command again to resume"

INTERRUPTED = 130
"""Exit status after Ctrl-C, the one that shells use"""
WIDTH = 100
"""Maximum width of a table, in characters"""
SMALL_BYTES = 4 << 20
"""Total size of game files, in bytes, below which one process reads them faster than several"""


def workers_for(sources: Iterable[Path]) -> int:
    """Number of processes for reading game files: one per core, or a single one below ``SMALL_BYTES``."""
    from engine.records.archive import disk_bytes  # imports numpy

    return 1 if sum(map(disk_bytes, sources)) < SMALL_BYTES else core_count()


def bar(console: Console, *columns: ProgressColumn, **options: Any) -> Progress:
    """A progress bar with a description and columns, by default the count and the time left.

    Args:
        options: options of rich's ``Progress``.
    """
    last = columns or (MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), BarColumn(), *last, console=console, **options)


def progress_bar(console: Console, last: ProgressColumn | None = None) -> Progress:
    """A progress bar that vanishes at the end, and is shown only at a terminal.

    Args:
        last: the column on the right; None = elapsed time.
    """
    columns = MofNCompleteColumn(), last or TimeElapsedColumn()
    return bar(console, *columns, transient=True, disable=not console.is_terminal)


def say(console: Console, text: str) -> None:
    """Print a line without markup, highlighting and wrapping."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def new_table(*columns: str, right: Collection[int] | None = None, folds: bool = False) -> Table:
    """An empty table.

    Args:
        right: indices of right-aligned columns; None = all but the first.
        folds: wrap cells that are too wide for the terminal; else the table gets wider.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, column in enumerate(columns):
        is_number = i > 0 if right is None else i in right
        made.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=not folds)
    return made


def show_text(*items: Any, width: int = 0) -> None:
    """Print to standard output, at most ``WIDTH`` wide unless a width is given."""
    console = Console(highlight=False, markup=False)
    console.width = width or min(console.width, WIDTH)
    console.print(*items, sep="\n", soft_wrap=True)


UPDATE_S = 0.2


def compile_bar(counts: Callable[[], tuple[int, int]], finished: threading.Event) -> None:
    """Show a progress bar on standard error until ``finished`` is set.

    Args:
        counts: returns the numbers of compiled kernels and of all kernels.
    """
    columns = (TextColumn("compiling kernels (once)"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")
        while not finished.wait(UPDATE_S):
            done, total = counts()
            progress.update(task, completed=done, total=total)
