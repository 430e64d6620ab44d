"""Moves drawn from a human network: the formulas against a plain twin, and a player with such a network."""

import gzip
import math
from types import SimpleNamespace

import numpy as np
import pytest

from engine.config import HumanOptions, PlayOptions, SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, PASS, from_vertex, index_of
from engine.go.position import new_position
from engine.nets.fakes import HashNetwork
from engine.nets.files.header import expected_input
from engine.nets.on_device import load_network
from engine.play.game_session import Purpose
from engine.play.human import (
    HumanNetwork,
    HumanOutput,
    choose_human,
    cooled,
    merged,
    move_weights,
    temperature,
    utility,
)
from engine.play.player import Player
from engine.search.move_filter import only
from engine.search.report import MoveReport, Report
from tests.nets.katago_files import MISH, random_network, written

OFF = {"human_lambda": 1e9, "human_ignore_pass": False}


def report(moves, value=0.0):
    """A report of moves as (point, visits, value) or (point, visits, value, lead)."""
    found = [
        MoveReport(point, visits, 0.1, value, value - 0.1, lead[0] if lead else None, [point], [visits])
        for point, visits, value, *lead in moves
    ]
    visits = 1 + sum(move.visits for move in found)
    return Report(visits, visits, 1.0, value, None, found, None, 10, 10)


def twin(policy, visits, utilities, options):
    """KataGo's rule step by step, move by move; utilities None = not searched."""
    known = [value for value in utilities if value is not None]
    mean = sum(known) / len(known) if known else 0.0
    best = max(known, default=mean)
    shifted = [
        p * math.exp(((mean if u is None else u) - best) / options.human_lambda)
        for p, u in zip(policy, utilities, strict=True)
    ]
    total = sum(visits)
    if not sum(shifted):
        return [n / total for n in visits]
    shifted = [value / sum(shifted) for value in shifted]
    others = sum(shifted[:-1])
    if options.human_ignore_pass and others > 0:
        playing = sum(visits[:-1]) / total
        shifted = [value / others * playing for value in shifted[:-1]] + [visits[-1] / total]
    share = options.human_share
    return [(1 - share) * n / total + share * value for n, value in zip(visits, shifted, strict=True)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("options", [
    OFF, {"human_lambda": 0.5}, {"human_lambda": 0.05, "human_ignore_pass": False}, {"human_share": 0.3}, {},
    {"human_lambda": 0.001}, {"human_share": 0.0},
])  # fmt: skip
def test_weights_follow_katagos_rule(seed, options):
    random, options = np.random.default_rng(seed), HumanOptions(**options)
    policy = random.dirichlet(np.full(10, 0.5))
    policy[random.random(10) < 0.3] = 0.0
    visits = random.integers(0, 50, 10).astype(float)
    visits[0] += 1
    utilities = np.where((visits > 0) & (policy > 0), random.uniform(-1.3, 1.3, 10), np.nan)
    expected = twin(policy, visits, [None if math.isnan(one) else one for one in utilities], options)
    found = move_weights(policy, visits, utilities, options)
    assert found == pytest.approx(expected) and found.sum() == pytest.approx(1.0)


def test_a_move_that_loses_lambda_is_e_times_less_likely():
    options = HumanOptions(human_lambda=0.2, human_ignore_pass=False)
    policy, visits = np.array([0.5, 0.5, 0.0]), np.array([3.0, 1.0, 0.0])
    first, second, _ = move_weights(policy, visits, np.array([0.3, 0.1, np.nan]), options)
    assert first / second == pytest.approx(math.e)


def test_a_move_that_was_not_searched_is_neither_pushed_up_nor_down_by_more_than_the_mean():
    options = HumanOptions(human_lambda=0.5, human_ignore_pass=False)
    policy, visits = np.full(4, 0.25), np.array([3.0, 1.0, 0.0, 0.0])
    found = move_weights(policy, visits, np.array([0.4, 0.0, np.nan, np.nan]), options)
    assert found[2] / found[0] == pytest.approx(math.exp(-0.2 / 0.5)) and found[2] == pytest.approx(found[3])


def test_the_pass_is_left_to_the_search():
    policy, nothing = np.array([0.2, 0.1, 0.7]), np.full(3, np.nan)
    for passes in (0.0, 2.0):
        visits = np.array([4.0, 4.0, passes])
        assert move_weights(policy, visits, nothing, HumanOptions())[-1] == pytest.approx(passes / visits.sum())
        own = move_weights(policy, visits, nothing, HumanOptions(human_ignore_pass=False))
        assert own == pytest.approx(policy)


def test_without_any_human_move_the_visits_decide():
    visits = np.array([3.0, 1.0, 0.0])
    assert move_weights(np.zeros(3), visits, np.full(3, np.nan), HumanOptions()) == pytest.approx([0.75, 0.25, 0.0])


@pytest.mark.parametrize(("move", "moves_on_19"), [(0, 0), (80, 80), (160, 160)])
def test_the_temperature_falls_from_the_early_to_the_late_one(move, moves_on_19):
    options = HumanOptions(human_temperature_early=0.9, human_temperature=0.5, human_halflife=80)
    expected = 0.5 + 0.4 * 0.5 ** (moves_on_19 / 80)
    assert temperature(options, move, 19) == pytest.approx(expected)
    assert temperature(options, move * 9 // 19, 9) == pytest.approx(expected, abs=0.01)


def test_the_temperature_affects_small_probabilities_alone():
    weights = np.array([6.0, 3.9, 0.08, 0.02])
    found = cooled(weights, 0.5, 0.01)
    kept = np.array([0.6, 0.39, 0.01 * 0.8**2, 0.01 * 0.2**2])
    assert found == pytest.approx(kept / kept.sum())
    assert cooled(weights, 0.5, 1.0) == pytest.approx(weights**2 / (weights**2).sum())
    assert cooled(weights, 0.0, 1.0).tolist() == [1, 0, 0, 0]
    assert cooled(np.array([1.0, 0.0, 1.0]), 0.25, 0.01).tolist() == [0.5, 0, 0.5]
    assert cooled(weights, 1.0, 0.01) == pytest.approx(weights / 10)


def test_utility_adds_the_score():
    move = report([(1, 3, 0.25, 9.0)]).moves[0]
    assert utility(move, 9, 0.0) == 0.25
    assert utility(move, 9, 0.5) == pytest.approx(0.25 + 0.5 * 2 / math.pi * math.atan(9.0 / 18.0))
    assert utility(report([(1, 3, 0.25)]).moves[0], 9, 0.5) == 0.25


def test_explored_moves_add_their_values_but_no_visits():
    main, explored = (
        report([(10, 6, 0.4, 2.0), (11, 0, 0.0)]),
        report([(10, 2, 0.0, -2.0), (11, 3, -0.2, 1.0), (12, 4, 0.1, 3.0)]),
    )
    found = {move.point: (move.visits, move.value_stm, move.score_stm) for move in merged(main, explored)}
    assert found == {10: (6, pytest.approx(0.3), pytest.approx(1.0)), 11: (0, -0.2, 1.0), 12: (0, 0.1, 3.0)}
    assert merged(main, None) is main.moves


def test_draws_have_the_probabilities_of_the_weights():
    size, options = 2, HumanOptions(human_lambda=0.3, human_temperature=1.0, human_temperature_early=1.0)
    points = [from_vertex(vertex, size) for vertex in ("A2", "B2", "A1", "B1")]
    human = HumanOutput(np.array([0.4, 0.3, 0.2, 0.05, 0.05]), None, None, None)
    main, explored = report([(points[0], 5, 0.2), (PASS, 1, 0.0)]), report([(points[1], 2, 0.5)])
    allowed = {*points[:3], PASS}
    rng, count = np.random.default_rng(3), 4000
    drawn = [choose_human(human, main, explored, allowed.__contains__, 0, size, options, rng) for _ in range(count)]
    found = np.bincount([int(index_of(point, size)) for point in drawn], minlength=5) / count
    expected = twin([0.4, 0.3, 0.2, 0.0, 0.05], [5, 0, 0, 0, 1], [0.2, 0.5, None, None, 0.0], options)
    assert found == pytest.approx(expected, abs=0.03) and found[3] == 0.0


@pytest.fixture(scope="module")
def human_file(tmp_path_factory):
    """A small network with KataGo's encoder of human profiles."""
    path = tmp_path_factory.mktemp("human") / "human.bin.gz"
    path.write_bytes(gzip.compress(written(random_network(15, ("residual",), MISH, human=True, seed=7), True), 1))
    assert expected_input(path).encoder == "katago-v7-human"
    return path


@pytest.fixture
def human(human_file):
    made = HumanNetwork(human_file)
    yield made
    made.close()


def test_a_profile_changes_the_policy_and_its_cached_results(human):
    position, found = new_position(5), {}
    for name in ("rank_20k", "rank_1d", "proyear_1900", "rank_20k"):
        output = human.output(position, name)
        assert output.policy.sum() == pytest.approx(1.0) and len(output.policy) == 26
        assert name not in found or np.array_equal(found[name], output.policy)
        found[name] = output.policy
    first, second, third = found.values()
    assert not np.allclose(first, second) and not np.allclose(second, third)
    assert human.knows_profiles and human.output(new_position(25), "rank_1d") is None
    with pytest.raises(ValueError, match="unknown human profile"):
        human.output(position, "nobody")


def loader(human_file):
    """Loads the human network from its file and hashes for any other."""

    def load(path, device, samples=None):
        return load_network(path, "cpu", samples) if path == human_file else HashNetwork("keima-1")

    return load


def new_player(human_file, profile="", visits=30, **options):
    return Player(
        SearchOptions(threads=1, seed=5, human_profile=profile, memory=64),
        PlayOptions(visits=visits, seconds=0.0, **options), "hash", size=5, load=loader(human_file), human=human_file,
    )  # fmt: skip


def test_moves_are_drawn_from_the_human_network(human_file):
    """With lambda off and no exploration the policy alone decides, whatever the search finds."""
    player = new_player(human_file, "rank_5k", human_temperature=1.0, human_temperature_early=1.0)
    try:
        asked, wanted = [], [from_vertex(vertex, 5) for vertex in ("A1", "E4")]

        def output(position, profile, deadline_s):
            asked.append(profile)
            policy = np.zeros(26)
            policy[[index_of(point, 5) for point in wanted]] = 0.6, 0.4
            return HumanOutput(policy, None, None, None)

        player.human.output = output
        drawn = [player.genmove(BLACK, Purpose.ANSWER) for _ in range(60)]
        assert {*drawn} == {*wanted} and 24 < drawn.count(wanted[0]) < 48 and {*asked} == {"rank_5k"}
        player.configure(player.options, SearchOptions(threads=1, seed=5, human_profile="proyear_1900", memory=64))
        with pytest.raises(ValueError, match="unknown human profile 'x'"):
            player.configure(player.options, SearchOptions(threads=1, seed=5, human_profile="x", memory=64))
        assert player.search_options.human_profile == "proyear_1900"
    finally:
        player.close()


def test_the_human_network_is_asked_before_the_search_has_used_up_the_time(human_file):
    player = new_player(human_file)
    asked, run = [], player._run
    try:
        player.human.output = lambda *given: asked.append("human")
        player._run = lambda *given: asked.append("search") or run(*given)
        player.genmove(BLACK)
        assert asked == ["human", "search"]
    finally:
        player.close()


def test_a_filter_of_moves_holds_for_human_moves(human_file):
    player = new_player(human_file)
    try:
        point = from_vertex("C3", 5)
        assert {player.genmove(BLACK, Purpose.ANSWER, moves=only(BLACK, [point])) for _ in range(5)} == {point}
    finally:
        player.close()


def test_explored_visits_are_a_share_and_do_not_count(human_file):
    player = new_player(human_file, human_explore=0.6, human_lambda=0.1, human_c_permanent=2.0)
    seen = []
    try:
        explore = player._explore
        player._explore = lambda *given: seen.append(explore(*given)) or seen[-1]
        player.genmove(BLACK)
        assert player.last_genmove_report.visits == 12 and seen[0].visits == 18
        output = player.human.output(new_position(5))
        visited = [index_of(move.point, 5) for move in seen[0].moves if move.visits]
        assert output.policy[visited].sum() > 0.5, "the search of human moves follows the human policy"
        player.genmove(BLACK)
        assert len(seen) == 2
    finally:
        player.close()


def test_a_human_network_that_does_not_play_the_board_leaves_the_move_to_the_search(human_file, capsys):
    player = new_player(human_file)
    try:
        player.human.server.spec = SimpleNamespace(plays=lambda size: False, name="tiny", encoder="katago-v7-human")
        assert player.genmove(BLACK) == player.last_genmove_report.moves[0].point
        assert "human network tiny does not play this board: the search chooses the move" in capsys.readouterr().err
    finally:
        player.close()


def test_a_profile_needs_a_network_that_knows_it(human_file):
    def load(path, device, samples=None):
        return HashNetwork("keima-1")

    for human in (None, human_file):
        with pytest.raises(ValueError, match="human profile rank_5k: the network knows none"):
            Player(
                SearchOptions(human_profile="rank_5k", memory=64), PlayOptions(), "hash", size=5, load=load, human=human
            )


def test_the_main_network_may_be_the_human_one():
    def load(path, device, samples=None):
        return HashNetwork("katago-v7-human")

    values = []
    for profile in ("", "rank_9d", "rank_20k", "rank_20k_9d"):
        options = SearchOptions(threads=1, seed=5, human_profile=profile, memory=64)
        player = Player(options, PlayOptions(visits=1, seconds=0.0), "hash", size=5, load=load)
        try:
            assert player.encoder.knows_profiles and player.encoder.name in ENCODERS
            player.genmove(BLACK)
            values.append(player.last_genmove_report.value_stm)
        finally:
            player.close()
    assert values[0] == values[1] and len(set(values)) == 3
