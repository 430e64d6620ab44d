"""The command ``keima``: a group whose subcommands are imported only when they are called.

Importing torch takes seconds, and a GTP client wants to know who we are at once; so nothing here imports more than
click, the options and the text layer until a subcommand runs.
"""

import importlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions
from engine.go.rules import rules_named, twice_komi
from gtp.commands import COMMANDS
from gtp.host import Host
from gtp.log import LoggedOutput, LoggedReader
from gtp.options import network_of, options_from, options_of, settings_option
from gtp.session import Output, Session
from gtp.settings import SECTIONS, render, with_whole_paths
from gtp.startup import Settings, greet, load_player

SUBCOMMANDS = {
    "gtp": ("gtp.cli:gtp", "Play: speak GTP on standard input and output."),
    "doctor": ("gtp.doctor:doctor", "Check that everything works here, and say what to fix."),
    "match": ("bench.match:command", "Let two GTP engines play a match."),
    "benchmark": ("bench.benchmark:command", "Find the fastest settings for this machine."),
    "weights": ("gtp.weights_commands:weights_group", "Show, check, find and convert network files."),
    "train": ("engine.train.commands:train", "Train networks on game records and teacher's labels."),
    "data": ("engine.records.commands:data", "Make training data from game records, and look at it."),
    "evaluate": ("engine.train.evaluate_commands:evaluate", "Measure networks on held-out positions."),
}
"""Name -> where the command is defined, and its line of help"""


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


@click.command(context_settings={"show_default": True})
@settings_option(*SECTIONS)
@click.option("--print-config", is_flag=True, help="print a complete settings file with the values in force, and end")
@options_of(SetupOptions)
@options_of(PlayOptions)
@options_of(SearchOptions)
@options_of(SessionOptions)
@click.pass_context
def gtp(ctx: click.Context, config: Path | None, print_config: bool, **values: Any) -> None:
    """Play: speak GTP on standard input and output.

    A move takes as long as the client's clock allows; without a clock --seconds, or as many as --visits need.
    """
    if values["visits"] and not _is_as_near(ctx, "seconds", "visits"):
        values["seconds"] = 0.0
    try:
        rules_named(values["rules"])
        twice_komi(values["komi"])
        setup, play, search, _ = (options_from(kind, values) for kind in SECTIONS)
        network = network_of(ctx, config, setup.weights)
        if print_config:
            text = render(with_whole_paths(values, Path.cwd()))
            # As bytes, since TOML is UTF-8 whatever the terminal speaks.
            click.echo(text.encode(), nl=False)
            return
        log_file = with_whole_paths(values, Path.cwd())["log_file"]
        output = LoggedOutput(Path(log_file)) if log_file else Output()
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if sys.stdin is not None and sys.stdin.isatty():
        greet()
    if ctx.default_map:
        print(f"settings from {config}", file=sys.stderr)
    status = converse(Settings(setup, play, search, network), output)
    if isinstance(output, LoggedOutput):
        output.note_end(status)
    # Threads that are importing, compiling or waiting for input must not delay the end, nor crash in it.
    os._exit(status)


def _is_as_near(ctx: click.Context, name: str, other: str) -> bool:
    """Whether an option was given on the command line, or in the same place as another one."""
    source = ctx.get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ctx.get_parameter_source(other))


def converse(settings: Settings, output: Output) -> int:
    """Speak GTP while the player is being loaded, and then with it; returns the exit status."""
    host = Host(COMMANDS)
    reader = LoggedReader(output.log) if isinstance(output, LoggedOutput) else None
    session = Session(COMMANDS, host, output, reader)

    def load() -> None:
        try:
            host.provide(load_player(settings, host.begin))
        except Exception as error:
            # What is wrong with a setting says so itself; anything else is a fault of ours or of the machine.
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            session.fail(kind + " ".join(str(error).split()))

    threading.Thread(target=load, name="load", daemon=True).start()
    return session.run()


if __name__ == "__main__":
    main()
