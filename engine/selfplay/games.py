"""Batches of games: the loop in which a network plays itself or another one, by search or by policy.

A :class:`GameBatch` has a table of games (:mod:`engine.selfplay.table`) and, if a player searches, their searches
(:mod:`engine.selfplay.searches`). Each network evaluates one position of each of its games at once: the game's current
position, from whose policy a move is drawn, or a leaf of its search. Python handles batches only; kernels handle games,
moves and trees. Several batches on threads of their own keep several evaluators, or the two streams of a GPU, busy.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.position import META_N_MOVES
from engine.go.rules import RULE_KOMI_X2, RULE_SCORING, SCORING_TERRITORY
from engine.go.seki import new_count_memory
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.records.games import Games, offsets_of, policy_indices
from engine.records.replay import Recorded, recorded
from engine.search.selection import Tuning
from engine.selfplay.searches import (
    advance_searches,
    back_up_results,
    clear_searches,
    new_searches,
    new_work,
)
from engine.selfplay.table import (
    FREE,
    NEVER,
    GameConfig,
    begin_games,
    count_games,
    new_boards,
    new_table,
    play_policy,
    show_positions,
)

COLORS = np.arange(2)
"""Indices of Black and White"""
CAPACITY_BEYOND = 8
"""Number of moves beyond a game's move limit for which there is room"""
BATCHES_ON_GPU = 3
"""Number of batches that keep a GPU busy: one on the GPU, one in its queue, one whose games are being advanced"""


def batches_for(server: InferenceServer) -> int:
    """Number of batches of games that keep a server busy."""
    return BATCHES_ON_GPU if server.batches_requests else server.evaluators + 1


class Player(NamedTuple):
    """A network and its settings. Of two players, the first one's config decides how games begin and end, and both must
    have ``keep_tree`` off, since a kept tree would miss the opponent's moves."""

    server: InferenceServer
    config: GameConfig
    tuning: Tuning | None = None
    """constants of move selection in searches; None = no search"""


class Openings(NamedTuple):
    """Recorded positions from which K games begin."""

    record: Recorded
    """legal games on boards of the table's size"""
    rows: np.ndarray
    """int64[K]: index in ``record`` of the game from which each game begins"""
    plies: np.ndarray
    """int64[K]: number of first moves of the recorded game to replay"""


class Setups(NamedTuple):
    """Initial state of K games: arrays of K, or one value for all, as in :class:`engine.selfplay.table.Table`."""

    rules: np.ndarray
    """int64[K, RULE_FIELDS], with komi"""
    may_resign: np.ndarray | int = 0
    """1 = hopeless games are resigned, 0 = they are played out"""
    temperatures: np.ndarray | float = 1.0
    """policy temperature of a player without search, who draws moves"""
    players: np.ndarray | None = None
    """int64[K, 2, 2]: player (0 or 1) before and after the random move, by colour (Black first); None = player 0 is
    Black in even-numbered games"""
    switches: np.ndarray | int = NEVER
    """ply at which a random move is played, after which the other players move; NEVER = none"""
    early: np.ndarray | int = 0
    """number of first moves that a searching player draws from the policy"""
    openings: Openings | None = None
    """None = games begin on the empty board"""


class Finished(NamedTuple):
    """K finished games; the table holds them until :meth:`GameBatch.play` continues."""

    slots: np.ndarray
    """int64[K]: the games' slots in the table"""
    games: Games
    owner: np.ndarray
    """int8[K, N*N]: owner of each point, all stones alive: 1 = Black, -1 = White, 0 = neither, or the game was
    resigned"""
    symmetries: np.ndarray
    """uint8[M]: symmetry of the network's input before each of the games' M moves; 0 in searches and openings"""
    resigner: np.ndarray
    """int64[K]: the colour whose values fell below the resignation threshold first; 0 = neither"""
    switches: np.ndarray
    """int64[K]: ply of each game's random move; NEVER = none"""


class GameBatch:
    """A table of games, and for each player a request for the positions to evaluate. Threads: one at a time."""

    def __init__(
        self, players: Sequence[Player], size: int, slots: int, set_up: Callable[[np.ndarray], Setups],
        stopped: threading.Event | None = None,
    ) -> None:  # fmt: skip
        """Allocate a batch.

        Args:
            players: one, which plays itself, or two opponents.
            slots: number of games played at once.
            set_up: returns the initial state of games, a function of their numbers (int64[K]) alone.
            stopped: play ends once this event is set; unfinished games are lost.
        """
        self.size, self._set_up = size, set_up
        self._stopped = stopped or threading.Event()
        self._config = config = players[0].config
        capacity = config.limit + CAPACITY_BEYOND
        self.table, self._fresh = new_table(size, slots, capacity, config.resign_count), new_boards(size, 1, capacity)
        visits = max(max(player.config.visits, player.config.fast_visits) for player in players)
        # Without a search there are no rows, but kernels see the same type.
        self.searches = new_searches(size, slots if visits else 0, capacity, visits, config.draws)
        self._work = new_work(size, capacity)
        self._memory = new_count_memory(size, capacity) if config.are_dead_removed else None
        self._no_moves = recorded(Games(np.array([size]), offsets=np.zeros(2, np.int64), moves=np.zeros(0, np.uint16)))
        encoders = [ENCODERS[player.server.spec.encoder] for player in players]
        self.requests: list[Request] = [
            player.server.new_request(size, slots, encoder.planes, encoder.globals)
            for player, encoder in zip(players, encoders, strict=True)
        ]
        """one for each player"""
        scratches = [encoder.new_scratch(size) for encoder in encoders]
        self._sides = list(zip(range(len(players)), players, self.requests, scratches, strict=True))
        for request in self.requests:
            # Not merged with other requests, so that games do not depend on other batches.
            request.alone = True

    def play(self, numbers: Iterator[int]) -> Iterator[Finished]:
        """Play the games of these numbers; yields games as they end.

        Raises:
            RuntimeError: a network failed.
        """
        self.release(np.arange(len(self.table.numbers)))
        self._empty_requests()
        self.begin(numbers)
        while not self._stopped.is_set():
            ended = self.advance()
            if len(ended):
                yield self._finished(ended)
                # The next games take the slots at once, so that the batch stays full.
                self.release(ended)
                self.begin(numbers)
            elif self.evaluate():
                self.take_results()
            else:
                return

    @property
    def free(self) -> np.ndarray:
        """int64[K]: the slots without a game."""
        return np.flatnonzero(self.table.numbers == FREE)

    def begin(self, numbers: Iterator[int]) -> np.ndarray:
        """Begin games in the free slots, with the next numbers; returns the slots of the new games, int64[K]."""
        table, free = self.table, self.free
        taken = np.fromiter(islice(numbers, len(free)), np.int64)
        slots = free[: len(taken)]
        if not len(slots):
            return slots
        setups = self._set_up(taken)
        table.numbers[slots] = taken
        alternating = (taken[:, None, None] + COLORS) % len(self.requests)
        table.players[slots] = alternating if setups.players is None else setups.players
        table.switches[slots], table.temperatures[slots] = setups.switches, setups.temperatures
        table.may_resign[slots], table.resigner[slots], table.symmetries[slots] = setups.may_resign, 0, 0
        table.recent[slots], table.lowest[slots] = 1.0, 1.0
        openings = setups.openings or Openings(self._no_moves, *np.zeros((2, len(slots)), np.int64))
        begin_games(table, self._fresh, slots, self._config.seed, setups.rules, *openings)
        if len(self.searches.kind):
            self.searches.early[slots] = setups.early
            clear_searches(self.searches, slots)
        return slots

    def release(self, slots: np.ndarray) -> None:
        """Free the slots of finished games."""
        self.table.endings[slots], self.table.request_row[slots], self.table.numbers[slots] = 0, -1, FREE

    def advance(self) -> np.ndarray:
        """Advance every game until it waits for a network or is over; returns the slots of finished games, int64[K]."""
        table = self.table
        while True:
            for k, player, request, scratch in self._sides:
                rows = scratch, request.planes, request.globals
                if player.tuning is None:
                    request.count = show_positions(table, k, player.config, request.count, *rows)
                else:
                    request.count = advance_searches(
                        table, self.searches, k, player.config, player.tuning, request.count, self._work,
                        player.server.cache, *rows,
                    )  # fmt: skip
            # With two players it may be the other's turn now: the cache may have answered a whole search.
            if len(self._sides) == 1 or not self._is_any_ready():
                return np.flatnonzero(table.endings)

    def _is_any_ready(self) -> bool:
        table = self.table
        return bool(((table.numbers != FREE) & (table.request_row < 0) & (table.endings == 0)).any())

    def evaluate(self) -> bool:
        """Evaluate the positions that games wait for; returns whether there were any.

        Raises:
            RuntimeError: a network failed.
        """
        asked = [(player.server, request) for _, player, request, _ in self._sides if request.count]
        for server, request in asked:
            server.submit(request)
        for server, request in asked:
            server.wait(request)
        return bool(asked)

    def take_results(self) -> None:
        """Use the results of :meth:`evaluate`: draw and play moves from policies, back up the leaves of searches."""
        for k, player, request, _ in self._sides:
            if request.count and player.tuning is None:
                play_policy(self.table, k, player.config, request.policy, request.value, self._work.policy)
            elif request.count:
                server, outputs = player.server, (request.policy, request.value, request.score)
                has_score = "score" in server.spec.heads
                back_up_results(self.table, self.searches, k, self._work, *outputs, has_score, server.cache)
        self._empty_requests()

    def _empty_requests(self) -> None:
        for request in self.requests:
            request.state, request.count = State.FILLING, 0

    def _finished(self, slots: np.ndarray) -> Finished:
        """Score finished games and copy their records out of the table."""
        table, count = self.table, len(slots)
        leads, owner = np.zeros(count), np.zeros((count, self.size**2), np.int8)
        count_games(table, slots, self._memory, np.zeros(self.size**2, np.float32), leads, owner)
        lengths = table.boards.meta[slots, META_N_MOVES]
        moves, symmetries = (
            np.concatenate([rows[slot, :n] for slot, n in zip(slots, lengths, strict=True)])
            for rows in (table.boards.moves, table.symmetries)
        )
        rules, resigner = table.boards.rules[slots], table.resigner[slots]
        games = Games(
            size=np.full(count, self.size, np.int64),
            offsets=offsets_of(lengths),
            moves=policy_indices(moves, self.size).astype(np.uint16),
            komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
            result=np.where(np.isnan(leads), 2 * resigner - 3, np.sign(leads)).astype(np.int8),
            margin=np.abs(leads).astype(np.float32),
            ending=table.endings[slots],
            territory=rules[:, RULE_SCORING] == SCORING_TERRITORY,
            number=table.numbers[slots],
        )
        return Finished(slots, games, owner, symmetries, resigner, table.switches[slots])
