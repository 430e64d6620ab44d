"""The search with pattern policies: their priors, their rollouts, and what is remembered for them."""

from dataclasses import replace
from shutil import copyfile

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.board import is_eye, new_board, play
from engine.go.geometry import BLACK, PASS, on_board_points
from engine.go.position import META_N_MOVES, META_TO_MOVE, is_legal_move
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.play.factory import load_parts, ownership_tables, parts_with, shipped_patterns
from engine.rollout.ownership import rollout_ownership
from engine.rollout.patterns import all_states
from engine.rollout.softmax import consider, new_candidates, weigh
from engine.search.search import OWNERSHIP_ROLLOUTS, Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import EXPANDED, NONE
from engine.search.tuning import resolved
from tests.go.positions import random_game
from tests.search.tree_tools import check_at_rest, edges_of, moves_of
from weights import find_network, find_patterns


@pytest.fixture(scope="module")
def patterns():
    """The policies in the box."""
    return shipped_patterns()


def tree_policy(position, patterns):
    """What the tree policy says of a position: probability by point."""
    moves = new_candidates(int(position.board.meta[0]))
    all_states(position.board, moves.cell)
    played = int(position.meta[META_N_MOVES])
    for back in range(min(2, played)):
        moves.last[back] = position.moves[played - 1 - back]
    count = consider(moves, position.board, patterns.numbers, position.meta[META_TO_MOVE])
    weigh(moves, count, patterns.theta)
    return dict(zip(moves.point[:count].tolist(), moves.probability[:count].tolist(), strict=True))


@pytest.mark.parametrize(("size", "n_moves"), [(5, 6), (9, 0), (9, 30), (13, 60), (19, 120), (25, 40)])
def test_priors_without_a_network_are_the_tree_policys(patterns, size, n_moves):
    position = random_game(size, n_moves, seed=size).position
    search = Search(SearchOptions(threads=1), None, None, patterns)
    search.set_position(position)
    search.run(SearchLimits(visits=1))
    expected = tree_policy(position, patterns)
    found = dict(moves_of(search.tree, 0))
    color = position.meta[META_TO_MOVE]
    legal = {int(p) for p in on_board_points(size) if is_legal_move(position, int(p), color)}
    assert (
        {point for point in legal if not is_eye(position.board, point, color)} | {PASS} <= set(found) <= legal | {PASS}
    )
    assert sum(found.values()) == pytest.approx(1.0, abs=2e-3)
    assert found[PASS] < 0.001
    for point, chance in expected.items():
        if chance > 0.001:
            assert found[point] == pytest.approx(chance, rel=0.03)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_nothing_stays_in_flight(patterns, threads, weight):
    with InferenceServer(HashNetwork(KEIMA.name), threads=2) as server:
        for network in (server, None):
            options = SearchOptions(threads=threads, rollout_weight=weight, reply_probability=0.5)
            search = Search(options, network, KEIMA if network else None, patterns)
            search.set_position(random_game(9, 12, seed=3).position)
            for visits in (1, 10, 300):
                assert search.run(SearchLimits(visits=visits)).visits == visits
                assert search.in_flight() == 0
                check_at_rest(search.tree)


class Judge(HashNetwork):
    """A network with a value and no policy."""

    def __init__(self):
        super().__init__(KEIMA.name)
        self.spec = replace(self.spec, heads=("value", "score", "ownership"))

    def evaluate(self, planes, globals_):
        return super().evaluate(planes, globals_)._replace(policy=None)


@pytest.mark.parametrize("placeholders", [False, True])
def test_without_a_policy_the_tree_policy_gives_the_priors(patterns, placeholders):
    """Also where a position comes from the cache."""
    position = random_game(9, 12, seed=3).position
    expected = tree_policy(position, patterns)
    with InferenceServer(Judge(), threads=1) as server:
        search = Search(SearchOptions(threads=1, placeholder_priors=placeholders), server, KEIMA, patterns)
        for _ in range(2):
            search.set_position(position)
            search.clear()
            assert search.run(SearchLimits(visits=60)).visits == 60
            check_at_rest(search.tree, placeholders)
            found = dict(moves_of(search.tree, 0))
            for point, chance in expected.items():
                if chance > 0.001:
                    assert found[point] == pytest.approx(chance, rel=0.03)
        with pytest.raises(ValueError, match="has no policy"):
            Search(SearchOptions(), server, KEIMA)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_placeholder_priors_leave_no_trace(patterns, threads, weight):
    """In the end every node has the network's priors and values, as if none had ever been placed."""
    found = {}
    with InferenceServer(HashNetwork(KEIMA.name), threads=2) as server:
        for placeholders in (False, True):
            server.forget()
            options = SearchOptions(
                threads=threads, rollout_weight=weight, placeholder_priors=placeholders, fpu_reduction=0.0, batch=32
            )
            search = Search(options, server, KEIMA, patterns)
            search.set_position(random_game(9, 12, seed=3).position)
            for visits in (1, 40, 400):
                assert search.run(SearchLimits(visits=visits)).visits == visits
                check_at_rest(search.tree, placeholders)
            found[placeholders] = priors_by_path(search.tree)
    common = found[False].keys() & found[True].keys()
    assert len(common) > 50
    for path in common:
        assert found[True][path] == found[False][path]


def priors_by_path(tree, node=0, path=()):
    """Priors of every expanded node, by the moves that lead to it."""
    found = {path: dict(moves_of(tree, node))} if tree.state[node] == EXPANDED else {}
    for edge in edges_of(tree, node):
        if tree.child[edge] != NONE:
            found |= priors_by_path(tree, int(tree.child[edge]), (*path, int(tree.move[edge])))
    return found


def test_most_probable_moves_are_remembered_only_if_asked_for(patterns):
    for chance, expects in ((0.0, False), (0.9, True)):
        search = Search(SearchOptions(threads=1, reply_probability=chance), None, None, patterns)
        search.set_position(random_game(9, 12, seed=3).position)
        search.run(SearchLimits(visits=200))
        assert bool(search._workers.each[0]._replies.key.any()) == expects
        search.clear()
        assert not search._workers.each[0]._replies.key.any()


def test_exploration_suits_the_noise_of_values_unless_it_is_given(patterns):
    with InferenceServer(HashNetwork(KEIMA.name), threads=1) as server:
        for network, given, used in ((server, 0.0, 1.4), (None, 0.0, 5.0), (server, 3.0, 3.0)):
            assert resolved(SearchOptions(c_puct=given), network).c_puct == used


def test_a_finished_board_is_no_trouble(patterns):
    """No sensible move is left for either side: the tree policy has nothing to weigh."""
    board = new_board(2)
    play(board, int(on_board_points(2)[0]), BLACK)
    for size, n_moves in ((2, 2), (3, 7), (5, 60)):
        search = Search(SearchOptions(threads=1), None, None, patterns)
        search.set_position(random_game(size, n_moves, seed=1).position)
        assert search.run(SearchLimits(visits=50)).visits == 50


@pytest.mark.parametrize("is_learnt", [False, True])
def test_without_a_network_rollouts_of_the_kind_that_is_loaded_own_the_points(patterns, is_learnt):
    game, loaded = random_game(9, 30, seed=4), patterns if is_learnt else None
    search = Search(SearchOptions(threads=1, seed=5), None, None, loaded)
    search.set_position(game.position)
    expected = rollout_ownership(game.position.board, loaded and loaded.tables, OWNERSHIP_ROLLOUTS, 5)
    np.testing.assert_array_equal(search.ownership_black(), expected)


def test_a_player_has_the_pattern_policies_that_its_options_name(tmp_path):
    """Priors of the tree policy, rollouts and the owners of finished games; a file that is none is refused."""
    files = [copyfile(find_patterns(kind), tmp_path / f"my-{kind}") for kind in ("rollout", "tree")]
    given = "+".join(map(str, files))
    options = SearchOptions(patterns=given)
    shipped, own = load_parts(SearchOptions(), None, "cpu"), load_parts(options, None, "cpu")
    assert own.patterns is not shipped.patterns and ownership_tables(own) is own.patterns.tables
    assert parts_with(shipped, options).patterns is own.patterns
    for wrong in (str(files[0]), f"{given}x", "tree+rollout"):
        for network in (None, find_network("small")):
            with pytest.raises(ValueError, match=r"ROLLOUT\+TREE|unknown pattern policy|expected a rollout policy"):
                load_parts(SearchOptions(patterns=wrong), network, "cpu")
