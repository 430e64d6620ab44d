"""How compiling looks to people at a terminal, and compiling ahead of play: ``python -m gtp.cli.progress``."""

import threading
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from engine.nets.files.header import expected_input
from gtp.startup import compile_progress
from weights import DEFAULT, find_network

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
