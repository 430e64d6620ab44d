"""Whole searches: reproducible, legal, kept as the game goes on."""

import threading

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.board import is_eye
from engine.go.geometry import BLACK, PASS, from_vertex, on_board_points
from engine.go.position import META_PASSES, META_TO_MOVE, is_legal_move, play_move, with_capacity
from engine.go.rules import rules_named
from engine.inference.server import InferenceServer
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.fakes import HashNetwork
from engine.nets.layers import Drawn, named_arrays
from engine.nets.network import HEADS, Network, NetworkSpec
from engine.play.factory import shipped_patterns
from engine.search.move_filter import only, without
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import EXPANDED, META_USED_NODES, NONE, TERMINAL
from engine.search.tuning import resolved
from tests.go.positions import game_from, random_game
from tests.nets.models import network_of
from tests.search.tree_tools import check_at_rest, dump, edges_of, moves_of, root_of


def tiny_network() -> Network:
    """A real residual network with random weights."""
    shape = ResNetShape(KEIMA.planes, KEIMA.globals, blocks=2, channels=8, head_channels=8, value_hidden=8)
    model, random = ResNet(shape, Drawn(3)), np.random.default_rng(3)
    for _, values in named_arrays(model):
        values[:] = random.normal(0.0, 0.2, values.shape)
    return network_of(model, NetworkSpec("tiny", KEIMA.name, 7, 19, tuple(HEADS)))


NETWORKS = {
    "hash": (lambda: HashNetwork(KEIMA.name), 0.0, None),
    "hash and uniform rollouts": (lambda: HashNetwork(KEIMA.name), 0.5, None),
    "hash and rollouts by policy": (lambda: HashNetwork(KEIMA.name), 0.5, shipped_patterns),
    "torch": (tiny_network, 0.0, None),
    "uniform rollouts only": (lambda: None, 0.0, None),
    "patterns only": (lambda: None, 0.0, shipped_patterns),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_one_thread_and_one_seed_give_one_tree(kind):
    make, weight, patterns = NETWORKS[kind]
    position = random_game(9, 20, seed=4).position
    dumps = []
    for seed in (7, 7, 8):
        network = make()
        server = InferenceServer(network, threads=2) if network else None
        options = SearchOptions(threads=1, seed=seed, rollout_weight=weight, reply_probability=0.5)
        search = Search(options, server, KEIMA if network else None, patterns and patterns())
        search.set_position(position)
        report = search.run(SearchLimits(visits=400))
        assert report.visits == 400 and search.in_flight() == 0
        check_at_rest(search.tree)
        dumps.append(dump(search.tree, 9))
        if server:
            server.close()
    assert dumps[0] == dumps[1]
    assert dumps[0] != dumps[2]


def test_a_tree_without_visits_reports_no_moves(search):
    """Its root's row may hold the priors of the node that had it before."""
    search.set_position(random_game(9, 10, seed=1).position)
    assert search.run(SearchLimits(visits=20)).moves
    search.clear()
    assert search.report(fewest_moves=1000).moves == []


def test_clearing_repeats_the_same_tree():
    search = Search(SearchOptions(threads=1, seed=5), None, None)
    search.set_position(random_game(5, 6, seed=1).position)
    dumps = []
    for _ in range(2):
        search.clear()
        search.run(SearchLimits(visits=300))
        dumps.append(dump(search.tree, 5))
    assert dumps[0] == dumps[1]


def test_the_same_tree_grows_from_what_the_cache_holds():
    """With a policy of many near-equals, as of a network that has hardly learned."""
    model = ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, 1, 8), Drawn(4))
    network = network_of(model, NetworkSpec("tiny", KEIMA.name, 7, 19, tuple(HEADS)))
    with InferenceServer(network, cache_mib=8, threads=1) as server:
        search = Search(SearchOptions(threads=1, seed=7), server, KEIMA)
        search.set_position(random_game(9, 20, seed=4).position)
        dumps, evaluations = [], []
        for _ in range(2):
            search.clear()
            evaluations.append(search.run(SearchLimits(visits=200)).evaluations)
            dumps.append(dump(search.tree, 9))
        assert evaluations[0] > 0 == evaluations[1]
        assert dumps[0] == dumps[1]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.4])
def test_every_visit_is_accounted_for(hash_server, threads, weight):
    search = Search(
        SearchOptions(threads=threads, rollout_weight=weight, virtual_visits=3, virtual_loss=1.0), hash_server, KEIMA
    )
    search.set_position(random_game(7, 10, seed=2).position)
    for visits in (1, 2, 10, 500):
        report = search.run(SearchLimits(visits=visits))
        assert report.visits == visits
        assert search.in_flight() == 0
        check_at_rest(search.tree)
        assert visits == 1 or sum(move.visits for move in report.moves) == visits - 1


@pytest.mark.parametrize("rules", ["tromp-taylor", "chinese", "japanese"])
@pytest.mark.parametrize("size", [3, 5])
def test_no_illegal_move_is_ever_in_the_tree(hash_server, size, rules):
    """Every move of the tree, replayed from the root, is legal, and only fills of own eyes are missing."""
    search = Search(SearchOptions(threads=1, policy_temperature=3.0), hash_server, KEIMA)
    for seed in range(8):
        game = random_game(size, 3 * seed + size, seed, rules)
        search.set_position(game.position)
        search.run(SearchLimits(visits=200))
        check_moves_below(search.tree, root_of(search.tree), with_capacity(game.position, 1000), size)


def check_moves_below(tree, node, position, size):
    """Compare the candidates of a subtree with the rules."""
    color = int(position.meta[META_TO_MOVE])
    if tree.state[node] == TERMINAL:
        assert position.meta[META_PASSES] >= 2
        return
    if tree.state[node] != EXPANDED:
        return
    assert node == root_of(tree) or position.meta[META_PASSES] < 2
    legal = {PASS} | {int(p) for p in on_board_points(size) if is_legal_move(position, int(p), color)}
    eyes = {point for point in legal if point != PASS and is_eye(position.board, point, color)}
    listed = {point for point, _ in moves_of(tree, node)}
    assert listed <= legal and legal - listed <= eyes
    for edge in edges_of(tree, node):
        if tree.child[edge] != NONE:
            after = with_capacity(position, 1000)
            play_move(after, int(tree.move[edge]), color)
            check_moves_below(tree, int(tree.child[edge]), after, size)


def test_an_own_eye_is_left_alone_unless_it_saves_a_chain(search):
    game = game_from(
        """
        . X . X .
        X X X X X
        . . . . .
        O O O . .
        . O . . .
        """
    )
    search.set_position(game.position)
    search.run(SearchLimits(visits=1))
    points = {point for point, _ in moves_of(search.tree, root_of(search.tree))}
    for eye in ("A5", "C5", "E5"):
        assert from_vertex(eye, 5) not in points
    assert from_vertex("A3", 5) in points and PASS in points
    game = game_from(
        """
        X . X O .
        O X O O .
        . O . . .
        . . . . .
        . . . . .
        """
    )
    search.set_position(game.position)
    search.run(SearchLimits(visits=1))
    assert from_vertex("B5", 5) in {point for point, _ in moves_of(search.tree, root_of(search.tree))}


def test_the_tree_is_kept_as_the_game_goes_on(search):
    game = random_game(7, 4, seed=9)
    search.set_position(game.position)
    best = search.run(SearchLimits(visits=300)).moves[0]
    search.set_position(game.position)
    assert search.report().visits == 300
    game.play(game.to_move, best.point)
    search.set_position(game.position)
    report = search.report()
    assert report.visits == best.visits and report.value_stm == pytest.approx(-best.value_stm, abs=1e-6)
    reply = report.moves[0]
    game.play(game.to_move, reply.point)
    game.play(game.to_move, reply.pv[1])
    search.set_position(game.position)
    assert 0 < search.report().visits < reply.visits
    check_at_rest(search.tree)
    assert search.run(SearchLimits(visits=200)).playouts_this_run < 200


def test_the_tree_begins_anew_where_the_game_does_not_go_on(search):
    game = random_game(7, 4, seed=9)
    search.set_position(game.position)
    search.run(SearchLimits(visits=50))

    def visits_after(change) -> int:
        change()
        search.set_position(game.position)
        visits = search.report().visits
        search.run(SearchLimits(visits=50))
        return visits

    assert visits_after(game.undo) == 0
    assert visits_after(lambda: game.set_komi(3.5)) == 0
    assert visits_after(lambda: game.set_rules(rules_named("japanese"))) == 0
    assert visits_after(lambda: None) == 50
    assert visits_after(lambda: [game.play(game.to_move, PASS), game.play(game.to_move, PASS)]) == 0
    color = game.to_move
    assert visits_after(lambda: [game.play(color, 9), game.play(color, 10)]) == 0, "one colour twice"
    assert visits_after(lambda: game.new(9)) == 0
    assert visits_after(lambda: game.new(7)) == 0


def test_the_game_can_be_searched_on_after_two_passes(search):
    game = random_game(5, 6, seed=3)
    game.play(game.to_move, PASS)
    game.play(game.to_move, PASS)
    search.set_position(game.position)
    report = search.run(SearchLimits(visits=60))
    assert report.visits == 60 and len(report.moves) > 1


def test_a_search_needs_a_limit_a_playable_size_and_one_caller(search):
    with pytest.raises(ValueError, match="limit"):
        SearchLimits()
    with (
        InferenceServer(HashNetwork(KEIMA.name, 7, 19), threads=1) as server,
        pytest.raises(ValueError, match="boards of 7 to 19, not 5"),
    ):
        Search(SearchOptions(), server, KEIMA).set_position(random_game(5, 0, 0).position)
    game = random_game(5, 0, 0)
    search.set_position(game.position)
    started = threading.Event()
    watcher = Watcher(lambda _: started.set(), 0.01)
    thread = threading.Thread(target=search.run, args=[SearchLimits(visits=10**9)], kwargs={"watcher": watcher})
    thread.start()
    started.wait()
    with pytest.raises(RuntimeError, match="running"):
        search.run(SearchLimits(visits=5))
    with pytest.raises(RuntimeError, match="running"):
        search.set_position(game.position)
    search.close()
    thread.join()
    assert search.in_flight() == 0


def test_root_moves_can_be_chosen_or_left_out(search):
    game = random_game(7, 4, seed=9)
    search.set_position(game.position)
    free = [move.point for move in search.run(SearchLimits(visits=100)).moves]
    report = search.run(SearchLimits(visits=200), without(BLACK, free[:2]))
    assert not {move.point for move in report.moves} & set(free[:2])
    report = search.run(SearchLimits(visits=300), only(BLACK, free[1:3]))
    assert {move.point for move in report.moves} == set(free[1:3])
    assert search.run(SearchLimits(visits=400), only(BLACK, [])).moves == []
    assert search.in_flight() == 0


def test_visits_of_moves_now_excluded_do_not_count(search):
    """They once ended a search that had to avoid its favourite before it began."""
    search.set_position(random_game(7, 4, seed=9).position)
    favourite = search.run(SearchLimits(visits=400)).moves[0].point
    report = search.run(SearchLimits(visits=500, early_stop=True), without(BLACK, [favourite]))
    assert favourite not in [move.point for move in report.moves]
    assert report.playouts_this_run > 100
    assert report.visits == 1 + sum(move.visits for move in report.moves)


def test_a_long_search_stays_where_a_move_it_hardly_looked_at_is_left_out(search):
    """With wide root noise an analysis passes now and then; genmove, which may not, once began anew."""
    search.set_position(random_game(7, 4, seed=9).position)
    moves = [move for move in search.run(SearchLimits(visits=2000)).moves if move.visits]
    least = min(moves, key=lambda move: move.visits)
    assert least.visits <= 7, "one visit of 256 or fewer"
    report = search.run(SearchLimits(visits=2010), without(BLACK, [least.point]))
    assert report.visits >= 2000 and report.playouts_this_run <= 10
    assert least.point not in [move.point for move in report.moves]


def test_reports_arrive_while_searching(hash_server):
    search = Search(SearchOptions(threads=2), hash_server, KEIMA)
    search.set_position(random_game(9, 8, 1).position)
    reports, enough = [], threading.Event()

    def take(report):
        reports.append(report)
        if len(reports) == 3:
            enough.set()

    final = search.run(SearchLimits(interrupt=enough), watcher=Watcher(take, 0.01), ownership=True)
    assert all(a.visits <= b.visits for a, b in zip(reports, [*reports[1:], final], strict=True))
    assert final.ownership_black.shape == (81,) and np.abs(final.ownership_black).max() <= 1
    assert final.evaluations > 0 and final.tree_nodes == search.tree.meta[META_USED_NODES]
    assert -1 <= final.value_stm <= 1 and final.score_stm is not None
    for move in final.moves:
        assert move.pv[0] == move.point and -1 <= move.value_stm <= 1
    most = max(move.visits for move in final.moves)
    assert final.moves[0].lcb_stm == max(move.lcb_stm for move in final.moves if move.visits >= 0.15 * most)


def test_a_decided_search_ends_early(search):
    game = random_game(9, 8, 1)
    search.set_position(game.position)
    best = search.run(SearchLimits(visits=1)).moves[0].point
    report = search.run(SearchLimits(visits=5000, early_stop=True), only(BLACK, [best]))
    assert report.visits < 2600


def test_the_default_number_of_workers_suits_the_machine(hash_server):
    assert resolved(SearchOptions(threads=5), hash_server).threads == 5
    assert resolved(SearchOptions(), hash_server).threads == 1
    assert resolved(SearchOptions(), None).threads >= 1


@pytest.mark.parametrize("encoder", ["katago-v7", "katago-v7-suicide"])
def test_katago_s_networks_are_searched_as_katago_searches_them(encoder, hash_server):
    network = HashNetwork(encoder)
    options, ours = resolved(SearchOptions(), network), resolved(SearchOptions(), hash_server)
    assert (options.c_puct, options.value_weight, options.value_bias) == (1.0, 0.25, 0.45)
    assert (ours.c_puct, ours.value_weight, ours.value_bias) == (1.4, 0.0, 0.0)
    said = resolved(SearchOptions(c_puct=1.4, value_weight=0.0, value_bias=0.0), network)
    assert (said.c_puct, said.value_weight, said.value_bias) == (1.4, 0.0, 0.0)
