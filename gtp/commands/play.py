"""Moves: the client's and ours."""

from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import Registry

COMMANDS = Registry()


@COMMANDS.command("play")
def play(host: Host, color: str, vertex: str) -> None:
    """Play a move for a player, whoever's turn it is."""
    host.player.play(arguments.color(color), arguments.vertex(host, vertex))


@COMMANDS.command("genmove")
def genmove(host: Host, color: str) -> str:
    """Choose and play a move for a player, whoever's turn it is: a vertex, pass or resign."""
    from engine.player import RESIGN

    move = host.player.genmove(arguments.color(color))
    return "resign" if move == RESIGN else arguments.vertices(host, [move])


@COMMANDS.command("reg_genmove")
def reg_genmove(host: Host, color: str) -> str:
    """Choose a move for a player without playing it."""
    return arguments.vertices(host, [host.player.genmove(arguments.color(color), update=False)])


@COMMANDS.command("undo")
def undo(host: Host) -> None:
    """Take the last move back."""
    host.player.undo()
