"""How a search thinks: perspectives, what is missing and why, the tree's lines, and rollouts."""

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA, encode
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, from_vertex, index_of, other, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, play_move, with_capacity
from engine.go.random import seed_state
from engine.go.scoring import final_score_black, result_text
from engine.inference.server import InferenceServer
from engine.insight import thinking
from engine.insight.thinking import BEST_SHARE, PARTS, ROLLOUTS_WANTED, Thinking, rollout
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetworkSpec
from engine.play.factory import shipped_patterns, tables_of
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import new_weights, play_out_by_policy
from engine.rollout.run import play_out
from engine.search.report import Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from tests.go.positions import random_game

PANELS = ("values", "qValue", "qRollout", "policy", "visits")


@pytest.fixture
def make(monkeypatch):
    """Makes a search with a network or without; thoughts are not limited to four a second."""
    monkeypatch.setattr(thinking, "INTERVAL_S", 0.0)
    opened = []

    def make(position, network="hash", patterns=None, **options):
        network = HashNetwork(KEIMA.name) if network == "hash" else network
        server = InferenceServer(network, threads=1) if network else None
        search = Search(SearchOptions(threads=1, seed=5, **options), server, KEIMA if network else None, patterns)
        search.set_position(position)
        opened.extend(one for one in (search, server) if one)
        return search

    yield make
    for one in opened:
        one.close()


def thoughts(search, visits=300, parts=PARTS):
    """The thoughts after a search, once the network's values are known."""
    search.run(SearchLimits(visits))
    mind = Thinking(search, parts)
    found = mind.now()
    while mind._successors is not None and (mind._successors._count or mind._successors._left):
        if mind._successors._count:
            assert mind._successors._request.done.wait(60.0)
        found = mind.now()
    return found


def test_the_whole_waits_for_all_values(make):
    position = random_game(9, 10, seed=6).position
    search = make(position)
    found = thoughts(search)
    again = Thinking(search).whole()
    assert again == found and len(again["values"]["points"]) == len(again["policy"]["points"])
    assert Thinking(make(position)).whole() is None, "before the search"


@pytest.mark.parametrize("moves", [10, 11])
def test_win_rates_are_for_the_side_to_move(make, moves):
    position = random_game(9, moves, seed=6).position
    search, network = make(position, random_symmetry=False, rollout_weight=0.5), HashNetwork(KEIMA.name)
    found = thoughts(search)
    color = int(position.meta[META_TO_MOVE])
    assert found["toMove"] == ("black" if color == BLACK else "white")
    values = dict(found["values"]["points"])
    for index in (-1, *list(values)[:10]):
        after = with_capacity(position, moves + 1)
        play_move(after, int(PASS if index < 0 else point_of(index, 9)), color)
        planes, globals_ = np.zeros((1, KEIMA.planes, 9, 9), np.float32), np.zeros((1, KEIMA.globals), np.float32)
        encode(after, 0, KEIMA.new_scratch(9), planes[0], globals_[0])
        assert values[index] == pytest.approx((1.0 - network.evaluate(planes, globals_).value[0]) / 2.0, abs=1e-4)
    by_visits = {move.point: move for move in search.report().moves}
    q_value, q_rollout = (dict(found[name]["points"]) for name in ("qValue", "qRollout"))
    assert len(q_value) == len(q_rollout) == len(by_visits)
    for index in q_value:
        move = by_visits[PASS if index < 0 else int(point_of(index, 9))]
        assert (q_value[index] + q_rollout[index]) / 2.0 == pytest.approx((1.0 + move.value_stm) / 2.0, abs=1e-3)


def test_panels_are_those_of_the_report(make):
    search = make(random_game(9, 10, seed=6).position)
    found, report = thoughts(search), search.report(fewest_moves=82)
    indices = {-1 if move.point == PASS else int(index_of(move.point, 9)): move for move in report.moves}
    policy = dict(found["policy"]["points"])
    assert policy.keys() == indices.keys() and sum(policy.values()) == pytest.approx(1.0, abs=0.01)
    assert all(policy[index] == pytest.approx(move.prior, abs=1e-4) for index, move in indices.items())
    visits, total = dict(found["visits"]["points"]), sum(move.visits for move in report.moves)
    assert visits == {i: round(move.visits / total, 5) for i, move in indices.items() if move.visits}
    best = max(report.moves, key=lambda move: move.visits)
    assert found["line"]["moves"] == [int(index_of(point, 9)) if point != PASS else -1 for point in best.pv]
    assert found["best"]["line"] == found["best"]["visits"] == found["line"]["moves"][0]
    assert found["best"]["policy"] == max(policy, key=lambda index: policy[index])
    values = {index: rate for index, rate in found["qValue"]["points"] if visits[index] >= BEST_SHARE}
    assert found["best"]["qValue"] == max(values, key=lambda index: values[index]) and len(values) < len(visits)
    assert set(found["best"]) == {"values", "qValue", "policy", "visits", "line"}


def test_the_tree_has_alternating_colours_and_values_of_the_mover(make):
    position = random_game(9, 11, seed=6).position
    search = make(position)
    found = thoughts(search)
    first = "b" if position.meta[META_TO_MOVE] == BLACK else "w"
    values, count = dict(found["qValue"]["points"]), 0
    lines = [(found["tree"], first, 301)]
    while lines:
        moves, color, above = lines.pop()
        for move in moves:
            count += 1
            assert move["color"] == color and 1 <= move["N"] < above
            lines.append((move["children"], "w" if color == "b" else "b", move["N"]))
        assert sum(move["N"] for move in moves) < above
        assert [move["N"] for move in moves] == sorted((move["N"] for move in moves), reverse=True)
    assert count == 40
    for move in found["tree"]:
        assert move["Q"] == pytest.approx(values[move["move"]], abs=1e-4)


def test_what_is_missing_says_why(make):
    position = random_game(9, 10, seed=6).position

    def missing(search):
        found = thoughts(search, 100)
        assert all(found[name].get("missing") or found[name]["points"] for name in PANELS)
        assert all(not found[name]["points"] for name in PANELS if found[name].get("missing"))
        return {name: found[name]["missing"] for name in PANELS if found[name].get("missing")}

    assert missing(make(position)) == {"qRollout": ROLLOUTS_WANTED}
    assert missing(make(position, rollout_weight=0.5)) == {}
    none = "no network plays this board: values come from rollouts alone"
    assert missing(make(position, None)) == {"values": none, "qValue": none}
    policy = HashNetwork(KEIMA.name)
    policy.spec = NetworkSpec("only-policy", KEIMA.name, 7, 19, ("policy",))
    none = "network only-policy has no value head"
    assert missing(make(position, policy, rollout_weight=1.0)) == {"values": none, "qValue": none}


def test_texts_say_what_a_panel_was_made_by(make):
    position = random_game(9, 10, seed=6).position
    found = thoughts(make(position, rollout_weight=0.25, patterns=shipped_patterns()), 100)
    assert found["values"]["text"] == "hash" and found["policy"]["text"] == "hash"
    assert found["qRollout"]["text"] == "learnt patterns, weight 0.25 in the search"
    assert found["visits"]["text"] == "99 visits"
    found = thoughts(make(position, None), 100)
    assert found["policy"]["text"] == "uniformly random moves"
    assert found["qRollout"]["text"] == "uniformly random moves, weight 1 in the search"


def test_the_parts_asked_for_are_there_alone(make):
    search = make(random_game(9, 10, seed=6).position)
    found = thoughts(search, parts=("visits", "tree"))
    assert set(found) == {"toMove", "best", "visits", "tree"} and set(found["best"]) == {"visits"}
    with pytest.raises(ValueError, match="unknown part 'votes', expected values, qValue"):
        Thinking(search, ("votes",))


def test_a_failing_network_is_told_in_its_panel(make):
    class Failing(HashNetwork):
        is_broken = False

        def evaluate(self, planes, globals_):
            if self.is_broken:
                raise RuntimeError("out of order")
            return super().evaluate(planes, globals_)

    network = Failing(KEIMA.name)
    search = make(random_game(9, 10, seed=6).position, network)
    search.run(SearchLimits(20))
    network.is_broken = True
    search.setup.network.server.forget()
    mind = Thinking(search)
    mind.now()
    mind._successors._request.done.wait(60.0)
    found = mind.now()
    assert "out of order" in found["values"]["missing"] and found["visits"]["points"]


def test_thoughts_follow_a_running_search_to_its_next_position(make):
    game = random_game(9, 10, seed=6)
    search = make(game.position)
    mind, seen = Thinking(search), []

    def on_report(report):
        seen.append(mind.now())

    search.run(SearchLimits(400), watcher=Watcher(on_report, 0.001))
    count = len(seen)
    assert count and all(found["toMove"] == "black" for found in seen)
    point = int(point_of(seen[-1]["best"]["line"], 9))
    game.play(game.to_move, point)
    search.set_position(game.position)
    search.run(SearchLimits(800), watcher=Watcher(on_report, 0.001))
    later = seen[count:]
    assert later and all(found["toMove"] == "white" for found in later)
    taken = int(index_of(point, 9))
    assert all(taken not in dict(found["values"]["points"]) for found in later)
    mind.close()


def test_results_come_four_times_a_second_at_most(make, monkeypatch):
    search = make(random_game(9, 10, seed=6).position)
    search.run(SearchLimits(20))
    monkeypatch.setattr(thinking, "INTERVAL_S", 3600.0)
    mind = Thinking(search)
    mind._last_s = -1e9
    assert mind.now() is not None and mind.now() is None


def test_a_root_without_visits_has_no_thoughts(make):
    assert Thinking(make(random_game(9, 10, seed=6).position)).now() is None


@pytest.mark.parametrize("is_uniform", [False, True])
def test_a_rollouts_moves_are_those_of_the_kernel_that_plays_it_at_once(is_uniform):
    """The same random numbers, captures and last moves; the moves lead to the board of the kernel and its result."""
    options, lengths = SearchOptions(uniform_rollouts=is_uniform), set()
    for seed in range(6):
        position = random_game(9, 20 + seed, seed).position
        whole, state = with_capacity(position, 400), seed_state(seed, 0)
        color, n = int(position.meta[META_TO_MOVE]), int(position.meta[META_N_MOVES])
        if is_uniform:
            count = play_out(whole.board, color, state, 243)
        else:
            policy = (new_weights(9), tables_of(options), new_last_good_replies(), 0.0)
            count = play_out_by_policy(whole.board, *policy, color, int(position.moves[n - 1]), 0, state, 243)
        found = rollout(position, options, seed)
        assert len(found["moves"]) == count and found["moves"][-2:] == [-1, -1]
        assert found["result"] == result_text(float(final_score_black(whole)))
        stepped = with_capacity(position, 400)
        for index in found["moves"]:
            play_move(stepped, int(PASS if index < 0 else point_of(index, 9)), color)
            color = other(color)
        np.testing.assert_array_equal(stepped.board.color, whole.board.color)
        lengths.add(count)
    assert len(lengths) > 1


def test_a_rollout_leaves_the_position_alone_and_may_begin_the_game():
    game = Game(9, komi=7.5)
    before = game.position.board.color.copy()
    found = rollout(game.position, SearchOptions(), 1)
    np.testing.assert_array_equal(game.position.board.color, before)
    assert found["moves"][0] >= 0 and found["result"][:2] in ("B+", "W+")
    game.play(BLACK, from_vertex("E5", 9))
    assert rollout(game.position, SearchOptions(), 1)["moves"][0] not in (-1, 40)
