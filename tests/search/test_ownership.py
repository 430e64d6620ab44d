"""Ownership as the mean over the search tree, compared with a slow twin that walks the tree and asks the network."""

import threading

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, inputs
from engine.go.game import Game
from engine.go.geometry import BLACK
from engine.go.position import META_TO_MOVE, play_move, with_capacity
from engine.go.rules import rules_named
from engine.go.scoring import area_owner
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search import ownership
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_ROOT, NONE, TERMINAL, edge_visits

KEIMA = ENCODERS["keima-1"]
NETWORK = HashNetwork("keima-1")
OPTIONS = SearchOptions(threads=1, seed=3, memory=64, random_symmetry=False)
ASKS = Watcher(lambda report: None, ownership=True)
STEP = 1.0 / 127.0


@pytest.fixture
def server():
    with InferenceServer(NETWORK, 16, 1) as found:
        yield found


def searched(server, size=5, visits=150, watcher=ASKS, rules="chinese", **options):
    """A search of a position with Black to move after two moves, and its report."""
    search = Search(SearchOptions(**(vars(OPTIONS) | options)), server, KEIMA)
    game = Game(size, rules_named(rules))
    for point in (2 * (size + 1) + 2, 2 * (size + 1) + 1):
        game.play(game.to_move, point)
    search.set_position(game.position)
    return search, game.position, search.run(SearchLimits(visits), watcher=watcher)


def own(tree, node, position):
    """What a node itself says, float[N*N] for Black."""
    size = round((len(tree.point) - 1) ** 0.5)
    if tree.state[node] == TERMINAL:
        owner = np.zeros(size * size, np.int8)
        area_owner(with_capacity(position, 600).board, owner)
        return owner.astype(np.float64)
    planes, globals_ = inputs(ENCODERS["keima-1"], [position])
    found = NETWORK.evaluate(planes, globals_).ownership.reshape(-1)
    return found * (1.0 if position.meta[META_TO_MOVE] == BLACK else -1.0)


def all_below(tree, node, position, weight):
    """Weight and ownership of every node of a subtree."""
    edges = range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node])
    visits = {edge: int(edge_visits(tree, edge)) for edge in edges if tree.child[edge] != NONE}
    each = weight / (1 + sum(visits.values()))
    found = [(each, own(tree, node, position))]
    for edge, count in visits.items():
        if count:
            after = with_capacity(position, 600)
            play_move(after, int(tree.move[edge]), int(position.meta[META_TO_MOVE]))
            found += all_below(tree, int(tree.child[edge]), after, each * count)
    return found


def mean_and_deviation(weighted):
    """Of owners with weights that add up to 1."""
    mean = sum(weight * owner for weight, owner in weighted)
    return mean, np.sqrt(np.maximum(0.0, sum(weight * owner**2 for weight, owner in weighted) - mean**2))


@pytest.mark.parametrize("size", [5, 3])
def test_ownership_is_the_mean_over_all_nodes(server, size):
    search, position, report = searched(server, size, visits=400 if size == 3 else 150)
    tree, root = search.tree, int(search.tree.meta[META_ROOT])
    assert size > 3 or (tree.state[: len(tree.state)] == TERMINAL).any()
    mean, deviation = mean_and_deviation(all_below(tree, root, position, 1.0))
    np.testing.assert_allclose(report.ownership_black, mean, atol=STEP)
    np.testing.assert_allclose(report.ownership_stdev, deviation, atol=2 * STEP)
    children = {int(tree.move[e]): int(tree.child[e]) for e in range(tree.first_edge[root], tree.first_edge[root] + 2)}
    for move in report.moves:
        if move.point in children:
            after = with_capacity(position, 600)
            play_move(after, move.point, int(position.meta[META_TO_MOVE]))
            mean, deviation = mean_and_deviation(all_below(tree, children[move.point], after, 1.0))
            np.testing.assert_allclose(move.ownership_black, mean, atol=STEP)
            np.testing.assert_allclose(move.ownership_stdev, deviation, atol=2 * STEP)


def test_reports_have_ownership_at_its_own_interval(server):
    """It costs more than all the rest of a report."""
    seen = []
    for interval_s, wanted in ((3600.0, {True, False}), (0.0, {True})):
        seen.clear()
        watcher = Watcher(lambda report: seen.append(report.ownership_black), 0.0, 1e-9, 0, True, interval_s)
        report = searched(server, visits=2000, watcher=watcher)[2]
        assert seen[0] is not None and report.ownership_black is not None
        assert {owners is not None for owners in seen} == wanted and len(seen) > 2


def test_owners_are_added_up_once_with_the_lock_held_and_divided_without(server, monkeypatch):
    """Each move's map was worked out by itself while the search stood still."""
    search, _, _ = searched(server)
    done, is_free = [], []
    add, means = ownership.add_up_ownership, ownership.OwnershipSums.means
    monkeypatch.setattr(ownership, "add_up_ownership", lambda *given: (done.append(given), add(*given))[1])

    def dividing(sums):
        other = threading.Thread(target=lambda: is_free.append(search._shared.lock.acquire(timeout=0)))
        other.start()
        other.join()
        return means(sums)

    monkeypatch.setattr(ownership.OwnershipSums, "means", dividing)
    report = search.report(keeps=True)
    assert len(done) == 1 and is_free == [True] and len([move for move in report.moves if move.visits]) > 5


def test_one_visit_says_what_the_network_says(server):
    search, position, report = searched(server, visits=1)
    np.testing.assert_allclose(report.ownership_black, own(search.tree, 0, position), atol=STEP)
    assert not report.ownership_stdev.any()


def test_what_is_cached_keeps_its_owners(server):
    searched(server)
    asked = server.evaluations
    search, position, again = searched(server, visits=1)
    assert server.evaluations == asked
    np.testing.assert_allclose(again.ownership_black, own(search.tree, 0, position), atol=STEP)


def test_results_without_owners_are_asked_for_again(server):
    searched(server, watcher=None)
    asked = server.evaluations
    report = searched(server)[2]
    assert server.evaluations - asked > 100 and report.ownership_stdev.any()


def test_who_does_not_ask_has_neither_rows_nor_caches(server):
    search, _, report = searched(server, watcher=None)
    assert search._shared.ownership is None and server._ownership_caches is None
    assert report.ownership_black is None and report.moves[0].ownership_black is None


def test_its_caches_are_part_of_the_memory(server):
    """A long analysis took a quarter more than ``--memory``."""
    plain, kept = (searched(server, watcher=watcher)[0] for watcher in (None, ASKS))
    assert plain._shared.memory_bytes == (64 - 16) << 20
    assert kept._shared.memory_bytes == (64 - 16 - 16) << 20
    assert server.ownership_cache_bytes == 16 << 20
    assert searched(server, watcher=None)[0]._shared.memory_bytes == kept._shared.memory_bytes


def test_the_tree_is_the_same_whether_or_not_it_is_asked_for(server):
    one, other = searched(server)[2], searched(server, watcher=None)[2]
    assert [(move.point, move.visits) for move in one.moves] == [(move.point, move.visits) for move in other.moves]


def test_the_tree_goes_on_with_its_owners_where_the_next_run_asks_too(server):
    search, position, report = searched(server)
    after = with_capacity(position, 600)
    play_move(after, report.moves[0].point, BLACK)
    search.set_position(after)
    kept = int(search.tree.meta[1])
    found = search.run(SearchLimits(kept), watcher=ASKS)
    assert kept > 1 and found.playouts_this_run == 0
    np.testing.assert_allclose(found.ownership_black, report.moves[0].ownership_black, atol=STEP)


def test_a_tree_without_owners_begins_anew(server):
    search, _, _ = searched(server, watcher=None)
    found = search.run(SearchLimits(20), watcher=ASKS)
    assert found.visits == 20 and found.ownership_stdev is not None


def test_without_a_network_rollouts_say_it_once():
    search = Search(SearchOptions(threads=1, seed=3, memory=64), None, None)
    search.set_position(Game(5).position)
    report = search.run(SearchLimits(30), watcher=ASKS)
    assert report.ownership_black.shape == (25,) and report.ownership_stdev is None
