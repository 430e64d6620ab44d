"""How people write colours, and which points they mark on a board."""

from engine.go.geometry import BLACK, WHITE

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


def handicap_places(size: int) -> list[tuple[int, int]]:
    """Row and column, from the top left and from 0, of the points of the fixed handicap: corners, sides, the centre.

    Even boards and 7x7 have corners alone, boards below that nothing. In the order of GTP 2 (section 4.1.1).
    """
    if size < 7:
        return []
    high = 3 if size >= 13 else 2
    low, middle = size - 1 - high, size // 2
    corners = [(low, high), (high, low), (high, high), (low, low)]
    if size % 2 == 0 or size == 7:
        return corners
    return [*corners, (middle, high), (middle, low), (low, middle), (high, middle), (middle, middle)]


def star_points(size: int) -> list[tuple[int, int]]:
    """Those of :func:`handicap_places` that boards mark; rows and columns likewise."""
    places = handicap_places(size)
    return places if size >= SIDES_MARKED else places[:4] + places[8:]
