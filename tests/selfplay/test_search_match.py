"""Games between two networks by search: each move by the network whose turn it is, and who wins."""

import threading
from contextlib import ExitStack
from dataclasses import replace

import pytest

from engine.features.encoder import KEIMA
from engine.go.geometry import PASS
from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import new_spec
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.nets.files.checkpoint import save_network
from engine.nets.model import new_model
from engine.selfplay.games import GameBatch, Player
from engine.selfplay.search_games import SelfPlay
from engine.selfplay.search_match import (
    FIRST,
    MatchPlayer,
    SearchMatchJob,
    match_batch,
    match_here,
    match_options,
    play_match,
)
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import new_tuning
from engine.system.executor import Execution


def played(players, options, games, at_once, stopped=None):
    return play_match(match_here(players, options, games, at_once), games, stopped or threading.Event())


OPTIONS = match_options(SearchPlayOptions(size=3, komi=2.5), 5)


@pytest.fixture
def servers():
    with (
        InferenceServer(HashNetwork("keima-1"), threads=1) as one,
        InferenceServer(HashNetwork("keima-1", seed=2), threads=1) as other,
    ):
        yield one, other


def test_a_network_against_itself_plays_the_games_of_self_play(servers):
    """With a tree of its own for every move, a network plays what it would alone."""
    matched = match_batch([MatchPlayer(servers[0], 6)] * 2, OPTIONS, 4)
    alone = SelfPlay(servers[0], replace(OPTIONS, visits=6, fast_visits=6), 4).batch
    found = [
        {
            number: finished.games.moves[start:end].tolist()
            for finished in batch.play(iter(range(12)))
            for number, start, end in zip(
                finished.games.number.tolist(), finished.games.offsets[:-1], finished.games.offsets[1:], strict=True
            )
        }
        for batch in (matched, alone)
    ]
    assert found[0] == found[1] and found[0].keys() == set(range(12))


class Counting(HashNetwork):
    """Notes the stones on the boards that it sees."""

    def __init__(self, seed):
        super().__init__("keima-1", seed=seed)
        self.asked = []

    def evaluate(self, planes, globals_):
        self.asked += planes[:, 1:3].sum(axis=(1, 2, 3)).tolist()
        return super().evaluate(planes, globals_)


def test_each_network_is_asked_about_its_own_moves_alone():
    """With one visit a move is one evaluation: of a game's positions one network sees the even ones, one the odd."""
    networks = Counting(1), Counting(2)
    with (
        InferenceServer(networks[0], threads=1) as one,
        InferenceServer(networks[1], threads=1) as other,
    ):
        options = replace(match_options(SearchPlayOptions(size=5, komi=2.5), 5), limit=4)
        outcome = played([MatchPlayer(one, 1), MatchPlayer(other, 1)], options, 1, 1)
    assert outcome.games == 1
    assert (networks[0].asked, networks[1].asked) == ([0.0, 2.0], [1.0, 3.0])


def test_a_policy_without_a_search_plays_against_a_search(servers):
    """Its positions alone are shown under symmetries that belong to the game."""
    policy = Player(servers[0], OPTIONS.config()._replace(visits=0, fast_visits=0))
    search = Player(servers[1], OPTIONS.config()._replace(visits=6, fast_visits=6), new_tuning(1.1, 0.2))
    shown = {0: 0, 1: 0}
    for finished in GameBatch([policy, search], 3, 4, OPTIONS.set_up).play(iter(range(12))):
        for k, number in enumerate(finished.games.number.tolist()):
            symmetries = finished.symmetries[finished.games.offsets[k] : finished.games.offsets[k + 1]]
            for player in (0, 1):
                shown[player] += int(symmetries[(number + player) % 2 :: 2].sum())
    assert shown[0] > 0 == shown[1]


def test_search_beats_random_moves_with_either_colour():
    options = match_options(SearchPlayOptions(size=4, komi=0.5), 1)
    with InferenceServer(UniformNetwork("keima-1"), threads=1) as server:
        players = MatchPlayer(server, 60), MatchPlayer(server, 1)
        assert played(players, options, 40, 16).won > 24
        assert played(players[::-1], options, 40, 16).lost > 24


def test_a_sensible_player_of_random_moves_does_not_pass_while_there_is_another_move():
    options = match_options(SearchPlayOptions(size=4, komi=0.5, limit=200), 1)
    with InferenceServer(UniformNetwork("keima-1"), threads=1) as server:
        passes = {}
        for is_sensible in (False, True):
            # All games are in play at once, so that each has a slot of its own.
            batch = match_batch([MatchPlayer(server, 1, is_sensible)] * 2, options, 20)
            assert sum(len(finished.slots) for finished in batch.play(iter(range(20)))) == 20
            passes[is_sensible] = int((batch.table.boards.moves[:, :8] == PASS).sum())
    assert passes[False] > 3 and passes[True] == 0


def test_a_stopped_match_has_no_outcome(servers):
    stopped = threading.Event()
    stopped.set()
    assert played([MatchPlayer(server, 4) for server in servers], OPTIONS, 4, 2, stopped) is None


class Twice:
    """An executor that delivers every game twice, as Ray does where an actor dies at the wrong moment."""

    def work(self, job, files, numbers, take, stopped, report, every_s):
        with ExitStack() as stack:
            for done in job.open(stack, files, 1).do(numbers, stopped):
                take(done)
                take(done)


def test_a_game_that_comes_twice_counts_once(tmp_path):
    model = new_model("keima-resnet", {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 1, "channels": 8})
    save_network(tmp_path / "made.safetensors", model, new_spec(model, "made", sizes=(3, 3)), {})
    job = SearchMatchJob(OPTIONS, (2, 1), "keima-1", 4)
    execution = Execution(Twice(), job, {FIRST: tmp_path / "made.safetensors"})
    assert play_match(execution, 6, threading.Event()).games == 6
