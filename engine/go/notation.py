"""How people write colours, and which points they mark on a board."""

from engine.go.handicap import handicap_places
from engine.go.points import BLACK, WHITE

WORDS = {BLACK: "black", WHITE: "white"}
LETTERS = {BLACK: "B", WHITE: "W"}
SIDES_MARKED = 13
"""On smaller boards the middles of the sides are not marked"""


def color_word(color: int) -> str:
    """``black`` or ``white``, as GTP says it."""
    return WORDS[color]


def color_letter(color: int) -> str:
    """``B`` or ``W``, as results and SGF have it."""
    return LETTERS[color]


def star_points(size: int) -> list[tuple[int, int]]:
    """Those of :func:`handicap_places` that boards mark; rows and columns likewise."""
    places = handicap_places(size)
    return places if size >= SIDES_MARKED else places[:4] + places[8:]
