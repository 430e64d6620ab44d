"""Games of one or two policies, a table of them at a time: the loop around the kernels of :mod:`engine.selfplay.table`.

A :class:`Group` owns one table and asks its networks about all of its games at once, each move of each game one
evaluation. Python sees batches, never games or moves. Several groups on threads of their own keep several evaluators,
or the two batches that a GPU has in flight, busy.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.position import META_N_MOVES
from engine.go.rules import RULE_KOMI_X2, RULE_SCORING, SCORING_TERRITORY
from engine.go.seki import new_count_memory
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.records.games import Games, offsets_of
from engine.records.replay import Recorded
from engine.selfplay.boards import new_boards
from engine.selfplay.dead_stones import count_living
from engine.selfplay.table import (
    EMPTY_SEAT,
    Conduct,
    begin_games,
    count_games,
    encode_rows,
    new_table,
    open_games,
    play_rows,
    seat_numbers,
    seat_rows,
    take_moves,
)

PLAYERS = 2
CAPACITY_BEYOND = 8
"""Room for moves beyond the limit of a game"""
GROUPS_ON_GPU = 3
"""One whose batch is computed, one whose batch waits, one whose kernels run"""


def groups_for(server: InferenceServer) -> int:
    """Groups of games that keep a server busy."""
    return GROUPS_ON_GPU if server.merges else server.evaluators + 1


class Openings(NamedTuple):
    """Recorded positions that K games begin from."""

    record: Recorded
    """of games that can be replayed, on boards of the table's size"""
    rows: np.ndarray
    """int64[K]: the recorded games"""
    plies: np.ndarray
    """int64[K]: how many of their moves"""


class Setups(NamedTuple):
    """How K games begin."""

    rules: np.ndarray
    """int64[K, RULE_FIELDS], with komi"""
    temperatures: np.ndarray
    """float64[K]: of the policies"""
    players: np.ndarray
    """int64[K, 2, 2], as in :class:`engine.selfplay.table.Table`"""
    switches: np.ndarray
    """int64[K]: the ply of the random move, as there"""
    quits: np.ndarray
    """int64[K]: whether hopeless games are resigned"""
    openings: Openings | None = None
    """None = the empty board"""


class Finished(NamedTuple):
    """K games that ended."""

    games: Games
    symmetries: np.ndarray
    """uint8[M]: what the position before each move was shown under"""
    resigner: np.ndarray
    """int64[K]: the colour that first had reason to resign; 0 = neither"""
    switches: np.ndarray
    """int64[K]: the ply of the random move, as in :class:`Setups`"""


class Group:
    """A table of games and the requests that it is evaluated by. Threads: one at a time."""

    def __init__(
        self,
        servers: Sequence[InferenceServer],
        size: int,
        seats: int,
        conduct: Conduct,
        seed: int,
        set_up: Callable[[np.ndarray], Setups],
        stopped: threading.Event | None = None,
    ) -> None:
        """Memory for some games at once.

        Args:
            servers: of the networks that play, by their number: one, or two.
            seats: games at once.
            set_up: how the games of some numbers (int64[K]) begin; a function of the numbers alone.
            stopped: ends play once it is set; games in play are lost.
        """
        self.size = size
        self._servers, self._conduct, self._seed, self._set_up = servers, conduct, seed, set_up
        self._stopped = stopped or threading.Event()
        capacity = conduct.limit + CAPACITY_BEYOND
        self.table, self._fresh = new_table(size, seats, capacity), new_boards(size, 1, capacity)
        self._memory, self._ownership = new_count_memory(size, capacity), np.zeros(size * size, np.float32)
        self._seats = np.zeros((PLAYERS, seats), np.int64)
        self._symmetries = np.zeros((PLAYERS, seats), np.int64)
        self._counts = np.zeros(PLAYERS, np.int64)
        self._endings = np.zeros(seats, np.uint8)
        self._weights = np.zeros(size * size + 1)
        encoders = [ENCODERS[server.spec.encoder] for server in servers]
        self._scratch = [encoder.new_scratch(size) for encoder in encoders]
        self._requests = [
            server.new_request(size, seats, encoder.planes, encoder.globals)
            for server, encoder in zip(servers, encoders, strict=True)
        ]
        for request in self._requests:
            # By itself, so that games do not depend on what other groups ask for.
            request.alone = True

    def play(self, numbers: Iterator[int]) -> Iterator[Finished]:
        """Play these games, as many at once as there are seats; yields those that end, as they end.

        Raises:
            RuntimeError: a network failed.
        """
        self.release(np.arange(len(self._endings)))
        self.begin(numbers)
        while not self._stopped.is_set() and self.ask():
            ended = self.move()
            if len(ended):
                finished = self._finish(ended)
                self.release(ended)
                self.begin(numbers)
                yield finished

    @property
    def free(self) -> int:
        """Seats without a game."""
        return int((self.table.numbers == EMPTY_SEAT).sum())

    def begin(self, numbers: Iterator[int]) -> np.ndarray:
        """Begin the next games on the free seats, as far as there are any; int64[K]: the seats of the new games."""
        free = np.flatnonzero(self.table.numbers == EMPTY_SEAT)
        seats, taken = seat_numbers(self.table.numbers, free, numbers)
        if len(taken):
            *begun, openings = self._set_up(taken)
            begin_games(self.table, self._fresh, seats, taken, self._seed, *begun)
            if openings is not None:
                open_games(self.table, self._fresh, seats, begun[0], *openings)
        return seats

    def release(self, seats: np.ndarray) -> None:
        """Free the seats of games that are over."""
        self._endings[seats] = 0
        self.table.numbers[seats] = EMPTY_SEAT

    def asked(self, network: int = 0) -> tuple[np.ndarray, np.ndarray, Request]:
        """Of :meth:`ask`: the seats that a network was asked about and their symmetries (int64[B]), and its outputs."""
        count = self._counts[network]
        return self._seats[network, :count], self._symmetries[network, :count], self._requests[network]

    def move(self) -> np.ndarray:
        """Play a move in every game, drawn from what :meth:`ask` has found; int64[K]: the seats of games now over."""
        for network in range(len(self._requests)):
            *rows, outputs = self.asked(network)
            play_rows(self.table, self._conduct, *rows, outputs.policy, outputs.value, self._weights, self._endings)
        return np.flatnonzero(self._endings)

    def ask(self) -> bool:
        """Evaluate every game in play; False if there is none.

        Raises:
            RuntimeError: a network failed.
        """
        seat_rows(self.table, self._seats, self._symmetries, self._counts)
        asked: list[tuple[InferenceServer, Request]] = []
        for network, (server, request) in enumerate(zip(self._servers, self._requests, strict=True)):
            count = int(self._counts[network])
            if not count:
                continue
            request.state = State.FILLING
            encode_rows(
                self.table.boards, self._seats[network, :count], self._symmetries[network, :count],
                self._scratch[network], request.planes, request.globals,
            )  # fmt: skip
            request.count = count
            server.submit(request)
            asked.append((server, request))
        for server, request in asked:
            server.wait(request)
        return bool(asked)

    def _finish(self, seats: np.ndarray) -> Finished:
        """Count games that ended, and take them from the table."""
        table, count = self.table, len(seats)
        leads = np.zeros(count)
        if self._conduct.are_dead_removed:
            count_living(table, seats, self._endings, self._memory, self._ownership, leads)
        else:
            count_games(table, seats, self._endings, leads)
        lengths = table.boards.meta[seats, META_N_MOVES]
        moves, symmetries = np.zeros(lengths.sum(), np.uint16), np.zeros(lengths.sum(), np.uint8)
        take_moves(table, seats, lengths, moves, symmetries)
        rules, resigner = table.boards.rules[seats], table.resigner[seats]
        result = np.where(np.isnan(leads), 2 * resigner - 3, np.sign(leads))
        games = Games(
            size=np.full(count, self.size, np.int64),
            offsets=offsets_of(lengths),
            moves=moves,
            komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
            result=result.astype(np.int8),
            margin=np.abs(leads).astype(np.float32),
            ending=self._endings[seats].copy(),
            territory=rules[:, RULE_SCORING] == SCORING_TERRITORY,
            number=table.numbers[seats],
        )
        return Finished(games, symmetries, resigner, table.switches[seats])
