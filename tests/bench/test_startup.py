"""The benchmark of starts: figures, the cold cache, an engine that does not answer."""

import sys
from pathlib import Path

import bench.speed.startup
from bench.speed.startup import FIGURES, command, samples, seconds_of
from tests.bench.lines import figures, refusal

ENGINE = [sys.executable, str(Path(__file__).parents[1] / "data" / "gtp_engine.py")]


def test_times_run_from_the_start_of_the_process():
    handshake, genmove = seconds_of(ENGINE)
    assert 0 < handshake < genmove


def test_a_cold_start_has_a_cache_of_its_own(monkeypatch):
    folders = []

    def start(words: list[str], **variables: str) -> list[float]:
        folders.append(variables.get("KEIMA_CACHE"))
        assert folders[-1] is None or not list(Path(folders[-1]).iterdir())
        return [1.0, 2.0]

    monkeypatch.setattr(bench.speed.startup, "seconds_of", start)
    assert samples(ENGINE, "cold", 3) == [[1.0, 2.0]]
    assert not Path(folders[0]).exists()
    # Before warm starts are measured, one makes sure that they are.
    assert samples(ENGINE, "warm", 3) == [[1.0, 2.0]] * 3
    assert folders[1:] == [None] * 4


def test_every_figure_is_one_json_line(monkeypatch):
    found = {"warm": [[0.25, 2.0], [0.5, 3.0], [0.125, 4.0]], "cold": [[0.75, 100.0]]}
    monkeypatch.setattr(bench.speed.startup, "samples", lambda words, state, repeats: found[state])
    lines = figures(command)
    assert list(lines) == FIGURES
    assert [line["value"] for line in lines.values()] == [0.25, 3.0, 0.75, 100.0]
    assert {line["unit"] for line in lines.values()} == {"s"}


def test_the_real_process_from_start_to_first_move():
    options = ["--only", "handshake/warm", "--only", "first_genmove/warm", "--weights", "none", "--size", "9"]
    found = figures(command, *options, "--repeats", "1")
    assert list(found) == ["handshake/warm", "first_genmove/warm"]
    assert 0 < found["handshake/warm"]["value"] < found["first_genmove/warm"]["value"]


def test_an_engine_that_does_not_start_is_one_clear_line():
    said = refusal(command, "--weights", "gone", "--only", "handshake/warm")
    assert "last words: Error: unknown network 'gone'" in said
