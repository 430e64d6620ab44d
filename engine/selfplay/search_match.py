"""Matches between two networks by search, for the ladder and the gate of self-play, as tasks for an executor.

With one visit, moves are drawn from the policy alone; :class:`engine.nets.fakes.UniformNetwork` restricted to sensible
moves is then a random player. Start at :func:`play_match`.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.nets.on_device import load_network
from engine.selfplay.games import GameBatch, Player, batches_for
from engine.selfplay.search_games import fitted
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import CACHE_MIB
from engine.selfplay.searches import new_tuning
from engine.system.executor import Done, Execution, Files, LocalExecutor, Opened

FIRST, SECOND = "first.safetensors", "second.safetensors"
"""Names of the networks' files for the executor"""
REPORT_S = 0.5
"""Seconds between reports of a match"""
WHOLE_GAME = 2.0
"""Value of the option ``sensible`` that holds to the default move limit, twice the board's points"""


class MatchPlayer(NamedTuple):
    """A player of a match."""

    server: InferenceServer
    visits: int
    """visits of a search; 1 = the move is drawn from the policy"""
    is_sensible: bool = False
    """whether the player commits no suicide, fills no own eye and passes only without another move"""


class Outcome(NamedTuple):
    """Results of a match for its first player, in games."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def games(self) -> int:
        """Number of games of the match."""
        return sum(self)

    @property
    def points(self) -> float:
        """Number of games won, a draw counting half."""
        return self.won + 0.5 * self.drawn


def match_options(options: SearchPlayOptions, seed: int) -> SearchPlayOptions:
    """Self-play options changed for matches: mean komi in all games; PUCT without score utility, noise or resignation;
    temperature 0.8 at first, so that games differ, falling to 0.1."""
    return replace(
        options, seed=seed, komi_sd=0.0, wide_komi_share=0.0, noise=0.0, target_temperature=1.0, forced=0.0,
        candidates=0, score_utility=0.0, full_share=0.0, resign=0.0, sensible=0.0, keep_tree=False, early_share=0.0,
        temperature=0.8, final_temperature=0.1,
    )  # fmt: skip


def match_batch(
    players: Sequence[MatchPlayer], options: SearchPlayOptions, slots: int, stopped: threading.Event | None = None
) -> GameBatch:
    """A batch of match games of two players; the first one has Black in even-numbered games.

    Args:
        options: those of :func:`match_options`; the players' visits replace theirs.
        slots: number of games played at once.
        stopped: play ends once this event is set; unfinished games are lost.
    Raises:
        ValueError: a network does not support the options; one line.
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
        """Prepare play; the caller closes the servers.

        Args:
            at_once: batch size, in games.
        """
        self.threads = batches_for(players[0].server)
        self._players, self._options, self._at_once = players, options, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`; yields an int8 for each game.

        The number is 1 if the first player won, 0 for a draw and -1 if the second player won.

        Raises:
            RuntimeError: a network failed.
        """
        for finished in match_batch(self._players, self._options, self._at_once, stopped).play(numbers):
            found = finished.games.number
            yield found.tolist(), (np.where(found % 2 == 0, 1, -1).astype(np.int8) * finished.games.result).tobytes()


@dataclass(frozen=True)
class SearchMatchJob:
    """Serialisable match of two networks. See :class:`engine.system.executor.Job`."""

    options: SearchPlayOptions
    visits: tuple[int, int]
    encoder: str
    """encoder of the random player, who takes the place of a network whose file is missing"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> SearchMatchWorker:
        """A worker that loads the networks, onto the GPU of this process if it has one."""
        players = []
        for name, visits in zip((FIRST, SECOND), self.visits, strict=True):
            path = files.get(name)
            network = load_network(path, "auto", sample_inputs) if path else UniformNetwork(self.encoder)
            server = InferenceServer(network, CACHE_MIB, threads=cores, max_batch=self.at_once)
            players.append(MatchPlayer(stack.enter_context(server), visits, path is None))
        return SearchMatchWorker(players, self.options, self.at_once)


def match_here(players: Sequence[MatchPlayer], options: SearchPlayOptions, games: int, at_once: int) -> Execution:
    """The execution of a match by threads of this process, with as many batches as keep a server busy, of equal size.

    Args:
        options: those of :func:`match_options`.
        games: number of games of the match.
        at_once: maximum batch size, in games.
    """
    slots = max(1, min(at_once, -(-games // batches_for(players[0].server))))
    return Execution(LocalExecutor(), Opened(SearchMatchWorker(players, options, slots)), {})


def play_match(
    execution: Execution, games: int, stopped: threading.Event, report: Callable[[int], None] = lambda finished: None
) -> Outcome | None:
    """Play a match, half of its games with each colour; None = stopped before the end.

    Args:
        execution: :func:`match_here`, or an executor with a :class:`SearchMatchJob`.
        report: called every :data:`REPORT_S` seconds in the caller's thread with the number of finished games.
    Raises:
        RuntimeError: a network failed.
    """
    found: dict[int, int] = {}

    def take(done: Done) -> None:
        numbers, results = done
        found.update(zip(numbers, np.frombuffer(results, np.int8).tolist(), strict=True))

    execution.executor.work(
        execution.job, execution.files, iter(range(games)), take, stopped, lambda: report(len(found)), REPORT_S
    )
    signs = list(found.values())
    return Outcome(signs.count(1), signs.count(0), signs.count(-1)) if len(found) == games else None
