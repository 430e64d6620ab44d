"""Points of handicap stones (fixed, free, or given by the client) and star points; imports neither numpy nor Numba.

Source: GTP version 2, draft 2, section 4.1.
"""

from collections.abc import Sequence

from engine.go.points import is_on_board, padded


def handicap_places(size: int) -> list[tuple[int, int]]:
    """Row and column of each fixed handicap point, from 0 at the top left, in GTP 2's order (section 4.1.1).

    Odd sizes from 9x9 on have points in corners, on sides and in the centre; 7x7 and even sizes from 8x8 on have the
    corners alone; smaller boards have none.
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
    """Row and column of the star points: the fixed handicap points, below 13x13 without those on the sides."""
    places = handicap_places(size)
    return places if size >= 13 else places[:4] + places[8:]


def fixed_handicap_points(size: int, count: int) -> list[int]:
    """Points of the fixed handicap, in the order of GTP 2 (section 4.1.1).

    Raises:
        ValueError: "invalid number of stones": no fixed handicap of this number on this board.
    """
    places = handicap_places(size)
    if not 2 <= count <= len(places):
        raise ValueError("invalid number of stones")
    chosen = [*places[: count - 1], places[-1]] if count in (5, 7, 9) else places[:count]
    return [padded(row, column, size) for row, column in chosen]


def free_handicap_points(size: int, count: int) -> list[int]:
    """Points of a free handicap: first the fixed ones, then one by one the open point of best :func:`_handicap_merit`.

    Raises:
        ValueError: "invalid number of stones": fewer than two, or no point left free.
    """
    if not 2 <= count < size * size:
        raise ValueError("invalid number of stones")
    most = min(count, len(handicap_places(size)))
    points = fixed_handicap_points(size, most) if most else []
    all_points = (padded(row, column, size) for row in range(size) for column in range(size))
    open_points = [point for point in all_points if point not in points]
    while len(points) < count:
        stones = [divmod(point, size + 1) for point in points]
        best = max(open_points, key=lambda point: _handicap_merit(point, stones, size))
        points.append(best)
        open_points.remove(best)
    return points


def check_free_handicap(points: Sequence[int], size: int) -> None:
    """Check the points of a free handicap given by a client.

    Raises:
        ValueError: "bad vertex list": fewer than two points, a point twice or off the board, no point left free.
    """
    is_sound = len(set(points)) == len(points) and all(is_on_board(point, size) for point in points)
    if not is_sound or not 2 <= len(points) < size**2:
        raise ValueError("bad vertex list")


def _handicap_merit(point: int, stones: list[tuple[int, int]], size: int) -> tuple[int, int, int]:
    """Sort key of a point, larger is better: its line, up to that of the star points; then its distance to the nearest
    of the stones, which are (row, column) from 1; then its closeness to the centre."""
    row, column = divmod(point, size + 1)
    line = 4 if size >= 13 else 3 if size >= 7 else 2
    height = min(row, column, size + 1 - row, size + 1 - column)
    gaps = [abs(row - other_row) + abs(column - other_column) for other_row, other_column in stones]
    off_centre = abs(2 * row - size - 1) + abs(2 * column - size - 1)
    return min(height, line), min(gaps, default=0), -off_centre
