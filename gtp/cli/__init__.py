"""The command ``keima``: a group that imports a subcommand when it is called, and the common base of all commands.

This module imports nothing heavier than click, since torch takes seconds and a GTP client's first questions come at
once.
"""

import importlib
import importlib.util
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from engine.system import whole_line

OURS = ("engine", "gtp", "bench", "weights", "keima")
PROJECT = "keima"
HOME = Path(__file__).resolve().parents[2]
"""Folder that holds Keima's packages, :data:`OURS`"""
FIX = "install Keima into a virtual environment of its own, or uninstall the other package"


def shadows() -> Iterator[str]:
    """Yield a message for each of Keima's packages that comes from another folder, or that others install too.

    Their names, :data:`OURS`, are common words.
    """
    import importlib.metadata  # not at every start: a fifth of the time until the first answer

    owners = importlib.metadata.packages_distributions()
    for name in OURS:
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec else []
        folder = Path(places[0]).resolve().parent if places else None
        if folder != HOME:
            yield f"{name} is imported from {folder}, expected {HOME}"
        if others := sorted(set(owners.get(name, [])) - {PROJECT}):
            yield f"{name} is also installed by {', '.join(others)}"


try:
    from engine import __version__
except ImportError as error:
    sys.exit(f"keima: {'; '.join(shadows()) or error}; {FIX}")


@contextmanager
def one_line_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Context manager: turn ``ValueError``, ``OSError`` and ``kinds`` into click's error with a message of one line."""
    caught: tuple[type[Exception], ...] = (ValueError, OSError, *kinds)
    try:
        yield
    except (click.exceptions.Exit, click.Abort, BrokenPipeError):  # click's own, of which two are RuntimeErrors
        raise
    except caught as error:
        raise click.ClickException(whole_line(error)) from error


class KeimaCommand(click.Command):
    """A command of ``keima``: ``ValueError``, ``OSError`` or ``RuntimeError`` end it with one line, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """See :meth:`click.Command.invoke`; turns errors into messages of one line."""
        with one_line_errors(RuntimeError):
            return super().invoke(ctx)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """See :meth:`click.Command.get_help_option`; rewords the help text of ``--help``."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this message and exit"
        return option


class KeimaGroup(KeimaCommand, click.Group):
    """A command with subcommands."""

    command_class = KeimaCommand


SUBCOMMANDS = {
    "play": ("gtp.cli.play:play", "Play a game in the browser"),
    "gtp": ("gtp.cli.gtp:gtp", "Play: speak GTP on standard input and output"),
    "analysis": (
        "gtp.cli.analysis:analysis",
        "Analyse positions: speak KataGo's JSON protocol on standard input and output",
    ),
    "review": ("gtp.cli.review:review", "Review games: say what each move cost and what was better"),
    "picture": ("gtp.cli.picture:command", "Draw a position of a game as a network and a search see it"),
    "doctor": ("gtp.cli.doctor:doctor", "Check that everything works here, and say what to fix"),
    "match": ("bench.match.command:command", "Let two GTP engines play a match, and print the Elo difference"),
    "benchmark": ("bench.speed.benchmark:command", "Find the settings that play strongest on this machine"),
    "weights": ("gtp.cli.weights:weights_group", "Show, check, find, get, convert and average network files"),
    "train": ("gtp.cli.train:train", "Train networks on game records and teacher's labels"),
    "data": ("gtp.cli.data:data", "Make training data from game records, and look at it"),
    "alphago": ("gtp.cli.alphago:alphago", "Build AlphaGo of 2016 whole, and measure what its parts are worth"),
    "zero": ("gtp.cli.zero:zero", "Learn Go from nothing but self-play: AlphaGo Zero"),
    "evaluate": ("gtp.cli.evaluate:evaluate", "Measure a network or a pattern policy on held-out positions"),
}
"""Subcommand -> ``module:attribute`` of its click command, and the first sentence of its help"""


class LazyGroup(KeimaGroup):
    """A group that lists its subcommands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module, _, name = SUBCOMMANDS[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except (ImportError, OSError) as error:
            if found := "; ".join(shadows()):
                raise click.ClickException(f"{found}; {FIX}") from error
            if "torch" in (getattr(error, "name", None) or str(error)):
                reason = whole_line(error)
                raise click.ClickException(
                    f"keima {cmd_name} needs PyTorch, which cannot be imported ({reason}), expected: pip install torch"
                ) from error
            raise
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="Keima", help="show the version and exit")
def main() -> None:
    """Keima, a Go engine."""
    # File names may not be valid Unicode: escape characters that cannot be printed.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # In a deleted working folder relative paths fail and torch's libraries are not found.
    try:
        Path.cwd()
    except OSError as error:
        raise click.ClickException("the working folder no longer exists; change to another and start again") from error
