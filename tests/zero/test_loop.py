"""The loop of AlphaGo Zero on 3x3: turns, what is kept, and a run that goes on wherever it was stopped."""

import csv
import json
import shutil
import time
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.model import load_model
from engine.records.schema import join
from engine.records.search_rows import read_search_rows
from engine.selfplay.search_play import SearchPlay
from engine.train.turns import STATE, newest
from engine.zero import loop as loop_module
from engine.zero import self_play
from engine.zero.facts import facts_of_rows
from engine.zero.loop import MANIFEST, ROWS, Zero
from engine.zero.networks import NETWORK
from engine.zero.turn import CHECK, PLAY, TRAIN, Progress, Turn
from tests.zero.runs import CONFIG, CPU, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of three turns."""
    torch.set_num_threads(1)
    zero = run(tmp_path_factory.mktemp("zero") / "run", turns=3)
    return zero


def shards_of(out):
    """What the folder says of its shards."""
    return json.loads((out / ROWS / "rows.json").read_text())["shards"]


def latest(out):
    """What was measured last, by name."""
    with (out / "curves.csv").open(newline="") as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


def all_games(out):
    """Numbers of the games in all shards, in the order of the shards."""
    shards = shards_of(out)
    return [number for shard in shards for number in read_search_rows(out / ROWS / shard["file"]).games.number.tolist()]


def test_each_turn_plays_trains_and_leaves_a_network(finished):
    zero = finished
    assert (zero.turn.number, zero.turn.phase) == (3, PLAY)
    rows = shards_of(zero.out)
    total = sum(shard["rows"] for shard in rows)
    assert 240 <= total < 500
    # As many samples as were asked for of each row, but for a step.
    assert zero.learner.step == int(4.0 * total / 16)
    networks = sorted(path.stem for path in (zero.out / "networks").iterdir())
    assert len(networks) == 4 and int(networks[-1]) == zero.learner.step == zero.turn.network
    _, spec, training = load_model(zero.out / NETWORK)
    assert (spec.min_size, spec.max_size, training["step"]) == (3, 3, zero.learner.step)
    # The rows say who played them.
    assert [shard["last_step"] for shard in rows] == [0, *map(int, networks[1:3])]
    names = (zero.out / "curves.csv").read_text()
    for name in ("train/policy", "zero/rows", "zero/window", "empty/score", "games/moves", "rows/entropy"):
        assert names.count(name) == 3, name


def test_no_game_is_played_twice(finished):
    numbers = all_games(finished.out)
    assert len(numbers) == len(set(numbers)) > 20


def test_the_window_is_the_newest_rows(finished):
    shards = shards_of(finished.out)
    counts = [shard["rows"] for shard in shards]
    wanted = CONFIG.loop.window_of(sum(counts))
    held = newest(counts, wanted)
    assert finished.turn.shards == [shard["file"] for shard in shards[-held:]]
    assert sum(counts[-held:]) >= wanted


@pytest.mark.parametrize("change", [{"batch": 64}, {"batch": 4}, {"samples": 2.0}])
def test_a_turn_is_worth_the_samples_of_its_own_rows(finished, tmp_path, change):
    """Whatever --batch and --samples were before: no turn is left out, and none makes up for earlier ones."""
    shutil.copytree(finished.out, tmp_path / "run")
    loop, before = replace(CONFIG.loop, **change), finished.learner.step
    rows = sum(shard["rows"] for shard in shards_of(finished.out))
    zero = run(tmp_path / "run", replace(CONFIG, loop=loop), turns=4)
    new, steps = sum(shard["rows"] for shard in shards_of(zero.out)) - rows, zero.learner.step - before
    assert steps > 1
    assert abs(loop.batch * steps - loop.samples * new) <= max(loop.batch, CONFIG.loop.batch)
    trained = CONFIG.loop.batch * before + loop.batch * steps
    assert latest(zero.out)["zero/samples_per_row"] == pytest.approx(trained / (rows + new), rel=1e-4)


def test_what_rounding_leaves_of_a_turn_is_not_lost():
    """Turns together take the steps that all their rows are worth; one that takes a step too many is made up for."""
    loop, turn = replace(CONFIG.loop, samples=0.5, batch=16), Turn()
    for rows, step in ((40, 1), (80, 2), (120, 3), (128, 4), (136, 5), (200, 6), (480, 15)):
        turn = turn.in_training(rows, turn.last_step, loop)
        assert (turn.last_step, turn.trained) == (step, 16 * step)
        turn = replace(turn, rows_before=rows)


def test_a_run_of_an_earlier_version_is_refused_in_one_line(finished, tmp_path):
    """Its turns counted no samples. The folder stays as it is."""
    shutil.copytree(finished.out, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / MANIFEST).read_text())
    del manifest["turn"]["trained"]
    (tmp_path / "run" / MANIFEST).write_text(text := json.dumps(manifest))
    with pytest.raises(ValueError, match="begun by an earlier version of Keima"):
        Zero(tmp_path / "run", CONFIG, CPU)
    assert (tmp_path / "run" / MANIFEST).read_text() == text


def test_a_run_that_was_killed_before_its_start_was_copied_asks_for_it(finished, tmp_path):
    start, out = finished.networks.path(finished.turn.network), tmp_path / "run"
    zero = Zero(out, CONFIG, CPU, start=start)
    assert not zero.is_random
    zero.networks.path(0).unlink()
    (out / NETWORK).unlink()
    with pytest.raises(ValueError, match="repeat --start"):
        Zero(out, CONFIG, CPU)
    again = Zero(out, CONFIG, CPU, start=start)
    assert again.networks.path(0).exists()
    (out / NETWORK).unlink()
    Zero(out, CONFIG, CPU)
    assert (out / NETWORK).read_bytes() == again.networks.path(0).read_bytes()


def test_training_that_was_stopped_sees_the_same_batches(tmp_path):
    """The same weights come out, to the bit, though new rows lie in the folder meanwhile, and --batch is
    another."""
    torch.set_num_threads(1)
    zero = run(tmp_path / "a", stop=("training", 0.0))
    assert zero.turn.phase == TRAIN and zero.learner.step == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    run(tmp_path / "a", stop=("self-play", 0.0))
    other = replace(CONFIG.loop, batch=64)
    zero = run(tmp_path / "b", replace(CONFIG, loop=other), stop=("training", 10.0))
    assert 0 < zero.learner.step < zero.turn.last_step
    zero = run(tmp_path / "b", stop=("self-play", 0.0))
    assert zero.turn.number == 1
    losses = [{name: one for name, one in latest(tmp_path / run).items() if "train/" in name} for run in "ab"]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4), "of the whole turn"
    whole, broken = (load_file(tmp_path / name / STATE) for name in "ab")
    assert whole.keys() == broken.keys()
    assert all(torch.equal(whole[name], broken[name]) for name in whole)


def test_a_turn_is_measured_on_all_its_games(tmp_path, monkeypatch):
    """Not on its last shard alone, which holds the games that took longest."""
    monkeypatch.setattr(self_play, "SearchPlay", partial(SearchPlay, rows_per_shard=20))
    config, seen = replace(CONFIG, loop=replace(CONFIG.loop, first_rows=100, window=1000)), 0
    for turns in (1, 2):
        zero = run(tmp_path, config, turns=turns)
        shards = shards_of(tmp_path)[seen:]
        assert len(shards) > 2
        facts = facts_of_rows(join([read_search_rows(tmp_path / ROWS / shard["file"]) for shard in shards]))
        measured = latest(tmp_path)
        assert {name: measured[name] for name in facts} == pytest.approx(facts, rel=1e-4)
        assert zero.turn.number == turns
        seen += len(shards)


@pytest.mark.parametrize("phase", ["self-play", "training"])
def test_a_run_goes_on_where_it_was_stopped(tmp_path, phase):
    zero = run(tmp_path, stop=(phase, 20.0))
    assert zero.turn.number == 0
    had = all_games(tmp_path) if (tmp_path / ROWS / "rows.json").exists() else []
    zero = run(tmp_path, turns=1)
    assert zero.turn.number == 1
    numbers = all_games(tmp_path)
    assert len(numbers) == len(set(numbers)) and numbers[: len(had)] == had


def test_a_kill_between_training_and_the_next_turn_trains_nothing_twice(tmp_path):
    """The state has the last step, the manifest still says that the turn is in training."""
    zero = run(tmp_path, stop=("training", 0.0))
    before = (tmp_path / MANIFEST).read_text()
    run(tmp_path, stop=("self-play", 0.0))
    state = load_file(tmp_path / STATE)
    measured = latest(tmp_path)
    (tmp_path / MANIFEST).write_text(before)
    zero = run(tmp_path, stop=("self-play", 0.0))
    assert (
        {name: value for name, value in latest(tmp_path).items() if name.startswith("train/")}
        == {name: value for name, value in measured.items() if name.startswith("train/")}
        != {}
    )
    again = load_file(tmp_path / STATE)
    assert zero.turn.number == 1
    assert all(torch.equal(state[name], again[name]) for name in state)


class Waiting(Progress):
    """Lets training wait until a game that is played beside it has ended."""

    def __init__(self):
        self.zero, self.waited = None, 0

    def at(self, phase, done, total, words):
        if phase == "training" and done and not self.zero.is_random:
            while self.zero.play.rows.all_rows <= self.zero.turn.wanted:
                self.zero.play.check()
                time.sleep(0.01)
            self.waited += 1
            assert "parallel self-play" in words


def test_games_of_the_next_turn_are_played_beside_training(tmp_path):
    config = replace(CONFIG, loop=replace(CONFIG.loop, side_by_side="on"))
    progress = Waiting()
    progress.zero = zero = Zero(tmp_path, config, CPU, threads=1, progress=progress)
    zero.run(3)
    assert progress.waited > 0
    numbers = all_games(tmp_path)
    assert len(numbers) == len(set(numbers))
    shards = shards_of(tmp_path)
    networks = sorted(int(path.stem) for path in (tmp_path / "networks").iterdir())
    assert shards[0]["last_step"] == 0, "a random network plays for no other turn"
    assert shards[2]["first_step"] == networks[1], "the one before begins, the new one plays what is missing"


def test_a_failure_beside_training_ends_the_run(tmp_path, monkeypatch):
    """Else it would train on without further games."""
    run(tmp_path, turns=1)
    config = replace(CONFIG, loop=replace(CONFIG.loop, side_by_side="on"))

    def fail(play, *_, enough=None, **__):
        if enough is not None:
            raise OSError("no space left on device")
        return whole(play, *_)

    whole = SearchPlay.play_rows
    monkeypatch.setattr(SearchPlay, "play_rows", fail)
    with pytest.raises(OSError, match="no space left"):
        run(tmp_path, config, turns=2)


def test_a_random_network_searches_little_and_plays_sensible_moves(finished):
    play = replace(CONFIG.play, visits=40, fast_visits=10)
    config = replace(CONFIG, play=play, loop=replace(CONFIG.loop, first_visits=0.25))
    rows = self_play.ZeroPlay(finished.out / "other rows", config, None)
    first, later = rows.options(finished.turn, True), rows.options(finished.turn, False)
    assert (first.visits, first.fast_visits, first.sensible, first.forced) == (10, 2, 2.0, 0.0)
    assert (later.visits, later.fast_visits, later.sensible, later.forced) == (40, 10, 0.0, 2.0)
    rows.close()


def test_a_run_from_another_network_goes_on_without_it(finished, tmp_path):
    """It keeps the boards that the network plays, and its self-play begins at the komi that is asked for."""
    model, _, _ = load_model(finished.out / NETWORK)
    start = tmp_path / "start.safetensors"
    save_network(start, model, new_spec(model, "start", sizes=(2, 7)), {})
    config = replace(CONFIG, loop=replace(CONFIG.loop, first_rows=60), shape={"blocks": 6})
    zero = run(tmp_path / "run", config, stop=("self-play", 0.0), start=start)
    assert zero.turn.komi == 2.0 and zero.play.options(zero.turn, zero.is_random).sensible == 0.0
    start.unlink()
    zero = run(tmp_path / "run", replace(config, shape=asdict(model.shape)), turns=1)
    spec = load_model(tmp_path / "run" / NETWORK)[1]
    assert (spec.min_size, spec.max_size) == (2, 7)
    with pytest.raises(ValueError, match="plays boards of 2 to 7, not 9"):
        Zero(tmp_path / "large", replace(config, play=replace(CONFIG.play, size=9)), CPU, start=zero.networks.path(0))


def test_another_start_is_refused_where_a_run_goes_on(finished, tmp_path):
    first, other = (finished.networks.path(step) for step in (0, finished.learner.step))
    config = replace(CONFIG, loop=replace(CONFIG.loop, first_rows=1000))
    run(tmp_path / "run", config, stop=("self-play", 0.0), start=first)
    run(tmp_path / "run", config, stop=("self-play", 0.0), start=first)
    with pytest.raises(ValueError, match=f"begun with another initial network than {other.name}"):
        Zero(tmp_path / "run", config, CPU, start=other)
    shutil.copytree(finished.out, tmp_path / "random")
    with pytest.raises(ValueError, match="begun with another initial network"):
        Zero(tmp_path / "random", CONFIG, CPU, start=first)


def test_play_that_gives_no_rows_is_refused(tmp_path):
    """It would play for ever."""
    with pytest.raises(ValueError, match="full_share is 0, expected more: only full searches give rows"):
        Zero(tmp_path / "run", replace(CONFIG, play=replace(CONFIG.play, full_share=0.0)), CPU)
    assert not (tmp_path / "run").exists()


def test_a_first_start_that_was_killed_leaves_a_folder_to_begin_in(tmp_path):
    """It had got no further than to write its first manifest."""
    for name in (f"{MANIFEST}.partial", "keima.lock"):
        (tmp_path / name).write_text("{")
    assert Zero(tmp_path, CONFIG, CPU).turn.number == 0


def test_a_check_is_repeated_until_it_was_not_stopped(tmp_path):
    seen = []

    def check(zero, path):
        seen.append(path.name)
        if len(seen) == 1:
            zero.stop()

    zero = run(tmp_path, check=check)
    assert zero.turn.phase == CHECK and len(seen) == 1
    zero = run(tmp_path, turns=1, check=check)
    assert seen == [seen[0]] * 2 and zero.turn.number == 1


def test_old_rows_go_where_the_disk_is_short(tmp_path):
    config = replace(CONFIG, loop=replace(CONFIG.loop, disk_gib=0.0, window=20, window_slope=0.1))
    zero = run(tmp_path, config, turns=3)
    manifest = json.loads((tmp_path / ROWS / "rows.json").read_text())
    files = {path.name for path in (tmp_path / ROWS).glob("*.xz")}
    assert files == {shard["file"] for shard in manifest["shards"]} == set(zero.turn.shards)
    assert manifest["forgotten"] > 0
    # Rows that are gone were trained on: they count.
    assert zero.learner.step > 4.0 * sum(shard["rows"] for shard in manifest["shards"]) / 16


def test_the_komi_of_self_play_follows_the_games(finished, tmp_path, monkeypatch):
    """Halfway, in halves, to the komi that Black would have won half of the turn's games at."""
    assert (2 * finished.turn.komi).is_integer()
    komi, new = 2.0, finished._new_rows()  # The fixture's lies near the most that 3x3 has, now and then.
    monkeypatch.setattr(finished, "turn", replace(finished.turn, komi=komi))

    def next_komi(black_leads: list[float], played_out: int = 0) -> float:
        """After games that were won by so much without any komi; infinite = resigned. The last ones could not be."""
        leads = np.array(black_leads)
        games = new.games._replace(
            komi=np.full(len(leads), komi, np.float32), result=np.sign(leads - komi).astype(np.int8),
            margin=np.where(np.isinf(leads), np.nan, np.abs(leads - komi)).astype(np.float32),
        )  # fmt: skip
        quits = np.arange(len(leads)) < len(leads) - played_out
        monkeypatch.setattr(finished, "_new_rows", lambda: new._replace(games=games, quits=quits))
        return finished._next_komi() - komi

    assert next_komi([komi, komi + 1, komi - 7]) == 0.0
    assert next_komi([komi + 3, komi + 25, komi - 1, komi + 3.2, komi + 2]) == 1.5
    assert next_komi([komi - 5, komi - 7, komi + 2, komi + 3, komi - 6]) == -2.5
    assert next_komi([komi + 30] * 3) == round(komi + 9.0) / 2 - komi, "no more than the board has"
    # Resigned games do not say by how much: those that could not be resigned do.
    resigned = [komi + np.inf] * 6 + [komi - 2]
    assert next_komi([*resigned, komi - 1, komi + 2, komi + 5], played_out=3) == 1.0
    assert next_komi(resigned) == 0.0
    config = replace(CONFIG, loop=replace(CONFIG.loop, fair_komi=False, first_rows=40))
    assert run(tmp_path, config, turns=1).turn.komi == 2.0


def test_games_are_resigned_below_the_bound_that_was_found(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_module, "resignation_bound", lambda rows: -0.8)
    zero = run(tmp_path, replace(CONFIG, loop=replace(CONFIG.loop, resigns=True, first_rows=40)), turns=1)
    assert zero.turn.resign == pytest.approx(0.1)
    assert zero.play.options(zero.turn, zero.is_random).resign == pytest.approx(0.1)
