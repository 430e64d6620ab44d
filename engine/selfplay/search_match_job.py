"""Matches by search as numbered work for a crew: what travels to where games are played, and what comes back."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.selfplay.many_games import groups_for
from engine.selfplay.search_match import MatchGroup, MatchPlayer, Outcome, outcome_of
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import CACHE_MIB
from engine.system.crew import Away, Done, Files, Here, Opened

FIRST, SECOND = "first.safetensors", "second.safetensors"
"""What the crew calls the files of the networks"""


class SearchMatchWorker:
    """Plays games of two players. See :class:`engine.system.crew.Worker`."""

    def __init__(self, players: Sequence[MatchPlayer], options: SearchPlayOptions, at_once: int) -> None:
        """Take the players, whose servers the caller closes.

        Args:
            at_once: games of a group.
        """
        self.threads = groups_for(players[0].server)
        self._players, self._options, self._at_once = players, options, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.crew.Worker.do`: 1, 0 or -1 a game, won, drawn or lost by the first player.

        Raises:
            RuntimeError: a network failed.
        """
        for found, results in MatchGroup(self._players, self._options, self._at_once, stopped).play(numbers):
            yield found.tolist(), results.tobytes()


@dataclass(frozen=True)
class SearchMatchJob:
    """A match of two networks, wherever it is played. See :class:`engine.system.crew.Job`."""

    options: SearchPlayOptions
    visits: tuple[int, int]
    encoder: str
    """of random moves, which are played where there is no second file"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> SearchMatchWorker:
        """A worker with networks of its own, on the GPU of this process if it has one."""

        def server(network: Network) -> InferenceServer:
            return stack.enter_context(InferenceServer(network, CACHE_MIB, threads=cores, max_batch=self.at_once))

        names = (FIRST, SECOND)
        servers = [
            server(load_network(files[name], "auto", sample_inputs) if name in files else UniformNetwork(self.encoder))
            for name in names
        ]
        players = [
            MatchPlayer(one, visits, name not in files)
            for one, visits, name in zip(servers, self.visits, names, strict=True)
        ]
        return SearchMatchWorker(players, self.options, self.at_once)


def match_here(players: Sequence[MatchPlayer], options: SearchPlayOptions, games: int, at_once: int) -> Away:
    """A match by threads of this process, its games spread evenly over the groups that keep a server busy.

    Args:
        options: of :func:`engine.selfplay.search_match.match_options`.
        at_once: the most games of a group.
    """
    groups = groups_for(players[0].server)
    seats = max(1, min(at_once, -(-games // groups)))
    return Away(Here(), Opened(SearchMatchWorker(players, options, seats)), {})


def match_away(paths: tuple[Path, Path | None]) -> dict[str, Path]:
    """The files of a :class:`SearchMatchJob`.

    Args:
        paths: of the networks; no second one = random moves.
    """
    return {name: path for name, path in zip((FIRST, SECOND), paths, strict=True) if path}


def play_match(
    away: Away, games: int, stopped: threading.Event, report: Callable[[], None] = lambda: None, every_s: float = 0.5
) -> Outcome | None:
    """Let two players play some games, half of them with each colour; None where it was stopped before their end.

    Args:
        away: who plays: :func:`match_here`, or a crew with a :class:`SearchMatchJob`.
        report: called now and then in the caller's thread.
    Raises:
        RuntimeError: a network failed.
    """
    found: dict[int, int] = {}

    def take(done: Done) -> None:
        numbers, results = done
        found.update(zip(numbers, np.frombuffer(results, np.int8).tolist(), strict=True))

    away.crew.work(away.job, away.files, iter(range(games)), take, stopped, report, every_s)
    return outcome_of(found.values()) if len(found) == games else None
