"""The layout of GoGui's graphics: boards of words, pairs of points and words, and graphics commands. It knows no Go.

Points come as vertices. Source: GoGui's manual, "Analyze Commands" and "Live Graphics".
"""

import math
from collections.abc import Iterable

LIVE = "gogui-gfx:"
"""Begins graphics on standard error; they end with an empty line"""


def board(words: Iterable[str], size: int) -> str:
    """Words as a board, the top row first, in columns of one width; an empty word becomes ``""``."""
    cells = [word or '""' for word in words]
    width = max(map(len, cells))
    rows = [" ".join(cell.rjust(width) for cell in cells[row : row + size]) for row in range(0, len(cells), size)]
    return "\n" + "\n".join(rows)


def pairs(labels: Iterable[tuple[str, str]]) -> str:
    """Vertices with their labels, in one line."""
    return " ".join(f"{vertex} {label}" for vertex, label in labels)


def graphic(*commands: str) -> str:
    """Graphics commands, one a line; those without anything to draw are left out."""
    return "\n".join(command for command in commands if " " in command.rstrip())


def shades(shares: Iterable[tuple[str, float]]) -> str:
    """Commands that colour points by a share, 0 to 1: pale yellow to red."""
    return "\n".join(f"COLOR #ff{_fade(255, share):02x}{_fade(160, share):02x} {vertex}" for vertex, share in shares)


def _fade(channel: int, share: float) -> int:
    """A colour channel that vanishes as the share grows; small shares still differ."""
    return round(channel * (1.0 - math.sqrt(share)))


def labels(words: Iterable[tuple[str, str]]) -> str:
    """The command that writes words on points."""
    return f"LABEL {pairs(words)}"


def points(shape: str, vertices: str) -> str:
    """The command that marks points, given in one line: TRIANGLE, SQUARE, CIRCLE or MARK."""
    return f"{shape} {vertices}"


def variation(moves: Iterable[tuple[str, str]]) -> str:
    """The command that shows moves, each a colour (b or w) and a vertex, as numbered stones."""
    return f"VAR {pairs(moves)}"


def live(*commands: str) -> str:
    """What to write to standard error to show graphics while a command runs."""
    return f"{LIVE}\n{graphic(*commands)}\n\n"
