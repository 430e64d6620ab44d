"""Positions for a value network: whose moves they follow, how U is spread, and that their labels are right."""

import numpy as np
import pytest
from click.testing import CliRunner

from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, PASS, point_of
from engine.go.position import META_TO_MOVE, apply_rules, is_legal_move, new_position, play_move
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.records.games import Games, read_games, write_games
from engine.records.schema import join
from engine.selfplay.bulk import BulkPlay
from engine.selfplay.games import GameBatch, Player
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.values import ATTEMPTS, RL, SL, ValuePlan, published_latest
from engine.train.batches import BatchBuilder
from engine.train.dataset import sample_games
from gtp.cli import main
from tests.selfplay.runs import distribution, kept, run_bulk
from tests.selfplay.twin import SlowGame

OPTIONS = BulkOptions(distribution(0.5), size=5, games_per_shard=60, seed=3)
NETWORKS = [{"name": "sl", "sha256": "0"}, {"name": "rl", "sha256": "1"}]


def networks():
    return [HashNetwork("alphago-48", seed=1), HashNetwork("alphago-48", seed=2)]


@pytest.fixture(scope="module")
def servers():
    made = [InferenceServer(network, threads=1) for network in networks()]
    yield made
    for server in made:
        server.close()


def play(servers, out, positions, plan, groups=2, stop_after=None, whole_games=False):
    """A run; ``stop_after`` ends it from outside once there are that many games."""
    return run_bulk(BulkPlay(servers, plan, NETWORKS, out), positions, 8, groups, stop_after, whole_games)


def by_number(out):
    """Moves, position and result of every game of a folder."""
    games = join(kept(out))
    found = {
        number: (*games.moves[games.offsets[k] : games.offsets[k + 1]].tolist(), games.position[k], games.result[k])
        for k, number in enumerate(games.number.tolist())
    }
    assert len(found) == len(games.number)
    return found


def test_positions_are_those_of_the_slow_twin(servers, tmp_path):
    plan = ValuePlan(OPTIONS, latest=30)
    play(servers, tmp_path, 12, plan)
    (games,) = kept(tmp_path)
    assert games.number.tolist() == list(range(12))
    for k in range(12):
        for attempt in range(ATTEMPTS):
            number = ATTEMPTS * k + attempt
            setups = plan.set_up(np.array([number]))
            slow = SlowGame(networks(), 5, number, OPTIONS.config(), setups, 0)
            slow.play()
            if len(slow.moves) > setups.switches[0] + 1:
                break
        ply = int(setups.switches[0]) + 1
        assert games.position[k] == ply == plan.random_plies(np.array([k]))[0]
        moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
        assert moves == slow.moves[: ply + 1]
        assert games.result[k] == np.sign(slow.lead_black())


def test_the_players_change_at_the_random_move(servers):
    setups = ValuePlan(OPTIONS, latest=30).set_up(np.arange(5) * ATTEMPTS)
    assert (setups.players[:, 0] == SL).all() and (setups.players[:, 1] == RL).all()


def test_every_ply_is_as_frequent_as_any_other_up_to_the_latest():
    plan = ValuePlan(BulkOptions(distribution(0.5), size=9), latest=0)
    assert plan.latest == published_latest(9) == 100 and published_latest(19) == 450
    counts = np.bincount(plan.random_plies(np.arange(100_000)), minlength=101)
    # Five standard deviations.
    assert counts[0] == 0 and len(counts) == 101 and (np.abs(counts[1:] - 1000) < 5 * np.sqrt(990)).all()


def test_late_plies_are_tried_again_and_what_is_missing_is_known(servers, tmp_path):
    """Games last some 40 moves: without another attempt, positions beyond would be missing far more often."""
    plan = ValuePlan(OPTIONS, latest=44)
    bulk = play(servers, tmp_path, 300, plan)
    games = kept(tmp_path)
    there = np.concatenate([part.number for part in games])
    assert len(there) == len(set(there.tolist())) == bulk.games
    missing = bulk.missing(300)
    assert sorted([*there.tolist(), *missing.tolist()]) == list(range(300))
    once = [len(self_played) for self_played in first_attempts(servers, plan, 300)]
    reached = (np.array(once) > plan.random_plies(np.arange(300))).sum()
    assert reached < bulk.games


@pytest.mark.parametrize("whole_games", [False, True])
def test_a_stopped_run_goes_on_to_the_same_positions(servers, tmp_path, whole_games):
    plan, wanted = (Plan(OPTIONS), 2500) if whole_games else (ValuePlan(OPTIONS, latest=40), 150)
    whole = play(servers, tmp_path / "whole", wanted, plan, whole_games=whole_games)
    for stop_after in (1, 20, 54, None):
        last = play(servers, tmp_path / "parts", wanted, plan, 3, stop_after, whole_games)
    assert whole.games == last.games > 50 and not last.is_stopped
    assert by_number(tmp_path / "whole") == by_number(tmp_path / "parts")


def test_whole_games_are_as_many_as_hold_the_positions(servers, tmp_path):
    bulk = play(servers, tmp_path, 2500, Plan(OPTIONS), whole_games=True)
    found = by_number(tmp_path)
    assert sorted(found) == list(range(bulk.games))
    lengths = [len(found[number]) - 2 for number in range(bulk.games)]
    assert sum(lengths) == bulk.positions() >= 2500 > bulk.positions(20) == sum(lengths[:20])
    assert sum(lengths) < 2500 + 4 * OPTIONS.config().limit, "some games more than needed, no share of them"
    assert {position for *_, position, _ in found.values()} == {-1}


def first_attempts(servers, plan, count):
    """Moves of the first game at each position."""
    batch = GameBatch([Player(server, OPTIONS.config()) for server in servers], 5, 16, plan.set_up)
    found = {}
    for finished in batch.play(iter((np.arange(count) * ATTEMPTS).tolist())):
        games = finished.games
        for k, number in enumerate(games.number.tolist()):
            found[number // ATTEMPTS] = games.moves[games.offsets[k] : games.offsets[k + 1]]
    return [found[number] for number in range(count)]


def test_a_label_is_the_result_for_the_side_to_move_at_the_position_kept(servers, tmp_path):
    play(servers, tmp_path, 40, ValuePlan(OPTIONS, latest=30))
    (games,) = kept(tmp_path)
    rows, plies = sample_games(games, 1000, seed=1)
    assert sorted(rows.tolist()) == list(range(40)) and (plies == games.position[rows]).all()
    builder = BatchBuilder(ENCODERS["alphago-49"])
    batch = builder.from_games(games, rows, plies, np.zeros(40, bool), np.zeros(40, np.int64))
    for i, (row, ply) in enumerate(zip(rows, plies, strict=True)):
        color = BLACK if ply % 2 == 0 else 3 - BLACK
        assert batch.value[i] == (games.result[row] if color == BLACK else -games.result[row])
        assert batch.value_known[i] == 1.0
        position = new_position(5, 80)
        apply_rules(position, RULE_SETS["tromp-taylor"], 0.5)
        for move in games.moves[games.offsets[row] : games.offsets[row] + ply].tolist():
            point = PASS if move == 25 else point_of(move, 5)
            assert is_legal_move(position, point, int(position.meta[META_TO_MOVE]))
            play_move(position, point, int(position.meta[META_TO_MOVE]))
        assert position.meta[META_TO_MOVE] == color


def test_a_position_beyond_its_game_is_refused(tmp_path):
    games = Games(size=np.array([5]), offsets=np.array([0, 2]), moves=np.zeros(2, np.uint16))
    write_games(tmp_path / "a.npz.xz", games._replace(position=np.array([1], np.int16)))
    assert read_games(tmp_path / "a.npz.xz").position.tolist() == [1]
    write_games(tmp_path / "b.npz.xz", games._replace(position=np.array([2], np.int16)))
    with pytest.raises(ValueError, match="impossible position"):
        read_games(tmp_path / "b.npz.xz")


def test_values_of_a_finished_board_follow_the_rules_alone(tmp_path):
    """A uniform policy plays on until no sensible move is left; then the count is the board's."""
    with InferenceServer(UniformNetwork("alphago-48"), threads=1) as server:
        play([server, server], tmp_path, 20, ValuePlan(OPTIONS, latest=20))
    (games,) = kept(tmp_path)
    assert set(np.unique(games.result)) <= {-1, 1} and (games.margin % 1 == 0.5).all()


def test_the_command_makes_positions(start, tmp_path):
    words = ["data", "values", str(start), str(start), "--out", str(tmp_path / "out"), "--size", "5", "--at-once", "4"]
    done = CliRunner().invoke(main, [*words, "--positions", "6", "--latest", "10"])
    assert done.exit_code == 0 and done.stdout == "" and "6 positions" in done.stderr, done.output
    done = CliRunner().invoke(main, [*words, "--positions", "8", "--latest", "60"])
    assert done.exit_code == 1 and "begun with latest 10, not 60" in done.stderr
    words[5] = str(tmp_path / "whole")
    done = CliRunner().invoke(main, [*words, "--positions", "70", "--whole-games"])
    assert done.exit_code == 0 and " positions of " in done.stderr, done.output
    words[5] = str(tmp_path / "late")
    done = CliRunner().invoke(main, [*words, "--positions", "8", "--latest", "500", "--limit", "40"])
    assert done.exit_code == 0 and "games ended before move U" in done.stderr, done.output
