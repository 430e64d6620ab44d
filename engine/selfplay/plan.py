"""How games in bulk are played: their options, and the plan that says how each of them begins and what is kept.

Start at :class:`Plan`.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.config.declaration import Checked, option
from engine.features.encoder import ENCODERS
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.inference.server import InferenceServer
from engine.nets.network import NetworkSpec
from engine.records.games import MAX_MOVES, Games
from engine.selfplay.many_games import Finished, Group, Setups
from engine.selfplay.table import NEVER, Conduct
from engine.selfplay.variety import Variety, unit_of

FORMAT = "keima played games 2"
LIMIT_BOARDS = 2
"""Moves a point after which a game is broken off, unless the options say: rules without superko allow endless ones"""
PASSES = ("last", "free")
DEAD_STONES = ("alive", "removed")
RESIGNATION = 1
"""Stream of random numbers: which games are played out"""


def move_limit(size: int) -> int:
    """The limit of games where the options set none."""
    return min(LIMIT_BOARDS * size**2, MAX_MOVES)


@dataclass(frozen=True)
class BulkOptions(Checked):
    """How games in bulk are played; a run goes on only with the options that it began with."""

    variety: Variety
    size: int = option(19, "of the board", low=MIN_SIZE, high=MAX_SIZE)
    passes: str = option(
        PASSES[0], "last: a pass only where nothing is left to play but own eyes; free: as the policy draws it",
        choices=PASSES,
    )  # fmt: skip
    free_moves: int = option(0, "moves at the start of a game that may be any, however improbable", low=0)
    least_share: float = option(
        0.0, "after those, moves less probable than this share of the likeliest are not played", low=0.0, high=1.0
    )
    resign: float = option(0.0, "win rate below which a move is hopeless; 0 = games are played out", low=0.0, high=0.5)
    resign_count: int = option(3, "hopeless moves of a colour in a row after which it resigns", low=1)
    played_out: float = option(
        0.1, "share of the games that go on after one side would have resigned, to count wrong ones", low=0.0, high=1.0
    )
    dead_stones: str = option(
        DEAD_STONES[0], "when games are counted, alive: as they stand; removed: without those that rollouts find dead",
        choices=DEAD_STONES,
    )  # fmt: skip
    limit: int = option(0, "moves after which a game is broken off, counted and marked; 0 = twice the points", low=0)
    games_per_shard: int = option(10000, "in all shards but the last", low=1)
    seed: int = option(1, "of all that is drawn", low=0)

    def conduct(self) -> Conduct:
        """The same as the kernels read it."""
        return Conduct(
            limit=min(self.limit, MAX_MOVES) if self.limit else move_limit(self.size),
            is_pass_last=self.passes == "last",
            free_moves=self.free_moves,
            least_share=self.least_share,
            resign_below=2.0 * self.resign - 1.0 if self.resign > 0.0 else -2.0,
            resign_count=self.resign_count,
            are_dead_removed=self.dead_stones == "removed",
        )

    def record(self) -> dict[str, Any]:
        """For the manifest."""
        return {name: value for name, value in vars(self).items() if name != "variety"} | self.variety.record()


def players_of(numbers: np.ndarray, n_networks: int) -> np.ndarray:
    """int64[K, 2, 2]: who plays; of two networks the first has Black in even games.

    Args:
        numbers: int64[K].
    """
    players = np.zeros((len(numbers), 2, 2), np.int64)
    if n_networks == 2:
        players[:] = np.stack([numbers % 2, 1 - numbers % 2], axis=1)[:, None]
    return players


def setups_of(options: BulkOptions, numbers: np.ndarray, n_networks: int) -> Setups:
    """How the games of some numbers (int64[K]) begin."""
    rules, temperatures = options.variety.draw(options.seed, numbers, options.size)
    return Setups(
        rules=rules,
        temperatures=temperatures,
        players=players_of(numbers, n_networks),
        switches=np.full(len(numbers), NEVER, np.int64),
        quits=(unit_of(options.seed, numbers, RESIGNATION) >= options.played_out).astype(np.int64),
    )


class Plan:
    """What a run plays and keeps: games between one network or two, all of them."""

    attempts = 1
    """games that may be played for each one wanted"""

    def __init__(self, options: BulkOptions, n_networks: int) -> None:
        self.options, self._n_networks = options, n_networks

    def record(self) -> dict[str, Any]:
        """For the manifest: what a run must go on with."""
        return {"format": FORMAT, "options": self.options.record()}

    @property
    def most_positions(self) -> int:
        """The most that a game may give."""
        return self.options.conduct().limit

    def positions(self, games: Games) -> np.ndarray:
        """int64[G]: how many positions games that were kept give: all that are before a move."""
        return np.diff(games.offsets)

    def play(
        self, servers: Sequence[InferenceServer], at_once: int, numbers: Iterator[int], stopped: threading.Event
    ) -> Iterator[Games]:
        """Play games of some numbers; yields what is kept of those that end.

        Args:
            servers: of the networks that play: one against itself, or two.
            at_once: games.
            stopped: ends play once it is set.
        Raises:
            RuntimeError: a network failed.
        """
        options = self.options
        group = Group(servers, options.size, at_once, options.conduct(), options.seed, self.set_up, stopped)
        for finished in group.play(numbers):
            yield self.kept(finished)

    def set_up(self, numbers: np.ndarray) -> Setups:
        """How the games of some numbers (int64[K]) begin. Game n is attempt ``n % attempts`` of what is wanted."""
        return setups_of(self.options, numbers, self._n_networks)

    def kept(self, finished: Finished) -> Games:
        """What is kept of games that ended, numbered by what was wanted."""
        return finished.games._replace(resigner=finished.resigner)


def check_player(spec: NetworkSpec, sizes: Sequence[int], variety: Variety) -> None:
    """Refuse games that a network cannot play.

    Raises:
        ValueError: one line.
    """
    if "policy" not in spec.heads:
        raise ValueError(f"network {spec.name} has no policy to play by")
    spec.check_sizes(np.array(sizes, np.int64))
    known = ENCODERS[spec.encoder].komi
    if known is not None and any((komi.low, komi.high) != (known, known) for komi, _ in variety.komi):
        raise ValueError(f"network {spec.name} knows no komi but {known:g}: ask for that one alone")
