"""Points, colours and vertices, which need neither numpy nor Numba: they can be read while those are being imported.

What they are, :mod:`engine.go.geometry` says, which has them under the same names for all that needs its kernels too.
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
    """Point of a GTP vertex, either case.

    Raises:
        ValueError: the text is no vertex of this board; the message names both.
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
        raise ValueError(f"{text!r} is no vertex: there is no column I, J follows H")
    raise ValueError(f"{text!r} is no vertex of a {size}x{size} board")


def padded(row: int, column: int, size: int) -> int:
    """Point of a row and column, from the top left and from 0: ``point_at`` of :mod:`engine.go.geometry` in Python."""
    return (row + 1) * (size + 1) + column + 1


def is_on_board(point: int, size: int) -> bool:
    """Whether a point is one of the board; a pass is none."""
    row, column = divmod(point, size + 1)
    return 1 <= row <= size and 1 <= column <= size


def other(color: int) -> int:
    """The opponent's colour."""
    return 3 - color
