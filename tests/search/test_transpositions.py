"""Graph search: the table of nodes against a dictionary, and graphs that stay sound while they grow and move on."""

import random

import numpy as np
import pytest
import torch

import engine.search.worker
from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.board import META_KO_COLOR, META_KO_POINT
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, index_of
from engine.go.position import META_TO_MOVE, play_move, with_capacity
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.play.assembly import shipped_patterns
from engine.search.backup import complete
from engine.search.batch import FINISHED, new_batch
from engine.search.limits import SearchLimits
from engine.search.pools import EXPANDED, META_ROOT_VISITS, META_USED_NODES, NONE, TERMINAL, UNEXPANDED
from engine.search.search import Search
from engine.search.selection import select
from engine.search.transpositions import enter, forget, look_up, position_key
from engine.search.tree import add_edge, edge_visits, new_node, new_tree, store_moves
from engine.search.values import edge_mean
from tests.go.positions import game_from, random_game
from tests.search.tree_tools import check_at_rest, edges_of, root_of
from tests.search.tree_twin import tuning_of

EMPTY = "\n".join([". . . . ."] * 5)


@pytest.fixture(scope="module")
def server():
    with InferenceServer(HashNetwork(KEIMA.name, seed=5), threads=1) as one:
        yield one


def after(*vertices: str, komi: float = 0.5, rules: str = "tromp-taylor"):
    """The position after these moves on 5x5, Black first."""
    game = game_from(EMPTY, BLACK, komi, rules)
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


def test_a_move_that_superko_bans_is_not_played_though_another_path_left_it():
    """B1 repeats the position before Black took at A1 only if Black has been there."""
    game = Game(5, rules_named("chinese-ogs"))
    black, white = ([from_vertex(one, 5) for one in text.split()] for text in ("C2 D1 D3", "A2 B2 B3"))
    game.setup_stones(black, white, BLACK)

    class Peaked(HashNetwork):
        def evaluate(self, planes, globals_):
            output = super().evaluate(planes, globals_)
            for vertex, logit in (("A1", 5.0), ("B1", 4.5), ("E5", 4.8), ("C1", 4.7)):
                output.policy[:, int(index_of(from_vertex(vertex, 5), 5))] = logit
            return output._replace(value=torch.zeros_like(output.value))

    with InferenceServer(Peaked(KEIMA.name), threads=1) as server:
        search = Search(SearchOptions(threads=1, seed=1, transpositions=True, random_symmetry=False), server, KEIMA)
        search.set_position(game.position)
        search.run(SearchLimits(3000))
        for vertex in ("B1", "E5", "A1", "C1"):
            game.play(game.to_move, from_vertex(vertex, 5))
        assert not game.is_legal(BLACK, from_vertex("B1", 5))
        search.set_position(game.position)
        report = search.run(SearchLimits(200))
    assert all(game.is_legal(BLACK, move.point) for move in report.moves)


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


PRISONER = ("A2 A1 B1 pass", "A2 pass B1 pass")
"""White's stone at A1 is taken, or never was there."""
BUTTON = ("pass pass D4 C3", "D4 pass pass C3")
"""Black takes the button, or White does."""
HANDICAP = ("C3 pass D4 E5 pass B2 A1 E1", "C3 E5 pass B2 D4 pass A1 E1")
"""Black begins with two stones, or with one."""


@pytest.mark.parametrize(
    ("orders", "rules", "is_same"),
    [
        (PRISONER, "japanese", False), (PRISONER, "ancient-territory", False), (PRISONER, "tromp-taylor", True),
        (BUTTON, "aga-button", False), (BUTTON, "aga", True),
        (HANDICAP, "chinese", False), (HANDICAP, "aga", False), (HANDICAP, "japanese", True),
    ],
)  # fmt: skip
def test_equal_boards_share_a_node_where_they_score_alike(orders, rules, is_same):
    one, other = (after(*order.split(), rules=rules) for order in orders)
    assert (one.board.color == other.board.color).all()
    assert (position_key(one) == position_key(other)) == is_same == (final_score_black(one) == final_score_black(other))


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


def finished_by_all_paths(search, root):
    """(position, lead at the node) of every way to a finished game, whose ways are replayed move by move."""
    tree, stack, found = search.tree, [(root_of(search.tree), ())], []
    while stack:
        node, path = stack.pop()
        if tree.state[node] == TERMINAL:
            position = with_capacity(root, 100)
            for move in path:
                play_move(position, move, int(position.meta[META_TO_MOVE]))
            found.append((position, float(tree.lead[node])))
        for edge in edges_of(tree, node):
            if tree.child[edge] != NONE:
                stack.append((int(tree.child[edge]), (*path, int(tree.move[edge]))))
    return found


@pytest.mark.parametrize("rules", ["aga-button", "chinese"])
def test_finished_games_count_the_same_by_every_path(server, rules):
    game = Game(3, rules_named(rules), 0.5)
    search = Search(SearchOptions(threads=1, transpositions=True, c_puct=8.0), server, KEIMA)
    search.set_position(game.position)
    search.run(SearchLimits(visits=6000))
    found = finished_by_all_paths(search, game.position)
    assert len(found) > 100
    for position, lead_stm in found:
        lead = final_score_black(position)
        assert lead_stm == (lead if position.meta[META_TO_MOVE] == BLACK else -lead)


@pytest.mark.parametrize("expand_after", [0, 3])
@pytest.mark.parametrize("threads", [1, 2])
def test_nodes_of_a_graph_know_rollouts_that_came_before_the_network(server, monkeypatch, threads, expand_after):
    """A playout may pass through a node whose rollout alone has been backed up; there is a mean to be read."""
    unread, seen = [], []

    def noting(tree, batch, count):
        back_up(tree, batch, count)
        for i in range(count):
            for d in range(batch.depth[i]):
                edge = tree.first_edge[batch.node[i, d]] + batch.edge_index[i, d]
                seen.append(int(edge))
                if tree.N[tree.child[edge]] < edge_visits(tree, edge):
                    unread.append(int(edge))

    back_up = engine.search.worker.back_up_rollouts_early
    monkeypatch.setattr(engine.search.worker, "back_up_rollouts_early", noting)
    server.forget()
    options = {"rollout_weight": 0.5, "placeholder_priors": True, "async_values": True, "expand_after": expand_after}
    search = Search(SearchOptions(threads=threads, transpositions=True, **options), server, KEIMA, shipped_patterns())
    search.set_position(game_from(EMPTY, BLACK, 9.5).position)
    for visits in (1, 100, 2000):
        assert search.run(SearchLimits(visits=visits)).visits == visits
        check_at_rest(search.tree, placeholders=True, rolled=True)
    assert len(seen) > 100 and not unread


def test_a_graph_without_transpositions_has_the_means_of_a_tree(server):
    """Where all moves were played through one path, a node's mean is that of the edge before it."""
    server.forget()
    options = {"rollout_weight": 0.5, "placeholder_priors": True, "async_values": True}
    search = Search(SearchOptions(threads=1, transpositions=True, **options), server, KEIMA, shipped_patterns())
    search.set_position(random_game(9, 12, seed=3).position)
    search.run(SearchLimits(visits=400))
    tree, stack, compared = search.tree, [root_of(search.tree)], 0
    while stack:
        node = stack.pop()
        for edge in edges_of(tree, node):
            child = int(tree.child[edge])
            if child == NONE or tree.parents[child] > 1 or tree.N[child] != edge_visits(tree, edge):
                continue
            stack.append(child)
            compared += 1
            assert tree.N_v[edge] == tree.N_r[edge] and -tree.W[child] / tree.N[child] == pytest.approx(
                edge_mean(tree, edge, 0.5)
            )
    assert compared > 200


def test_two_rows_that_find_one_leaf_finished_join_it_once():
    """A leaf that rollouts alone have opened is selected twice; its position has been reached before, and is over."""
    tree, key = new_tree(3, True), np.uint64(12345)
    root, moves = root_of(tree), np.full(10, 65535, np.uint16)
    moves[:2] = 100, 5000
    store_moves(tree, root, moves)
    tree.state[root], tree.N[root] = EXPANDED, 1
    first, second = int(add_edge(tree, root)), int(add_edge(tree, root))
    over = int(new_node(tree, TERMINAL))
    tree.child[second], tree.N[over], tree.N_v[second], tree.N_r[second] = over, 1, 1, 1
    enter(tree, over, key)
    tree.N[root] = tree.meta[META_ROOT_VISITS] = 2
    batch, one_move = new_batch(3, 4), np.zeros((1, 100), np.uint8)
    one_move[0, tree.move[first]] = 1
    tuning = tuning_of(1.4, 0.2, 0.5, 1, virtual_loss=0.5, expand_after=1)
    assert select(tree, batch, 2, tuning, one_move, False) == 2 and batch.leaf[0] == batch.leaf[1]
    batch.kind[:2], batch.node_key[:2] = FINISHED, key
    batch.value[:2] = batch.rollout[:2] = 1.0
    complete(tree, batch, 2, 0.5, True, True)
    assert [int(tree.child[edge]) for edge in (first, second)] == [over, over] and tree.parents[over] == 2
    assert len({int(new_node(tree, UNEXPANDED)) for _ in range(3)}) == 3
