"""Boards as text diagrams: parsing (for tests), and rendering (for GTP's showboard)."""

from typing import NamedTuple

from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE, META_SIZE, Board, new_board, play
from engine.go.geometry import BLACK, COLUMNS, EMPTY, MAX_SIZE, MIN_SIZE, PASS, WHITE, point_at, to_vertex
from engine.go.handicap import star_points

BLACK_SIGNS = "X#"
WHITE_SIGNS = "O"
EMPTY_SIGNS = ".+"


class Diagram(NamedTuple):
    """A parsed text diagram: the board and its marked points."""

    board: Board
    marks: dict[str, int]
    """sign -> its point, for each mark; marked points are empty"""


def parse(text: str) -> Diagram:
    """Parse a diagram: ``X`` or ``#`` black, ``O`` white, ``.`` or ``+`` empty, any other sign a mark.

    One line is a row; spaces are ignored. A mark stands on an empty point. Output of :func:`render` is accepted too:
    then the rows are the lines between the two lines of column letters, without row numbers and parentheses.

    Raises:
        ValueError: not a square of a supported size, a mark used twice, or a chain without liberties.
    """
    lines = [line.translate({ord("("): " ", ord(")"): " "}).split() for line in text.splitlines() if line.strip()]
    headers = [i for i, words in enumerate(lines) if words[:2] == ["A", "B"]]
    if len(headers) == 2:
        lines = [words[1:-1] for words in lines[headers[0] + 1 : headers[1]]]
    rows = ["".join(words) for words in lines]
    size = len(rows)
    if not MIN_SIZE <= size <= MAX_SIZE or any(len(row) != size for row in rows):
        raise ValueError(f"expected a square diagram, got rows of {[len(row) for row in rows]} signs")
    board, marks = new_board(size), {}
    for index, sign in enumerate("".join(rows)):
        point = point_at(index // size, index % size, size)
        if sign in BLACK_SIGNS or sign in WHITE_SIGNS:
            color = BLACK if sign in BLACK_SIGNS else WHITE
            # An incomplete chain has a liberty at its next stone, so a capture means a chain without liberties.
            if play(board, point, color) or board.color[point] == EMPTY:
                raise ValueError(f"a chain beside {to_vertex(point, size)} has no liberty")
        elif sign not in EMPTY_SIGNS:
            if sign in marks:
                raise ValueError(f"mark {sign!r} is used twice")
            marks[sign] = point
    return Diagram(board, marks)


def render(board: Board, last_move: int = PASS) -> str:
    """Draw a board as text with coordinates, star points and numbers of captured stones, for GTP's showboard.

    Args:
        last_move: point to put in parentheses; PASS = none.
    """
    size = int(board.meta[META_SIZE])
    stars = set(star_points(size))
    header = "   " + " ".join(COLUMNS[:size])
    lines = [header]
    for row in range(size):
        text = f"{size - row:2d} "
        for column in range(size):
            point = point_at(row, column, size)
            text += ("+" if (row, column) in stars else ".", "X", "O")[board.color[point]]
            if point == last_move != PASS:
                text = f"{text[:-2]}({text[-1]})"
            else:
                text += " "
        lines.append(f"{text}{size - row}")
    lines.append(header)
    black, white = board.meta[META_CAPTURED_WHITE], board.meta[META_CAPTURED_BLACK]
    lines.append(f"Black (X) has captured {black}, White (O) {white}")
    return "\n".join(lines)
