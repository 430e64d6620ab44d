"""Self-play by search: training rows of a network's games against itself, and the calibration of resignation.

Start at :class:`SelfPlay`.
"""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.rules import RULE_KOMI_X2, RULE_SETS
from engine.inference.server import InferenceServer
from engine.records.search_rows import SearchRows
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.games import Finished, GameBatch, Player
from engine.selfplay.plan import check_player
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import new_tuning

MOST_WRONG = 0.05
"""Maximum share of wrong ones among all resignations (AGZ)"""
HIGHEST_BOUND = -0.6
"""Upper limit of the calibrated resignation threshold, a value from -1 to 1"""


class Origin(NamedTuple):
    """Identity of the network that played a game, which rows record."""

    network: int = 0
    """the first 8 bytes of the network file's SHA-256, big-endian"""
    step: int = 0
    """training steps of the network"""


UNNAMED = Origin()


class SelfPlay:
    """A batch of self-play games by search. Threads: one at a time."""

    def __init__(
        self, server: InferenceServer, options: SearchPlayOptions, slots: int, origin: Origin = UNNAMED,
        stopped: threading.Event | None = None, draws: int = 0,
    ) -> None:  # fmt: skip
        """Allocate a batch.

        Args:
            slots: number of games played at once, and maximum number of leaves in a batch.
            origin: identity of the playing network, which rows record.
            stopped: play ends once this event is set; unfinished games are lost.
            draws: number of positions drawn from the tree of each full search.
        Raises:
            ValueError: the network lacks policy or value, or does not support this board size or komi; one line.
        """
        self.options, self._origin = fitted(server, options), origin
        tuning = new_tuning(
            options.c_puct, options.fpu_reduction, options.score_utility if "score" in server.spec.heads else 0.0
        )
        player = Player(server, self.options.config()._replace(draws=draws), tuning)
        self.batch = GameBatch([player], options.size, slots, self.options.set_up, stopped)

    def play(self, numbers: Iterator[int]) -> Iterator[SearchRows]:
        """Play the games of these numbers; yields training rows as games end.

        Raises:
            RuntimeError: the network failed.
        """
        return map(self._rows, self.batch.play(numbers))

    def _rows(self, finished: Finished) -> SearchRows:
        """The training rows of finished games, and the records of these games."""
        table, searches, slots = self.batch.table, self.batch.searches, finished.slots
        game, ply = np.nonzero(searches.row_surprise[slots] >= 0.0)
        at = slots[game], ply
        return SearchRows(
            games=finished.games,
            flags=table.boards.rules[slots, :RULE_KOMI_X2].astype(np.uint8),
            owner=finished.owner,
            network=np.full(len(slots), self._origin.network, np.uint64),
            step=np.full(len(slots), self._origin.step, np.int64),
            resigner=finished.resigner.astype(np.uint8),
            quits=table.may_resign[slots] == 1,
            lowest=table.lowest[slots],
            game=game,
            ply=ply,
            policy=searches.row_policy[at],
            # Black moves first, and colours alternate.
            value_black=np.where(ply % 2 == 0, 1, -1).astype(np.float32) * searches.row_value[at],
            weight=surprise_weights(game, searches.row_surprise[at], self.options.surprise_weight),
        )


def surprise_weights(game: np.ndarray, surprise: np.ndarray, share: float) -> np.ndarray:
    """float32[R]: sampling weights of rows: (1 - share) + share * surprise / (mean surprise of the game).

    Args:
        game: int64[R]: the game of each row.
        surprise: float32[R], Kullback-Leibler divergence of target from prior; a game with surprise 0 has weights 1.
        share: 0 to 1.
    Source: KataGo's ``docs/KataGoMethods.md``, "Policy surprise weighting".
    """
    mean = np.bincount(game, surprise) / np.maximum(np.bincount(game), 1)
    relative = np.where(mean[game] > 0.0, surprise / np.maximum(mean[game], 1e-30), 1.0)
    return ((1.0 - share) + share * relative).astype(np.float32)


def false_resignations(rows: SearchRows, bound: float) -> tuple[int, int]:
    """Count the games played out in which a threshold would have made a colour resign, and those where this was wrong.

    Args:
        bound: the threshold, -1 to 1.
    Returns:
        int, int: number of games in which a colour would have resigned; number of these that it did not lose.
    """
    is_open = ~rows.quits & (rows.games.ending != 0)
    below = rows.lowest < bound
    # The colour that would have resigned; if both would, the one with lower values.
    white_first = below[:, 1] & (~below[:, 0] | (rows.lowest[:, 1] < rows.lowest[:, 0]))
    has_lost = rows.games.result == np.where(white_first, 1, -1)
    would = is_open & below.any(axis=1)
    return int(would.sum()), int((would & ~has_lost).sum())


def resignation_bound(rows: SearchRows) -> float:
    """The highest resignation threshold with a share of at most ``MOST_WRONG`` wrong resignations in games played out.

    Returns:
        float: at most ``HIGHEST_BOUND``; -2, below all values, if no threshold gives at least
            1 / ``MOST_WRONG`` resignations with so few wrong ones.
    """
    for bound in np.linspace(HIGHEST_BOUND, -1.0, 1 + round((1.0 + HIGHEST_BOUND) / 0.01))[:-1].tolist():
        would, wrong = false_resignations(rows, bound)
        if would * MOST_WRONG >= 1.0 and wrong <= MOST_WRONG * would:
            return float(bound)
    return -2.0


def fitted(server: InferenceServer, options: SearchPlayOptions) -> SearchPlayOptions:
    """The options adapted to a network: if it supports only one komi, and the options have it, komi does not vary.

    Raises:
        ValueError: the network does not support the options; one line.
    """
    if options.komi == ENCODERS[server.spec.encoder].komi:
        options = replace(options, komi_sd=0.0, wide_komi_share=0.0)
    wide = options.wide_komi_sd if options.wide_komi_share > 0.0 else 0.0
    spread = max(options.komi_sd, wide)
    komi = Komi(options.komi - spread, options.komi + spread)
    check_player(
        server.spec, [options.size], GameDistribution(((RULE_SETS[options.rules], 1.0),), ((komi, 1.0),), ((1.0, 1.0),))
    )
    if "value" not in server.spec.heads:
        raise ValueError(f"network {server.spec.name} has no value head, which searches need")
    return options
