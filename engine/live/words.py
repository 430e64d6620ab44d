"""Moves in words: why one is illegal, and what one did."""

from engine.go.board import META_KO_COLOR, META_KO_POINT, stones_lost_by_suicide
from engine.go.game import Game
from engine.go.geometry import EMPTY, PASS, to_vertex
from engine.go.points import color_word, is_on_board

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def why_illegal(game: Game, color: int, point: int) -> str:
    """Why a move is illegal under the game's rules, in one line; empty = it is legal."""
    size, board = game.size, game.position.board
    if point == PASS or game.is_legal(color, point):
        return ""
    if not is_on_board(point, size):
        return f"no such point on a {size}x{size} board"
    vertex = to_vertex(point, size)
    if board.color[point] != EMPTY:
        return f"{vertex} is occupied"
    if board.meta[META_KO_POINT] == point and board.meta[META_KO_COLOR] == color:
        return f"ko: {vertex} cannot be retaken now"
    # A suicide of one stone repeats a position too, but no rules allow it.
    lost = int(stones_lost_by_suicide(board, point, color))
    if lost == 1 or (lost and not game.rules.suicide):
        return f"suicide: {counted(lost, 'stone')} without a liberty at {vertex}"
    return f"{vertex} repeats an earlier position (superko)"


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``two stones``."""
    word = NUMBERS[number] if number < len(NUMBERS) else str(number)
    return f"{word} {noun}{'' if number == 1 else 's'}"


def move_said(number: int, color: int, point: int, size: int, taken: int = 0) -> str:
    """A move in words: ``Move 12: White D4, two stones taken``.

    Args:
        number: of the move, from 1; it makes equal moves differ for readers of screens.
        taken: number of stones that the move captured.
    """
    what = "passes" if point == PASS else to_vertex(point, size)
    ending = f", {counted(taken, 'stone')} taken" if taken else ""
    return f"Move {number}: {color_word(color).title()} {what}{ending}"
