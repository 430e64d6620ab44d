"""Games that a network plays against itself, of which every evaluation becomes a label.

They are games of :mod:`engine.selfplay.games`, each a function of its number: one whose first moves are known goes
on as if it had never been interrupted.
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
"""After the first ``FREE_MOVES`` moves none is played that is less probable than this share of the likeliest: the tail
of a policy is mostly blunders, and a game of 200 moves would meet several."""

ALL_MOVES = GameConfig(limit=0)
"""Leaves out no legal move"""


class Step(NamedTuple):
    """A move in each of B games, and what was said of the positions before."""

    numbers: np.ndarray
    """int64[B]"""
    plies: np.ndarray
    """int64[B]: moves before"""
    moves: np.ndarray
    """int64[B]: played, policy indices"""
    outputs: dict[str, np.ndarray]
    """as :meth:`engine.train.teacher.Teacher.targets` gives them for symmetry 0"""
    ended: np.ndarray
    """bool[B]: whether the game is over with the move"""


class LabelledGames:
    """S games of one size. Threads: its owner's alone."""

    def __init__(
        self, server: InferenceServer, size: int, slots: int, distribution: GameDistribution, seed: int
    ) -> None:
        """Memory for S games.

        Args:
            server: of the network that plays, which has a policy and a value.
            slots: S.
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
        """Slots without a game."""
        return len(self._batch.free)

    def begin(self, games: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Begin games by their number and first moves (policy indices), no more than there are free slots."""
        plies = np.array([len(moves) for _, moves in games], np.int64)
        if plies.any():
            moves = np.concatenate([np.array(moves, np.uint16) for _, moves in games])
            begun = Games(size=np.full(len(games), self.size, np.int64), offsets=offsets_of(plies), moves=moves)
            self._openings = Openings(recorded(begun), np.arange(len(games)), plies)
        slots = self._batch.begin(number for number, _ in games)
        skip_moves(self._batch.table, slots, plies)
        self._openings = None

    def step(self) -> Step:
        """Evaluate every game, and play a move in it; those that end leave.

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
