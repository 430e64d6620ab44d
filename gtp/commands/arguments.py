"""Colours and vertices: GTP's text to points of the board, and back."""

from collections.abc import Iterable, Sequence

from engine.go.points import BLACK, WHITE, from_vertex
from gtp import info
from gtp.host import Host
from gtp.protocol import COLORS, CommandError

INVALID = "invalid color or coordinate"


def color(text: str) -> int:
    """BLACK or WHITE, from ``b``, ``black``, ``w`` or ``white`` in upper or lower case.

    Raises:
        CommandError: anything else.
    """
    if text.lower() not in COLORS:
        raise CommandError(f"{INVALID}: {text!r} is not a color, expected b or w")
    return BLACK if COLORS[text.lower()] == "b" else WHITE


def optional_color(host: Host, text: str) -> int:
    """The colour that a text names, or the side to move if it is empty; raises the errors of :func:`color`."""
    return color(text) if text else host.record.game.to_move


def leading_color(host: Host, words: list[str]) -> int:
    """Remove and return the colour at the beginning of a command's words; without one, return the side to move."""
    has_color = bool(words) and words[0].lower() in COLORS
    return optional_color(host, words.pop(0) if has_color else "")


def vertex(host: Host, text: str) -> int:
    """A point of the current board, or PASS.

    Raises:
        CommandError: the text is neither.
    """
    try:
        return from_vertex(text, host.record.game.size)
    except ValueError as error:
        raise CommandError(f"{INVALID}: {error}") from error


def moves(host: Host, words: Sequence[str]) -> list[tuple[int, int]]:
    """Moves (colour, point) from pairs of words.

    Raises:
        CommandError: an odd number of words, or a word that is not a colour or a vertex.
    """
    if len(words) % 2:
        raise CommandError("syntax error: expected pairs of color and vertex")
    pairs = zip(words[::2], words[1::2], strict=True)
    return [(color(side), vertex(host, point)) for side, point in pairs]


def set_up(host: Host, stones: Iterable[tuple[int, int]], to_move: int) -> None:
    """Begin a game from stones (colour, point), with ``to_move`` to move."""
    pairs = list(stones)
    black, white = ([point for side, point in pairs if side == color] for color in (BLACK, WHITE))
    host.record.set_up(black, white, to_move)


def vertices(host: Host, points: Iterable[int]) -> str:
    """The GTP vertices of points of the current board, in one line."""
    return info.vertices(points, host.record.game.size)
