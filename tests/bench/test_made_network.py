"""The fake network with configurable faults, and the two parts of the campaign that use it."""

import numpy as np
import pytest

from bench.match.gtp_client import ROOT, EngineRefused, GtpClient
from bench.reliability import clocked, made_network
from bench.reliability.made_network import MadeNetwork, command
from engine.features.encoder import KEIMA
from engine.play.clock import charge


def asked(network):
    """What it says of an empty board."""
    return network.evaluate(np.zeros((1, KEIMA.planes, 9, 9), np.float32), np.zeros((1, KEIMA.globals), np.float32))


@pytest.mark.parametrize(
    ("fault", "error"), [("error", RuntimeError), ("memory", RuntimeError), ("nan", None), ("hang", None)]
)
def test_a_fault_begins_and_ends_when_it_is_told_to(monkeypatch, fault, error):
    slept = []
    monkeypatch.setattr(made_network.time, "sleep", slept.append)
    network = MadeNetwork(0.0, fault, good=1, bad=1)
    assert np.isfinite(asked(network).value).all() and made_network.HANG_S not in slept
    if error is None:
        assert np.isnan(asked(network).value).all()
        assert (made_network.HANG_S in slept) == (fault == "hang")
    else:
        with pytest.raises(error):
            asked(network)
    assert np.isfinite(asked(network).value).all()


def test_a_position_costs_what_was_ordered(monkeypatch):
    slept = []
    monkeypatch.setattr(made_network.time, "sleep", slept.append)
    network = MadeNetwork(0.05, "none", good=0, bad=0)
    network.evaluate(np.zeros((4, KEIMA.planes, 9, 9), np.float32), np.zeros((4, KEIMA.globals), np.float32))
    assert slept == [0.2]


def test_the_command_orders_it():
    words = command({"seconds_each": 0.05, "fault": "hang"}, "--size", "9")
    assert words[1:] == [
        "-P", "-m", "bench.reliability.made_network", "--seconds-each", "0.05", "--fault", "hang", "--", "--size", "9",
    ]  # fmt: skip


def test_the_engine_plays_with_it():
    words = command({"fault": "error"}, "--config", "none", "--size", "5", "--visits", "1", "--threads", "1")
    with GtpClient(words, ROOT) as client, pytest.raises(EngineRefused, match="network hash: failed on purpose"):
        client.ask("genmove b", 600.0)


def test_the_clocks_are_eight_and_each_can_be_told():
    assert len(clocked.KINDS) == 8
    for kind in clocked.KINDS.values():
        clock = clocked.PlayerClock(kind.settings, kind.dialect)
        assert clock.settings_command() and clock.left_words()
        assert charge(kind.settings, clock.left, 0.1)[1] == 0.0
