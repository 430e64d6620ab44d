"""``keima data reached``: positions that searches reach, for a stronger network to label.

A network plays games against itself by search (:mod:`engine.selfplay.search_games`). Of each full search the root is
kept, and positions of its tree, each visit as probable as any other: what the network evaluates where it plays. Kept
are the moves to each position, then a pass, since a reader of shards knows a position by the move made there;
``number`` is that of the game, and ``position`` says that nothing else may be learnt from. There are no results.

Source: Ross, Gordon, Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
Learning", 2011 (DAgger): a pupil is shown what its teacher makes of situations that the pupil itself comes to.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.records.games import Games
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.search_games import SearchGroup
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.variety import Komi, Variety

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
        variety = Variety(((RULE_SETS[search.rules], 1.0),), ((komi, 1.0),), ((1.0, 1.0),))
        options = BulkOptions(variety, size=search.size, games_per_shard=games_per_shard, seed=search.seed)
        super().__init__(options, 1)
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
        yield from SearchGroup(servers[0], self._search, at_once, stopped=stopped, draws=self._draws).reach(numbers)
