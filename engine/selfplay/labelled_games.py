"""Self-play games in which every evaluation becomes a label.

Each game is a function of its number (:mod:`engine.selfplay.games`), so an interrupted game whose first moves are known
resumes with the same moves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.features.symmetry import symmetry_table
from engine.go.position import META_N_MOVES
from engine.inference.server import InferenceServer
from engine.records.games import Games, offsets_of, policy_indices
from engine.records.replay import recorded
from engine.selfplay.game_distribution import GameDistribution
from engine.selfplay.games import GameBatch, Openings, Player, Setups
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.table import GameConfig, probabilities, skip_moves

FREE_MOVES = 6
LEAST_SHARE = 0.01
"""Minimum probability of a move, as a share of the most probable move's, after the first ``FREE_MOVES`` moves: the tail
of a policy is mostly blunders, of which a game of 200 moves would have several"""

ALL_MOVES = GameConfig(limit=0)
"""A config that excludes no legal move"""


class Step(NamedTuple):
    """One move in each of B games, and the network's outputs for the positions before these moves."""

    numbers: np.ndarray
    """int64[B]: the games' numbers"""
    plies: np.ndarray
    """int64[B]: number of moves played before this one"""
    moves: np.ndarray
    """int64[B]: moves played, as policy indices"""
    outputs: dict[str, np.ndarray]
    """as :meth:`engine.train.teacher.Teacher.targets` returns them for symmetry 0"""
    ended: np.ndarray
    """bool[B]: whether the move ended the game"""


class LabelledGames:
    """S self-play games of one board size, which advance together by one move. Threads: one at a time."""

    def __init__(
        self, server: InferenceServer, size: int, slots: int, distribution: GameDistribution, seed: int
    ) -> None:
        """Allocate S slots for games.

        Args:
            server: that of the playing network, which has policy and value heads.
            slots: S, the maximum number of games at once.
        """
        self.size, self._spec = size, server.spec
        options = BulkOptions(
            distribution, size=size, passes="free", free_moves=FREE_MOVES, least_share=LEAST_SHARE, seed=seed
        )

        def set_up(numbers: np.ndarray) -> Setups:
            return setups_of(options, numbers)._replace(openings=self._openings)

        self._openings: Openings | None = None
        self._batch = GameBatch([Player(server, options.config())], size, slots, set_up)
        self._probabilities = np.zeros((slots, size * size + 1))

    @property
    def free(self) -> int:
        """Number of slots without a game."""
        return len(self._batch.free)

    def begin(self, games: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Begin games, each given as its number and first moves (policy indices); each needs a free slot."""
        plies = np.array([len(moves) for _, moves in games], np.int64)
        if plies.any():
            moves = np.concatenate([np.array(moves, np.uint16) for _, moves in games])
            begun = Games(size=np.full(len(games), self.size, np.int64), offsets=offsets_of(plies), moves=moves)
            self._openings = Openings(recorded(begun), np.arange(len(games)), plies)
        slots = self._batch.begin(number for number, _ in games)
        skip_moves(self._batch.table, slots, plies)
        self._openings = None

    def step(self) -> Step:
        """Evaluate every game and play a move in it; finished games leave their slots.

        Raises:
            RuntimeError: the network failed.
        """
        batch, size = self._batch, self.size
        batch.advance()
        batch.evaluate()
        (request,), table = batch.requests, batch.table
        # Rows of the request are in the order of the slots.
        slots, count = np.flatnonzero(table.request_row >= 0), request.count
        numbers, plies = table.numbers[slots], table.boards.meta[slots, META_N_MOVES].copy()
        shares = self._probabilities[:count]
        probabilities(table, ALL_MOVES, slots, request.policy, shares)
        outputs = {"policy": shares, "value": request.value[:count]}
        if "score" in self._spec.heads and "ownership" in self._spec.heads:
            shown = request.ownership[:count].reshape(count, -1)
            points = symmetry_table(size)[table.symmetries[slots, plies], :-1].astype(np.int64)
            outputs |= {"score": request.score[:count], "ownership": np.take_along_axis(shown, points, 1)}
        batch.take_results()
        moves, is_over = policy_indices(table.boards.moves[slots, plies], size), table.endings[slots] > 0
        batch.release(slots[is_over])
        return Step(numbers, plies, moves, outputs, is_over)
