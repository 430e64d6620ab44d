"""A group's positions are one batch of its network, however many they are: ``--at-once`` says what is computed."""

from contextlib import ExitStack

import pytest
import torch
from click.testing import CliRunner

import gtp.cli.bulk
from engine.nets.fakes import HashNetwork
from engine.selfplay.bulk import BulkJob
from engine.selfplay.label_job import LabelJob, LabelOptions
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.search_games import Origin
from engine.selfplay.search_match import FIRST, SearchMatchJob
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import NETWORK_FILE, SearchJob
from engine.zero.networks import ZeroNetworks
from gtp.cli import main
from tests.selfplay.runs import distribution

AT_ONCE = 300
"""More than a server's batches have where nothing is said"""
DISTRIBUTION = distribution(7.0)


class Counted(HashNetwork):
    """Keeps the sizes of its batches."""

    def __init__(self):
        super().__init__("keima-1")
        self.batches = []

    def evaluate(self, planes, globals_):
        self.batches.append(len(planes))
        return super().evaluate(planes, globals_)


def test_the_command_asks_for_as_many_positions_at_once_as_it_was_told(tmp_path, monkeypatch, tiny_network):
    network = Counted()
    monkeypatch.setattr(gtp.cli.bulk, "load_network", lambda *_: network)
    words = ["--out", str(tmp_path / "out"), "--size", "5", "--games", "1000", "--limit", "2", "--threads", "1"]
    done = CliRunner().invoke(main, ["data", "play", str(tiny_network), *words, "--at-once", str(AT_ONCE)])
    assert done.exit_code == 0, done.output
    assert max(network.batches) == AT_ONCE


@pytest.mark.parametrize(
    ("job", "file"),
    [
        (BulkJob(Plan(BulkOptions(DISTRIBUTION)), (("network",),), AT_ONCE), "network"),
        (SearchJob(SearchPlayOptions(), Origin(0, 0), AT_ONCE), NETWORK_FILE),
        (SearchMatchJob(SearchPlayOptions(), (1, 1), "keima-1", AT_ONCE), FIRST),
        (LabelJob(LabelOptions((), ((9, 1.0),), DISTRIBUTION), ("network",), (), {}, AT_ONCE), "network"),
    ],
)
def test_so_do_those_who_play_elsewhere(tiny_network, job, file):
    with ExitStack() as stack:
        worker = job.open(stack, {file: tiny_network}, 1)
        servers = [
            *getattr(worker, "_servers", ()),
            *(player.server for player in getattr(worker, "_players", ())),
            *([worker._server] if hasattr(worker, "_server") else ()),
            *([worker.teacher.server] if hasattr(worker, "teacher") else ()),
        ]
        assert servers and {server.max_batch for server in servers} == {AT_ONCE}


def test_so_does_the_loop_of_alphago_zero(tmp_path, tiny_network):
    with ZeroNetworks(tmp_path, torch.device("cpu"), 1, None, AT_ONCE).serve(tiny_network) as server:
        assert server.max_batch == AT_ONCE
