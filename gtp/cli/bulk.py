"""What the commands that make data in bulk share: options of what differs from game to game, and a run with a bar."""

import hashlib
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.go.rules import rules_from
from engine.selfplay.variety import parse_share, read_komi, read_temperature
from gtp.cli.options import Decorator
from gtp.cli.terminal import bar, parsed

GOES_ON = "the same command goes on from here"


def share(metavar: str, read: Callable[[str], Any], *default: str, text: str = "") -> dict[str, Any]:
    """What the options ``WHAT=SHARE`` have in common: several may be given, a share left out is 1."""
    callback = parsed(partial(parse_share, read=read))
    return {"multiple": True, "callback": callback, "metavar": metavar, "default": default, "help": text}


def variety_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--rules``, ``--komi`` and ``--temperature`` of a :class:`engine.selfplay.variety.Variety`."""
    options: tuple[Decorator, ...] = (
        click.option("--rules", **share("NAME=SHARE", rules_from, "chinese")),
        click.option("--komi", **share(
            "KOMI=SHARE", read_komi, "usual",
            text="usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
        )),
        click.option("--temperature", **share("T=SHARE", read_temperature, "1", text="of the policy as it plays")),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def identity(path: Path | tuple[Path, ...], name: str) -> dict[str, str]:
    """What data say of the network that made them: its name and the SHA-256 of its file, or of both of its files."""
    digest = hashlib.sha256()
    for file in path if isinstance(path, tuple) else (path,):
        digest.update(file.read_bytes())
    return {"name": name, "sha256": digest.hexdigest()}


def run_with_bar(
    console: Console, total: int, count: Callable[[], int], stop: Callable[[], None],
    run: Callable[[Callable[[], None]], None],
) -> None:  # fmt: skip
    """Run something that counts its work, with a bar; Ctrl-C and SIGTERM end it with everything kept.

    Args:
        count: how much of the total is done.
        stop: ends the run soon.
        run: called with a function that it calls now and then.
    """

    def stop_soon(*_: object) -> None:
        stop()

    handlers = {number: signal.signal(number, stop_soon) for number in (signal.SIGINT, signal.SIGTERM)}
    columns = (MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
    try:
        with bar(console, *columns) as progress:
            begun = count()
            task = progress.add_task("", total=total, completed=begun, rate="")

            def report() -> None:
                elapsed = progress.tasks[0].elapsed or 0
                rate = (count() - begun) / elapsed if elapsed else 0.0
                shown = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
                progress.update(task, completed=count(), rate=shown if rate else "")

            run(report)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
