"""Positions to measure on, made without data: the rollout policy plays itself into the middle game."""

from typing import NamedTuple

import click

from engine.go.geometry import MAX_SIZE, MIN_SIZE, PASS
from engine.go.position import META_TO_MOVE, Position, new_position, play_move
from engine.go.random import seed_state
from engine.play.assembly import shipped_patterns
from engine.rollout.policy import begin, clear_responses, draw, follow, list_responses, new_weights
from engine.rollout.softmax import Candidates, new_candidates
from engine.system.jit import kernel

POSITIONS = 16
MIDDLE = 110 / 361
"""Share of the points that have been played on in a middle-game position"""
SEED = 1


@kernel
def _play_on(position, weights, tables, last, state, count):
    """Play ``count`` moves of the rollout policy; ``last`` is that of :class:`engine.rollout.softmax.Candidates`."""
    board = position.board
    begin(weights, board, tables)
    for _ in range(count):
        color = position.meta[META_TO_MOVE]
        answers = clear_responses(weights)
        if last[0] != PASS:
            answers = list_responses(weights, board, tables, last[0], color, last[2])
        last[1] = last[0]
        last[0] = draw(weights, board, color, answers, state)
        last[2] = play_move(position, last[0], color)
        if last[0] != PASS:
            follow(weights, board, tables, last[0], color, last[2])


sizes = click.option(
    "--size", "sizes", multiple=True, default=(19, 9), type=click.IntRange(MIN_SIZE, MAX_SIZE), help="board, repeatable"
)
"""Decorator: the option that chooses boards"""


class MiddleGame(NamedTuple):
    """A position, and its candidate moves, which hold the last move played."""

    position: Position
    moves: Candidates


def middle_games(size: int) -> list[MiddleGame]:
    """``POSITIONS`` positions that the shipped rollout policy comes to.

    Raises:
        click.ClickException: the file of the policy is missing or damaged.
    """
    try:
        tables = shipped_patterns().tables
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    games = [MiddleGame(new_position(size), new_candidates(size)) for _ in range(POSITIONS)]
    for stream, (position, moves) in enumerate(games):
        _play_on(position, new_weights(size), tables, moves.last, seed_state(SEED, stream), round(MIDDLE * size * size))
    return games
