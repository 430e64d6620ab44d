"""Administration: name, version, list of commands, quit. No command here waits for the player."""

import inspect
import re
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from engine import __version__
from gtp.host import Host
from gtp.protocol import PROTOCOL_VERSION, Command, Registry

COMMANDS = Registry()


@COMMANDS.command("protocol_version")
def protocol_version(host: Host) -> str:
    """Version of GTP."""
    return str(PROTOCOL_VERSION)


@COMMANDS.command("name")
def name(host: Host) -> str:
    """Name of the engine."""
    return host.name


@COMMANDS.command("version")
def version(host: Host) -> str:
    """Version of the engine."""
    return __version__


@COMMANDS.command("known_command")
def known_command(host: Host, command: str) -> str:
    """Whether the engine has a command: true or false."""
    return "true" if command in host.commands and host.commands[command].is_listed else "false"


@COMMANDS.command("list_commands")
def list_commands(host: Host) -> str:
    """List all commands, one a line."""
    return "\n".join(command.name for command in host.commands.listed)


@COMMANDS.command("help")
def show_help(host: Host, command: str = "") -> str:
    """Explain a command, or list all by topic."""
    if not command:
        listed = families(host.commands.listed)
        return "\n".join(
            line for heading, found in listed for line in (heading, *(f"  {_explained(one)[0]}" for one in found))
        )
    return "\n".join(_explained(host.commands.find(command)))


def families(commands: Iterable[Command]) -> Iterator[tuple[str, list[Command]]]:
    """Yield each family of commands: the first sentence of its module's docstring, and its commands."""
    for module, found in groupby(commands, lambda command: command.function.__module__):
        text = " ".join((inspect.getdoc(sys.modules[module]) or "").split())
        yield re.sub(r"\.( .*)?$", "", text), list(found)


def _explained(command: Command) -> list[str]:
    """Lines of help: the command with its arguments and summary, then a line for each further paragraph of its help."""
    paragraphs = command.summary.replace("``", "").split("\n\n")
    first, *rest = (" ".join(paragraph.split()) for paragraph in paragraphs)
    return [f"{command.usage}: {first}", *rest]


@COMMANDS.command("quit")
def quit_session(host: Host) -> None:
    """End the session."""
    host.quitting = True


@COMMANDS.command("cputime")
def cputime(host: Host) -> str:
    """Processor time used so far, in seconds."""
    return f"{time.process_time():.3f}"
