"""The board, komi and handicap. Source of ``set_position``: KataGo, docs/GTP_Extensions.md."""

from contextlib import nullcontext

from engine.go.points import BLACK, WHITE
from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import CommandError, Registry, integer, number
from gtp.startup import compile_progress

COMMANDS = Registry()


@COMMANDS.command("boardsize")
def boardsize(host: Host, size: str, height: str = "") -> None:
    """Begin a game on an empty board of this size; komi and rules stay.

    Some clients ask for a rectangle by a second number; only squares are played.
    """
    width = integer(size)
    if height and integer(height) != width:
        raise CommandError(f"unacceptable size: {size}x{height} is not square")
    record = host.record
    # Until the player is there the one that loads it shows progress.
    with nullcontext() if host.is_loading else compile_progress():
        record.new_game(width)


@COMMANDS.command("rectangular_boardsize")
def rectangular_boardsize(host: Host, width: str, height: str) -> None:
    """Begin a game on an empty board of this width and height, which must be the same."""
    boardsize(host, width, height)


@COMMANDS.command("query_boardsize")
def query_boardsize(host: Host) -> str:
    """The size of the board."""
    return str(host.record.game.size)


@COMMANDS.command("clear_board")
def clear_board(host: Host) -> None:
    """Begin a game on an empty board of the same size; komi and rules stay."""
    host.record.new_game(host.record.game.size)


@COMMANDS.command("set_position")
def set_position(host: Host, *stones: str) -> None:
    """Begin a game from these stones, given as pairs of color and vertex; Black is to move. None = an empty board.

    Nothing is known of how they came there: no ko, no stones taken.
    """
    if not stones:
        clear_board(host)
        return
    pairs = arguments.moves(host, stones)
    black, white = ([point for side, point in pairs if side == color] for color in (BLACK, WHITE))
    host.record.set_up(black, white, BLACK)


@COMMANDS.command("komi")
def komi(host: Host, points: str) -> None:
    """Set the komi, in whole or half points; it stays for all games to come."""
    try:
        host.record.set_komi(number(points))
    except ValueError as error:
        raise CommandError(f"syntax error: {error}") from error


@COMMANDS.command("get_komi")
def get_komi(host: Host) -> str:
    """The komi in force."""
    return f"{host.record.game.komi:g}"


@COMMANDS.command("showboard")
def showboard(host: Host) -> str:
    """Draw the board."""
    return "\n" + host.keeper.diagram()


@COMMANDS.command("fixed_handicap")
def fixed_handicap(host: Host, stones: str) -> str:
    """Place handicap stones on their traditional points."""
    return arguments.vertices(host, host.record.fixed_handicap(integer(stones)))


@COMMANDS.command("place_free_handicap")
def place_free_handicap(host: Host, stones: str) -> str:
    """Place handicap stones where the engine likes."""
    return arguments.vertices(host, host.record.place_free_handicap(integer(stones)))


@COMMANDS.command("set_free_handicap")
def set_free_handicap(host: Host, *vertex: str) -> None:
    """Place handicap stones on these points."""
    try:
        stones = [arguments.vertex(host, text) for text in vertex]
    except CommandError as error:
        raise CommandError(f"bad vertex list: {error}") from error
    host.record.set_free_handicap(stones)
