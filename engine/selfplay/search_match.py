"""Games between two networks by search, a table of them at a time: ladders and gates of self-play.

The kernels are those of self-play (:mod:`engine.selfplay.search_steps`), but a game is handed over after each move: the
network of the other colour goes on with a tree of its own. With one visit a network's policy alone draws its moves; of
:class:`engine.nets.fakes.UniformNetwork`, bound to sensible ones, that is a player of random moves. Start at
:class:`MatchGroup`.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.position import META_N_MOVES
from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.selfplay.boards import new_boards
from engine.selfplay.many_games import CAPACITY_BEYOND, PLAYERS
from engine.selfplay.search_games import begin_next_games, fitted
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_steps import advance_games, back_up_results, count_searched_games
from engine.selfplay.search_table import HANDED_OVER, SearchConduct, new_search_table, new_tuning, new_work
from engine.selfplay.table import EMPTY_SEAT

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


class MatchGroup:
    """A table of games of two players; even games have the first one as Black. Threads: one at a time."""

    def __init__(
        self, players: Sequence[MatchPlayer], options: SearchPlayOptions, seats: int,
        stopped: threading.Event | None = None,
    ) -> None:  # fmt: skip
        """Memory for some games at once.

        Args:
            options: of :func:`match_options`; the visits are the players'.
            stopped: ends play once it is set; games in play are lost.
        Raises:
            ValueError: a network cannot play so; one line.
        """
        for player in players:
            fitted(player.server, options)
        self._players, self._options, self._stopped = players, options, stopped or threading.Event()
        self._conducts: list[SearchConduct] = [
            replace(options, sensible=WHOLE_GAME * player.is_sensible)
            .conduct()
            ._replace(visits=player.visits, fast_visits=player.visits, hands_over=True)
            for player in players
        ]
        self._tuning = new_tuning(options.c_puct, options.fpu_reduction)
        capacity, size = options.most_moves + CAPACITY_BEYOND, options.size
        self._table = new_search_table(size, seats, capacity, max(player.visits for player in players))
        self._fresh, self._work = new_boards(size, 1, capacity), new_work(size, capacity)
        self._endings, self._asked = np.zeros(seats, np.uint8), np.zeros(seats, np.int64)
        encoders = [ENCODERS[player.server.spec.encoder] for player in players]
        self._scratch = [encoder.new_scratch(size) for encoder in encoders]
        self._requests = [
            player.server.new_request(size, seats, encoder.planes, encoder.globals)
            for player, encoder in zip(players, encoders, strict=True)
        ]
        for request in self._requests:
            request.alone = True

    def play(self, numbers: Iterator[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Play these games; yields those that end, as they end.

        Returns:
            int64[K], int8[K]: their numbers, and 1, 0 or -1: won, drawn or lost by the first player.
        Raises:
            RuntimeError: a network failed.
        """
        table = self._table
        table.numbers[:], table.request_row[:] = EMPTY_SEAT, -1
        # Nothing that a game begins with is among what the two conducts differ by.
        begin = partial(begin_next_games, table, self._conducts[0], self._fresh, self._options)
        ready = begin(np.arange(len(self._endings)), numbers)
        while not self._stopped.is_set():
            for request in self._requests:
                request.state, request.count = State.FILLING, 0
            while len(ready):
                self._advance(ready)
                codes = self._endings[ready]
                ended = ready[(codes != 0) & (codes != HANDED_OVER)]
                if len(ended):
                    yield self._finish(ended)
                ready = np.concatenate([ready[codes == HANDED_OVER], begin(ended, numbers)])
            if not self._evaluate():
                return
            ready = np.flatnonzero(table.numbers != EMPTY_SEAT)

    def _movers(self, seats: np.ndarray) -> np.ndarray:
        """int64[K]: the players who move in some games."""
        movers: np.ndarray = (self._table.boards.meta[seats, META_N_MOVES] + self._table.numbers[seats]) % PLAYERS
        return movers

    def _advance(self, seats: np.ndarray) -> None:
        """Take games to their next leaves, each by the player who moves, or to the end of its search."""
        movers = self._movers(seats)
        for k, (player, request) in enumerate(zip(self._players, self._requests, strict=True)):
            own = seats[movers == k]
            if len(own):
                self._asked[own] = k
                request.count = int(advance_games(
                    self._table, self._conducts[k], self._tuning, own, request.count, self._work, player.server.cache,
                    self._scratch[k], request.planes, request.globals, self._endings,
                ))  # fmt: skip

    def _evaluate(self) -> bool:
        """Ask both networks about the leaves that wait for them; False if there are none."""
        asked = [k for k, request in enumerate(self._requests) if request.count]
        for k in asked:
            self._players[k].server.submit(self._requests[k])
        rows = self._table.request_row.copy()
        for k in asked:
            server, request = self._players[k].server, self._requests[k]
            server.wait(request)
            # The kernel takes what every game waits for, so it is shown those that asked this network.
            self._table.request_row[:] = np.where(self._asked == k, rows, -1)
            outputs = request.policy, request.value, request.score
            back_up_results(self._table, self._work, *outputs, "score" in server.spec.heads, server.cache)
        return bool(asked)

    def _finish(self, seats: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Games of some seats, which have ended, and how they went, as of :meth:`play`."""
        leads, owner = np.zeros(len(seats)), np.zeros((len(seats), self._options.size**2), np.int8)
        count_searched_games(self._table, seats, self._endings, leads, owner)
        numbers = self._table.numbers[seats]
        return numbers, np.sign(np.where(numbers % PLAYERS == 0, leads, -leads)).astype(np.int8)
