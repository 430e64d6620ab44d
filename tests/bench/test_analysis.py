"""The bench of analyses: its lines, and that a long one does not grow."""

import json
import sys

import pytest
from click.testing import CliRunner

from bench.speed.analysis import command


def figures(*options: str) -> dict[str, float]:
    """What the bench prints."""
    done = CliRunner().invoke(command, ["--weights", "none", "--size", "9", *options])
    assert done.exit_code == 0, done.output
    return {line["name"]: line["value"] for line in map(json.loads, done.stdout.splitlines())}


def test_every_figure_is_one_line():
    found = figures("--repeats", "2", "--updates", "3", "--interval", "0.05")
    assert list(found) == [f"{name}{worst}" for name in ("first", "late", "stop", "next") for worst in ("", "/worst")]
    for name in ("first", "late", "stop", "next"):
        assert 0 <= found[name] <= found[f"{name}/worst"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_minutes_of_analysis_leave_memory_flat():
    assert figures("--repeats", "1", "--minutes", "10")["growth"] < 8.0
