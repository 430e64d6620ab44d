"""What is labelled: options, kinds of positions, and games as numbered pieces of work."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from engine.config.declaration import Checked, option
from engine.records.labels import RECORDED, SELF_PLAYED
from engine.selfplay.game_distribution import GameDistribution, Shares

SOURCES = ("recorded", "self-played")


class Kind(NamedTuple):
    """Positions of one source and board size."""

    source: int
    size: int

    def __str__(self) -> str:
        return f"{self.size}x{self.size} {SOURCES[self.source]}"


@dataclass(frozen=True)
class LabelOptions(Checked):
    """What is labelled; a run resumes only with the options it began with."""

    recorded: Shares[int]
    """board sizes of positions of recorded games"""
    self_play: Shares[int]
    """board sizes of positions of self-played games"""
    distribution: GameDistribution
    every: int = option(12, "mean distance, in moves, of the positions taken from a recorded game", low=1)
    moves: int = option(12, "number of most probable moves kept of a position's policy", low=1, high=64)
    positions_per_shard: int = option(80000, "positions in a shard", low=1)
    seed: int = option(1, "random seed", low=0)

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        named = {"recorded": self.recorded, "self_play": self.self_play}
        shares = {name: {str(what): share for what, share in given} for name, given in named.items()}
        shares |= self.distribution.record()
        rest = {name: getattr(self, name) for name in ("every", "moves", "positions_per_shard", "seed")}
        return shares | rest

    def kinds(self) -> dict[Kind, float]:
        """What there is to label, and the shares."""
        recorded = {Kind(RECORDED, size): share for size, share in self.recorded}
        return recorded | {Kind(SELF_PLAYED, size): share for size, share in self.self_play}

    def rules_of(self, size: int, numbers: np.ndarray) -> np.ndarray:
        """int64[K, RULE_FIELDS]: the rules of games."""
        return self.distribution.draw(self.seed, numbers, size)[0]


Places = TypeVar("Places", int, np.ndarray)
RUN = 1024
"""Games of a kind whose pieces of work follow on each other: so are the games done, which are kept as ranges"""


def pieces_of(place: Places, numbers: Places, n_kinds: int) -> Places:
    """Games as pieces of work.

    Args:
        place: of their kind among all kinds.
    """
    return (numbers // RUN * n_kinds + place) * RUN + numbers % RUN


def game_of(piece: int, n_kinds: int) -> tuple[int, int]:
    """The kind's place and the number of a game that is a piece of work: the reverse of :func:`pieces_of`."""
    return piece // RUN % n_kinds, piece // (RUN * n_kinds) * RUN + piece % RUN
