"""Games between levels, many side by side in one process, for :mod:`bench.strength.levels`.

Rules are Tromp-Taylor, under which the network captures dead stones before it passes; komi is 7 on 9x9 and 7.5 on
larger boards, and games are played to
the end. In games with handicap stones, on the fixed points, komi is 0.5. Start at :func:`play_block`.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from engine.go.geometry import index_of
from engine.go.handicap import fixed_handicap_points
from engine.inference.server import InferenceServer
from engine.nets.notices import say_once
from engine.records.games import LIMIT, Games
from engine.records.replay import recorded
from engine.search.level_choice import Level
from engine.selfplay.games import Finished, GameBatch, Openings, Player, Setups
from engine.selfplay.search_match import match_options
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import new_tuning

RULES = "tromp-taylor"
KOMI, SMALL_KOMI, SMALL, HANDICAP_KOMI = 7.5, 7.0, 9, 0.5
AT_ONCE = {9: 128, 13: 96, 19: 64}
"""Games played side by side, by board size"""
FIRST_IS_BLACK = np.array([[0, 1], [0, 1]])
"""Players by colour, before and after a random move that these games do not have"""
C_PUCT = 1.4


class Block(NamedTuple):
    """Some games of two levels on one board, of which the first has Black in even-numbered games, or, in games with
    handicap stones, in all."""

    size: int
    first: Level
    second: Level
    handicap: int
    start: int
    """number of the first game"""
    games: int


class Result(NamedTuple):
    """Games that the first level of a block won, drew and lost."""

    won: int
    drawn: int
    lost: int


def _options(block: Block) -> SearchPlayOptions:
    """Options of a block's games; pairs of levels have seeds of their own."""
    komi = HANDICAP_KOMI if block.handicap else SMALL_KOMI if block.size <= SMALL else KOMI
    seed = zlib.crc32(repr((block.size, block.handicap, sorted((block.first, block.second)))).encode())
    return match_options(SearchPlayOptions(size=block.size, rules=RULES, komi=komi, c_puct=C_PUCT), seed)


@cache
def _handicap(size: int, stones: int) -> Games:
    """A record of one game with handicap stones and nothing else: Black's, with White's passes between them."""
    indices = [int(index_of(point, size)) for point in fixed_handicap_points(size, stones)]
    moves = [move for index in indices for move in (index, size * size)][:-1]
    return Games(np.array([size]), offsets=np.array([0, len(moves)]), moves=np.array(moves, np.uint16))


def finished_games(server: InferenceServer, block: Block) -> Iterator[Finished]:
    """Play a block of games, and yield them as they end."""
    options = _options(block)

    def set_up(numbers: np.ndarray) -> Setups:
        plain = options.set_up(numbers)
        if not block.handicap:
            return plain
        one = _handicap(block.size, block.handicap)
        rows, plies = np.zeros(len(numbers), np.int64), np.full(len(numbers), len(one.moves))
        players = np.repeat(FIRST_IS_BLACK[None], len(numbers), axis=0)
        return plain._replace(players=players, openings=Openings(recorded(one), rows, plies))

    sides = []
    for level in (block.first, block.second):
        config = replace(options, visits=max(2, level.visits), fast_visits=level.visits).config()
        config = config._replace(level=level)
        sides.append(Player(server, config, new_tuning(C_PUCT, options.fpu_reduction)))
    batch = GameBatch(sides, block.size, min(block.games, AT_ONCE[block.size]), set_up)
    yield from batch.play(iter(range(block.start, block.start + block.games)))


def play_block(server: InferenceServer, block: Block) -> Result:
    """Play a block of games; the result is a function of the block."""
    found = [0, 0, 0]
    for finished in finished_games(server, block):
        games = finished.games
        if (games.ending == LIMIT).any():
            say_once(f"{block.size}x{block.size}: a game reached the move limit and was counted as it stood")
        signs = games.result.astype(int)
        if not block.handicap:
            signs = signs * np.where(games.number % 2 == 0, 1, -1)
        for sign in signs.tolist():
            found[1 - sign] += 1
    return Result(*found)
