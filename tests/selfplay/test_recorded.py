"""Positions of recorded games that are taken for labels: which of each game, by its number."""

import numpy as np
import pytest

from engine.records.games import Games, offsets_of, write_games
from engine.selfplay.recorded import RecordedGames

PASS_INDEX = 25
GAMES = [[12, 6, PASS_INDEX, PASS_INDEX], [12, PASS_INDEX, 6], [PASS_INDEX, PASS_INDEX], [12, 6, 8]]


@pytest.fixture
def shard(tmp_path):
    """Games on 5x5, of the last of which only the position after one move may be learnt from."""
    lengths = [len(moves) for moves in GAMES]
    write_games(tmp_path / "games.npz.xz", Games(
        size=np.full(len(GAMES), 5), offsets=offsets_of(lengths), moves=np.concatenate(GAMES).astype(np.uint16),
        position=np.array([-1, -1, -1, 1], np.int16),
    ))  # fmt: skip
    return tmp_path / "games.npz.xz"


def taken(shard, every, seed=1):
    """The plies taken of each game, by its row in the shard."""
    stream = RecordedGames([shard], seed, every)
    found = [stream.take(5, number) for number in range(len(GAMES))]
    assert stream.take(5, len(GAMES)) is None
    plies = {tuple(one.game.moves.tolist()): one.plies.tolist() for one in found}
    return [plies[tuple(moves)] for moves in GAMES]


def test_the_position_after_two_passes_is_over_and_not_taken(shard):
    """It was once labelled, though neither side is to move there."""
    assert taken(shard, every=1) == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1], [1]]


def test_every_game_gives_a_position_and_none_after_its_end(shard):
    plies = [taken(shard, every=3, seed=seed) for seed in range(12)]
    first, second, third, last = ({ply for of_game in plies for ply in of_game[row]} for row in range(len(GAMES)))
    assert first == second == {0, 1, 2, 3} and third == {0, 1} and last == {1}
    assert all(all(of_game) for of_game in plies)
