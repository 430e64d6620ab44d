"""The end of a game: dead stones that players may correct, and the count by the rules in force."""

from typing import NamedTuple

import numpy as np

from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, WHITE, on_board_points
from engine.go.position import META_BUTTON_TAKER
from engine.go.rules import BONUS_N, BONUS_N_MINUS_ONE, SCORING_AREA, TAX_NONE
from engine.go.scoring import area_owner, remove_dead, result_text
from engine.go.seki import score_with_dame_filled
from engine.play.score import is_strict


class Count(NamedTuple):
    """The count of a position with its dead stones removed."""

    owners: list[int]
    """N*N in policy order: 1 = Black's, -1 = White's, 0 = dame"""
    black: float
    """Black's points"""
    white: float
    """White's points, with komi and all corrections, so that the difference is the result"""
    result: str
    """as in SGF: ``B+3.5`` or ``0``"""
    text: str
    """the count in one line"""


def toggled(game: Game, dead: set[int], point: int) -> set[int]:
    """The dead stones after a click on one: the stones of its chain change sides.

    Args:
        dead: points of the dead stones.
    Raises:
        ValueError: no stone at the point, or the rules have no dead stones.
    """
    board = game.position.board
    if is_strict(game.position):
        raise ValueError(f"under {game.rules.name} rules all stones on the board are alive")
    head = int(board.head[point])
    if not head:
        raise ValueError("no stone there, expected a click on a stone")
    chain = {int(one) for one in on_board_points(game.size) if board.head[one] == head}
    return dead - chain if point in dead else dead | chain


def count(game: Game, dead: set[int]) -> Count:
    """Count a position by the game's rules.

    Args:
        dead: points of the dead stones.
    """
    cleared = remove_dead(game.position, dead) if dead else game.position
    board, points = cleared.board, on_board_points(game.size)
    lead = score_with_dame_filled(cleared)
    owners = np.zeros(game.size**2, np.int8)
    area_owner(board, owners)
    is_area = game.rules.scoring == SCORING_AREA
    counts = np.ones(len(points), bool) if is_area else board.color[points] == EMPTY
    black, white = (float(np.count_nonzero(counts & (owners == sign))) for sign in (1, -1))
    parts = {BLACK: f"{black:g} points", WHITE: f"{white:g} points"}
    if not is_area:
        # Stones that a player captured are the other colour's losses.
        taken = {BLACK: int(board.meta[META_CAPTURED_WHITE]), WHITE: int(board.meta[META_CAPTURED_BLACK])}
        black, white = black + taken[BLACK], white + taken[WHITE]
        parts = {color: f"{text} and {taken[color]} prisoners" for color, text in parts.items()}
    parts[WHITE] += f" and komi {game.komi:g}"
    bonus = {BONUS_N: game.handicap, BONUS_N_MINUS_ONE: max(0, game.handicap - 1)}.get(game.rules.handicap_bonus, 0)
    if bonus:
        parts[WHITE] += f" and {bonus} for the handicap"
    if taker := int(cleared.meta[META_BUTTON_TAKER]):
        parts[taker] += " and half a point for the button"
        black += 0.5 if taker == BLACK else 0.0
    # What is left of the difference is the tax: points in seki, or two for each group.
    rest = (black - lead) - (white + game.komi + bonus + (0.5 if taker == WHITE else 0.0))
    if rest and game.rules.tax != TAX_NONE:
        parts[BLACK if rest > 0 else WHITE] += f" less {abs(rest):g} by the tax on {game.rules.name} rules' groups"
        black -= max(0.0, rest)
    result = result_text(lead)
    text = f"Black {parts[BLACK]}, White {parts[WHITE]}: {winner_text(result)}"
    return Count(owners.tolist(), black, black - lead, result, text)


def winner_text(result: str) -> str:
    """A result in words: ``Black wins by 3.5``."""
    who, _, how = result.partition("+")
    if not how:
        return "a draw" if result == "0" else "no result"
    said = {"R": "by resignation", "T": "on time"}.get(how[:1], f"by {how}")
    return f"{'Black' if who == 'B' else 'White'} wins {said}"
