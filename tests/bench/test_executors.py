"""The benchmark of Ray actors, and the campaign's part that kills them."""

import signal

import pytest

from bench.reliability import actors
from bench.reliability.campaign import Outcome
from bench.speed.executors import AT_ONCE, SleepingJob, _rate, command
from engine.system.executor import LocalExecutor
from tests.bench.lines import figures


def test_threads_of_this_process_have_a_speed_too():
    assert _rate(LocalExecutor(), SleepingJob(2, 0.0), 2) > 0


@pytest.mark.slow
def test_every_number_of_actors_has_its_figures():
    pytest.importorskip("ray")
    options = ["--actors", "2", "--games", "2", "--batch-ms", "1", "--seconds", "0.1", "--repeats", "1"]
    found = figures(command, *options)
    assert list(found) == ["here", "1", "2", "2/times"]
    assert all(line["value"] > 0 for line in found.values())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
@pytest.mark.parametrize("lost", [False, True])
def test_a_lost_game_is_noticed_and_killed_actors_lose_none(lost, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(actors, "GAMES_PER_KILL", 4 * AT_ONCE)
    if lost:
        whole = actors.played
        monkeypatch.setattr(actors, "played", lambda out: whole(out)[out.name == "killed" :])
    outcome = Outcome()
    actors.test_kills(2, 1, tmp_path, outcome)
    assert outcome.faults == (["1 of 16 games are lost"] if lost else [])
