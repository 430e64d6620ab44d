"""Part "memory" of the campaign: samples, and the definition of growth."""

import os
import sys
from functools import partial

import pytest

from bench.process_memory import own_mib
from bench.reliability import memory
from bench.reliability.campaign import Outcome
from bench.reliability.memory import growth
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import SearchPlay


def test_growth_is_that_of_the_last_tenth_over_the_first():
    assert growth([100.0] * 50) == 0.0
    assert growth([100.0 + 0.1 * n for n in range(100)]) == pytest.approx(0.0896, abs=1e-3)
    assert growth([100.0] * 95 + [500.0] + [100.0] * 4) == 0.0  # one peak is no growth


@pytest.mark.parametrize(
    ("samples", "figures", "words"),
    [
        ([100.0] * 99 + [101.0], (0.0, 101.0), ""),
        ([100.0] * 20 + [103.0] * 180, (3.0, 103.0), "memory grew by 3.0%, expected at most 2%; MiB: 100.0, "),
    ],
)
def test_growth_beyond_the_tolerance_is_a_fault_that_shows_samples(tmp_path, monkeypatch, samples, figures, words):
    monkeypatch.setitem(memory.SAMPLES, "games", lambda *told: samples)
    outcome = Outcome()
    memory.test_growth("games", {"quick": False, "weights": "none"}, tmp_path, outcome)
    assert list(outcome.figures) == ["growth over games, %", "most during games, MiB"]
    assert tuple(outcome.figures.values()) == pytest.approx(figures)
    assert " ".join(outcome.faults).startswith(words) and bool(words) == bool(outcome.faults)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_that_a_process_takes_is_seen():
    before = own_mib(os.getpid())
    taken = bytearray(os.urandom(1 << 20) * 64)
    assert 60 < own_mib(os.getpid()) - before < 80 and taken


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_self_play_is_measured_and_old_shards_go(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "KEPT_SHARDS", 0)
    monkeypatch.setattr(memory, "SearchPlay", partial(SearchPlay, rows_per_shard=50))
    scale = memory.QUICK._replace(warm_up_self_play=40, self_play=80)
    assert max(memory.SAMPLES["self-play"](scale, "none", tmp_path)) > 50
    assert {path.name for path in (tmp_path / "rows").iterdir()} == {"rows.json", "journal.bin"}
    assert SearchPlay(tmp_path / "rows", SearchPlayOptions(size=5)).games == 120
