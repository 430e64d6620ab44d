"""Kills: that lost work, another end and work that cannot go on are noticed."""

import signal
import sys

import pytest

from bench.reliability import kills
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
    if done == 2 and sys.argv[2] == "first":
        signal.pause()
"""


def counting(goes_on=True):
    """Counts to three; the first run waits for its end at two."""
    commands = []

    def kept(out):
        path = out / "count"
        return len(path.read_text()) if path.exists() else 0

    def command(out):
        commands.append(out)
        script = COUNT if goes_on or len(commands) == 1 else "import sys; sys.exit('no')"
        return [sys.executable, "-c", script, str(out), "first" if len(commands) == 1 else "again"]

    return Work(command, kept, lambda out, text: kept(out))


@pytest.mark.parametrize(
    ("expected", "goes_on", "faults"), [(3, True, []), (4, True, ["3, expected 4"]), (3, False, ["status 1: no"])]
)
def test_work_that_was_killed_goes_on_to_the_same_end(tmp_path, monkeypatch, expected, goes_on, faults):
    monkeypatch.setitem(kills.WORKS, "count", counting(goes_on))
    monkeypatch.setattr(kills, "_undisturbed", lambda name: (expected, 0.5))
    found = kills._kill("count", 1, tmp_path).faults
    assert len(found) == len(faults) and all(words in fault for words, fault in zip(faults, found, strict=True))


def test_a_fault_shows_what_differs_of_much_that_is_alike():
    """What is shown is cut, and began with what was alike."""
    expected = [(number, "moves" * 100) for number in range(80)]
    result = [*expected[:41], (41, "others"), *expected[42:], (79, "others")]
    words = kills._difference(result, expected)
    assert words.startswith("2 of 81 differ from 1 of 80: [(41, 'others'), (79, 'others')], expected [(41, 'moves")
    assert len(words) < 700
