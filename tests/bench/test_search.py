"""``python -m bench.speed.search``: every figure once, with searches of a few visits."""

import json

import pytest
from click.testing import CliRunner

from bench.speed import search
from bench.speed.search import FIGURES, command


@pytest.fixture
def figures(monkeypatch):
    """All figures of a tiny run, by name."""
    monkeypatch.setattr(search, "NULL_VISITS", 200)
    monkeypatch.setattr(search, "VISITS", 3)
    monkeypatch.setattr(search, "POSITIONS", 2)
    monkeypatch.setattr(search, "ALONE_S", 0.02)
    answer = CliRunner().invoke(command, ["--repeats", "1"])
    assert answer.exit_code == 0, answer.output
    return {line["name"]: line for line in map(json.loads, answer.stdout.splitlines())}


def test_every_figure_is_told(figures):
    alone = [f"{name}/alone" for name in FIGURES if name.startswith(("net6x96", "default"))]
    assert set(figures) == {*FIGURES, *(f"{name}/evaluations" for name in FIGURES), *alone, "node_bytes/19"}
    assert all(figures[name]["unit"] == "visits/s" and figures[name]["value"] > 0 for name in FIGURES)
    assert 500 < figures["node_bytes/19"]["value"] < 1638
