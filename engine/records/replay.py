"""Replaying recorded games: setup stones, then moves with colours alternating."""

import functools
import threading
from typing import NamedTuple

import numpy as np

from engine.go.board import META_SIZE, play
from engine.go.geometry import BLACK, EMPTY, PASS, point_of, to_sgf
from engine.go.position import META_TO_MOVE, Position, begin, copy_position, is_legal_move, new_position, play_move
from engine.go.rules import (
    KO_SIMPLE,
    RULE_FIELDS,
    RULE_KO,
    RULE_KOMI_X2,
    RULE_SCORING,
    RULE_SUICIDE,
    RULE_TAX,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_NONE,
    TAX_SEKI,
)
from engine.records.games import MAX_MOVES, Games
from engine.system.jit import kernel

USUAL_KOMI, HANDICAP_KOMI = 7.5, 0.5
"""Komi where the record gives none: of an even game, and of a game with two or more handicap stones"""


@kernel
def set_up(position, stones, first):
    """Put stones on the empty board of a position and begin a game there.

    Args:
        stones: uint16: codes as in ``Games.setup``.
        first: colour of the first move.
    Returns:
        bool: False if two stones are on one point or a chain has no liberty; the position is then undefined.
    """
    size = position.board.meta[META_SIZE]
    for i in range(len(stones)):
        point, color = point_of(np.int64(stones[i]) >> 1, size), BLACK + (np.int64(stones[i]) & 1)
        if position.board.color[point] != EMPTY:
            return False
        play(position.board, point, color)
    for i in range(len(stones)):
        if position.board.color[point_of(np.int64(stones[i]) >> 1, size)] == EMPTY:
            return False
    begin(position, first)
    return True


class Recorded(NamedTuple):
    """The arrays of :class:`engine.records.games.Games` that :func:`replay` reads."""

    offsets: np.ndarray
    moves: np.ndarray
    setup_offsets: np.ndarray
    setup: np.ndarray
    first: np.ndarray


def recorded(games: Games) -> Recorded:
    """The arrays of games that :func:`replay` reads."""
    return Recorded(*(getattr(games, name) for name in Recorded._fields))


@kernel
def replay(position, fresh, record, game, ply, rules):
    """Replay a recorded game to the position after ``ply`` moves.

    Args:
        position: overwritten; of the game's board size, with room for the moves.
        fresh: an empty position of that size, read only.
        record: :class:`Recorded`.
        game: index of the game in ``record``.
        rules: int64[RULE_FIELDS]: rules and komi to play by.
    Returns:
        int: -1, or the index of the first move on a stone; the position is then the one before that move.
    """
    copy_position(position, fresh)
    for i in range(RULE_FIELDS):
        position.rules[i] = rules[i]
    set_up(position, record.setup[record.setup_offsets[game] : record.setup_offsets[game + 1]], record.first[game])
    start, size = record.offsets[game], position.board.meta[META_SIZE]
    for i in range(start, start + ply):
        point = point_of(np.int64(record.moves[i]), size)
        if point != PASS and position.board.color[point] != EMPTY:
            return i - start
        play_move(position, point, position.meta[META_TO_MOVE])
    return -1


def komi_of(games: Games, rows: np.ndarray) -> np.ndarray:
    """float32[B]: komi of games ``rows`` (int64[B]); where unknown, ``USUAL_KOMI`` or ``HANDICAP_KOMI``."""
    usual = np.where(games.handicap[rows] >= 2, np.float32(HANDICAP_KOMI), np.float32(USUAL_KOMI))
    return np.where(np.isnan(games.komi[rows]), usual, games.komi[rows])


def game_rules(games: Games, rows: np.ndarray, territory: np.ndarray) -> np.ndarray:
    """int64[B, RULE_FIELDS]: rules and komi under which recorded games are shown to a network.

    Args:
        rows: int64[B]: the games.
        territory: bool[B]: True = territory scoring with tax in seki, False = area scoring.
    """
    rules = np.zeros((len(rows), RULE_FIELDS), np.int64)
    rules[:, RULE_KOMI_X2] = np.rint(2 * komi_of(games, rows))
    rules[:, RULE_SCORING] = np.where(territory, SCORING_TERRITORY, SCORING_AREA)
    rules[:, RULE_TAX] = np.where(territory, TAX_SEKI, TAX_NONE)
    rules[:, RULE_KO] = KO_SIMPLE
    return rules


@kernel
def first_illegal(position, moves):
    """Play moves (uint16, policy indices) until one is illegal; returns that move's index, or -1 if all are legal."""
    size = position.board.meta[META_SIZE]
    for n in range(len(moves)):
        point = point_of(np.int64(moves[n]), size)
        if not is_legal_move(position, point, position.meta[META_TO_MOVE]):
            return n
        play_move(position, point, position.meta[META_TO_MOVE])
    return -1


@functools.cache
def _boards(size: int, thread: int) -> tuple[Position, Position]:
    """A thread's two positions of a board size: one that stays empty, and one to overwrite."""
    return new_position(size, MAX_MOVES), new_position(size, MAX_MOVES)


def check_game(size: int, stones: np.ndarray, first: int, moves: np.ndarray) -> None:
    """Check that a game is legal under the most permissive rules. Threads: any.

    Suicide of several stones and repetitions longer than a ko are allowed, as some rules allow them; retaking a ko at
    once and suicide of a single stone are not.

    Args:
        stones: uint16: setup stones, coded as in ``Games.setup``.
        first: colour of the first move.
        moves: uint16: policy indices.

    Raises:
        ValueError: more than ``MAX_MOVES`` moves, impossible setup stones, or an illegal move.
    """
    if len(moves) > MAX_MOVES:
        raise ValueError(f"{len(moves)} moves, expected at most {MAX_MOVES}")
    fresh, position = _boards(size, threading.get_ident())
    copy_position(position, fresh)
    position.rules[RULE_SUICIDE] = 1
    if not set_up(position, stones, first):
        raise ValueError("the setup stones are no legal position")
    wrong = first_illegal(position, moves)
    if wrong >= 0:
        at = to_sgf(int(point_of(int(moves[wrong]), size)), size)
        raise ValueError(f"move {wrong + 1} at {at} is illegal")
