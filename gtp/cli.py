"""The command ``keima``: a group whose subcommands are imported only when they are called.

Importing torch takes seconds, and a GTP client wants to know who we are at once; so nothing here imports more than
click, the options and the text layer until a subcommand runs.
"""

import importlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click
from click.core import ParameterSource

from engine import __version__
from engine.config import PlayOptions, SearchOptions, range_text
from engine.go.rules import rules_named, twice_komi
from gtp.commands import COMMANDS
from gtp.host import Host
from gtp.session import Output, Session
from gtp.startup import Settings, greet, load_player
from weights import DEFAULT, find_network

SUBCOMMANDS = {
    "gtp": ("gtp.cli:gtp", "Play: speak GTP on standard input and output."),
    "match": ("bench.match:command", "Let two GTP engines play a match."),
    "train": ("engine.train.commands:train", "Train networks on game records and teacher's labels."),
    "data": ("engine.records.commands:data", "Make training data from game records, and look at it."),
    "evaluate": ("engine.train.evaluate_commands:evaluate", "Measure networks on held-out positions."),
}
"""Name -> where the command is defined, and its line of help"""
NO_NETWORK = "none"


class LazyGroup(click.Group):
    """A group that knows its subcommands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module, _, name = SUBCOMMANDS[cmd_name][0].partition(":")
        return getattr(importlib.import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="Keima")
def main() -> None:
    """Keima, a Go engine."""


def options_of(kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: one command-line option for each field of an options class, with its help, unit and range.

    A switch that is on by itself is switched off by ``--no-NAME``.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for item in reversed(fields(kind)):
            name = "--" + item.name.replace("_", "-")
            text = item.metadata["help"]
            if isinstance(item.default, bool):
                flags = f"{name}/--no-{name[2:]}" if item.default else name
                function = click.option(flags, item.name, is_flag=True, default=item.default, help=text)(function)
                continue
            function = click.option(
                name,
                item.name,
                type=type(item.default),
                default=item.default,
                show_default=True,
                metavar=item.metadata["unit"] or ("N" if isinstance(item.default, int) else "X"),
                help=f"{text}; {range_text(item)}",
            )(function)
        return function

    return decorate


@click.command(context_settings={"show_default": True})
@click.option(
    "--weights",
    default=DEFAULT,
    metavar="NAME|PATH",
    help="network: a shipped one, a file, a policy and a value network as POLICY+VALUE, or none",
)
@click.option("--device", default="auto", help="where the network runs: auto, cpu, mps, cuda or cuda:0,cuda:1")
@click.option("--rules", default="chinese", metavar="NAME", help="tromp-taylor, chinese, japanese, korean, aga, ...")
@click.option("--komi", default=7.5, metavar="POINTS", help="White's points, in whole or half points")
@click.option("--size", default=19, type=click.IntRange(2, 25), help="board at the start, if the network plays it")
@options_of(PlayOptions)
@options_of(SearchOptions)
@click.pass_context
def gtp(ctx: click.Context, weights: str, device: str, rules: str, komi: float, size: int, **values: Any) -> None:
    """Play: speak GTP on standard input and output.

    A move takes as long as the client's clock allows; without a clock --seconds, or as many as --visits need.
    """
    if values["visits"] and ctx.get_parameter_source("seconds") is ParameterSource.DEFAULT:
        values["seconds"] = 0.0
    try:
        rules_named(rules)
        twice_komi(komi)
        settings = Settings(
            search=_pick(SearchOptions, values),
            play=_pick(PlayOptions, values),
            network=None if weights == NO_NETWORK else find_network(weights),
            device=device,
            rules=rules,
            komi=komi,
            size=size,
        )
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    output = Output()
    if sys.stdin is not None and sys.stdin.isatty():
        greet()
    status = converse(settings, output)
    # Threads that are importing, compiling or waiting for input must not delay the end, nor crash in it.
    os._exit(status)


def _pick(kind: type, values: dict[str, Any]) -> Any:
    """An options object of the values that belong to it."""
    return kind(**{item.name: values[item.name] for item in fields(kind)})


def converse(settings: Settings, output: Output) -> int:
    """Speak GTP while the player is being loaded, and then with it; returns the exit status."""
    host = Host(COMMANDS)
    session = Session(COMMANDS, host, output)

    def load() -> None:
        try:
            host.provide(load_player(settings))
        except Exception as error:
            # What is wrong with a setting says so itself; anything else is a fault of ours or of the machine.
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            session.fail(kind + " ".join(str(error).split()))

    threading.Thread(target=load, name="load", daemon=True).start()
    return session.run()


if __name__ == "__main__":
    main()
