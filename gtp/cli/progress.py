"""How compiling looks to people at a terminal."""

import threading
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

UPDATE_S = 0.2


def compile_bar(counts: Callable[[], tuple[int, int]], finished: threading.Event) -> None:
    """A bar on standard error until the event is set; see :data:`gtp.startup.bar`."""
    columns = (TextColumn("compiling kernels (once)"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")
        while not finished.wait(UPDATE_S):
            done, total = counts()
            progress.update(task, completed=done, total=total)
