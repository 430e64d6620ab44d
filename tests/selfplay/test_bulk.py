"""Games in bulk: nothing is lost, played twice or different, however often a run is stopped; and the command."""

import json
import threading
from operator import length_hint

import numpy as np
import pytest
from click.testing import CliRunner

from engine.go.random import seed_state
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.games import COUNTED, LIMIT, RESIGNED, Games, read_games, shard_files, write_games
from engine.selfplay.bulk import JOURNAL, MANIFEST, BulkPlay, BulkWorker
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.plan import FORMAT, BulkOptions, Plan
from engine.selfplay.table import NEVER, fill_state
from engine.system.executor import Execution, Opened
from engine.system.files import alone_in
from engine.system.run_folder import read_blocks
from engine.train.ranks import Ranks
from gtp.cli import main
from tests.selfplay.runs import run_bulk

DISTRIBUTION = GameDistribution(((RULE_SETS["tromp-taylor"], 1.0),), ((Komi(0.5, 5.5), 1.0),), ((1.0, 1.0), (0.5, 1.0)))
OPTIONS = BulkOptions(DISTRIBUTION, size=5, resign=0.35, resign_count=2, played_out=0.3, games_per_shard=25, seed=3)
NETWORKS = [{"name": "hash", "sha256": "0"}]


def play(server, out, games, options=OPTIONS, groups=2, stop_after=None):
    """A run; ``stop_after`` ends it from outside once there are that many games."""
    return run_bulk(BulkPlay([server], Plan(options), NETWORKS, out), games, 4, groups, stop_after)


def all_games(out, manifest=MANIFEST):
    """Every game in shards, by number: moves, result, ending, komi."""
    found = {}
    for shard in json.loads((out / manifest).read_text())["shards"]:
        games = read_games(out / shard["file"])
        assert len(games.size) == shard["games"]
        for k, number in enumerate(games.number.tolist()):
            assert number not in found
            moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
            found[number] = (moves, int(games.result[k]), int(games.ending[k]), float(games.komi[k]))
    return found


def test_a_stopped_run_goes_on_to_the_same_games(server, tmp_path):
    whole = play(server, tmp_path / "whole", 60)
    for stop_after in (1, 20, 45, None):
        play(server, tmp_path / "parts", 60, groups=3, stop_after=stop_after)
    expected = all_games(tmp_path / "whole")
    assert sorted(expected) == list(range(60))
    assert all_games(tmp_path / "parts") == expected
    facts = json.loads((tmp_path / "parts" / MANIFEST).read_text())
    assert {name: facts[name] for name in whole.facts} == whole.facts
    assert sum(whole.facts["endings"].values()) == 60
    assert {komi for *_, komi in expected.values()} == {twice / 2 for twice in range(1, 12)}


def test_a_run_that_was_killed_behind_its_shard_has_every_game_once(server, tmp_path):
    """The journal still holds what the shard does."""
    play(server, tmp_path, 10, stop_after=10)
    before = all_games(tmp_path)
    play(server, tmp_path, 12, stop_after=12)
    held = (tmp_path / JOURNAL).read_bytes()
    bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path)
    bulk._cut()
    bulk.close()
    (tmp_path / JOURNAL).write_bytes(held)
    play(server, tmp_path, 14)
    assert sorted(all_games(tmp_path)) == list(range(14))
    assert all_games(tmp_path).items() >= before.items()


def test_games_draw_from_the_generator_that_everything_else_draws_from():
    state = np.zeros(4, np.uint64)
    for seed, stream in ((0, 0), (1, 0), (7, 12345), (2**62, 3)):
        fill_state(state, seed, stream)
        np.testing.assert_array_equal(state, seed_state(seed, stream))


def test_resignations_are_those_of_the_games_played_out(server, tmp_path):
    never = BulkOptions(**vars(OPTIONS) | {"played_out": 1.0})
    facts = play(server, tmp_path / "never", 40, never).facts
    assert "resigned" not in facts["endings"] and facts["played_out"] > facts["wrongly_resigned"] > 0
    always = BulkOptions(**vars(OPTIONS) | {"played_out": 0.0})
    facts = play(server, tmp_path / "always", 40, always).facts
    assert facts["played_out"] == 0 and facts["endings"]["resigned"] > 10
    some = play(server, tmp_path / "some", 40).facts
    assert 0 < some["played_out"] < 40
    played_out, resigned = (all_games(tmp_path / name) for name in ("never", "always"))
    for number, (moves, _, ending, _) in resigned.items():
        assert played_out[number][0][: len(moves)] == moves
        assert (ending == RESIGNED) == (len(played_out[number][0]) > len(moves) or ending == RESIGNED)


def test_games_broken_off_are_marked(server, tmp_path):
    play(server, tmp_path, 20, BulkOptions(**vars(OPTIONS) | {"limit": 20, "resign": 0.0}))
    found = all_games(tmp_path).values()
    assert {ending for _, _, ending, _ in found} <= {LIMIT, COUNTED}
    assert any(ending == LIMIT and len(moves) == 20 for moves, _, ending, _ in found)


@pytest.mark.parametrize("name", [f"{MANIFEST}.partial", "games-1of2.json.partial"])
def test_a_first_start_that_was_killed_leaves_a_folder_to_begin_in(server, tmp_path, name):
    """One of several processes may be about to write its manifest, too."""
    (tmp_path / name).write_text("{")
    BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path).close()


def test_a_folder_of_something_else_is_refused(server, tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(ValueError, match="already there, expected a new or empty folder"):
        BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 6}, "begun with size 5, not 6"),
        ({"seed": 4}, "begun with seed 3, not 4"),
        ({"dead_stones": "removed"}, "dead_stones alive, not removed"),
    ],
)
def test_a_run_goes_on_only_as_it_began(server, tmp_path, change, message):
    play(server, tmp_path, 2)
    with pytest.raises(ValueError, match=message):
        BulkPlay([server], Plan(BulkOptions(**vars(OPTIONS) | change)), NETWORKS, tmp_path)
    with pytest.raises(ValueError, match="begun with networks"):
        BulkPlay([server], Plan(OPTIONS), [{"name": "other", "sha256": "1"}], tmp_path)


def test_a_folder_that_an_older_version_began_is_refused_and_left_as_it_is(server, tmp_path):
    play(server, tmp_path, 2, stop_after=1)
    for former in ("keima games", FORMAT.removesuffix(" 2")):
        manifest = {"format": former, "options": {}, "networks": NETWORKS, "shards": []}
        (tmp_path / MANIFEST).write_text(json.dumps(manifest))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(ValueError, match=f"begun with .*format {former}, not {FORMAT}.*; choose another folder$"):
            BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_network_that_fails_ends_the_run_with_all_finished_games(tmp_path):
    class Failing(HashNetwork):
        def __init__(self):
            super().__init__("alphago-48")
            self.left, self.lock = 120, threading.Lock()

        def evaluate(self, planes, globals_):
            with self.lock:
                self.left -= 1
            if self.left < 0:
                raise RuntimeError("it broke")
            return super().evaluate(planes, globals_)

    with InferenceServer(Failing(), threads=1) as broken:
        bulk = BulkPlay([broken], Plan(OPTIONS), NETWORKS, tmp_path)
        with pytest.raises(RuntimeError, match="it broke"):
            bulk.run(1000, at_once=4, groups=2, report=lambda: None, every_s=0.001)
        count = bulk.games
        bulk.close()
    assert count > 0
    shards = json.loads((tmp_path / MANIFEST).read_text())["shards"]
    held = sum(len(block.numbers) for block in read_blocks(tmp_path / JOURNAL))
    assert held + sum(shard["games"] for shard in shards) == count


def test_numbers_outlive_a_shard_and_others_have_none(tmp_path):
    games = Games(size=np.array([5]), offsets=np.array([0, 1]), moves=np.zeros(1, np.uint16))
    write_games(tmp_path / "a.npz.xz", games)
    write_games(tmp_path / "b.npz.xz", games._replace(number=np.array([7])))
    assert read_games(tmp_path / "a.npz.xz").number.tolist() == [-1]
    assert read_games(tmp_path / "b.npz.xz").number.tolist() == [7]


def test_the_command_plays_and_goes_on(tiny_network, tmp_path):
    words = ["data", "play", str(tiny_network), "--out", str(tmp_path / "out"), "--size", "7", "--at-once", "4"]
    for games in ("5", "9"):
        done = CliRunner().invoke(main, [*words, "--games", games, "--limit", "30"])
        assert done.exit_code == 0 and done.stdout == "", done.output
        assert f"{games} games" in done.stderr
    assert sorted(all_games(tmp_path / "out")) == list(range(9))


def test_a_folder_that_another_command_fills_is_refused(tiny_network, tmp_path):
    """Two would append to one journal and truncate it under each other."""
    words = ["data", "play", str(tiny_network), "--out", str(tmp_path / "out"), "--size", "7", "--games", "1"]
    with alone_in(tmp_path / "out"):
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and "the folder is locked by another process" in done.output


def test_processes_share_out_the_games_and_go_on(server, tmp_path):
    """Each with files of its own, and all games those of one process."""
    for games in (20, 41):
        for rank in range(3):
            bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path / "shared", Ranks(rank, 3, rank))
            bulk.run(games, at_once=4, groups=2, report=lambda: None)
            assert bulk.games == bulk.part_of(games) and not len(bulk.missing(games))
            bulk.close()
    play(server, tmp_path / "alone", 41)
    expected, found = all_games(tmp_path / "alone"), {}
    for rank in range(3):
        own = all_games(tmp_path / "shared", f"games-{rank}of3.json")
        assert all(number % 3 == rank for number in own)
        found |= own
    assert found == expected
    assert sum(len(read_games(path).size) for path in shard_files([tmp_path / "shared"], None)) == 41
    for ranks in (Ranks(), Ranks(0, 2, 0)):
        with pytest.raises(ValueError, match="begun by 3 processes"):
            BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path / "shared", ranks)


def test_a_number_of_positions_is_shared_out_too(server, tmp_path):
    for rank in range(2):
        bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path, Ranks(rank, 2, rank))
        bulk.run_positions(301, at_once=4, groups=2, report=lambda: None)
        assert len(bulk._manifest["shards"]) == 1, "not one for every look at what the games gave"
        assert bulk.part_of(301) <= bulk.positions() < bulk.part_of(301) + 100
        bulk.close()


def test_a_process_that_had_no_game_at_first_gets_its_part_of_the_positions_too(server, tmp_path):
    """60 positions are a game's; the process before has it."""
    bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path, Ranks(3, 4, 3))
    bulk.run_positions(60, at_once=4, groups=1, report=lambda: None)
    assert bulk.positions() >= bulk.part_of(60)
    bulk.close()


@pytest.mark.parametrize("stop_after", [(7, 30), (40, 41)])
def test_the_running_count_of_positions_is_that_of_all_games(server, tmp_path, stop_after):
    """As games arrive, some of them twice, and when a run goes on: its games in the journal, or in shards too."""
    told = []
    for stops_at in (*stop_after, 60):
        bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path)

        def check(bulk=bulk):
            assert bulk.positions() == bulk.positions(NEVER - 1)
            told.append(bulk.positions())

        class Executor:
            def work(self, job, files, numbers, take, stopped, *rest, bulk=bulk, check=check, stops_at=stops_at):
                for done in job.open(None, files, 1).do(numbers, stopped):
                    take(done)
                    check()
                    # Once more, as where an actor has died.
                    take(done)
                    check()
                    if bulk.games >= stops_at:
                        bulk.stop()

        check()
        bulk.run(
            60,
            4,
            1,
            lambda: None,
            execution=Execution(Executor(), Opened(BulkWorker([server], Plan(OPTIONS), 4, 1)), {}),
        )
        check()
        bulk.close()
    lengths = [len(moves) for moves, *_ in all_games(tmp_path).values()]
    assert told == sorted(told) and told[-1] == sum(lengths) and len(lengths) == 60


def test_an_executor_is_told_how_many_games_are_missing(server, tmp_path):
    """It shares few games out in smaller pieces."""
    told = []

    class Executor:
        def work(self, job, files, numbers, *rest):
            told.append(length_hint(numbers))

    bulk = BulkPlay([server], Plan(OPTIONS), NETWORKS, tmp_path)
    bulk.run(7, at_once=4, groups=1, report=lambda: None, execution=Execution(Executor(), None, {}))
    bulk.close()
    assert told == [7]


def test_the_command_started_as_one_of_two(tiny_network, tmp_path, monkeypatch):
    words = ["data", "play", str(tiny_network), "--out", str(tmp_path / "out"), "--size", "7", "--at-once", "4"]
    for rank in ("0", "1"):
        for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
            monkeypatch.setenv(name, value)
        done = CliRunner().invoke(main, [*words, "--games", "7", "--limit", "30"])
        assert done.exit_code == 0 and done.stdout == "", done.output
        assert ("4 games" in done.stderr) == (rank == "0")
    found = [all_games(tmp_path / "out", f"games-{rank}of2.json") for rank in (0, 1)]
    assert sorted([*found[0], *found[1]]) == list(range(7))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody"], "unknown network 'nobody'"),
        (["default", "--size", "25"], "plays boards of"),
        (["default", "--passes", "never"], "passes"),
        (["default", "--device", "nonsense"], "nonsense"),
        (["default", "--komi", "7.3"], "komi '7.3'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, words, message):
    done = CliRunner().invoke(main, ["data", "play", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code != 0 and done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1 and message in done.stderr
