"""Graph search: the table of nodes against a dictionary, and graphs that stay sound while they grow and move on."""

import random

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.board import META_KO_COLOR, META_KO_POINT
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex
from engine.go.position import with_capacity
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.limits import SearchLimits
from engine.search.pools import META_USED_NODES, NONE, UNEXPANDED
from engine.search.search import Search
from engine.search.transpositions import enter, forget, look_up, position_key
from engine.search.tree import new_node, new_tree
from tests.search.positions import game_from, random_game
from tests.search.tree_tools import check_at_rest

EMPTY = "\n".join([". . . . ."] * 5)


@pytest.fixture(scope="module")
def server():
    with InferenceServer(HashNetwork(KEIMA.name, seed=5), cache_mib=1, threads=1) as one:
        yield one


def after(*vertices: str, komi: float = 0.5):
    """The position after these moves on 5x5, Black first."""
    game = game_from(EMPTY, BLACK, komi)
    for i, vertex in enumerate(vertices):
        game.play((BLACK, WHITE)[i % 2], PASS if vertex == "pass" else from_vertex(vertex, 5))
    return game.position


def test_the_order_of_moves_does_not_matter_but_everything_else_does():
    key = position_key(after("A1", "C3", "B2", "D4"))
    assert key == position_key(after("B2", "D4", "A1", "C3"))
    others = [
        after("A1", "C3", "B2"), after("A1", "C3", "B2", "D3"), after("A1", "C3", "B2", "D4", "pass", "pass"),
        after("A1", "C3", "B2", "D4", "pass"),
    ]  # fmt: skip
    assert len({int(key), *(int(position_key(one)) for one in others)}) == 5


def test_a_ko_is_part_of_the_position_for_the_side_that_it_bars():
    keys = []
    for banned in (0, BLACK, WHITE):
        position = with_capacity(after("A1", "C3", "B2", "D4"), 10)
        position.board.meta[META_KO_POINT], position.board.meta[META_KO_COLOR] = (
            from_vertex("E5", 5) * bool(banned),
            banned,
        )
        keys.append(int(position_key(position)))
    assert keys[0] == keys[2] != keys[1]


def test_the_table_is_a_dictionary():
    rng, tree, twin = random.Random(4), new_tree(9, is_graph=True), {}
    # Few homes, so that keys crowd.
    keys = [np.uint64((rng.randrange(40) << 20 | i << 1) + 1) for i in range(120)]
    for _ in range(4000):
        key = rng.choice(keys)
        if key in twin and rng.random() < 0.5:
            forget(tree, twin.pop(key))
        elif key not in twin and len(twin) < 200:
            node = new_node(tree, UNEXPANDED) if len(twin) < 100 and tree.meta[META_USED_NODES] < 250 else NONE
            if node == NONE:
                node = next((n for n in range(1, 250) if tree.key[n] == 0), None)
            enter(tree, node, key)
            twin[key] = node
        for one in keys:
            assert look_up(tree, one) == twin.get(one, NONE)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_graph_is_smaller_than_the_tree_and_sound(server, threads):
    searches = {}
    for is_graph in (False, True):
        server.forget()
        search = Search(SearchOptions(threads=threads, transpositions=is_graph, c_puct=5.0), server, KEIMA)
        search.set_position(game_from(EMPTY, BLACK, 9.5).position)
        for visits in (1, 100, 3000):
            assert search.run(SearchLimits(visits=visits)).visits == visits
            check_at_rest(search.tree)
        searches[is_graph] = search
    assert searches[True].tree.meta[META_USED_NODES] < searches[False].tree.meta[META_USED_NODES]
    shared = searches[True].tree.parents[: int(searches[True].tree.meta[META_USED_NODES])] > 1
    assert shared.sum() > 20


def test_a_graph_moves_on_with_the_game(server):
    game = random_game(7, 4, seed=2)
    search = Search(SearchOptions(threads=1, transpositions=True), server, KEIMA)
    for _ in range(12):
        search.set_position(game.position)
        kept = search.report().visits
        report = search.run(SearchLimits(visits=kept + 400))
        check_at_rest(search.tree)
        game.play(game.to_move, report.moves[0].point)
        if len(report.moves[0].pv) > 1:
            game.play(game.to_move, report.moves[0].pv[1])
