"""What the commands that make data in bulk share: options of what differs from game to game, and a run with a bar."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.go.rules import Rules, rules_from
from engine.nets.on_device import choose_device
from engine.selfplay.variety import Komi, Shares, Variety, parse_share, read_komi, read_temperature
from engine.system.signals import StopOnSignal
from gtp.cli.arguments import Whole, parsed
from gtp.cli.options import Decorator, with_options
from gtp.cli.terminal import bar, one_line_errors
from weights import NetworkPath, files_of

GOES_ON = "the same command goes on from here"
OUT_OPTION = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="folder to make, or to go on with"
)


class Effort(NamedTuple):
    """What a run may use."""

    device: torch.device
    threads: int
    """processors that networks take; 0 = all"""
    at_once: int
    """rows of a batch"""


def share(metavar: str, read: Callable[[str], Any], *default: str, text: str, usual: str = "") -> dict[str, Any]:
    """What the options ``WHAT=SHARE`` have in common: several may be given, a share left out is 1.

    Args:
        usual: what holds where none is given, in words; empty = the default says it.
    """
    callback = parsed(partial(parse_share, read=read))
    return {"multiple": True, "callback": callback, "metavar": metavar, "default": default, "help": text,
            "show_default": usual or True}  # fmt: skip


def variety_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--rules``, ``--komi`` and ``--temperature``, which the command gets as ``variety``."""

    @wraps(function)
    def command(*, rules: Shares[Rules], komi: Shares[Komi], temperature: Shares[float], **rest: Any) -> Any:
        return function(variety=Variety(rules, komi, temperature), **rest)

    options: tuple[Decorator, ...] = (
        click.option("--rules", **share("NAME=SHARE", rules_from, "chinese", text="rules (docs/rules.md)")),
        click.option("--komi", **share(
            "KOMI=SHARE", read_komi, "usual",
            text="komi: usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
        )),
        click.option("--temperature", **share("T=SHARE", read_temperature, "1", text="temperature of the policy")),
    )  # fmt: skip
    return with_options(command, options)


def machine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--device`` and ``--threads``."""
    options = (
        click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps"),
        click.option("--threads", default=0, type=Whole(0), help="processors that networks take; 0 = all"),
    )
    return with_options(function, options)


def effort_options(at_once: Mapping[str, int], what: str) -> Decorator:
    """Decorator: ``--device``, ``--threads`` and ``--at-once``, which the command gets as ``effort``.

    Args:
        at_once: by default, by device.
        what: a batch is of.
    """
    usual = f"{at_once['cpu']} on a processor, {at_once['gpu']} on a GPU"

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*, device: str, threads: int, **rest: Any) -> Any:
            with one_line_errors():
                chosen = choose_device(device)
            batch = rest.pop("at_once") or at_once["cpu" if chosen.type == "cpu" else "gpu"]
            return function(effort=Effort(chosen, threads, batch), **rest)

        return machine_options(
            click.option("--at-once", type=Whole(1), show_default=usual, help=f"{what} of a batch")(command)
        )

    return decorate


def identity(path: NetworkPath, name: str) -> dict[str, str]:
    """What data say of the network that made them: its name and the SHA-256 of its file, or of both of its files."""
    digest = hashlib.sha256()
    for file in files_of(path):
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
    columns = (MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with StopOnSignal(stop), bar(console, *columns) as progress:
        begun = count()
        task = progress.add_task("", total=total, completed=begun, rate="")

        def report() -> None:
            elapsed = progress.tasks[0].elapsed or 0
            rate = (count() - begun) / elapsed if elapsed else 0.0
            shown = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
            progress.update(task, completed=count(), rate=shown if rate else "")

        run(report)
