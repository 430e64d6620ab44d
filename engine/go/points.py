"""Points, colours and vertices in plain Python, usable before numpy and Numba are imported.

The coordinates are documented in :mod:`engine.go.geometry`, which adds kernels and exports the names of this module.
"""

MIN_SIZE = 2
MAX_SIZE = 25
EMPTY, BLACK, WHITE, BORDER = 0, 1, 2, 3
PASS = 0
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"


def to_vertex(point: int, size: int) -> str:
    """GTP text of a point: ``D4``, or ``pass``."""
    if point == PASS:
        return "pass"
    row, column = divmod(point, size + 1)
    return f"{COLUMNS[column - 1]}{size + 1 - row}"


def from_vertex(text: str, size: int) -> int:
    """Point of a GTP vertex, in upper or lower case.

    Raises:
        ValueError: the text is not a vertex of this board; the message quotes the text.
    """
    word = text.strip().upper()
    if word == "PASS":
        return PASS
    column = COLUMNS.find(word[:1]) if word else -1
    digits = word[1:]
    is_row = digits.isascii() and digits.isdigit() and len(digits) <= 2
    if is_row and column >= 0:
        row = size - int(digits)
        if 0 <= row < size and column < size:
            return padded(row, column, size)
    if is_row and word[0] == "I":
        raise ValueError(f"{text!r} is not a vertex: columns skip I")
    raise ValueError(f"{text!r} is not a vertex of a {size}x{size} board")


def padded(row: int, column: int, size: int) -> int:
    """Point of a row and column counted from the top left, both from 0; the Python form of ``geometry.point_at``."""
    return (row + 1) * (size + 1) + column + 1


def is_on_board(point: int, size: int) -> bool:
    """Whether a point is on the board; False for a pass."""
    row, column = divmod(point, size + 1)
    return 1 <= row <= size and 1 <= column <= size


def other(color: int) -> int:
    """The opponent's colour."""
    return 3 - color


def color_word(color: int) -> str:
    """``black`` or ``white``, as in GTP."""
    return "black" if color == BLACK else "white"


def color_letter(color: int) -> str:
    """``B`` or ``W``, as in results and SGF."""
    return "B" if color == BLACK else "W"
