"""Panels: boards with win rates or shares, a line of moves, ownership, or the channels of a layer, with a caption.

``thinking.js`` of the page of `keima play` draws the same squares and numbers in a browser. Points are policy indices,
-1 = a pass.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, Figure 5.
"""

import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from engine.go.geometry import EMPTY
from engine.pictures.boards import board, circle, diagram, label, square, stone
from engine.pictures.drawing import size_of, svg

NUMBERS = 16
"""Maximum number of points with a number"""
COLOURED = 40
"""Number of the best win rates that are coloured"""
SPANS = (0.02, 0.15)
"""Least and largest distance in win rate from the best point to the first that is not coloured"""
LEAST_SHARE = 0.001
"""Minimum share of a coloured point"""
NUMBERED_SHARE = 0.005
"""Minimum share of a point with a number"""
CAPTION = 46
"""Height of a caption of two lines"""
NEGATIVE, POSITIVE, GAP = (47, 127, 209), (232, 89, 12), (190, 190, 190)
"""RGB of a channel's smallest and largest values, and of the lines between channels"""
WIDTH = 480
"""Minimum width of a panel, that of a board of 19x19; smaller drawings are scaled"""
PIXEL = 4
"""Units of the drawing for each point of a channel"""

Points = Sequence[tuple[int, float]]
"""Pairs of a point and its win rate or share, 0 to 1"""


def panel(drawing: str, title: str, text: str) -> Markup:
    """A drawing below its caption: a title, and a line of text."""
    inner_width, inner_height = size_of(drawing)
    width = max(WIDTH, inner_width)
    height = inner_height * width / inner_width
    heading = (
        f'<text x="4" y="17" font-size="15" font-weight="bold" fill="var(--ink)">{escape(title)}</text>'
        f'<text x="4" y="36" font-size="13" fill="var(--soft)">{escape(text)}</text>'
    )
    place = f'x="0" y="{CAPTION}" width="{width:g}" height="{height:g}"'
    return svg(width, height + CAPTION, heading + str(drawing).replace("<svg ", f"<svg {place} ", 1))


def numbers_board(colors: Sequence[int], points: Points, best: int, is_rate: bool, title: str) -> Markup:
    """A position with win rates or shares as squares, the largest with their number in percent.

    Args:
        colors: colour of each point of the board.
        best: the point with a ring; -1 = none.
        is_rate: whether the numbers are win rates; else they are shares of a whole.
        title: text for screen readers.
    """
    size = math.isqrt(len(colors))
    squares, numbers = _heat(points, size, is_rate)
    stones = "".join(stone(at, size, color) for at, color in enumerate(colors) if color != EMPTY)
    ring = ""
    if best >= 0:
        ring = circle(best, size, 12.3, 'fill="none" stroke="var(--ring-edge)" stroke-width="5"')
        ring += circle(best, size, 12.3, 'fill="none" stroke="var(--ring)" stroke-width="3"')
    return board(size, squares + stones + numbers + ring, title)


def hot(points: Points, is_rate: bool) -> list[tuple[int, float, float]]:
    """The coloured points: each with its number and its heat, above 0 to 1, the largest number first.

    The heat of a win rate falls with its distance from the best, that of a share is the square root of its ratio to the
    largest.
    """
    ordered = sorted(points, key=lambda pair: -pair[1])
    if not ordered:
        return []
    top = ordered[0][1]
    if is_rate:
        last = ordered[min(COLOURED, len(ordered) - 1)][1]
        span = min(SPANS[1], max(SPANS[0], 1.1 * (top - last)))
        found = [(index, rate, 1 - (top - rate) / span) for index, rate in ordered]
    else:
        found = [(index, share, math.sqrt(share / top)) for index, share in ordered if share >= LEAST_SHARE]
    return [one for one in found if one[2] > 0]


def _heat(points: Points, size: int, is_rate: bool) -> tuple[str, str]:
    """Squares of the hot points and numbers as SVG; those beyond the first NUMBERS have a square by their heat."""
    squares, numbers, least = [], [], 0.0 if is_rate else NUMBERED_SHARE
    for rank, (index, number, heat) in enumerate(hot(points, is_rate)):
        if index < 0:
            continue
        if rank >= NUMBERS or number < least:
            squares.append(_square(index, size, 4 + 10 * heat, 0.45 + 0.4 * heat))
        else:
            squares.append(_square(index, size, 21, 0.74 + 0.26 * heat))
            # Half a percent up, as JavaScript rounds.
            numbers.append(label(index, size, str(math.floor(100 * number + 0.5)), "var(--heat-ink)"))
    return "".join(squares), "".join(numbers)


def _square(index: int, size: int, side: float, opacity: float) -> str:
    return square(index, size, side, "var(--heat)", opacity, 2)


def line_board(colors: Sequence[int], moves: Sequence[int], to_move: int, title: str) -> Markup:
    """A position with a line of numbered moves, the first with a ring.

    Args:
        to_move: colour of the first move.
        title: text for screen readers.
    """
    return diagram(colors, title, moves, to_move, moves[0] if moves else -1)


def ownership_board(colors: Sequence[int], ownership_black: Sequence[float], title: str) -> Markup:
    """A position with the owner of each point as a square: below living stones, above dead ones.

    Args:
        ownership_black: 1 = Black's, -1 = White's, by point.
        title: text for screen readers.
    """
    return diagram(colors, title, ownership=ownership_black)


def layer_drawing(picture: np.ndarray, zero: int, steps: int, title: str) -> Markup:
    """The channels of a layer as small maps in rows: orange above 0, blue below.

    Args:
        picture: uint8[C, N, N]; ``zero`` stands for 0, ``steps`` bytes from it are the largest value.
        title: text for screen readers.
    """
    channels, size, _ = picture.shape
    columns = min(channels, max(4, math.ceil(math.sqrt(2 * channels))))
    rows, side = math.ceil(channels / columns), size + 1
    pixels = np.full((rows * side - 1, columns * side - 1, 3), GAP, np.uint8)
    shares = (picture.astype(np.float64) - zero) / steps
    strength = np.sqrt(np.abs(shares)).clip(0, 1)[..., None]
    colors = 255 + strength * (np.where(shares[..., None] < 0, NEGATIVE, POSITIVE) - 255.0)
    for channel in range(channels):
        top, left = (channel // columns) * side, (channel % columns) * side
        pixels[top : top + size, left : left + size] = np.rint(colors[channel])
    height, width = (PIXEL * length for length in pixels.shape[:2])
    data = b64encode(_png_of(pixels)).decode("ascii")
    image = (
        f'<image width="{width}" height="{height}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/>'
    )
    return svg(width, height, image, title)


def _png_of(pixels: np.ndarray) -> bytes:
    """The bytes of a PNG file of uint8[H, W, 3], as RFC 2083 describes."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
