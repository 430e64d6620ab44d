"""``keima data values``: training data for a value network, one position per game, generated as for AlphaGo.

For each position a ply U is drawn uniformly from 1 to ``latest``. The SL policy plays the moves before ply U, move U is
uniformly random among the legal points, and the RL policy plays the rest. A record has the moves up to the position
after the random one, the next move (as every position of a shard needs one) and the result; ``position`` restricts
training to this position. Positions of one game are correlated and share its result: with many of them a value network
memorises results.

If a game ends before ply U, it is played again with other moves and the same U, up to ``ATTEMPTS`` times; otherwise
late positions would be rarer. Positions that are still not reached are reported.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", 2016, Methods,
"Reinforcement learning of value networks", where U is 1 to 450 on 19x19.
"""

from typing import Any

import numpy as np

from engine.records.games import Games, offsets_of, select
from engine.selfplay.game_distribution import unit_of
from engine.selfplay.games import Finished, Setups
from engine.selfplay.plan import BulkOptions, Plan

FORMAT = "keima values 2"
ATTEMPTS = 16
RANDOM_PLY = 4
"""Stream of random numbers for the random move's ply U"""
SL, RL = 0, 1
"""Indices of the SL and the RL policy network"""


def published_latest(size: int) -> int:
    """Maximum of the random move's ply U: 450 on 19x19, on other boards in proportion to the points."""
    return 450 * size * size // 361


class ValuePlan(Plan):
    """Games in which the SL policy plays up to a random move, and the RL policy after it; a record has one position."""

    attempts = ATTEMPTS

    def __init__(self, options: BulkOptions, latest: int = 0) -> None:
        """Plan a run.

        Args:
            latest: maximum of the random move's ply U; 0 = :func:`published_latest`.
        """
        super().__init__(options)
        self.latest = latest or published_latest(options.size)

    def record(self) -> dict[str, Any]:
        """See :class:`Plan`."""
        options = self.options.record() | {"latest": self.latest}
        return {"format": FORMAT, "options": options}

    def random_plies(self, wanted: np.ndarray) -> np.ndarray:
        """int64[K]: the random move's ply U, from 1, for wanted positions of the given numbers."""
        return 1 + (unit_of(self.options.seed, wanted, RANDOM_PLY) * self.latest).astype(np.int64)

    def set_up(self, numbers: np.ndarray) -> Setups:
        """See :class:`Plan`; all attempts at one position have the same rules, komi and U."""
        wanted = numbers // ATTEMPTS
        setups = super().set_up(wanted)
        players = np.zeros((len(numbers), 2, 2), np.int64)
        players[:, 0], players[:, 1] = SL, RL
        return setups._replace(players=players, switches=self.random_plies(wanted) - 1)

    def kept(self, finished: Finished) -> Games:
        """See :class:`Plan`; keeps the games that continued after the random move, cut off one move later."""
        games, at = super().kept(finished), finished.switches + 1
        rows = np.flatnonzero(np.diff(games.offsets) > at)
        kept, at = select(games, rows), at[rows]
        offsets = offsets_of(at + 1)
        moves = kept.moves[np.arange(offsets[-1]) + np.repeat(kept.offsets[:-1] - offsets[:-1], at + 1)]
        return kept._replace(offsets=offsets, moves=moves, number=kept.number // ATTEMPTS, position=at.astype(np.int16))
