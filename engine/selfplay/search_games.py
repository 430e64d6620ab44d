"""Games that a network plays against itself by search, a table of them at a time.

A :class:`SearchGroup` owns one table (:mod:`engine.selfplay.search_steps`) and asks the network about one leaf of every
game at once. Python sees batches, never games, trees or moves. Several groups on threads of their own share one
inference server, so that one's kernels run while another's leaves are evaluated.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.position import META_N_MOVES
from engine.go.rules import RULE_KOMI_X2, RULE_SETS
from engine.inference.server import InferenceServer
from engine.inference.slots import State
from engine.records.games import Games, offsets_of, policy_indices
from engine.records.search_rows import SearchRows
from engine.selfplay.boards import Boards, new_boards
from engine.selfplay.drawn_positions import drawn_games
from engine.selfplay.many_games import CAPACITY_BEYOND
from engine.selfplay.plan import check_player
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_steps import advance_games, back_up_results, begin_searched_games, count_searched_games
from engine.selfplay.search_table import SearchConduct, SearchTable, new_search_table, new_tuning, new_work
from engine.selfplay.table import EMPTY_SEAT, seat_numbers
from engine.selfplay.variety import Komi, Variety

MOST_WRONG = 0.05
"""Share of resignations that may be wrong (AGZ)"""
HIGHEST_BOUND = -0.6
"""No higher value to resign below is looked for"""
Result = TypeVar("Result")


class Origin(NamedTuple):
    """The network that plays, as rows name it."""

    network: int = 0
    """the first 8 bytes of its file's SHA-256, big end first"""
    step: int = 0
    """steps it was trained for"""


UNNAMED = Origin()


class SearchGroup:
    """A table of games and the request that it is evaluated by. Threads: one at a time."""

    def __init__(
        self, server: InferenceServer, options: SearchPlayOptions, seats: int, origin: Origin = UNNAMED,
        stopped: threading.Event | None = None, draws: int = 0,
    ) -> None:  # fmt: skip
        """Memory for some games at once.

        Args:
            seats: games at once, and leaves of a batch.
            origin: what rows say of the network.
            stopped: ends play once it is set; games in play are lost.
            draws: positions that are drawn from the tree of each full search.
        Raises:
            ValueError: the network lacks policy or value, or does not play this board or komi; one line.
        """
        options = fitted(server, options)
        self._server, self._options, self._origin = server, options, origin
        self._stopped = stopped or threading.Event()
        utility = options.score_utility if "score" in server.spec.heads else 0.0
        self._conduct = options.conduct()._replace(draws=draws)
        self._tuning = new_tuning(options.c_puct, options.fpu_reduction, utility)
        capacity, encoder = options.most_moves + CAPACITY_BEYOND, ENCODERS[server.spec.encoder]
        self._table = new_search_table(options.size, seats, capacity, options.most_visits, draws)
        self._fresh, self._work = new_boards(options.size, 1, capacity), new_work(options.size, capacity)
        self._endings = np.zeros(seats, np.uint8)
        self._scratch = encoder.new_scratch(options.size)
        self._request = server.new_request(options.size, seats, encoder.planes, encoder.globals)
        # By itself, so that games do not depend on what other groups ask for.
        self._request.alone = True

    def play(self, numbers: Iterator[int]) -> Iterator[SearchRows]:
        """Play these games, as many at once as there are seats; yields those that end, as they end.

        Raises:
            RuntimeError: the network failed.
        """
        return self._play(numbers, self._rows)

    def reach(self, numbers: Iterator[int]) -> Iterator[Games]:
        """Play these games likewise; yields the positions drawn in those that end, as :func:`drawn_games` has them.

        Raises:
            RuntimeError: the network failed.
        """
        table, size = self._table, self._options.size
        return self._play(numbers, lambda seats: drawn_games(table.drawn, table.boards, size, table.numbers, seats))

    def _play(self, numbers: Iterator[int], result: Callable[[np.ndarray], Result]) -> Iterator[Result]:
        """:meth:`play`, with what is wanted of the games on some seats that have ended."""
        self._table.numbers[:] = EMPTY_SEAT
        self._table.request_row[:] = -1
        begin = partial(begin_next_games, self._table, self._conduct, self._fresh, self._options)
        ready = begin(np.arange(len(self._endings)), numbers)
        while not self._stopped.is_set():
            request, filled = self._request, 0
            request.state = State.FILLING
            while len(ready):
                filled = self._advance(ready, filled)
                ended = ready[self._endings[ready] != 0]
                finished = result(ended) if len(ended) else None
                # The next games take the seats at once, so that the batch stays full.
                ready = begin(ended, numbers)
                if finished is not None:
                    yield finished
            if filled == 0:
                return
            request.count = filled
            self._server.submit(request)
            self._server.wait(request)
            outputs = request.policy, request.value, request.score
            back_up_results(self._table, self._work, *outputs, "score" in self._server.spec.heads, self._server.cache)
            ready = np.flatnonzero(self._table.numbers != EMPTY_SEAT)

    def _advance(self, seats: np.ndarray, filled: int) -> int:
        """Take games to their next leaves; returns the rows of the request that are filled."""
        return int(advance_games(
            self._table, self._conduct, self._tuning, seats, filled, self._work, self._server.cache, self._scratch,
            self._request.planes, self._request.globals, self._endings,
        ))  # fmt: skip

    def _rows(self, seats: np.ndarray) -> SearchRows:
        """The games of some seats, which have ended, and their rows."""
        table, count, size = self._table, len(seats), self._options.size
        leads, owner = np.zeros(count), np.zeros((count, size * size), np.int8)
        count_searched_games(table, seats, self._endings, leads, owner)
        lengths = table.boards.meta[seats, META_N_MOVES]
        resigner, rules = table.resigner[seats], table.boards.rules[seats]
        moves = np.concatenate([table.boards.moves[seat, :n] for seat, n in zip(seats, lengths, strict=True)])
        games = Games(
            size=np.full(count, size, np.int64),
            offsets=offsets_of(lengths),
            moves=policy_indices(moves, size).astype(np.uint16),
            komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
            result=np.where(np.isnan(leads), 2 * resigner - 3, np.sign(leads)).astype(np.int8),
            margin=np.abs(leads).astype(np.float32),
            ending=self._endings[seats].copy(),
            number=table.numbers[seats],
        )
        game = np.repeat(np.arange(count), table.n_rows[seats])
        at = seats[game], np.arange(len(game)) - offsets_of(table.n_rows[seats])[game]
        ply = table.row_ply[at].astype(np.int64)
        return SearchRows(
            games=games,
            flags=rules[:, :RULE_KOMI_X2].astype(np.uint8),
            owner=owner,
            network=np.full(count, self._origin.network, np.uint64),
            step=np.full(count, self._origin.step, np.int64),
            resigner=resigner.astype(np.uint8),
            quits=table.quits[seats] == 1,
            lowest=table.lowest[seats],
            game=game,
            ply=ply,
            policy=table.row_policy[at],
            # Black moves first, and colours alternate.
            value_black=np.where(ply % 2 == 0, 1, -1).astype(np.float32) * table.row_value[at],
            weight=surprise_weights(game, table.row_surprise[at], self._options.surprise_weight),
        )


def begin_next_games(
    table: SearchTable, conduct: SearchConduct, fresh: Boards, options: SearchPlayOptions, seats: np.ndarray,
    numbers: Iterator[int],
) -> np.ndarray:  # fmt: skip
    """Begin the next games on some seats (int64), which are free or whose games are over.

    Args:
        fresh: one empty position.
    Returns:
        int64[K]: the seats that have a game now.
    """
    seats, taken = seat_numbers(table.numbers, seats, numbers)
    if len(taken):
        begin_searched_games(table, conduct, fresh, seats, taken, options.seed, *options.set_up(taken))
    return seats


def surprise_weights(game: np.ndarray, surprise: np.ndarray, share: float) -> np.ndarray:
    """float32[R]: what rows count for, 1 in the mean over each game: (1 - share) evenly, share by their surprise.

    Args:
        game: int64[R].
        surprise: float32[R], Kullback-Leibler divergence of target from prior; a game without any counts evenly.
    Source: KataGo's ``docs/KataGoMethods.md``, "Policy surprise weighting".
    """
    mean = np.bincount(game, surprise) / np.maximum(np.bincount(game), 1)
    relative = np.where(mean[game] > 0.0, surprise / np.maximum(mean[game], 1e-30), 1.0)
    return ((1.0 - share) + share * relative).astype(np.float32)


def false_resignations(rows: SearchRows, bound: float) -> tuple[int, int]:
    """Of the games that were played out, how many would have been resigned below a value, and how many wrongly.

    Args:
        bound: -1 to 1.
    Returns:
        int, int: games in which a colour's values fell below the bound, and those of them that it did not lose.
    """
    is_open = ~rows.quits & (rows.games.ending != 0)
    below = rows.lowest < bound
    # The colour that would have resigned, where either would the one whose values fell lower.
    white_first = below[:, 1] & (~below[:, 0] | (rows.lowest[:, 1] < rows.lowest[:, 0]))
    has_lost = rows.games.result == np.where(white_first, 1, -1)
    would = is_open & below.any(axis=1)
    return int(would.sum()), int((would & ~has_lost).sum())


def resignation_bound(rows: SearchRows) -> float:
    """The highest value to resign below that would have been wrong in few enough of the games played out.

    Returns:
        float: at most ``HIGHEST_BOUND``; -2, below all values, where too few games were played out to tell.
    """
    for bound in np.linspace(HIGHEST_BOUND, -1.0, 1 + round((1.0 + HIGHEST_BOUND) / 0.01))[:-1].tolist():
        would, wrong = false_resignations(rows, bound)
        if would * MOST_WRONG >= 1.0 and wrong <= MOST_WRONG * would:
            return float(bound)
    return -2.0


def fitted(server: InferenceServer, options: SearchPlayOptions) -> SearchPlayOptions:
    """How a network plays: as asked, but one that knows a single komi, and is asked for it, has all games at that.

    Raises:
        ValueError: it cannot play so; one line.
    """
    if options.komi == ENCODERS[server.spec.encoder].komi:
        options = replace(options, komi_sd=0.0, wide_komi_share=0.0)
    wide = options.wide_komi_sd if options.wide_komi_share > 0.0 else 0.0
    spread = max(options.komi_sd, wide)
    komi = Komi(options.komi - spread, options.komi + spread)
    check_player(
        server.spec, [options.size], Variety(((RULE_SETS[options.rules], 1.0),), ((komi, 1.0),), ((1.0, 1.0),))
    )
    if "value" not in server.spec.heads:
        raise ValueError(f"network {server.spec.name} has no value to search by")
    return options
