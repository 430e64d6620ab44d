"""What the commands share at a terminal: errors in one line, bars and tables."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
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
from engine.nets.files.header import expected_input
from gtp.startup import compile_progress
from weights import DEFAULT, find_network

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it"""
WIDTH = 100
"""Widest table; a narrower terminal has its own way"""
SMALL_BYTES = 4 << 20
"""Less than this is read before worker processes would have started."""


@contextmanager
def one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """What went wrong, as a command says it: ``ValueError``, ``OSError`` and some kinds besides, in one line."""
    caught: tuple[type[Exception], ...] = (ValueError, OSError, *kinds)
    try:
        yield
    except caught as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def workers_for(sources: Iterable[Path]) -> int:
    """Processes to read game files with: one a core, but one alone for what is read before others have started."""
    from engine.records.archive import disk_bytes  # brings numpy along

    return 1 if sum(map(disk_bytes, sources)) < SMALL_BYTES else core_count()


def bar(console: Console, *columns: ProgressColumn, **options: Any) -> Progress:
    """A progress bar: a description, the bar and some columns, by default the count and the time left.

    Args:
        options: of rich's ``Progress``.
    """
    last = columns or (MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), BarColumn(), *last, console=console, **options)


def progress_bar(console: Console, last: ProgressColumn | None = None) -> Progress:
    """A bar that vanishes at the end; none where standard error is no terminal.

    Args:
        last: the column on the right; None = the time passed.
    """
    columns = MofNCompleteColumn(), last or TimeElapsedColumn()
    return bar(console, *columns, transient=True, disable=not console.is_terminal)


def say(console: Console, text: str) -> None:
    """Print one line as it is: no markup, no highlighting, no wrapping."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def new_table(*columns: str, right: Collection[int] | None = None, folds: bool = False) -> Table:
    """An empty table.

    Args:
        right: the columns of numbers; None = all but the first.
        folds: cells too wide for the terminal continue below; else the table is wider.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, column in enumerate(columns):
        is_number = i > 0 if right is None else i in right
        made.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=not folds)
    return made


def tell(*items: Any, width: int = 0) -> None:
    """To standard output, no wider than people read, unless a width is given."""
    console = Console(highlight=False, markup=False)
    console.width = width or min(console.width, WIDTH)
    console.print(*items, sep="\n", soft_wrap=True)


UPDATE_S = 0.2


def compile_bar(counts: Callable[[], tuple[int, int]], finished: threading.Event) -> None:
    """A bar on standard error until the event is set; see :data:`gtp.startup.bar`."""
    columns = (TextColumn("compiling kernels (once)"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")
        while not finished.wait(UPDATE_S):
            done, total = counts()
            progress.update(task, completed=done, total=total)


def compile_ahead(encoder: str) -> None:
    """Compile all that play with such networks calls, as far as no earlier start has, on all cores."""
    from engine.play import ahead

    if not ahead.missing(encoder):
        return
    helpers = ahead.start_helpers(encoder)
    with compile_progress(encoder, tuple(ahead.KERNELS)):
        ahead.compile_kernels(encoder)
        for helper in helpers:
            helper.wait()


if __name__ == "__main__":
    from gtp import startup

    startup.bar = compile_bar
    expected = expected_input(find_network(DEFAULT))
    if expected:
        compile_ahead(expected.encoder)
