"""The benchmark of analyses: its figures, and constant memory over a long analysis."""

import sys

import pytest

from bench.speed.analysis import command
from tests.bench.lines import figures

ROLLOUTS_9X9 = ("--weights", "none", "--size", "9")


def test_every_figure_is_one_line():
    lines = figures(command, *ROLLOUTS_9X9, "--repeats", "2", "--updates", "3", "--interval", "0.05")
    found = {name: line["value"] for name, line in lines.items()}
    assert list(found) == [f"{name}{worst}" for name in ("first", "late", "stop", "next") for worst in ("", "/worst")]
    for name in ("first", "late", "stop", "next"):
        assert 0 <= found[name] <= found[f"{name}/worst"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_minutes_of_analysis_leave_memory_flat():
    assert figures(command, *ROLLOUTS_9X9, "--repeats", "1", "--minutes", "10")["growth"]["value"] < 8.0
