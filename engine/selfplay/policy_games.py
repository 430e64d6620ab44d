"""Games that a policy plays against itself, many side by side: no tree, one evaluation a move.

A :class:`GamePool` holds games of one board size. Its owner asks a network about all of them at once and hands the
probabilities to :meth:`GamePool.play`; kernels do the rest. A game is a function of its number: its rules, komi,
temperature and random state are drawn from it, whichever games it shares the pool with.
"""

from collections.abc import Sequence

import numpy as np

from engine.go.rules import RULE_FIELDS
from engine.records.games import Games
from engine.rollout.random import next_unit, seed_state
from engine.selfplay.variety import Variety
from engine.system.jit import kernel

FREE_MOVES = 6
LEAST_SHARE = 0.01
"""After the first ``FREE_MOVES`` moves none is played that is less probable than this share of the likeliest: the tail
of a policy is mostly blunders, and a game of 200 moves would meet several."""
LIMIT_BOARDS = 2
"""A game ends after this number of moves a point: rules without superko allow endless ones."""


def move_limit(size: int) -> int:
    """Most moves of a game."""
    return LIMIT_BOARDS * size * size


@kernel
def _choose(probabilities, slots, lengths, temperatures, states, chosen):
    """Draw a move for each row from its probabilities, sharpened by the game's temperature.

    Args:
        probabilities: float64[B, A]; illegal moves have 0.
        slots: int64[B]: the game of each row.
        lengths, temperatures, states: int64[S], float64[S], uint64[S, 4] of all games.
        chosen: int64[B], overwritten: policy indices.
    """
    for b in range(len(slots)):
        slot, row = slots[b], probabilities[b]
        largest = 0.0
        for i in range(len(row)):
            largest = max(largest, row[i])
        least = LEAST_SHARE * largest if lengths[slot] >= FREE_MOVES else 0.0
        power, total = 1.0 / temperatures[slot], 0.0
        for i in range(len(row)):
            if row[i] > 0 and row[i] >= least:
                total += (row[i] / largest) ** power
        left = next_unit(states[slot]) * total
        for i in range(len(row)):
            if row[i] > 0 and row[i] >= least:
                chosen[b] = i
                left -= (row[i] / largest) ** power
                if left < 0:
                    break


@kernel
def _skip(state, draws):
    """Leave out some draws of a game's random state."""
    for _ in range(draws):
        next_unit(state)


class GamePool:
    """S games of one size. Threads: its owner's alone."""

    def __init__(self, size: int, slots: int, variety: Variety, seed: int):
        self.size, self._variety, self._seed = size, variety, seed
        self._room = move_limit(size)
        self.numbers = np.full(slots, -1, np.int64)
        """which game each slot holds; -1 = none"""
        self.lengths = np.zeros(slots, np.int64)
        self.rules = np.zeros((slots, RULE_FIELDS), np.int64)
        self._temperatures = np.ones(slots)
        self._states = np.zeros((slots, 4), np.uint64)
        self._moves = np.full((slots, self._room), size * size, np.uint16)
        self.games = Games(
            size=np.full(slots, size, np.int64),
            offsets=np.arange(slots + 1, dtype=np.int64) * self._room,
            moves=self._moves.reshape(-1),
        )
        """the games as records whose unplayed moves are passes; replay them to :attr:`lengths` under :attr:`rules`"""

    @property
    def free(self) -> np.ndarray:
        """int64: slots without a game."""
        return np.flatnonzero(self.numbers < 0)

    @property
    def taken(self) -> np.ndarray:
        """int64: slots with a game."""
        return np.flatnonzero(self.numbers >= 0)

    def start_game(self, slot: int, number: int, moves: Sequence[int] = ()) -> None:
        """Begin a game, or go on with one after its first moves (policy indices)."""
        self.numbers[slot], self.lengths[slot] = number, len(moves)
        rules, temperatures = self._variety.draw(self._seed, np.array([number]), self.size)
        self.rules[slot], self._temperatures[slot] = rules[0], temperatures[0]
        self._states[slot] = seed_state(self._seed, number)
        self._moves[slot, : len(moves)] = moves
        _skip(self._states[slot], len(moves))

    def play(self, slots: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play a move in each of some games; those that end leave the pool.

        Args:
            slots: int64[B].
            probabilities: float64[B, N*N+1] in policy order, 0 = illegal.
        Returns:
            the moves, int64[B] policy indices, and whether each game has ended with it, bool[B].
        """
        chosen, before = np.zeros(len(slots), np.int64), self.lengths[slots] - 1
        _choose(probabilities, slots, self.lengths, self._temperatures, self._states, chosen)
        self._moves[slots, self.lengths[slots]] = chosen
        self.lengths[slots] += 1
        is_pass = self.size * self.size
        ended = (chosen == is_pass) & (before >= 0) & (self._moves[slots, before] == is_pass)
        ended |= self.lengths[slots] == self._room
        self.numbers[slots[ended]] = -1
        return chosen, ended


def has_ended(moves: np.ndarray, size: int) -> bool:
    """Whether a game that began with these moves (policy indices) is over."""
    is_over = len(moves) >= 2 and moves[-1] == moves[-2] == size * size
    return bool(is_over) or len(moves) >= move_limit(size)
