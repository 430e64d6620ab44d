"""Games that a network plays against itself, of which every evaluation becomes a label.

They are games of :mod:`engine.selfplay.many_games`, each a function of its number: one whose first moves are known goes
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
from engine.selfplay.many_games import Group, Openings, Setups
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.table import Conduct, probabilities, skip_moves
from engine.selfplay.variety import Variety

FREE_MOVES = 6
LEAST_SHARE = 0.01
"""After the first ``FREE_MOVES`` moves none is played that is less probable than this share of the likeliest: the tail
of a policy is mostly blunders, and a game of 200 moves would meet several."""

ALL_MOVES = Conduct(limit=0)
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

    def __init__(self, server: InferenceServer, size: int, seats: int, variety: Variety, seed: int) -> None:
        """Memory for S games.

        Args:
            server: of the network that plays, which has a policy and a value.
            seats: S.
        """
        self.size, self._spec = size, server.spec
        options = BulkOptions(
            variety, size=size, passes="free", free_moves=FREE_MOVES, least_share=LEAST_SHARE, seed=seed
        )

        def set_up(numbers: np.ndarray) -> Setups:
            return setups_of(options, numbers, 1)._replace(openings=self._openings)

        self._openings: Openings | None = None
        self._group = Group([server], size, seats, options.conduct(), seed, set_up)
        self._probabilities = np.zeros((seats, size * size + 1))

    @property
    def free(self) -> int:
        """Seats without a game."""
        return self._group.free

    def begin(self, games: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Begin games by their number and first moves (policy indices), no more than there are free seats."""
        plies = np.array([len(moves) for _, moves in games], np.int64)
        if plies.any():
            moves = np.concatenate([np.array(moves, np.uint16) for _, moves in games])
            begun = Games(size=np.full(len(games), self.size, np.int64), offsets=offsets_of(plies), moves=moves)
            self._openings = Openings(recorded(begun), np.arange(len(games)), plies)
        seats = self._group.begin(number for number, _ in games)
        skip_moves(self._group.table, seats, plies)
        self._openings = None

    def step(self) -> Step:
        """Evaluate every game, and play a move in it; those that end leave.

        Raises:
            RuntimeError: the network failed.
        """
        group, size = self._group, self.size
        group.ask()
        seats, symmetries, request = group.asked()
        boards, count = group.table.boards, len(seats)
        shares = self._probabilities[:count]
        probabilities(boards, ALL_MOVES, seats, symmetries, request.policy, shares)
        outputs = {"policy": shares, "value": request.value[:count]}
        if "score" in self._spec.heads and "ownership" in self._spec.heads:
            shown = request.ownership[:count].reshape(count, -1)
            owned = np.take_along_axis(shown, symmetry_table(size)[symmetries, :-1].astype(np.int64), 1)
            outputs |= {"score": request.score[:count], "ownership": owned}
        numbers, plies = group.table.numbers[seats], boards.meta[seats, META_N_MOVES].copy()
        over = group.move()
        moves = policy_indices(boards.moves[seats, plies], size)
        group.release(over)
        return Step(numbers, plies, moves, outputs, np.isin(seats, over))
