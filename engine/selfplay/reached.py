"""``keima data reached``: positions that searches reach, for a stronger network to label.

A network plays games against itself by search (:mod:`engine.selfplay.search_games`). Of each full search the root is
kept, and positions of its tree, each visit as probable as any other: what the network evaluates where it plays. It
evaluates positions after weak moves poorly, if it learned from games alone
(docs/lab/2026-11-26-positions-that-searches-reach.md). Kept are the moves to each position, then a pass, since a reader
of shards knows a position by the move made there; ``number`` is that of the game, and ``position`` says that nothing
else may be learnt from. There are no results.

Source: Ross, Gordon, Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
Learning", 2011 (DAgger): a pupil is shown what its teacher makes of situations that the pupil itself comes to.
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
    """Games of one network by search; positions of their searches."""

    def __init__(self, search: SearchPlayOptions, draws: int, games_per_shard: int) -> None:
        """Plan a run.

        Args:
            draws: positions of each full search, the root among them; those that are no use are left out.
            games_per_shard: here positions.
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
        """See :class:`Plan`: one each."""
        return np.ones(len(games.size), np.int64)

    def play(
        self, servers: Sequence[InferenceServer], at_once: int, numbers: Iterator[int], stopped: threading.Event
    ) -> Iterator[Games]:
        """See :class:`Plan`: the positions of games that end."""
        batch = SelfPlay(servers[0], self._search, at_once, stopped=stopped, draws=self._draws).batch
        for finished in batch.play(numbers):
            yield drawn_games(batch.searches.drawn, batch.table, finished)


def drawn_games(drawn: DrawnPositions, table: Table, finished: Finished) -> Games:
    """The positions drawn in games that ended, at least one of each, as games that lead there and then pass.

    Returns:
        Games: with ``position`` and the ``number`` of the game that the position was drawn in; without results.
    """
    boards, slots, size = table.boards, finished.slots, int(finished.games.size[0])
    # A game in which nothing was drawn gives the position before its last move: bulk play counts what games gave.
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
