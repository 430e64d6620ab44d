"""Whole searches: reproducible, legal, within their limits, with nothing left in flight."""

import random
import threading
import time

import numpy as np
import pytest
import torch

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.board import is_eye
from engine.go.geometry import BLACK, PASS, from_vertex, on_board_points
from engine.go.position import META_PASSES, META_TO_MOVE, is_legal_move, play_move, with_capacity
from engine.go.rules import rules_named
from engine.inference.server import InferenceServer
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetworkSpec
from engine.play.assembly import shipped_patterns
from engine.search import tuning
from engine.search.limits import SearchLimits
from engine.search.move_filter import only, without
from engine.search.pools import EXPANDED, META_USED_NODES, NONE, TERMINAL, byte_count
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.tuning import resolved
from tests.clock import Clock, stop_the_machines
from tests.search.positions import game_from, random_game
from tests.search.tree_tools import check_at_rest, dump, edges_of, moves_of, root_of


class SlowNetwork(HashNetwork):
    """A hash network that takes its time over every position, by a clock of the test's."""

    def __init__(self, seconds: float, clock: Clock):
        super().__init__(KEIMA.name)
        self.seconds, self.clock = seconds, clock

    def evaluate(self, planes, globals_):
        self.clock.advance(self.seconds * len(planes))
        return super().evaluate(planes, globals_)


class GatedNetwork(HashNetwork):
    """A hash network that begins its n-th call and then waits until it may go on."""

    def __init__(self, calls: int):
        super().__init__(KEIMA.name)
        self.calls, self.begun, self.gate = calls, threading.Event(), threading.Event()

    def evaluate(self, planes, globals_):
        self.calls -= 1
        if self.calls == 0:
            self.begun.set()
            self.gate.wait()
        return super().evaluate(planes, globals_)


class BrokenNetwork(HashNetwork):
    """A hash network that fails from its n-th call on, until it is mended."""

    def __init__(self, works: int):
        super().__init__(KEIMA.name)
        self.works = works

    def evaluate(self, planes, globals_):
        self.works -= 1
        if self.works < 0:
            raise ValueError("out of order")
        return super().evaluate(planes, globals_)


def tiny_network() -> TorchNetwork:
    """A real residual network with random weights."""
    torch.manual_seed(3)
    model = ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, blocks=2, channels=8, head_channels=8, value_hidden=8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    return TorchNetwork(model, NetworkSpec("tiny", KEIMA.name, 7, 19, True, True), torch.device("cpu"))


def tree_of(search: Search):
    """The tree behind a search at rest."""
    return search.tree


@pytest.fixture
def hash_server():
    with InferenceServer(HashNetwork(KEIMA.name), cache_mib=1, threads=2) as server:
        yield server


@pytest.fixture
def search(hash_server):
    return Search(SearchOptions(threads=1), hash_server, KEIMA)


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
        server = InferenceServer(network, cache_mib=1, threads=2) if network else None
        options = SearchOptions(threads=1, seed=seed, rollout_weight=weight, reply_chance=0.5)
        search = Search(options, server, KEIMA if network else None, patterns and patterns())
        search.set_position(position)
        report = search.run(SearchLimits(visits=400))
        assert report.visits == 400 and search.in_flight() == 0
        check_at_rest(tree_of(search))
        dumps.append(dump(tree_of(search), 9))
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
        dumps.append(dump(tree_of(search), 5))
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
        check_at_rest(tree_of(search))
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
        check_moves_below(tree_of(search), root_of(tree_of(search)), with_capacity(game.position, 1000), size)


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
    points = {point for point, _ in moves_of(tree_of(search), root_of(tree_of(search)))}
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
    assert from_vertex("B5", 5) in {point for point, _ in moves_of(tree_of(search), root_of(tree_of(search)))}


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
    check_at_rest(tree_of(search))
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
        InferenceServer(HashNetwork(KEIMA.name, 7, 19), cache_mib=1, threads=1) as server,
        pytest.raises(ValueError, match="boards of 7 to 19, not 5x5"),
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


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("cost", [0.0, 0.002, 0.02])
def test_time_is_kept_also_with_a_slow_network(monkeypatch, seconds, cost):
    clock = stop_the_machines(monkeypatch)
    with InferenceServer(SlowNetwork(cost, clock), cache_mib=1, threads=1) as server:
        search = Search(SearchOptions(threads=1, batch=64), server, KEIMA)
        search.set_position(random_game(9, 0, 0).position)
        search.run(SearchLimits(visits=3))
        report = search.run(SearchLimits(soft_s=seconds))
        # The last looks at the clock take a little.
        assert 0.5 * seconds < report.seconds < seconds + 0.02 and report.moves
        assert search.in_flight() == 0


def test_a_search_without_any_time_still_knows_a_move(hash_server):
    search = Search(SearchOptions(threads=2), hash_server, KEIMA)
    search.set_position(random_game(9, 0, 0).position)
    report = search.run(SearchLimits(soft_s=1e-6))
    assert report.visits >= 1 and report.moves


def test_stopping_takes_waiting_work_back():
    """What an evaluator holds is finished, what waits for one is not begun."""
    network = GatedNetwork(calls=20)
    with InferenceServer(network, cache_mib=1, threads=1) as server:
        search = Search(SearchOptions(threads=1, batch=4), server, KEIMA)
        search.set_position(random_game(9, 0, 0).position)
        thread = threading.Thread(target=search.run, args=[SearchLimits(visits=10**6)])
        thread.start()
        network.begun.wait()
        while server.waiting == 0:
            time.sleep(0.001)
        search.stop()
        network.gate.set()
        thread.join()
        assert network.calls == 0
        assert search.in_flight() == 0
        check_at_rest(tree_of(search))


def test_many_short_searches_stopped_at_random_times(hash_server):
    rng = random.Random(5)
    searches = [
        Search(SearchOptions(threads=3, rollout_weight=weight, virtual_visits=2, virtual_loss=1.0), hash_server, KEIMA)
        for weight in (0.0, 0.5)
    ] + [Search(SearchOptions(threads=2), None, None)]
    game = random_game(7, 0, 0)
    for _ in range(12):
        threads = []
        for search in searches:
            search.set_position(game.position)
            threads.append(threading.Thread(target=search.run, args=[SearchLimits(visits=10**6)]))
            threads[-1].start()
        for search in rng.sample(searches, len(searches)):
            time.sleep(rng.random() * 0.03)
            while threads[searches.index(search)].is_alive():
                # A stop before the run has begun has no effect, so it is repeated.
                search.stop()
                time.sleep(0.002)
        for search, thread in zip(searches, threads, strict=True):
            thread.join()
            assert search.in_flight() == 0
            check_at_rest(tree_of(search))
        game.play(game.to_move, searches[0].report().moves[0].point)


def test_a_failing_network_ends_the_search_in_an_error_and_leaves_the_tree_sound():
    for threads in (1, 3):
        network = BrokenNetwork(works=20)
        with InferenceServer(network, cache_mib=1, threads=2) as server:
            search = Search(SearchOptions(threads=threads), server, KEIMA)
            search.set_position(random_game(7, 0, 0).position)
            with pytest.raises(RuntimeError, match="network hash: out of order"):
                search.run(SearchLimits(visits=1000))
            check_at_rest(tree_of(search))
            network.works = 10**9
            assert search.run(SearchLimits(visits=500)).visits == 500
            check_at_rest(tree_of(search))


def test_a_closed_server_is_an_error_not_a_hang(hash_server):
    search = Search(SearchOptions(threads=2), hash_server, KEIMA)
    search.set_position(random_game(7, 0, 0).position)
    hash_server.close()
    with pytest.raises(RuntimeError, match="closed"):
        search.run(SearchLimits(visits=10))
    assert search.in_flight() == 0


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
    assert final.evaluations > 0 and final.tree_nodes == tree_of(search).meta[META_USED_NODES]
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


@pytest.fixture
def small_search(hash_server, monkeypatch):
    """A search whose tree may take a megabyte."""
    monkeypatch.setattr(tuning, "tree_bytes", lambda *_: 1 << 20)
    return Search(SearchOptions(threads=1), hash_server, KEIMA)


def test_memory_stays_within_its_limit_and_the_search_ends(small_search):
    search = small_search
    search.set_position(random_game(9, 0, 0).position)
    report = search.run(SearchLimits(visits=10**6))
    assert 1000 < report.visits < 10**5
    assert 0.85 * (1 << 20) < byte_count(tree_of(search)) <= 1 << 20
    check_at_rest(tree_of(search))
    assert search.run(SearchLimits(visits=10**6)).moves[0].point == report.moves[0].point


def test_a_game_of_400_moves_does_not_grow_memory(small_search):
    search, limit = small_search, 1 << 20
    game = random_game(9, 0, 0)
    for move in range(400):
        search.set_position(game.position)
        if move == 200:
            assert byte_count(tree_of(search)) <= limit
        report = search.run(SearchLimits(visits=60))
        game.play(game.to_move, report.moves[0].point if report.moves[0].point != PASS else report.moves[-1].point)
    assert byte_count(tree_of(search)) <= limit
    assert search.in_flight() == 0


def test_the_default_number_of_workers_suits_the_machine(hash_server):
    assert resolved(SearchOptions(threads=5), hash_server).threads == 5
    assert resolved(SearchOptions(), hash_server).threads == 1
    assert resolved(SearchOptions(), None).threads >= 1
