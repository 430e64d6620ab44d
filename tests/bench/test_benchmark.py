"""keima benchmark: settings tried, estimate of Elo, and the command with short times."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.speed import benchmark
from bench.speed.benchmark import (
    CPU_BATCHES,
    GPU_BATCHES,
    Measured,
    Searched,
    Setting,
    as_options,
    best_of,
    command,
    counts,
    measure,
    settings_to_try,
)
from engine.config import SearchOptions
from engine.config.declaration import core_count
from engine.features.encoder import KEY, ZERO
from engine.nets.fakes import SerialNetwork, UniformNetwork
from engine.play.factory import Parts, load_parts
from engine.search.worker import GPU_LEAVES
from gtp.cli.terminal import INTERRUPTED

ROOT = Path(__file__).parents[2]
TINY = ["--weights", "none", "--size", "5", "--seconds", "0.05", "--threads", "1", "--batch", "4"]


def parts_of(network, **options) -> Parts:
    return Parts(SearchOptions(memory=64, **options), [network] if network else [], None, KEY, None)


def run(*options: str, config: str = "none"):
    return CliRunner().invoke(command, ["--config", config, *TINY, *options])


def test_of_a_few_cores_all_numbers_are_tried_and_of_many_the_powers_of_two():
    assert [counts(most) for most in (1, 2, 4, 6, 8)] == [[1], [1, 2], [1, 2, 3, 4], [1, 2, 4, 6], [1, 2, 4, 8]]


def test_what_is_tried_suits_the_device():
    cores = core_count()
    on_cpu = settings_to_try(parts_of(UniformNetwork(KEY.name)), 2)
    assert on_cpu[0] == Setting(cores, 1, 8)
    assert set(on_cpu[1:]) == {Setting(evaluators, 1, batch) for evaluators in (1, 2) for batch in CPU_BATCHES} - {
        on_cpu[0]
    }
    on_gpu = settings_to_try(parts_of(SerialNetwork(KEY.name), threads=3), 2)
    assert on_gpu[0] == Setting(0, 3, 64)
    assert set(on_gpu[1:]) == {Setting(0, threads, batch) for threads in (1, 2) for batch in GPU_BATCHES}
    alone = settings_to_try(parts_of(None), 2, threads=(5,), batches=(1, 2))
    assert alone == [Setting(0, cores, 8), Setting(0, 5, 1), Setting(0, 5, 2)]


def measured(*rates: float, in_flight: float = 2.0) -> Measured:
    return Measured(Searched(round(rate * 10), round(rate * 10), 10.0, in_flight) for rate in rates)


def test_elo_grows_by_250_with_a_doubling_and_falls_with_leaves_in_flight():
    """At 800 visits a leaf more costs 7, at 5000 about 2, as KataGo's benchmark says."""
    for visits, cost in ((800, 7.0), (5000, 2.3)):
        one, other = Searched(visits, 0, 1.0, 4), Searched(visits, 0, 1.0, 5)
        assert one.elo(1.0) - other.elo(1.0) == pytest.approx(cost, abs=0.1)
        # The same number of visits, in twice the time.
        assert one.elo(1.0) - Searched(visits, 0, 2.0, 4).elo(2.0) == pytest.approx(250)


def test_gains_are_of_the_same_positions_and_chance_is_told():
    """A position that is twice as slow is so for both settings."""
    base, better = measured(100, 50, 100), measured(110, 55, 110)
    gain = better.gain(base, 3.0)
    assert gain.elo == pytest.approx(35, abs=1) and gain.margin < 2
    assert measured(130, 55, 90).gain(base, 3.0).margin > 50
    assert measured(110).gain(base, 3.0).margin == math.inf
    assert better.per_second("visits") == pytest.approx(275 / 3)


def test_the_best_is_recommended_unless_it_is_hardly_or_not_surely_better():
    present, close, better, lucky = (Setting(1, 1, batch) for batch in (4, 8, 16, 32))
    found = {present: measured(100, 101, 100), close: measured(102, 103, 102)}
    assert best_of(found, present, 3.0) == present
    assert best_of(found | {better: measured(110, 111, 110)}, present, 3.0) == better
    assert best_of(found | {lucky: measured(190, 80, 100)}, present, 3.0) == present
    assert best_of({present: measured(100), better: measured(200)}, present, 3.0) == present


def test_what_the_machine_would_choose_by_itself_is_written_as_zero():
    cores = core_count()
    on_cpu, on_gpu = parts_of(UniformNetwork(KEY.name), threads=9), parts_of(SerialNetwork(KEY.name))
    assert as_options(Setting(cores, 1, 16), on_cpu) == {"evaluators": 0, "threads": 0, "batch": 16}
    assert as_options(Setting(cores + 1, 1, 8), on_cpu) == {"evaluators": cores + 1, "threads": 0, "batch": 0}
    # Zero evaluators would mean as many as there are search threads.
    assert as_options(Setting(cores, 9, 8), on_cpu) == {"evaluators": cores, "threads": 9, "batch": 0}
    assert as_options(Setting(0, 99, 32), on_gpu) == {"threads": 99, "batch": 32}


@pytest.mark.parametrize("network", [UniformNetwork(ZERO.name), SerialNetwork(ZERO.name, batch_s=0.001)])
def test_everything_is_measured_on_every_position(network):
    parts = parts_of(network)._replace(encoder=ZERO)
    wanted, found, seen = [Setting(1, 1, 4), Setting(2, 1, 4), Setting(2, 2, 8)], {}, []
    for setting in measure(parts, wanted, 5, 0.3, found):
        seen.append(setting)
    assert seen == wanted * benchmark.POSITIONS and set(found) == set(wanted)
    for setting, one in found.items():
        most_in_flight = max(GPU_LEAVES, setting.threads * setting.batch * 4)
        assert len(one) == benchmark.POSITIONS and 0 < one.in_flight() <= most_in_flight
        for searched in one:
            # What two threads evaluate at the same time, the root at the start, is one visit.
            assert 0 < searched.evaluations <= searched.visits + most_in_flight


def test_a_network_is_loaded_once_and_searched(tmp_path):
    options = ["--weights", "default", "--device", "cpu", "--size", "7", "--evaluators", "1", "--seconds", "0.2"]
    answer = run(*options, "--write", config=str(make(tmp_path, "threads = 1\nbatch = 4\n")))
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0].split() == ["evaluators", "threads", "batch", "visits/s", "evals/s", "in", "flight", "Elo"]
    assert lines[1].split()[:3] == ["1", "1", "4"] and lines[1].endswith("+0  now, best")
    assert float(lines[1].split()[4]) > 0
    assert lines[2].startswith("nothing is clearly better than the present settings: evaluators = ")
    assert len(lines) == 3


def make(folder: Path, text: str) -> Path:
    path = folder / "keima.toml"
    path.write_text(text)
    return path


def faked(monkeypatch, rates: dict[int, float]) -> None:
    """Measurements that find a rate for each batch size; 0 = Ctrl-C there."""

    def search(parts, server, position, seconds):
        rate = rates[parts.options.batch]
        if seconds > 0.02 and rate == 0:
            raise KeyboardInterrupt
        return Searched(round(rate), 0, 1.0, 1.0)

    monkeypatch.setattr(benchmark, "_search", search)


def test_the_best_is_written_and_the_rest_of_the_file_stays(tmp_path, monkeypatch):
    faked(monkeypatch, {4: 1e6, 8: 5e5, 16: 2e6})
    path = make(tmp_path, "# mine\nbatch = 8  # small\nlag = 1.0\n")
    answer = run("--seconds", "6", "--batch", "16", "--write", config=str(path))
    assert answer.exit_code == 0, answer.output
    threads = 0 if core_count() == 1 else 1
    assert f"recommended: threads = {threads}, batch = 16\nwritten to {path}\n" in answer.stdout
    assert path.read_text() == f"# mine\nbatch = 16  # small\nlag = 1.0\nthreads = {threads}\n"
    rows = [line.split() for line in answer.stdout.splitlines()[1:4]]
    assert [row[-1] for row in rows if row[1] == "16"] == ["best"]
    assert {row[1]: row[5] for row in rows} == {"4": "+250", "8": "+0", "16": "+500"}


def test_without_a_terminal_nobody_is_asked_and_nothing_written(tmp_path, monkeypatch):
    faked(monkeypatch, {4: 100.0, 8: 50.0})
    path = make(tmp_path, "batch = 8\n")
    answer = run("--seconds", "6", config=str(path))
    assert answer.exit_code == 0 and "recommended: " in answer.stdout
    assert path.read_text() == "batch = 8\n"


def test_interrupted_it_shows_what_it_knows_and_writes_nothing(tmp_path, monkeypatch):
    faked(monkeypatch, {4: 0.0, 8: 50.0})
    path = make(tmp_path, "batch = 8\n")
    answer = run("--seconds", "6", "--write", config=str(path))
    assert answer.exit_code == INTERRUPTED
    assert answer.stdout.splitlines()[1].endswith("now, best") and "recommended" not in answer.stdout
    assert answer.stderr.endswith("interrupted\n") and path.read_text() == "batch = 8\n"


def test_a_network_that_fails_on_the_way_is_one_line_beside_the_table(monkeypatch):
    def search(parts, server, position, seconds):
        if parts.options.batch == 4 and seconds > 0.1:
            raise RuntimeError("network x: out of\nmemory")
        return Searched(10, 0, 1.0, 1.0)

    monkeypatch.setattr(benchmark, "_search", search)
    answer = run("--seconds", "6")
    assert answer.exit_code == 1
    assert answer.stderr.endswith("Error: network x: out of memory\n") and "now" in answer.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="sends the signal of a POSIX terminal")
def test_ctrl_c_ends_the_real_thing(interruptible):
    words = [sys.executable, "-m", "bench.speed.benchmark", *TINY, "--seconds", "900"]
    with subprocess.Popen(words, cwd=ROOT, env={**os.environ, "KEIMA_CONFIG": "none"}, stdout=-1, stderr=-1) as process:
        while not process.stderr.readline().startswith(b"measuring"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == INTERRUPTED
        assert process.stderr.read() == b"interrupted before anything was measured\n"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--size", "26"], 1, "size is 26, expected 2 to 25"),
        (["--weights", "gone"], 1, "unknown network 'gone'"),
        (["--weights", "default", "--size", "5"], 1, "network default plays boards of 7 to 19, not 5"),
        (["--weights", "default", "--device", "abacus"], 1, "unknown device 'abacus'"),
        (["--batch", "0"], 2, "0 is not in the range 1 to 512"),
        (["--seconds", "0"], 2, "0.0 is not in the range"),
        (["--write"], 2, "--write needs a settings file"),
        (["--config", "/nowhere/keima.toml"], 1, "no such file"),
    ],
)
def test_bad_input_is_one_clear_line(options, status, message):
    answer = run(*options)
    assert answer.exit_code == status and answer.stdout == ""
    assert [message in line for line in answer.stderr.splitlines() if line.startswith("Error: ")] == [True]


def test_parts_without_a_network_are_rollouts_and_patterns():
    parts = load_parts(SearchOptions(), None, "cpu")
    assert parts.networks == [] and parts.encoder is None and parts.patterns is not None
