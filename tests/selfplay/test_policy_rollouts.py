"""Rollouts by policy networks: each game is its slow twin's, from the position asked about, for the side to move."""

import numpy as np
import pytest

from engine.go.geometry import BLACK, WHITE
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.records.games import Games
from engine.records.schema import join
from engine.selfplay.games import GameBatch, Player
from engine.selfplay.policy_rollouts import SEED, _setups, policy_values
from engine.selfplay.table import NEVER, GameConfig
from tests.selfplay.twin import SlowGame
from tests.train.made import made_games, settled_games


def opened(games, rows, plies, count=1):
    """How games from these positions begin."""
    return lambda numbers: _setups(games, rows, plies, count, numbers)


def test_games_from_recorded_positions_are_those_of_the_slow_twin(server):
    games = made_games(4, 5, 12)
    rows, plies = np.array([0, 1, 2, 3]), np.array([0, 3, 6, 11])
    config, set_up = GameConfig(70, SEED, sensible_moves=NEVER), opened(games, rows, plies)
    found = {}
    for finished in GameBatch([Player(server, config)], 5, 3, set_up).play(iter(range(4))):
        for k, number in enumerate(finished.games.number.tolist()):
            moves = finished.games.moves[finished.games.offsets[k] : finished.games.offsets[k + 1]]
            found[number] = moves.tolist(), int(finished.games.result[k])
    setups = set_up(np.arange(4))
    for number in range(4):
        slow = SlowGame([HashNetwork("alphago-48")], 5, number, config, setups, number)
        for move in games.moves[games.offsets[number] :][: plies[number]].tolist():
            slow.enter(divmod(move, 5))
        slow.play()
        assert found[number] == (slow.moves, np.sign(slow.lead_black()))
        assert len(slow.moves) > plies[number]


@pytest.mark.parametrize(("komi", "black"), [(4.5, 1), (5.5, -1), (5, 0)])
def test_a_finished_board_has_its_result_for_the_side_to_move(server, komi, black):
    """Black owns 15 points and White 10; stones that were set up are there."""
    games = settled_games(komi, False)
    values = policy_values(server, games, np.array([0, 0]), np.array([0, 1]), 4, 3, 2)
    assert values.tolist() == [black, -black]
    white_first = games._replace(first=np.array([WHITE], np.uint8))
    assert policy_values(server, white_first, np.array([0]), np.array([0]), 2, 3, 1).tolist() == [-black]


def test_values_are_means_of_the_games_and_do_not_depend_on_the_groups(server):
    games = join([made_games(3, 5, 12), made_games(2, 7, 20, seed=1)])
    rows, plies = np.array([0, 3, 1, 4, 2]), np.array([0, 3, 11, 0, 9])
    done = []
    values = policy_values(server, games, rows, plies, 6, 4, 3, done.append)
    assert sum(done) == pytest.approx(5) and len(done) > 3
    np.testing.assert_array_equal(values, policy_values(server, games, rows, plies, 6, 64, 1))
    assert len(np.unique(values)) > 2 and (np.abs(values) <= 1).all()
    results = np.zeros(5)
    player = Player(server, GameConfig(11 + 50, SEED, sensible_moves=NEVER))
    fives = np.array([0, 2, 4])
    numbers = (fives[:, None] * 6 + np.arange(6)).ravel()
    for finished in GameBatch([player], 5, 5, opened(games, rows, plies, 6)).play(iter(numbers.tolist())):
        for number, result in zip(finished.games.number, finished.games.result, strict=True):
            results[number // 6] += result
    color = np.where(plies % 2 == 0, BLACK, WHITE)
    expected = np.where(color == BLACK, results, -results) / 6
    np.testing.assert_array_equal(values[fives], expected[fives])


def test_a_network_that_cannot_play_so_is_one_line(server):
    games, rows = made_games(2, 9), np.array([0])
    with InferenceServer(UniformNetwork("alphago-48", 5, 7), threads=1) as small:
        with pytest.raises(ValueError, match="network uniform plays boards of 5 to 7, not 9"):
            policy_values(small, games, rows, rows, 2, 2, 1)
        small.spec = type(small.spec)("blind", "alphago-48", 5, 9, ("value",))
        with pytest.raises(ValueError, match="network blind has no policy to play by"):
            policy_values(small, games, rows, rows, 2, 2, 1)


def test_what_ends_one_group_ends_all_of_them():
    """As Ctrl-C does, or a network that fails: the command does not wait for games that take hours."""

    class Failing(HashNetwork):
        left = 20

        def evaluate(self, planes, globals_):
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("it broke")
            return super().evaluate(planes, globals_)

    games, done = made_games(4, 5, 12), []
    server = InferenceServer(Failing("alphago-48"), threads=1)
    with server, pytest.raises(RuntimeError, match="it broke"):
        policy_values(server, games, np.arange(4), np.arange(4), 1000, 8, 2, done.append)

    def interrupt(positions):
        done.append(positions)
        if len(done) == 1:
            raise KeyboardInterrupt

    done.clear()
    server = InferenceServer(HashNetwork("alphago-48"), threads=1)
    with server, pytest.raises(KeyboardInterrupt):
        policy_values(server, games, np.arange(4), np.arange(4), 1000, 8, 2, interrupt)
    assert sum(done) < 1.0, "the other group had two positions to play out"


def test_draws_count_half_and_games_without_moves_are_positions_too(server):
    empty = Games(
        size=np.array([5]), komi=np.array([0.0], np.float32), offsets=np.array([0, 1]), moves=np.array([12], np.uint16)
    )
    (value,) = policy_values(server, empty, np.array([0]), np.array([0]), 20, 8, 1)
    assert -1 < value < 1
