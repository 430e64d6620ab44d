"""What the commands share at a terminal: arguments of their own kinds, errors in one line, bars and tables."""

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from engine.config.declaration import core_count
from engine.records.archive import disk_bytes

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it"""
WIDTH = 100
"""Widest table; a narrower terminal has its own way"""
SMALL_BYTES = 4 << 20
"""Less than this is read before worker processes would have started."""
PATHS = click.Path(exists=True, path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="JSON instead of tables")


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
    return 1 if sum(map(disk_bytes, sources)) < SMALL_BYTES else core_count()


def parsed(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of an option whose text a function reads, each of them where it is repeated.

    Args:
        read: raises ``ValueError`` with what it expected.
    """

    def convert(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            if isinstance(value, tuple):
                return tuple(map(read, value))
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return convert


class NewFile(click.Path):
    """A file that is to be written at the end of long work: what forbids it, or its folders, is said before."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See :meth:`click.ParamType.convert`."""
        found: Path = super().convert(value, param, ctx)  # type: ignore[assignment]  # as path_type says
        there = next(folder for folder in found.absolute().parents if folder.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            self.fail(f"{there} is no folder that can be written to.", param, ctx)
        return found


class FiniteRange(click.FloatRange):
    """A range of numbers that are numbers: click's lets nan pass, which is neither below nor above a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See :meth:`click.ParamType.convert`."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return found


def bar(console: Console, *columns: ProgressColumn, **options: Any) -> Progress:
    """A progress bar: a description, the bar and some columns, by default the count and the time left.

    Args:
        options: of rich's ``Progress``.
    """
    last = columns or (MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), BarColumn(), *last, console=console, **options)


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
