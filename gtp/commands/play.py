"""Moves: the client's and ours, and how KGS ends a game.

Source of ``kgs-`` commands: kgsGtp's documentation.
"""

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


@COMMANDS.command("kgs-genmove_cleanup")
def kgs_genmove_cleanup(host: Host, color: str) -> str:
    """Like genmove, but capture all dead stones of the opponent before passing, and never resign."""
    return arguments.vertices(host, [host.player.genmove(arguments.color(color), cleanup=True)])


@COMMANDS.command("kgs-game_over")
def kgs_game_over(host: Host) -> None:
    """The game is over: stop thinking until the next command."""
    host.player.ponder.stop()


@COMMANDS.command("reg_genmove")
def reg_genmove(host: Host, color: str) -> str:
    """Choose a move for a player without playing it."""
    return arguments.vertices(host, [host.player.genmove(arguments.color(color), update=False)])


@COMMANDS.command("undo")
def undo(host: Host) -> None:
    """Take the last move back."""
    host.player.undo()
