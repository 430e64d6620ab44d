"""Labels made of recorded and self-played games: what is in them, and that nothing is lost or made twice."""

import json
import threading
from dataclasses import replace
from itertools import count, pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.random import next_below, next_unit, seed_state
from engine.go.rules import RULE_SETS
from engine.nets.on_device import load_network
from engine.records.filters import Filters
from engine.records.games import read_games, write_games
from engine.records.labels import RECORDED, SELF_PLAYED, read_labels
from engine.records.schema import join
from engine.records.shards import BuildOptions, build
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.label_job import LabelOptions, LabelWorker, game_of, tasks_of
from engine.selfplay.label_rows import new_rows, pack_rows, unpack_rows
from engine.selfplay.labelling import Labelling, check_out
from engine.selfplay.recorded import RecordedGames
from engine.system.executor import Execution, LocalExecutor, Opened
from engine.train.batches import label_rules
from engine.train.teacher import Teacher
from gtp.cli import main
from gtp.cli.bulk import _game_shards
from tests.train.made import made_games

RULES = ((RULE_SETS["chinese"], 1.0), (RULE_SETS["japanese"], 1.0))
DISTRIBUTION = GameDistribution(RULES, ((Komi(), 1.0), (Komi(0.0, 9.0), 1.0)), ((1.0, 1.0),))
NETWORK = {"name": "tiny", "sha256": "0"}
SHARES = LabelOptions(
    ((9, 1.0),), ((7, 1.0), (9, 2.0)), DISTRIBUTION, every=7, moves=8, positions_per_shard=300, seed=4
)


@pytest.fixture(scope="module")
def teacher(tiny_network):
    """A network of random weights that evaluates positions in float32 on two threads."""
    made = Teacher(load_network(tiny_network, "cpu"), threads=2)
    yield made
    made.close()


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "games.npz.xz"
    write_games(path, made_games(60))
    return path


def label(teacher, shard, out, positions, options=SHARES, threads=3, stop_after=None, games=False):
    """A run; ``stop_after`` ends it from outside once that much is evaluated, ``games``: whole games by an executor."""
    labelling = Labelling(teacher, options, [shard], NETWORK, out)
    execution = None
    if games:
        recorded = RecordedGames([shard], options.seed, options.every)
        worker = LabelWorker(teacher, options, recorded, labelling.begun, at_once=4)
        execution = Execution(LocalExecutor(), Opened(worker), {})

    def report():
        if stop_after is not None and labelling.positions >= stop_after:
            labelling.stop()

    labelling.run(positions, at_once=4, threads=threads, report=report, every_s=0.01, execution=execution)
    labelling.close()
    return labelling


def all_labels(out):
    """Every position of a folder: what it is -> what is said of it."""
    found = {}
    for path in sorted(out.glob("labels-*.npz.xz")):
        labels = read_labels(path)
        source, number = labels.source, labels.games.number
        for row, (game, ply) in enumerate(zip(labels.game, labels.ply, strict=True)):
            games = labels.games
            moves = games.moves[games.offsets[game] : games.offsets[game + 1]][:ply]
            key = (int(source[game]), int(games.size[game]), int(number[game]), int(ply))
            assert key not in found, "made twice"
            found[key] = (float(games.komi[game]), labels.flags[game].tobytes(), moves.tobytes(),
                          round(float(labels.value_black[row]), 2), labels.policy_index[row, 0])  # fmt: skip
    return found


def shown_under(numbers, plies):
    """The symmetry that a self-played position was shown under: drawn before each move, which takes a number too."""
    found = []
    for number, ply in zip(numbers.tolist(), plies.tolist(), strict=True):
        state = seed_state(SHARES.seed, number)
        for _ in range(ply):
            next_below(state, SYMMETRIES), next_unit(state)
        found.append(next_below(state, SYMMETRIES))
    return np.array(found)


def test_labels_are_what_the_network_answers(teacher, shard, tmp_path):
    label(teacher, shard, tmp_path / "out", 700)
    compared = dict.fromkeys((7, 9), 0)
    for path in (tmp_path / "out").glob("labels-*.npz.xz"):
        labels = read_labels(path)
        source, number = labels.source, labels.games.number
        sizes = labels.games.size[labels.game]
        for size in compared:
            rows = np.flatnonzero(sizes == size)[:80]
            if not len(rows):
                continue
            compared[size] += len(rows)
            plies, game = labels.ply[rows], labels.game[rows]
            symmetries = np.where(source[game] == RECORDED, 0, shown_under(number[game], plies))
            again = teacher.targets(labels.games, game, plies, label_rules(labels, rows), symmetries)
            undone = symmetry_table(size)[symmetries]
            again["policy"] = np.take_along_axis(again["policy"], undone, 1)
            owned = again["ownership"].reshape(len(rows), -1)
            again["ownership"] = np.take_along_axis(owned, undone[:, :-1], 1)
            sign = np.where(plies % 2 == 0, 1.0, -1.0)
            np.testing.assert_allclose(sign * again["value"], labels.value_black[rows], atol=2e-3)
            np.testing.assert_allclose(sign * again["score"], labels.lead_black[rows], atol=2e-3, rtol=1e-3)
            for i, row in enumerate(rows):
                kept = labels.policy[row] > 0
                exact = again["policy"][i][labels.policy_index[row][kept]]
                np.testing.assert_allclose(exact, labels.policy[row][kept], rtol=0.03)
                assert exact[0] >= again["policy"][i].max() * 0.97
                start = labels.own_offsets[row]
                owned = 0.1 * labels.ownership_black[start : start + size * size]
                np.testing.assert_allclose(sign[i] * again["ownership"][i].ravel(), owned, atol=0.06)
    assert min(compared.values()) >= 80


def test_every_kind_gets_its_share(teacher, tmp_path):
    """One thread: what others have under way counts as found, and would be cut off in a run as short as this."""
    write_games(tmp_path / "games.npz.xz", made_games(120))
    made = label(teacher, tmp_path / "games.npz.xz", tmp_path / "out", 1200, threads=1)
    counts = {(kind.source, kind.size): count for kind, count in made.counts.items()}
    assert sum(counts.values()) == len(all_labels(tmp_path / "out")) >= 1200
    total = sum(counts.values())
    for kind, share in (((RECORDED, 9), 0.25), ((SELF_PLAYED, 7), 0.25), ((SELF_PLAYED, 9), 0.5)):
        assert abs(counts[kind] / total - share) < 0.02


def test_a_run_that_is_stopped_goes_on_and_makes_the_same_games(teacher, shard, tmp_path):
    whole = label(teacher, shard, tmp_path / "whole", 900, threads=1)
    for positions in (150, 380, 800):
        label(teacher, shard, tmp_path / "parts", 900, threads=1, stop_after=positions)
    label(teacher, shard, tmp_path / "parts", 900, threads=1)
    once, often = all_labels(tmp_path / "whole"), all_labels(tmp_path / "parts")
    assert whole.positions == len(once)
    # Which games are begun depends on when the threads are stopped; a position that both have is the same in both.
    both = once.keys() & often.keys()
    assert len(both) > 600
    assert {key: once[key] for key in both} == {key: often[key] for key in both}
    assert not list((tmp_path / "parts").glob("*.partial"))


def test_an_executor_labels_the_games_that_threads_label(teacher, shard, tmp_path):
    """Whole games, begun by either and gone on with by the other: what both have is the same."""
    label(teacher, shard, tmp_path / "whole", 500, threads=1)
    label(teacher, shard, tmp_path / "parts", 500, threads=1, stop_after=200)
    label(teacher, shard, tmp_path / "parts", 500, games=True)
    label(teacher, shard, tmp_path / "executor", 500, games=True, stop_after=200)
    executor = label(teacher, shard, tmp_path / "executor", 500, games=True)
    once = all_labels(tmp_path / "whole")
    for out in ("parts", "executor"):
        found = all_labels(tmp_path / out)
        both = once.keys() & found.keys()
        assert len(found) >= 500 and len(both) > 100
        assert {key: once[key] for key in both} == {key: found[key] for key in both}
    assert executor.positions == len(all_labels(tmp_path / "executor")) and min(executor.counts.values()) > 50


def test_recorded_games_whose_rows_had_not_come_are_labelled_next_time(teacher, shard, tmp_path):
    """A process is killed when a later game is in the journal already; a shard is written between."""
    recorded = replace(SHARES, self_play=(), positions_per_shard=30)
    labelling = Labelling(teacher, recorded, [shard], NETWORK, tmp_path / "out")
    lost = 3

    class Executor:
        def work(self, job, files, numbers, take, stopped, *rest):
            for done in job.open(None, files, 0).do((piece for piece in numbers if piece != lost), stopped):
                take(done)
                take(done)
            labelling.stop()

    worker = LabelWorker(teacher, recorded, RecordedGames([shard], recorded.seed, recorded.every), {}, at_once=4)
    labelling.run(120, 4, 1, lambda: None, execution=Execution(Executor(), Opened(worker), {}))
    labelling.close()
    for games in (True, False):
        label(teacher, shard, tmp_path / "out", 10_000, recorded, games=games)
        keys = all_labels(tmp_path / "out").keys()
        numbers = {number for _, _, number, _ in keys}
        assert numbers == set(range(60))
    assert len(keys) == len(all_labels_of(teacher, shard, tmp_path, recorded))


def all_labels_of(teacher, shard, folder, options):
    """The labels of all games."""
    label(teacher, shard, folder / "all", 10_000, options)
    return all_labels(folder / "all")


def test_rows_are_for_black_and_come_back_as_they_were_packed():
    labels = {"policy": np.full((3, 82), 1 / 82), "value": np.array([0.5, 0.5, 0.5])}
    rows = new_rows(9, 8, SELF_PLAYED, np.array([1, 2, 3]), np.array([0, 1, 2]), np.array([4, 5, 6]), labels)
    assert rows["value"].tolist() == [0.5, -0.5, 0.5] and np.isnan(rows["lead"]).all()
    size, again = unpack_rows(pack_rows(9, rows), 8)
    assert size == 9 and again.tobytes() == rows.tobytes()


@given(st.integers(0, 10**6), st.integers(1, 5), st.data())
def test_tasks_of_games_are_told_apart(number, n_kinds, data):
    place = data.draw(st.integers(0, n_kinds - 1))
    assert game_of(tasks_of(place, number, n_kinds), n_kinds) == (place, number)


def test_killed_between_a_shard_and_its_journal_nothing_is_twice_and_nothing_lost(teacher, shard, tmp_path):
    """The journal's blocks hold positions of several games, of which the shard has some."""
    out = tmp_path / "out"
    label(teacher, shard, out, 5000, stop_after=290, threads=1)
    before = {path: path.read_bytes() for path in out.glob("journal.bin")}
    labelling = Labelling(teacher, SHARES, [shard], NETWORK, out)

    def stop_at_the_first_shard():
        if (out / "labels-00000.npz.xz").exists():
            labelling.stop()

    labelling.run(5000, 4, 1, stop_at_the_first_shard, 0.01)
    labelling.close()
    assert len(json.loads((out / "labels.json").read_text())["shards"]) == 1
    for path, data in before.items():
        path.write_bytes(data)
    resumed = Labelling(teacher, SHARES, [shard], NETWORK, out)
    for size, rows in resumed._rows().items():
        tasks = resumed._tasks(size, rows)
        for task in np.unique(tasks[rows["source"] == SELF_PLAYED]):
            plies = np.sort(rows["ply"][tasks == task])
            assert plies.tolist() == list(range(len(plies))), "an interrupted game lost a move"
    resumed.close()
    label(teacher, shard, out, 1500, threads=1)
    all_labels(out)


def test_the_folder_keeps_to_what_it_was_begun_with(teacher, shard, tmp_path):
    label(teacher, shard, tmp_path / "out", 50)
    other = replace(SHARES, every=3)
    with pytest.raises(ValueError, match="begun with every 7, not 3"):
        Labelling(teacher, other, [shard], NETWORK, tmp_path / "out")
    with pytest.raises(ValueError, match=r"begun with network.name tiny, not huge, network.sha256 0, not 1; choose"):
        Labelling(teacher, SHARES, [shard], {"name": "huge", "sha256": "1"}, tmp_path / "out")
    # A data set that was built anew has the names of the one before; the run may be killed before its first shard.
    (tmp_path / "anew").mkdir()
    (tmp_path / "anew" / shard.name).write_bytes(shard.read_bytes() + bytes(4))
    Labelling(teacher, SHARES, [shard], NETWORK, tmp_path / "killed").close()
    for out in ("out", "killed"):
        with pytest.raises(ValueError, match=r"begun with games [0-9a-f]{64}, not [0-9a-f]{64}; choose another folder"):
            Labelling(teacher, SHARES, [tmp_path / "anew" / shard.name], NETWORK, tmp_path / out)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").touch()
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        Labelling(teacher, SHARES, [shard], NETWORK, tmp_path / "else")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"self_play": ((19, 1.0),)}, "network tiny plays boards of 7 to 9, not 19"),
        ({"recorded": (), "self_play": ()}, "nothing to label"),
        ({"moves": 50}, "a board of 7x7 has fewer points than the 50 moves of a label"),
    ],
)
def test_what_cannot_be_labelled_is_refused(teacher, shard, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        Labelling(teacher, replace(SHARES, **change), [shard], NETWORK, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_error_of_a_thread_ends_the_run(teacher, shard, tmp_path, monkeypatch):
    labelling = Labelling(teacher, SHARES, [shard], NETWORK, tmp_path / "out")
    monkeypatch.setattr(teacher, "targets", lambda *_: (_ for _ in ()).throw(RuntimeError("no more")))
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="no more"):
        labelling.run(100, 4, 2, lambda: None, 0.01)
    assert threading.active_count() == before
    labelling.close()


def test_recorded_games_come_once_each_in_an_order_of_their_own(shard, tmp_path):
    write_games(tmp_path / "second.npz.xz", made_games(30, seed=9))
    files = [shard, tmp_path / "second.npz.xz"]
    stream, seen = RecordedGames(files, 1, 7), []
    for number in count():
        taken = stream.take(9, number)
        if taken is None:
            break
        assert (np.diff(taken.plies) == 7).all() and taken.plies[0] < 7 and taken.plies[-1] + 7 > 30
        np.testing.assert_array_equal(stream.moves_of(9, number), taken.game.moves)
        seen.append(taken.game.moves.tobytes())
    assert number == 90 and len(set(seen)) == 90
    assert stream.take(13, 0) is None
    again = RecordedGames(files, 1, 7).take(9, 63)
    assert again.game.moves.tobytes() == seen[63] and again.plies.tolist() == stream.take(9, 63).plies.tolist()


def test_the_command_labels_sgf_files_and_goes_on(tiny_network, tmp_path):
    for number, moves in enumerate(("B[ee];W[cc];B[gg];W[cg];B[gc];W[ec]", "B[dd];W[ff];B[df];W[fd];B[ec];W[eg]")):
        (tmp_path / f"{number}.sgf").write_text(f"(;GM[1]FF[4]SZ[9]KM[7]RE[B+R];{moves})")
    words = ["data", "label", str(tmp_path / "0.sgf"), str(tmp_path / "1.sgf"), "--network", str(tiny_network)]
    words += ["--out", str(tmp_path / "out"), "--recorded", "9=1", "--every", "2", "--device", "cpu"]
    for positions in (3, 5):
        answer = CliRunner().invoke(main, [*words, "--positions", str(positions)])
        assert answer.exit_code == 0, answer.output
    assert "the games have no more positions" not in answer.output
    answer = CliRunner().invoke(main, [*words, "--positions", "100"])
    assert "the games have no more positions" in answer.output
    assert {key[:3] for key in all_labels(tmp_path / "out")} == {(RECORDED, 9, 0), (RECORDED, 9, 1)}
    answer = CliRunner().invoke(main, [*words[:2], str(tmp_path / "1.sgf"), *words[4:], "--positions", "100"])
    assert answer.exit_code != 0 and "0.sgf" in answer.output and "choose another --out" in answer.output


@pytest.mark.parametrize("sources", [("built", "more.sgf"), (".",), ("mixed",)])
def test_all_but_held_out_games_are_labelled_whatever_else_is_named(sources, tmp_path, tmp_path_factory):
    games = made_games(40, seed=3)
    write_games(tmp_path / "all.npz.xz", games)
    options = BuildOptions((tmp_path / "all.npz.xz",), Filters(sizes=()), validation_share=0.3, test_share=0.2)
    build(options, tmp_path / "built", lambda found: None, lambda done, total: None)
    (tmp_path / "all.npz.xz").unlink()
    if sources == ("mixed",):
        (tmp_path / "mixed").mkdir()
        (tmp_path / "built").rename(tmp_path / "mixed/built")
    sgf = "(;GM[1]FF[4]SZ[9]KM[7]RE[B+R];B[ee];W[cc];B[gg];W[cg];B[gc];W[ec])"
    (tmp_path / ("mixed/more.sgf" if sources == ("mixed",) else "more.sgf")).write_text(sgf)
    paths = tuple(tmp_path / name for name in sources)
    files = _game_shards(paths, tmp_path_factory.mktemp("out"), Console(quiet=True))
    kept = join([read_games(file) for file in files])
    train = read_games(next(tmp_path.rglob("train-000.npz.xz")))
    assert 0 < len(train.size) < 40
    extra = [40, 20, 60, 56, 24, 22]
    assert sorted(moves_of(kept)) == sorted([*moves_of(train), extra])


def moves_of(games):
    return [games.moves[start:end].tolist() for start, end in pairwise(games.offsets)]


def test_labels_are_made_beside_their_games(tmp_path):
    for name in (".games-1.partial", "labels.json.partial"):
        (tmp_path / name).mkdir()
    check_out(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="or one of labels"):
        check_out(tmp_path)
