"""Colours and vertices: GTP's text to what the player understands, and back."""

from collections.abc import Iterable

from gtp.host import Host
from gtp.protocol import CommandError

INVALID = "invalid color or coordinate"


def color(text: str) -> int:
    """``b``, ``black``, ``w`` or ``white``, in either case.

    Raises:
        CommandError: anything else.
    """
    from engine.go.geometry import BLACK, WHITE  # brings Numba along; by now it is loaded

    match text.lower():
        case "b" | "black":
            return BLACK
        case "w" | "white":
            return WHITE
    raise CommandError(f"{INVALID}: {text!r} is no color, expected b or w")


def vertex(host: Host, text: str) -> int:
    """A point of the current board, or a pass.

    Raises:
        CommandError: neither.
    """
    from engine.go.geometry import from_vertex

    try:
        return from_vertex(text, host.player.game.size)
    except ValueError as error:
        raise CommandError(f"{INVALID}: {error}") from error


def vertices(host: Host, points: Iterable[int]) -> str:
    """Points as GTP writes them, in one line."""
    from engine.go.geometry import to_vertex

    return " ".join(to_vertex(point, host.player.game.size) for point in points)
