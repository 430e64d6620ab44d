"""What the options of the search do: each changes what it says and leaves the tree sound."""

import time

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK, PASS, from_vertex
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, SerialNetwork
from engine.play.factory import shipped_patterns
from engine.search.choosing import best_first
from engine.search.move_filter import without
from engine.search.report import MoveReport
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import EXPANDED
from engine.search.tuning import resolved
from engine.search.values import edge_mean
from tests.clock import stop_the_machines
from tests.go.positions import random_game
from tests.search.tree_tools import check_at_rest, dump, edges_of, moves_of, root_of


@pytest.fixture(scope="module")
def patterns():
    return shipped_patterns()


@pytest.fixture(scope="module")
def server():
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as one:
        yield one


def searched(server, patterns=None, visits: int = 300, size: int = 9, **options) -> Search:
    """A finished search of a middle game by one thread."""
    server.forget()
    search = Search(SearchOptions(threads=1, **options), server, KEIMA, patterns)
    search.set_position(random_game(size, 12, seed=3).position)
    assert search.run(SearchLimits(visits=visits)).visits == visits
    return search


@pytest.mark.parametrize(
    "options",
    [
        {"value_bias": 0.45}, {"value_weight": 0.25},
        {"value_bias": 0.45, "value_weight": 0.25}, {"root_noise": 0.25}, {"root_symmetries": "8"},
        {"random_symmetry": False}, {"fpu_strategy": "zero"}, {"virtual_loss": 1.0, "virtual_visits": 3, "batch": 16},
    ],
)  # fmt: skip
def test_an_option_changes_the_tree_and_leaves_it_sound(server, options):
    plain, changed = searched(server, visits=600), searched(server, visits=600, **options)
    check_at_rest(changed.tree, placeholders="root_noise" in options)
    assert dump(changed.tree, 9) != dump(plain.tree, 9)


@pytest.mark.parametrize(
    "options",
    [
        {"virtual_loss_on": "rollouts"}, {"fpu_strategy": "zero"}, {"adaptive_expansion": True},
        {"async_values": True, "placeholder_priors": True}, {"expand_after": 3},
        {"expand_after": 5, "async_values": True, "placeholder_priors": True},
    ],
)  # fmt: skip
@pytest.mark.parametrize("threads", [1, 2])
def test_rollout_options_leave_a_sound_tree(server, patterns, options, threads):
    server.forget()
    search = Search(SearchOptions(threads=threads, rollout_weight=0.5, **options), server, KEIMA, patterns)
    search.set_position(random_game(9, 12, seed=3).position)
    for visits in (1, 50, 400):
        assert search.run(SearchLimits(visits=visits)).visits == visits
        assert search.in_flight() == 0
        check_at_rest(search.tree, placeholders=True, rolled=True)
    edges = edges_of(search.tree, root_of(search.tree))
    assert sum(int(search.tree.N_r[edge]) for edge in edges) == 399


class Watching(HashNetwork):
    """A network that notes how many positions it has been given at once."""

    def __init__(self):
        super().__init__(KEIMA.name)
        self.most = 0

    def evaluate(self, planes, globals_):
        self.most = max(self.most, len(planes))
        return super().evaluate(planes, globals_)


@pytest.mark.parametrize(("visits_per_leaf", "low", "high"), [(0, 8, 16), (64, 1, 1), (10, 2, 6)])
def test_batches_stay_small_in_small_trees(visits_per_leaf, low, high):
    network = Watching()
    with InferenceServer(network, threads=1) as server:
        searched(server, visits=50, batch=16, visits_per_leaf=visits_per_leaf)
    assert low <= network.most <= high


def test_leaves_are_rolled_out_a_number_of_times_before_they_are_expanded(server, patterns):
    """The network's value comes at the first rollout (AlphaGo, Methods: evaluation and expansion)."""
    many, few = (searched(server, patterns, rollout_weight=0.5, expand_after=n) for n in (0, 8))
    assert few.report().evaluations < many.report().evaluations / 2
    tree = few.tree
    for edge in edges_of(tree, root_of(tree)):
        if tree.N_r[edge] > 0:
            assert 1 <= tree.N_v[edge] <= max(1, tree.N_r[edge] - 8)
            assert (tree.state[tree.child[edge]] == EXPANDED) == (tree.N_r[edge] > 8)


def test_noise_is_mixed_into_every_root_once(server):
    plain, noisy = searched(server, visits=2), searched(server, visits=2, root_noise=0.5)
    before = dict(moves_of(plain.tree, root_of(plain.tree)))
    first = dict(moves_of(noisy.tree, root_of(noisy.tree)))
    noisy.run(SearchLimits(visits=100))
    assert {p: pytest.approx(q, rel=1e-3) for p, q in first.items()} == dict(moves_of(noisy.tree, root_of(noisy.tree)))
    assert before.keys() == first.keys()
    assert sum(first.values()) == pytest.approx(1.0, abs=2e-3)
    assert all(first[point] >= 0.499 * prior for point, prior in before.items())
    assert max(abs(first[point] - prior) for point, prior in before.items()) > 0.02


def test_the_roots_priors_are_the_mean_over_all_symmetries(server):
    """A position that is its own mirror image gets symmetric priors from a network that is not symmetric."""
    server.forget()
    search = Search(SearchOptions(threads=1, root_symmetries="8"), server, KEIMA)
    search.set_position(random_game(9, 0, seed=1).position)
    search.run(SearchLimits(visits=1))
    priors = dict(moves_of(search.tree, root_of(search.tree)))
    for group in (("A1", "A9", "J1", "J9"), ("C2", "G2", "C8", "G8", "B3", "B7", "H3", "H7")):
        values = [priors[from_vertex(vertex, 9)] for vertex in group]
        assert values == pytest.approx([values[0]] * len(values), rel=2e-3)


def test_a_search_that_begins_anew_for_excluded_moves_treats_its_new_root_like_the_old(server):
    server.forget()
    search = Search(SearchOptions(threads=1, root_symmetries="8"), server, KEIMA)
    search.set_position(random_game(9, 0, seed=1).position)
    best = search.run(SearchLimits(visits=50)).moves[0].point
    search.run(SearchLimits(visits=1), without(BLACK, [best]))
    priors = dict(moves_of(search.tree, root_of(search.tree)))
    corners = [priors[from_vertex(vertex, 9)] for vertex in ("A1", "A9", "J1", "J9")]
    assert corners == pytest.approx([corners[0]] * 4, rel=2e-3)


def test_a_gpu_has_two_workers_at_least_since_one_alone_is_not_merged():
    with InferenceServer(SerialNetwork(KEIMA.name)) as server:
        assert resolved(SearchOptions(), server).threads >= 2
        assert resolved(SearchOptions(threads=1), server).threads == 1


def test_the_bound_of_a_move_is_below_its_value_and_tightens(server):
    search = searched(server, visits=800)
    for move in search.report().moves:
        assert move.lcb_stm < move.value_stm
    best = search.report().moves[0]
    edge = next(e for e in edges_of(search.tree, root_of(search.tree)) if search.tree.move[e] == best.point)
    mean, n = float(edge_mean(search.tree, edge, 0.0)), best.visits
    variance = (float(search.tree.W_sq[edge]) - n * mean**2 + 1.0) / n
    assert best.lcb_stm == pytest.approx(mean - 5.0 * (variance / n) ** 0.5)


def test_the_best_bound_is_chosen_among_moves_with_enough_visits():
    moves = [
        MoveReport(30, 100, 0.5, 0.1, -0.1, None, [30], [100]),
        MoveReport(31, 60, 0.2, 0.3, 0.05, None, [31], [60]),
        MoveReport(32, 10, 0.2, 0.9, 0.4, None, [32], [10]),
        MoveReport(PASS, 0, 0.1, 0.0, -1.0, None, [PASS], [0]),
    ]
    assert [move.point for move in best_first(moves, "lcb")] == [31, 30, 32, PASS]
    assert [move.point for move in best_first(moves, "visits")] == [30, 31, 32, PASS]


class Stopped(HashNetwork):
    """Keeps what it has said; while it answers for the third time, the search that has asked is stopped."""

    search: Search
    server: InferenceServer

    def __init__(self):
        super().__init__(KEIMA.name)
        self.said = []

    def evaluate(self, planes, globals_):
        while not self.said and self.server.waiting < 7:
            time.sleep(0.001)
        output = super().evaluate(planes, globals_)
        self.said.append(output.ownership[0].reshape(-1).copy())
        if len(self.said) == 3:
            self.search.stop()
        return output


def test_ownership_is_the_mean_over_all_symmetries(server):
    """On the empty board all symmetries together are symmetric; HashNetwork alone is not."""
    server.forget()
    search = Search(SearchOptions(threads=1), server, KEIMA)
    search.set_position(random_game(9, 0, seed=1).position)
    before = server.evaluations
    full = search.ownership_black().reshape(9, 9)
    assert server.evaluations - before == 8
    for turned in (np.rot90(full), full.T):
        np.testing.assert_allclose(turned, full, atol=1e-6)


def test_ownership_is_the_mean_over_the_symmetries_that_came_before_an_interruption():
    """Those that wait are taken back, the one that runs is not waited for."""
    network = Stopped()
    with InferenceServer(network, threads=1) as server:
        network.server = server
        network.search = search = Search(SearchOptions(threads=1), server, KEIMA)
        search.set_position(random_game(9, 0, seed=1).position)
        hurried = search.ownership_black()
    assert len(network.said) == 3
    table = symmetry_table(9)[:, :-1]
    expected = np.mean([said[table[symmetry]] for symmetry, said in enumerate(network.said[:2])], axis=0)
    np.testing.assert_allclose(hurried, expected, atol=1e-6)


@pytest.mark.parametrize(("seconds", "symmetries"), [(0.5, 0), (2.5, 2), (100.0, 8)])
def test_no_more_symmetries_are_asked_for_than_there_is_time_for(monkeypatch, seconds, symmetries):
    clock = stop_the_machines(monkeypatch, look_s=1e-6)
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as server:
        search = Search(SearchOptions(threads=1), server, KEIMA)
        search.set_position(random_game(9, 30, seed=1).position)
        server.pace.note(1, 1.0)
        found = search.network_ownership_black(clock() + seconds)
        assert server.evaluations == symmetries
        assert (found is None) == (symmetries == 0)
        server.pace.note(1, 1000.0)
        by_rollouts = search.ownership_black(clock() + seconds)
    alone = Search(SearchOptions(threads=1), None, None)
    alone.set_position(random_game(9, 30, seed=1).position)
    np.testing.assert_array_equal(by_rollouts, alone.ownership_black())
