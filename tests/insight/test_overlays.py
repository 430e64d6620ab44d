"""Overlays: policies are probabilities of legal moves, ladders, liberties, estimates of the score."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from engine.config import PlayOptions, SearchOptions
from engine.features.encoder import KEIMA
from engine.features.keima import OWN
from engine.go.diagram import parse
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, index_of, on_board_points
from engine.inference.server import InferenceServer
from engine.insight.analyses import _raw_output
from engine.insight.overlays import ladders, liberties, policy, rollout_probabilities
from engine.insight.raw_outputs import NOTHING, PositionQuery, raw_evaluation
from engine.nets.fakes import UniformNetwork
from engine.nets.raw import RawNetwork
from engine.play.life_and_death import SURE
from engine.play.player import Player
from tests.playing import position
from weights import find_network

STUCK_S = 60.0
"""Far longer than anything here takes"""
KO = ["b", "D5", "w", "E5", "b", "C4", "w", "F4", "b", "D3", "w", "E3", "b", "E4", "w", "D4"]
"""White has just taken a ko: Black may not play E4."""


class Mirror(UniformNetwork):
    """Says that the mover's stones are its own, and the only good moves; hangs while its gate is shut."""

    def __init__(self, encoder):
        super().__init__(encoder)
        self.hanging, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def evaluate(self, planes, globals_):
        if not self.gate.is_set():
            self.hanging.set()
            assert self.gate.wait(2 * STUCK_S)
        own = planes[:, OWN]
        logits = np.concatenate([own.reshape(len(own), -1), np.zeros((len(own), 1), np.float32)], axis=1)
        return super().evaluate(planes, globals_)._replace(policy=logits, ownership=own)


@pytest.fixture(scope="module")
def player():
    player = Player(SearchOptions(threads=1), PlayOptions(visits=20), size=9)
    yield player
    player.close()


def played(player: Player, words: list[str]) -> Game:
    """The player's game after some moves on the empty board."""
    player.new_game(9)
    for color, vertex in zip(words[::2], words[1::2], strict=True):
        player.play(BLACK if color == "b" else WHITE, from_vertex(vertex, 9))
    return player.game


@pytest.mark.parametrize("color", [BLACK, WHITE])
def test_policies_are_probabilities_of_legal_moves(player, color):
    game = played(player, KO)
    legal = [game.is_legal(color, point) for point in on_board_points(9).tolist()]
    for chances in (
        policy(player, color, 0).probabilities,
        rollout_probabilities(game.position, color, SearchOptions()),
    ):
        assert chances.shape == (82,)
        assert chances.min() >= 0 and chances.sum() == pytest.approx(1)
        assert not chances[:-1][np.logical_not(legal)].any()
        ko = index_of(from_vertex("E4", 9), 9)
        assert (chances[ko] == 0) == (color == BLACK)


def test_a_glance_under_a_symmetry_is_turned_back():
    """Of a network that sees the same under all symmetries: one of the plane of the mover's stones."""
    game = Game(9)
    for vertex in ("C3", "G7", "D4"):
        game.play(game.to_move, from_vertex(vertex, 9))
    with InferenceServer(Mirror(KEIMA.name), threads=1) as server:
        glances = [PositionQuery(server, KEIMA, game.position, one).outputs() for one in range(8)]
    for raw in glances[1:]:
        np.testing.assert_array_equal(raw.policy, glances[0].policy)
        np.testing.assert_array_equal(raw.ownership_black, glances[0].ownership_black)
    assert glances[0].ownership_black[index_of(from_vertex("G7", 9), 9)] == -1


def test_a_glance_is_not_waited_for_when_nobody_wants_it_any_more():
    """A network that hangs held a query that had been terminated, and the end of the engine."""
    network, ended = Mirror(KEIMA.name), threading.Event()
    network.gate.clear()
    found = []
    with InferenceServer(network, threads=1) as server:
        query = PositionQuery(server, KEIMA, Game(9).position)
        job = SimpleNamespace(ended=ended)
        thread = threading.Thread(target=lambda: found.append(_raw_output(job, query)), daemon=True)
        thread.start()
        assert network.hanging.wait(STUCK_S)
        ended.set()
        thread.join(STUCK_S)
        assert found == [NOTHING]
        network.gate.set()


def test_without_a_network_nobody_knows_a_win_rate(player):
    played(player, [])
    assert np.isnan(policy(player, BLACK, 0).win)


def test_the_network_that_plays_is_asked_and_not_read_again(monkeypatch):
    path = find_network("default")
    player = Player(SearchOptions(threads=1), PlayOptions(visits=4), path, size=9)
    monkeypatch.setattr("engine.insight.raw_outputs.RawNetwork", None)
    game, exact = played(player, KO), RawNetwork(path)
    for symmetry in (0, 3):
        found, said = policy(player, BLACK, symmetry), raw_evaluation(exact, game.position, symmetry, 0.0)
        # What plays may compute in 16 bits.
        np.testing.assert_allclose(found.probabilities, np.nan_to_num(said.policy), atol=0.02)
        assert found.win == pytest.approx(said.output.loss, abs=0.02), "what raw_evaluation says is White's"
    ko = index_of(from_vertex("E4", 9), 9)
    assert policy(player, BLACK, 0).probabilities[ko] == 0 < policy(player, WHITE, 0).probabilities[ko]
    player.close()


def test_where_nothing_sensible_is_left_a_rollout_passes():
    game = Game(2)
    for vertex in ("A1", "A2", "B1"):
        game.play(BLACK, from_vertex(vertex, 2))
    assert rollout_probabilities(game.position, BLACK, SearchOptions()).tolist() == [0, 0, 0, 0, 1]


def test_an_estimate_changes_no_game_and_lies_within_its_bounds(player):
    game = played(player, KO)
    before = game.moves()
    found = player.score()
    assert found.low_black <= found.lead_black <= found.high_black
    in_doubt = np.count_nonzero(np.abs(player.estimate_end().ownership_black) < SURE)
    assert found.high_black - found.low_black == pytest.approx(2 * in_doubt)
    assert player.game.moves() == before


FINISHED = """
    . X X X X O O O .
    X X X X X O O O O
    X X X X X O O O O
    X . X X X O O O O
    X O . X X O . X O
    X . X X X O O . O
    X X X X X O O O O
    X X X X X O O O O
    . X X X X O O O .
"""
"""Black has five columns and White four; each has a dead stone of the other's in a third eye."""


def test_dead_stones_count_for_whoever_owns_their_points(player):
    position(player, FINISHED, BLACK)
    player.set_komi(7.5)
    found = player.score()
    assert (found.low_black, found.lead_black, found.high_black) == (1.5, 1.5, 1.5)


def test_a_point_that_is_still_open_is_the_width_of_the_bounds(player):
    """E5 belongs to the side that plays there; all else is as before."""
    position(player, FINISHED.replace("X O . X X O", "X O . X . O"), BLACK)
    player.set_komi(7.5)
    found = player.score()
    assert (found.low_black, found.high_black) == pytest.approx((-0.5, 1.5), abs=0.1)
    assert found.low_black < found.lead_black < found.high_black


def test_ladders_and_liberties_of_a_diagram():
    board = parse("""
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """).board
    assert ladders(board, BLACK) == ([from_vertex("D4", 9)], [])
    counts = liberties(board).reshape(9, 9)
    assert counts[6].tolist() == [0, 0, 4, 2, 0, 0, 0, 0, 0]
    assert counts[8].tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 0]
