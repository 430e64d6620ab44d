"""Matches between two networks by search: ladders and gates of self-play, as numbered work for an executor.

With one visit a network's policy alone draws its moves; of :class:`engine.nets.fakes.UniformNetwork`, bound to sensible
ones, that is a player of random moves. Start at :func:`play_match`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.selfplay.games import GameBatch, Player, batches_for
from engine.selfplay.search_games import fitted
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import CACHE_MIB
from engine.selfplay.searches import new_tuning
from engine.system.executor import Done, Execution, Files, LocalExecutor, Opened

FIRST, SECOND = "first.safetensors", "second.safetensors"
"""What the executor calls the files of the networks"""
WHOLE_GAME = 2.0
"""``sensible`` that holds to a game's end"""


class MatchPlayer(NamedTuple):
    """One of the two."""

    server: InferenceServer
    visits: int
    """of a search; 1 = the policy draws the move"""
    is_sensible: bool = False
    """no suicide, no own eye filled, a pass only where nothing else is left"""


class Outcome(NamedTuple):
    """Games of the first player."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def games(self) -> int:
        """All of them."""
        return sum(self)

    @property
    def points(self) -> float:
        """Won games, a draw as half of one."""
        return self.won + 0.5 * self.drawn


def outcome_of(results: Iterable[int]) -> Outcome:
    """Of 1, 0 or -1 a game: won, drawn or lost by the first player."""
    signs = list(results)
    return Outcome(signs.count(1), signs.count(0), signs.count(-1))


def match_options(options: SearchPlayOptions, seed: int) -> SearchPlayOptions:
    """How games are played that measure: at the mean komi, by results alone, without noise, nothing resigned, early
    moves varied."""
    return replace(
        options, seed=seed, komi_sd=0.0, wide_komi_share=0.0, noise=0.0, policy_temperature=1.0, forced=0.0,
        candidates=0, score_utility=0.0, full_share=0.0, resign=0.0, sensible=0.0, keep_tree=False, early_share=0.0,
        temperature=0.8, final_temperature=0.1,
    )  # fmt: skip


def match_batch(
    players: Sequence[MatchPlayer], options: SearchPlayOptions, slots: int, stopped: threading.Event | None = None
) -> GameBatch:
    """Games of two players, some of them at once; even games have the first one as Black.

    Args:
        options: of :func:`match_options`; the visits are the players'.
        stopped: ends play once it is set; games in play are lost.
    Raises:
        ValueError: a network cannot play so; one line.
    """
    tuning, sides = new_tuning(options.c_puct, options.fpu_reduction), []
    for player in players:
        fitted(player.server, options)
        config = replace(options, sensible=WHOLE_GAME * player.is_sensible).config()
        config = config._replace(visits=player.visits, fast_visits=player.visits)
        sides.append(Player(player.server, config, tuning))
    return GameBatch(sides, options.size, slots, options.set_up, stopped)


class SearchMatchWorker:
    """Plays games of two players. See :class:`engine.system.executor.Worker`."""

    def __init__(self, players: Sequence[MatchPlayer], options: SearchPlayOptions, at_once: int) -> None:
        """Take the players, whose servers the caller closes.

        Args:
            at_once: games of a batch.
        """
        self.threads = batches_for(players[0].server)
        self._players, self._options, self._at_once = players, options, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`: 1, 0 or -1 a game, won, drawn or lost by the first player.

        Raises:
            RuntimeError: a network failed.
        """
        for finished in match_batch(self._players, self._options, self._at_once, stopped).play(numbers):
            found = finished.games.number
            yield found.tolist(), (np.where(found % 2 == 0, 1, -1).astype(np.int8) * finished.games.result).tobytes()


@dataclass(frozen=True)
class SearchMatchJob:
    """A match of two networks, wherever it is played. See :class:`engine.system.executor.Job`."""

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


def match_here(players: Sequence[MatchPlayer], options: SearchPlayOptions, games: int, at_once: int) -> Execution:
    """A match by threads of this process, its games spread evenly over the batches that keep a server busy.

    Args:
        options: of :func:`match_options`.
        at_once: the most games of a batch.
    """
    slots = max(1, min(at_once, -(-games // batches_for(players[0].server))))
    return Execution(LocalExecutor(), Opened(SearchMatchWorker(players, options, slots)), {})


def match_away(paths: tuple[Path, Path | None]) -> dict[str, Path]:
    """The files of a :class:`SearchMatchJob`.

    Args:
        paths: of the networks; no second one = random moves.
    """
    return {name: path for name, path in zip((FIRST, SECOND), paths, strict=True) if path}


def play_match(
    execution: Execution,
    games: int,
    stopped: threading.Event,
    report: Callable[[], None] = lambda: None,
    every_s: float = 0.5,
) -> Outcome | None:
    """Let two players play some games, half of them with each colour; None where it was stopped before their end.

    Args:
        execution: who plays: :func:`match_here`, or an executor with a :class:`SearchMatchJob`.
        report: called now and then in the caller's thread.
    Raises:
        RuntimeError: a network failed.
    """
    found: dict[int, int] = {}

    def take(done: Done) -> None:
        numbers, results = done
        found.update(zip(numbers, np.frombuffer(results, np.int8).tolist(), strict=True))

    execution.executor.work(execution.job, execution.files, iter(range(games)), take, stopped, report, every_s)
    return outcome_of(found.values()) if len(found) == games else None
