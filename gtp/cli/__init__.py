"""The command ``keima``: a group whose subcommands are imported only when they are called; their common style of help.

Importing torch takes seconds, and a GTP client asks for our name at once; so nothing here imports more than
click.
"""

import importlib
import importlib.util
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click

OURS = ("engine", "gtp", "bench", "weights")
PROJECT = "keima"
HOME = Path(__file__).resolve().parents[2]
"""The folder of our packages"""
FIX = "install Keima into a virtual environment of its own, or uninstall the other package"


def shadows() -> Iterator[str]:
    """A line for each of our packages that another package of the same name shadows: the names are common words."""
    import importlib.metadata  # Not at every start: a fifth of the time until the first answer.

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


class KeimaCommand(click.Command):
    """A command of ``keima``."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """See :meth:`click.Command.get_help_option`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this message and exit"
        return option


class KeimaGroup(KeimaCommand, click.Group):
    """A command with subcommands."""

    command_class = KeimaCommand


SUBCOMMANDS = {
    "gtp": ("gtp.cli.play:gtp", "Play: speak GTP on standard input and output"),
    "analysis": (
        "gtp.cli.analysis:analysis",
        "Analyse positions: speak KataGo's JSON protocol on standard input and output",
    ),
    "review": ("gtp.cli.review:review", "Review games: say what each move cost and what was better"),
    "doctor": ("gtp.cli.doctor:doctor", "Check that everything works here, and say what to fix"),
    "match": ("bench.match.command:command", "Let two GTP engines play a match, and print the Elo difference"),
    "benchmark": ("bench.speed.benchmark:command", "Find the settings that play strongest on this machine"),
    "weights": ("gtp.cli.weights:weights_group", "Show, check, find, convert and average network files"),
    "train": ("gtp.cli.train:train", "Train networks on game records and teacher's labels"),
    "data": ("gtp.cli.data:data", "Make training data from game records, and look at it"),
    "alphago": ("gtp.cli.alphago:alphago", "Build AlphaGo of 2016 whole, and measure what its parts are worth"),
    "zero": ("gtp.cli.zero:zero", "Learn Go from nothing but self-play: AlphaGo Zero"),
    "evaluate": ("gtp.cli.evaluate:evaluate", "Measure a network or a pattern policy on held-out positions"),
}
"""Name -> where the command is defined, and the first sentence of its help"""


class LazyGroup(KeimaGroup):
    """A group that knows its subcommands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module, _, name = SUBCOMMANDS[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ImportError as error:
            if found := "; ".join(shadows()):
                raise click.ClickException(f"{found}; {FIX}") from error
            raise
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="Keima", help="show the version and exit")
def main() -> None:
    """Keima, a Go engine."""
    # File names may not be Unicode: characters that cannot be printed are escaped.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Without a working folder relative paths fail, and torch's libraries are not found.
    try:
        Path.cwd()
    except OSError as error:
        raise click.ClickException("the working folder no longer exists; change to another and start again") from error
