"""What the rules say of the position: legal moves, and stones taken. The words are GNU Go's.

Source: the GNU Go program documentation, "GTP command reference".
"""

from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import Registry

COMMANDS = Registry()


@COMMANDS.command("is_legal")
def is_legal(host: Host, color: str, vertex: str) -> str:
    """Say whether a move is legal under the rules in force: 1 or 0."""
    return str(int(host.keeper.game.is_legal(arguments.color(color), arguments.vertex(host, vertex))))


@COMMANDS.command("all_legal")
def all_legal(host: Host, color: str) -> str:
    """List the points where a player may move."""
    return arguments.vertices(host, legal_points(host, arguments.color(color)))


@COMMANDS.command("captures")
def captures(host: Host, color: str) -> str:
    """The number of stones that a player has taken."""
    return str(host.keeper.game.captures(arguments.color(color)))


def legal_points(host: Host, color: int) -> list[int]:
    """The points where a colour may move, the top row first."""
    from engine.go.geometry import on_board_points

    game = host.keeper.game
    return [point for point in on_board_points(game.size).tolist() if game.is_legal(color, point)]
