"""Administration: name, version, commands, and the end. Nothing here waits for the player."""

import time

from engine import __version__
from gtp.host import Host
from gtp.protocol import PROTOCOL_VERSION, CommandError, Registry

COMMANDS = Registry()


@COMMANDS.command("protocol_version")
def protocol_version(host: Host) -> str:
    """Version of GTP that is spoken here."""
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
    """Say whether a command can be used."""
    return "true" if command in host.commands and host.commands[command].is_listed else "false"


@COMMANDS.command("list_commands")
def list_commands(host: Host) -> str:
    """List all commands, one a line."""
    return "\n".join(command.name for command in host.commands.listed)


@COMMANDS.command("help")
def show_help(host: Host, command: str = "") -> str:
    """Explain a command, or all of them."""
    if command and command not in host.commands:
        raise CommandError("unknown command")
    if command:
        found = host.commands[command]
        return f"{found.usage}\n{found.summary}"
    return "\n".join(f"{found.usage}: {found.summary.splitlines()[0]}" for found in host.commands.listed)


@COMMANDS.command("quit")
def quit_session(host: Host) -> None:
    """End the session."""
    host.quitting = True


@COMMANDS.command("cputime")
def cputime(host: Host) -> str:
    """Processor time used so far, in seconds."""
    return f"{time.process_time():.3f}"
