"""The end of the game: result and status of stones."""

from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import Registry

COMMANDS = Registry()


@COMMANDS.command("final_score")
def final_score(host: Host) -> str:
    """The result as the rules count it once both have passed, dead stones taken off but under strict area rules
    (Tromp-Taylor's), where every stone on the board counts; before that an estimate."""
    return host.player.final_score()


@COMMANDS.command("final_status_list")
def final_status_list(host: Host, status: str) -> str:
    """List the stones that are alive, dead or in seki as final_score counts them, one chain a line."""
    return "\n".join(arguments.vertices(host, chain) for chain in host.player.final_status(status.lower()))
