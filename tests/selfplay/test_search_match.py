"""Games between two networks by search: each move by the network whose turn it is, and who wins."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.selfplay.search_games import SearchGroup
from engine.selfplay.search_match import MatchGroup, MatchPlayer, Outcome, match_options, play_match
from engine.selfplay.search_options import SearchPlayOptions

OPTIONS = match_options(SearchPlayOptions(size=3, komi=2.5), 5)


@pytest.fixture
def servers():
    with (
        InferenceServer(HashNetwork("keima-1"), cache_mib=1, threads=1) as one,
        InferenceServer(HashNetwork("keima-1", seed=2), cache_mib=1, threads=1) as other,
    ):
        yield one, other


def test_a_network_against_itself_plays_the_games_of_self_play(servers):
    """Handed over to itself, a network plays what it would alone."""
    players = [MatchPlayer(servers[0], 6)] * 2
    group = MatchGroup(players, OPTIONS, 4)
    outcome = sum(group.play(iter(range(12))), Outcome())
    alone = SearchGroup(servers[0], replace(OPTIONS, visits=6, fast_visits=6), 4)
    first = 0
    for rows in alone.play(iter(range(12))):
        sign = np.where(rows.games.number % 2 == 0, 1, -1)
        first += int((sign * rows.games.result > 0).sum())
    assert outcome == (first, 0, 12 - first)


class Counting(HashNetwork):
    """Notes the stones on the boards that it sees."""

    def __init__(self, seed):
        super().__init__("keima-1", seed=seed)
        self.asked = []

    def evaluate(self, planes, globals_):
        self.asked += planes[:, 1:3].sum(dim=(1, 2, 3)).tolist()
        return super().evaluate(planes, globals_)


def test_each_network_is_asked_about_its_own_moves_alone():
    """With one visit a move is one evaluation: of a game's positions one network sees the even ones, one the odd."""
    networks = Counting(1), Counting(2)
    with (
        InferenceServer(networks[0], cache_mib=1, threads=1) as one,
        InferenceServer(networks[1], cache_mib=1, threads=1) as other,
    ):
        options = replace(match_options(SearchPlayOptions(size=5, komi=2.5), 5), limit=4)
        outcome = play_match([MatchPlayer(one, 1), MatchPlayer(other, 1)], options, 1, 1, threading.Event())
    assert outcome.games == 1
    assert (networks[0].asked, networks[1].asked) == ([0.0, 2.0], [1.0, 3.0])


def test_search_beats_random_moves_with_either_colour():
    with InferenceServer(UniformNetwork("keima-1"), cache_mib=1, threads=1) as server:
        players = MatchPlayer(server, 60), MatchPlayer(server, 1)
        outcome = play_match(players, match_options(SearchPlayOptions(size=4, komi=0.5), 1), 40, 16, threading.Event())
        assert outcome.won > 24
        swapped = play_match(players[::-1], match_options(SearchPlayOptions(size=4, komi=0.5), 1), 40, 16,
                             threading.Event())  # fmt: skip
        assert swapped.lost > 24


def test_a_stopped_match_has_no_outcome(servers):
    stopped = threading.Event()
    stopped.set()
    assert play_match([MatchPlayer(server, 4) for server in servers], OPTIONS, 4, 2, stopped) is None
