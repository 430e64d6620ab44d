"""Kills: lost data, other results and failed resumption are reported as faults."""

import signal
import sys

import numpy as np
import pytest

from bench.reliability import kills
from bench.reliability.campaign import Outcome
from bench.reliability.kills import Work

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")

COUNT = """
import pathlib, signal, sys
path = pathlib.Path(sys.argv[1]) / "count"
path.parent.mkdir(exist_ok=True)
done = len(path.read_text()) if path.exists() else 0
while done < 3:
    with path.open("a") as file:
        file.write("x")
    done += 1
    if done == 2:
        signal.pause()
"""
WHOLE = COUNT.replace("signal.pause()", "pass")


@pytest.mark.parametrize(
    ("expected", "then", "faults"),
    [(3, WHOLE, []), (4, WHOLE, ["3, expected 4"]), (3, "import sys; sys.exit('no')", ["status 1: no"])],
)
def test_work_that_was_killed_resumes_to_the_same_end(tmp_path, monkeypatch, expected, then, faults):
    """Counts to three; the first run waits for its end at two."""
    script, finish = tmp_path / "count.py", kills.finish
    script.write_text(COUNT)

    def kept(out):
        path = out / "count"
        return len(path.read_text()) if path.exists() else 0

    def resume(*told):
        script.write_text(then)
        return finish(*told)

    monkeypatch.setitem(kills.PROGRAMS, "count", (sys.executable, str(script)))
    monkeypatch.setattr(kills, "finish", resume)
    work, outcome = Work("count {out}", kept, lambda out, text: kept(out)), Outcome()
    kills.kill(work, {}, tmp_path, 0.5, 1.0, expected, outcome)
    assert len(outcome.faults) == len(faults)
    assert all(words in fault for words, fault in zip(faults, outcome.faults, strict=True))


def test_a_fault_shows_what_differs_of_much_that_is_alike():
    """What is shown is cut, and began with what was alike."""
    expected = [(number, "moves" * 100) for number in range(80)]
    result = [*expected[:41], (41, "others"), *expected[42:], (79, "others")]
    words = kills.difference(result, expected)
    assert words.startswith("2 of 81 differ from 1 of 80: [(41, 'others'), (79, 'others')], expected [(41, 'moves")
    assert len(words) < 700


def test_weights_are_alike_up_to_rounding():
    weights = {"a": np.ones((2, 3), np.float32), "b": np.zeros(4, np.float32)}
    nearly = {name: values + np.float32(1e-5) for name, values in weights.items()}
    assert kills._are_alike(nearly, weights)
    assert not kills._are_alike(nearly | {"b": nearly["b"] + 0.1}, weights)
