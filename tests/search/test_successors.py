"""The network's values after every move, evaluated beside a search that does not notice."""

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA, encode
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, index_of, on_board_points
from engine.go.position import META_TO_MOVE, is_legal_move, play_move, with_capacity
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetworkSpec
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from tests.go.positions import game_from, random_game
from tests.search.tree_tools import dump

OWNERS = Watcher(lambda report: None, ownership=True)


@pytest.fixture
def made():
    """Makes a search of a position with its server; both are closed at the end."""
    opened = []

    def make(position, network=None, **options):
        server = InferenceServer(network or HashNetwork(KEIMA.name), threads=1, cache_mib=8)
        search = Search(SearchOptions(threads=1, seed=5, **options), server, KEIMA)
        search.set_position(position)
        opened.extend((search, server))
        return search

    yield make
    for one in opened:
        one.close()


def legal_points(position):
    """The legal moves, the pass last."""
    size, color = int(position.board.meta[0]), position.meta[META_TO_MOVE]
    return [*(p for p in on_board_points(size).tolist() if is_legal_move(position, p, color)), PASS]


def wait(successors):
    """Wait for the outstanding request, if there is one."""
    if successors._count:
        assert successors._request.done.wait(60.0)


def evaluated(search, points, most=32):
    """The values after moves, once all of them are known."""
    successors = search.successors(points)
    while successors.step(most):
        wait(successors)
    return successors.values


@pytest.mark.parametrize("moves", [12, 13])
def test_values_are_the_networks_for_the_side_to_move_at_the_root(made, moves):
    position, values = random_game(9, moves, seed=1).position, HashNetwork(KEIMA.name)
    search, points = made(position, random_symmetry=False), legal_points(position)
    found = evaluated(search, points)
    for point in points:
        after = with_capacity(position, moves + 1)
        play_move(after, point, position.meta[META_TO_MOVE])
        planes, globals_ = np.zeros((1, KEIMA.planes, 9, 9), np.float32), np.zeros((1, KEIMA.globals), np.float32)
        encode(after, 0, KEIMA.new_scratch(9), planes[0], globals_[0])
        assert found[index_of(point, 9)] == pytest.approx(-values.evaluate(planes, globals_).value[0], abs=1e-6)
    illegal = sorted(set(range(82)) - {index_of(point, 9) for point in points})
    assert illegal and np.isnan(found[illegal]).all()


@pytest.mark.parametrize("watcher", [None, OWNERS])
def test_each_position_is_evaluated_once_and_those_of_the_search_not_at_all(made, watcher):
    position = random_game(9, 12, seed=1).position
    search, points = made(position), legal_points(position)
    server = search.setup.network.server
    search.run(SearchLimits(60), watcher=watcher)
    before = server.evaluations
    first = evaluated(search, points)
    seen = sum(1 for move in search.report().moves if move.visits)
    assert seen > 3 and server.evaluations - before == len(points) - seen
    again = server.evaluations
    np.testing.assert_array_equal(evaluated(search, points), first)
    assert server.evaluations == again


def test_steps_are_small_and_in_the_given_order(made):
    position = random_game(9, 12, seed=1).position
    search, points = made(position), legal_points(position)[::-1]
    successors = search.successors(points)
    assert successors.step(0) and np.isnan(successors.values).all()
    for _ in range(2):
        assert successors.step(3)
        wait(successors)
    assert successors.step(0)
    known = {index_of(point, 9) for point in points[:6]}
    assert set(np.flatnonzero(~np.isnan(successors.values)).tolist()) == known
    successors.step(3)
    successors.cancel()


@pytest.mark.parametrize("watcher", [None, OWNERS])
def test_the_search_grows_the_same_tree_beside_them(made, watcher):
    position, trees, owners, evaluations = random_game(9, 12, seed=1).position, [], [], []
    for is_asked in (False, True):
        search = made(position)
        server = search.setup.network.server
        search.run(SearchLimits(1), watcher=watcher)
        if is_asked:
            evaluated(search, legal_points(position))
        before = server.evaluations
        report = search.run(SearchLimits(200), watcher=watcher)
        trees.append(dump(search.tree, 9))
        owners.append(report.ownership_black)
        evaluations.append(server.evaluations - before)
    assert trees[0] == trees[1] and evaluations[1] < evaluations[0]
    assert (owners[0] is None) == (watcher is None)
    if watcher is not None:
        np.testing.assert_allclose(owners[0], owners[1], atol=1e-3)


@pytest.mark.parametrize("rules", ["chinese", "japanese"])
def test_a_game_that_a_pass_ends_has_its_result(made, rules):
    """Black has the whole board but for White's two stones, which are dead by territory, and has less by area too."""
    game = game_from(
        """
        . X . X .
        X X X X X
        . X O O .
        X X X X X
        . X . X .
        """,
        rules=rules,
    )
    game.play(BLACK, PASS)
    position = game.position
    search = made(position)
    found = evaluated(search, [PASS])
    assert position.meta[META_TO_MOVE] == WHITE and found[25] == -1.0


def test_networks_without_values_have_none(made):
    class Policy(HashNetwork):
        def __init__(self):
            super().__init__(KEIMA.name)
            self.spec = NetworkSpec("policy", KEIMA.name, 7, 19, ("policy",))

    search = made(random_game(9, 2, seed=1).position, Policy(), rollout_weight=1.0)
    assert search.successors([PASS]) is None
    assert Search(SearchOptions(threads=1), None, None).successors([PASS]) is None


def test_a_failure_is_raised(made):
    class Broken(HashNetwork):
        def evaluate(self, planes, globals_):
            raise RuntimeError("out of order")

    search = made(random_game(9, 2, seed=1).position, Broken(KEIMA.name))
    successors = search.successors([from_vertex("D4", 9)])
    successors.step(1)
    wait(successors)
    with pytest.raises(NetworkFailed, match="out of order"):
        successors.step(1)
