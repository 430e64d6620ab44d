"""Damaged files: reproducible, and faults of readers are found."""

import gc
from random import Random

import numpy as np
import pytest

from bench import process_memory
from bench.reliability import damage
from bench.reliability.campaign import Outcome
from bench.reliability.mutations import GZIP, XZ, ZIP, mutated


@pytest.mark.parametrize("kind", ["keima", "katago", "sgf", "settings", "games", "rows", "patterns", "match"])
def test_damage_follows_from_its_number_and_is_refused_in_one_line(kind, tmp_path):
    sound = damage._original(kind)
    damaged = [mutated(sound, Random(f"{kind} {number}")) for number in range(1, 6)]
    assert damaged == [mutated(sound, Random(f"{kind} {number}")) for number in range(1, 6)]
    assert any(one != sound for one in damaged)
    outcome = Outcome()
    damage.test_files(kind, 1, 5, tmp_path, outcome)
    assert outcome.faults == []


def test_damage_reaches_what_is_compressed():
    for kind, start in (("katago", GZIP), ("games", XZ), ("patterns", ZIP)):
        damaged = [mutated(damage._original(kind), Random(number)) for number in range(12)]
        assert sum(one.startswith(start) for one in damaged) > 6


@pytest.mark.parametrize(
    ("error", "words"),
    [(ValueError("two\nlines"), "refused with"), (IndexError("oops"), "IndexError: oops"), (OSError("full"), "")],
)
def test_a_reader_that_breaks_down_is_a_fault(error, words):
    def read():
        raise error

    assert words in damage._one_line(read) and bool(words) == bool(damage._one_line(read))


@pytest.mark.skipif(not process_memory.STATUS.exists(), reason="only Linux forgets a process's peak")
def test_memory_of_a_file_is_seen_though_there_was_more_before():
    # What earlier tests left is not to be freed in between.
    gc.collect()
    taken = np.ones(200 << 20, np.uint8)
    del taken
    memory = process_memory.PeakMemory()
    assert memory.grown_mib() < 8.0
    taken = np.ones(64 << 20, np.uint8)
    assert 56.0 < memory.grown_mib() < 100.0 and taken[0]
