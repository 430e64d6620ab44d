"""Positions that searches reach: drawn from trees by their visits, kept once, and ready to be labelled."""

import threading
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import PASS
from engine.go.position import META_N_MOVES, META_TO_MOVE, apply_rules, is_legal_move, new_position, play_move
from engine.go.random import seed_state
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import new_spec
from engine.nets.fakes import HashNetwork
from engine.nets.files.checkpoint import save_network
from engine.records.games import MAX_MOVES
from engine.records.labels import read_labels
from engine.records.schema import join
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_ROOT, META_ROOT_VISITS, NONE, TERMINAL
from engine.selfplay.bulk import BulkPlay
from engine.selfplay.reached import ReachedPlan
from engine.selfplay.search_games import SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import DEEPEST, DrawnPositions, draw_positions
from engine.system.arrays import allocate
from gtp.cli import main
from tests.go.positions import random_game
from tests.nets.models import toy
from tests.selfplay.runs import kept, run_bulk

OPTIONS = SearchPlayOptions(size=5, komi=0.5, visits=12, fast_visits=4, full_share=0.5, decided_share=1.0, seed=3)
PLAN = ReachedPlan(OPTIONS, draws=4, games_per_shard=200)
NETWORKS = [{"name": "pupil", "sha256": "0"}]


@pytest.fixture(scope="module")
def server():
    with InferenceServer(HashNetwork(KEIMA.name, seed=1), threads=2) as made:
        yield made


@pytest.fixture(scope="module")
def searched(server):
    """The tree of a search of 300 visits on 5x5, and the position that it began at."""
    search = Search(SearchOptions(threads=1, seed=1), server, KEIMA)
    position = random_game(5, 14, seed=2).position
    search.set_position(position)
    search.run(SearchLimits(visits=300))
    return search.tree, position


def nodes_of(tree, node=None, path=()):
    """Every node below a tree's root with the points played on the way there, by a slow walk."""
    node = int(tree.meta[META_ROOT]) if node is None else node
    for edge in range(int(tree.first_edge[node]), int(tree.first_edge[node] + tree.n_edges[node])):
        if tree.child[edge] != NONE:
            below = (*path, int(tree.move[edge]))
            yield below, int(tree.child[edge])
            yield from nodes_of(tree, int(tree.child[edge]), below)


def draw(searched, draws, times, depth=DEEPEST):
    """How often each path was drawn."""
    tree, position = searched
    drawn, state = allocate(DrawnPositions, 2, D=draws * times), seed_state(5, 0)
    drawn = drawn._replace(path=drawn.path[:, :, :depth])
    for _ in range(times):
        draw_positions(drawn, 1, tree, position, draws, state)
    assert drawn.n_positions[0] == 0
    count = int(drawn.n_positions[1])
    assert (drawn.ply[1, :count] == 14).all()
    return Counter(tuple(drawn.path[1, i, : drawn.depth[1, i]].tolist()) for i in range(count))


def test_every_visit_is_drawn_as_often_as_any_other(searched):
    found, tree = draw(searched, 41, 500), searched[0]
    nodes = dict(nodes_of(tree))
    of_use = {path for path, node in nodes.items() if tree.state[node] != TERMINAL}
    assert 0 < len(of_use) < len(nodes), "the search came to ends of the game too"
    assert found.pop(()) == 500, "the root comes first, and is not drawn again"
    assert set(found) == of_use
    mean = 500 * 40 / tree.meta[META_ROOT_VISITS]
    # Five standard deviations.
    assert all(abs(count - mean) < 5 * np.sqrt(mean) for count in found.values())


def test_what_is_too_deep_or_has_no_room_is_left_out(searched):
    shallow = draw(searched, 21, 50, depth=1)
    assert {len(path) for path in shallow} == {0, 1} and shallow[()] == 50
    tree, position = searched
    drawn = allocate(DrawnPositions, 1, D=6)
    for _ in range(10):
        draw_positions(drawn, 0, tree, position, 4, seed_state(5, 0))
    assert drawn.n_positions[0] == 6


def test_positions_too_long_for_a_record_are_not_drawn(searched):
    """A record goes on with a pass, and holds no more than ``MAX_MOVES`` moves."""
    tree, position = searched
    late, state = position._replace(meta=position.meta.copy()), seed_state(5, 0)
    for room, depths in ((2, {0, 1, 2}), (0, {0}), (-1, set())):
        late.meta[META_N_MOVES] = MAX_MOVES - 1 - room
        drawn = allocate(DrawnPositions, 1, D=400)
        draw_positions(drawn, 0, tree, late, 400, state)
        count = int(drawn.n_positions[0])
        assert set(drawn.depth[0, :count].tolist()) == depths
        assert (drawn.ply[0, :count] + drawn.depth[0, :count] + 1 <= MAX_MOVES).all()


def run(server, out, positions, stop_after=None, groups=2):
    return run_bulk(BulkPlay([server], PLAN, NETWORKS, out), positions, 8, groups, stop_after, whole_games=True)


def by_number(out):
    """The positions of a folder: moves by the game's number, in their order."""
    games = join(kept(out))
    found = {number: [] for number in games.number.tolist()}
    for k, number in enumerate(games.number.tolist()):
        found[number].append(games.moves[games.offsets[k] : games.offsets[k + 1]].tolist())
    return found


def test_positions_are_legal_and_go_on_with_a_pass(server, tmp_path):
    run(server, tmp_path, 400)
    games = join(kept(tmp_path))
    lengths = np.diff(games.offsets)
    assert (games.position == lengths - 1).all() and (games.result == 0).all() and not games.territory.any()
    assert (games.moves[games.offsets[1:] - 1] == 25).all()
    for k in range(len(lengths)):
        position = new_position(5)
        apply_rules(position, RULE_SETS[OPTIONS.rules], 0.5)
        for move in games.moves[games.offsets[k] : games.offsets[k + 1] - 1].tolist():
            point = PASS if move == 25 else (move // 5 + 1) * 6 + move % 5 + 1
            assert is_legal_move(position, point, position.meta[META_TO_MOVE])
            play_move(position, point, position.meta[META_TO_MOVE])


def test_roots_are_those_of_the_games_full_searches(server):
    plan = ReachedPlan(OPTIONS, draws=1, games_per_shard=200)
    (games,) = plan.play([server], 1, iter([7]), threading.Event())
    moves = [games.moves[games.offsets[k] : games.offsets[k + 1] - 1].tolist() for k in range(len(games.size))]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(moves))
    (whole,) = list(SelfPlay(server, OPTIONS, 1, draws=1).play(iter([7])))
    assert [len(root) for root in moves] == whole.ply.tolist()
    assert whole.games.moves[: len(moves[-1])].tolist() == moves[-1]


def test_a_stopped_run_goes_on_to_the_same_positions(server, tmp_path):
    whole = run(server, tmp_path / "whole", 700)
    for stop_after in (1, 5, None):
        last = run(server, tmp_path / "parts", 700, stop_after, groups=3)
    assert whole.games == last.games > 5 and whole.positions() >= 700 and not last.is_stopped
    assert by_number(tmp_path / "whole") == by_number(tmp_path / "parts")


def test_a_game_without_a_full_search_gives_a_position_all_the_same(server, tmp_path):
    """It was once played anew whenever further games were wanted, as if it had not been played."""
    plan = ReachedPlan(replace(OPTIONS, full_share=0.0), draws=4, games_per_shard=200)
    bulk = run_bulk(BulkPlay([server], plan, NETWORKS, tmp_path), 20, 8, 1)
    assert bulk.games == 20 and not len(bulk.missing(20))
    games = join(kept(tmp_path))
    assert (games.position > 0).all() and sorted(games.number.tolist()) == list(range(20))


@pytest.fixture
def pupil(tmp_path):
    """A network with policy and value in a file of its own."""
    model = toy("keima-resnet", planes=KEIMA.planes, globals=KEIMA.globals, blocks=1)
    path = tmp_path / "pupil.safetensors"
    save_network(path, model, new_spec(model, "pupil"), {})
    return path


def test_the_command_makes_what_the_next_one_labels(pupil, tmp_path):
    shared = ["--device", "cpu", "--threads", "1", "--at-once", "4"]
    words = ["data", "reached", str(pupil), "--size", "7", "--visits", "6", "--fast-visits", "2"]
    done = CliRunner().invoke(main, [*words, "--positions", "60", "--out", str(tmp_path / "reached"), *shared])
    assert done.exit_code == 0 and done.stdout == "", done.output
    games = join(kept(tmp_path / "reached"))
    words = ["data", "label", str(tmp_path / "reached"), "--network", str(pupil), "--recorded", "7"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "labels"), *shared])
    assert done.exit_code == 0, done.output
    labels = read_labels(tmp_path / "labels" / "labels-00000.npz.xz")
    assert len(labels.game) == len(games.size) >= 60
    lengths = np.diff(labels.games.offsets)[labels.game]
    assert (labels.ply == lengths).all(), "each position once, and no move beyond it"
    assert Counter(labels.ply.tolist()) == Counter(games.position.tolist())
