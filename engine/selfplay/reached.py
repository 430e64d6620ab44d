"""``keima data reached``: positions that searches reach, for a stronger network to label.

A network plays itself by search (:mod:`engine.selfplay.search_games`). Each full search gives its root and positions of
its tree, sampled in proportion to visits: the positions that the network evaluates in play. A network trained on games
alone evaluates positions after weak moves poorly (docs/lab/2026-11-26-positions-that-searches-reach.md). A record
consists of the moves to the position and a final pass, which stands for the unknown next move; ``number`` is the
game's, ``position`` restricts training to this position, and there is no result.

Source: Ross, Gordon, Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
Learning", 2011 (DAgger): the teacher labels states that the student itself visits.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.go.geometry import PASS
from engine.go.position import META_N_MOVES
from engine.go.rules import RULE_KOMI_X2, RULE_SETS
from engine.inference.server import InferenceServer
from engine.records.games import Games, offsets_of, policy_indices
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.games import Finished
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.search_games import SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import DrawnPositions
from engine.selfplay.table import Table

FORMAT = "keima reached positions 2"


class ReachedPlan(Plan):
    """Plan of a run that plays one network against itself by search, and records positions from its search trees."""

    def __init__(self, search: SearchPlayOptions, draws: int, games_per_shard: int) -> None:
        """Plan a run.

        Args:
            draws: positions sampled from each full search, the root included; unusable ones are dropped.
            games_per_shard: positions per shard.
        """
        komi = Komi(search.komi, search.komi)
        distribution = GameDistribution(((RULE_SETS[search.rules], 1.0),), ((komi, 1.0),), ((1.0, 1.0),))
        options = BulkOptions(distribution, size=search.size, games_per_shard=games_per_shard, seed=search.seed)
        super().__init__(options)
        self._search, self._draws = search, draws

    def record(self) -> dict[str, Any]:
        """See :class:`Plan`."""
        options = vars(self._search) | {"draws": self._draws, "games_per_shard": self.options.games_per_shard}
        return {"format": FORMAT, "options": options}

    @property
    def most_positions(self) -> int:
        """See :class:`Plan`."""
        return self._draws * self._search.most_moves

    def positions(self, games: Games) -> np.ndarray:
        """See :class:`Plan`; each record has one position."""
        return np.ones(len(games.size), np.int64)

    def play(
        self, servers: Sequence[InferenceServer], at_once: int, numbers: Iterator[int], stopped: threading.Event
    ) -> Iterator[Games]:
        """See :class:`Plan`; yields the positions of finished games."""
        batch = SelfPlay(servers[0], self._search, at_once, stopped=stopped, draws=self._draws).batch
        for finished in batch.play(numbers):
            yield drawn_games(batch.searches.drawn, batch.table, finished)


def drawn_games(drawn: DrawnPositions, table: Table, finished: Finished) -> Games:
    """Records of the positions drawn in finished games, at least one per game: the moves to the position, then a pass.

    Returns:
        Games: with ``position`` and the ``number`` of the position's game; without results.
    """
    boards, slots, size = table.boards, finished.slots, int(finished.games.size[0])
    # A game without a drawn position gives the one before its last move, since bulk play expects at least one.
    empty = slots[drawn.n_positions[slots] == 0]
    drawn.n_positions[empty], drawn.depth[empty, 0] = 1, 0
    drawn.ply[empty, 0] = np.maximum(0, boards.meta[empty, META_N_MOVES] - 1)
    counts = drawn.n_positions[slots]
    slot = np.repeat(slots, counts)
    row = np.arange(len(slot)) - np.repeat(np.cumsum(counts) - counts, counts)
    ply, depth = drawn.ply[slot, row], drawn.depth[slot, row]
    points = [
        part
        for at, of, before, after in zip(slot.tolist(), row.tolist(), ply.tolist(), depth.tolist(), strict=True)
        for part in (boards.moves[at, :before], drawn.path[at, of, :after], (PASS,))
    ]
    rules = boards.rules[slot]
    return Games(
        size=np.full(len(slot), size, np.int64),
        offsets=offsets_of(ply + depth + 1),
        moves=policy_indices(np.concatenate([np.zeros(0, np.int16), *points]), size).astype(np.uint16),
        komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
        number=table.numbers[slot],
        position=(ply + depth).astype(np.int16),
    )
