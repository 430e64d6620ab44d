"""Options of bulk games, and plans, which determine the initial state of each game and the records kept of it.

Start at :class:`Plan`.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.config.declaration import Checked, option
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE
from engine.inference.server import InferenceServer
from engine.nets.network import NetworkSpec
from engine.records.games import MAX_MOVES, Games, read_games, shard_files
from engine.records.replay import check_game, recorded
from engine.records.schema import join
from engine.selfplay.game_distribution import GameDistribution, unit_of
from engine.selfplay.games import Finished, GameBatch, Openings, Player, Setups
from engine.selfplay.table import NEVER, GameConfig
from engine.system.files import sha256_of

FORMAT = "keima played games 2"
LIMIT_BOARDS = 2
"""Default move limit of a game, in moves per board point; rules without superko allow endless games"""
PASSES = ("last", "free")
DEAD_STONES = ("alive", "removed")
RESIGNATION = 1
"""Stream of random numbers that selects the games to play out"""


def move_limit(size: int, limit: int) -> int:
    """Move limit of games by the option ``limit``: 0 = ``LIMIT_BOARDS`` moves per point; at most ``MAX_MOVES``."""
    return min(limit or LIMIT_BOARDS * size**2, MAX_MOVES)


def resignation_threshold(win_rate: float) -> float:
    """The option ``resign``, a win rate, as a threshold of values (-1 to 1); 0 gives -2, below all values."""
    return 2.0 * win_rate - 1.0 if win_rate > 0.0 else -2.0


@dataclass(frozen=True)
class BulkOptions(Checked):
    """Options of bulk games; a run resumes only with the same options."""

    distribution: GameDistribution
    size: int = option(19, "board size", low=MIN_SIZE, high=MAX_SIZE)
    passes: str = option(
        PASSES[0], "passes: last = only when every other move fills an own eye, free = as the policy draws them",
        choices=PASSES,
    )  # fmt: skip
    free_moves: int = option(0, "number of opening moves without the limit of --least-share", low=0)
    least_share: float = option(
        0.0, "smallest probability of a move, as a share of the likeliest move's", low=0.0, high=1.0
    )
    resign: float = option(0.0, "win rate below which a move is hopeless; 0 = games are played out", low=0.0, high=0.5)
    resign_count: int = option(3, "consecutive hopeless moves of a colour after which it resigns", low=1)
    played_out: float = option(
        0.1, "share of games played out without resigning, to count wrong resignations", low=0.0, high=1.0
    )
    dead_stones: str = option(
        DEAD_STONES[0], "stones in the final count: alive = all, removed = without those that rollouts find dead",
        choices=DEAD_STONES,
    )  # fmt: skip
    limit: int = option(
        0, "move limit, at which a game is stopped, counted and marked; 0 = twice the board's points", low=0
    )
    games_per_shard: int = option(10000, "games in a shard", low=1)
    seed: int = option(1, "random seed", low=0)

    def config(self) -> GameConfig:
        """The options as kernels read them."""
        return GameConfig(
            limit=move_limit(self.size, self.limit),
            seed=self.seed,
            sensible_moves=NEVER if self.passes == "last" else 0,
            free_moves=self.free_moves,
            least_share=self.least_share,
            resign_below=resignation_threshold(self.resign),
            resign_count=self.resign_count,
            are_dead_removed=self.dead_stones == "removed",
        )

    def record(self) -> dict[str, Any]:
        """The options for manifests."""
        return {
            name: value for name, value in vars(self).items() if name != "distribution"
        } | self.distribution.record()


def setups_of(options: BulkOptions, numbers: np.ndarray) -> Setups:
    """Initial state of games, given their numbers (int64[K])."""
    rules, temperatures = options.distribution.draw(options.seed, numbers, options.size)
    may_resign = (unit_of(options.seed, numbers, RESIGNATION) >= options.played_out).astype(np.int64)
    return Setups(rules, may_resign, temperatures)


class Plan:
    """Plan of a bulk run: games of one network or two, each of which gives a record. Base class of other plans."""

    attempts = 1
    """maximum number of games played for each record wanted"""

    def __init__(self, options: BulkOptions) -> None:
        self.options = options

    def record(self) -> dict[str, Any]:
        """The part of the manifest that must not change when a run resumes."""
        return {"format": FORMAT, "options": self.options.record()}

    @property
    def most_positions(self) -> int:
        """Maximum number of positions that a game can give."""
        return self.options.config().limit

    def positions(self, games: Games) -> np.ndarray:
        """int64[G]: number of positions in each of G kept records: one before each move."""
        return np.diff(games.offsets)

    def play(
        self, servers: Sequence[InferenceServer], at_once: int, numbers: Iterator[int], stopped: threading.Event
    ) -> Iterator[Games]:
        """Play the games with the given numbers; yields the records to keep of finished games.

        Args:
            servers: that of one network, which plays itself, or those of two networks.
            at_once: batch size, in games.
            stopped: play ends once this event is set; unfinished games are lost.
        Raises:
            RuntimeError: a network failed.
        """
        players = [Player(server, self.options.config()) for server in servers]
        batch = GameBatch(players, self.options.size, at_once, self.set_up, stopped)
        yield from map(self.kept, batch.play(numbers))

    def set_up(self, numbers: np.ndarray) -> Setups:
        """Initial state of games; game n is attempt ``n % attempts`` at the wanted record ``n // attempts``.

        Args:
            numbers: int64[K]: the games' numbers.
        """
        return setups_of(self.options, numbers)

    def kept(self, finished: Finished) -> Games:
        """The records to keep of finished games, numbered as wanted records (``n // attempts``)."""
        return finished.games._replace(resigner=finished.resigner)


class OpenedPlan(Plan):
    """Games of one network or two that begin with openings: the first moves of recorded games.

    Two networks play every opening twice, with colours exchanged.
    """

    def __init__(self, options: BulkOptions, n_networks: int, shards: Sequence[Path], moves: int = 0) -> None:
        """Plan a run.

        Args:
            shards: shards of the recorded games, or folders as for :func:`engine.records.games.shard_files`.
            moves: maximum number of moves in an opening; 0 = whole games.
        Raises:
            ValueError: a game cannot be an opening, or there is no game; one line.
        """
        super().__init__(options)
        self._n_networks = n_networks
        files = shard_files(shards, None)
        games = join([read_games(file) for file in files])
        self._identity = {"moves": moves, "sha256": [sha256_of(file) for file in files]}
        plies = np.diff(games.offsets)
        plies = np.minimum(plies, moves) if moves else plies
        _check_openings(games, plies, options)
        self._openings = Openings(recorded(games), np.arange(len(plies)), plies)

    def record(self) -> dict[str, Any]:
        """See :class:`Plan`."""
        return super().record() | {"openings": self._identity}

    def set_up(self, numbers: np.ndarray) -> Setups:
        """See :class:`Plan`; of two networks the games 2k and 2k + 1 have the same opening."""
        rows = numbers // self._n_networks % len(self._openings.rows)
        openings = self._openings._replace(rows=rows, plies=self._openings.plies[rows])
        return super().set_up(numbers)._replace(openings=openings)


def _check_openings(games: Games, plies: np.ndarray, options: BulkOptions) -> None:
    """Check that all games can be openings.

    Raises:
        ValueError: one line.
    """
    if not len(plies):
        raise ValueError("openings: no games, expected one or more")
    limit = options.config().limit
    for row, is_even in enumerate(games.starts_even().tolist()):
        size, moves = int(games.size[row]), games.moves[games.offsets[row] :][: plies[row]]
        is_pass = moves == size * size
        try:
            if size != options.size:
                raise ValueError(f"board size {size}x{size}, expected {options.size}x{options.size}")
            if not is_even:
                raise ValueError("it does not begin on the empty board with Black")
            if np.any(is_pass[1:] & is_pass[:-1]):
                raise ValueError("two passes end it within the opening")
            if len(moves) >= limit:
                raise ValueError(f"it has {len(moves)} moves, and the move limit is {limit}")
            check_game(size, np.zeros(0, np.uint16), BLACK, moves)
        except ValueError as error:
            raise ValueError(f"openings: game {row + 1} of {len(plies)} cannot be an opening ({error})") from error


def check_player(spec: NetworkSpec, sizes: Sequence[int], distribution: GameDistribution) -> None:
    """Check that a network has a policy and supports board sizes and the komi of a distribution.

    Raises:
        ValueError: it does not; one line.
    """
    if "policy" not in spec.heads:
        raise ValueError(f"network {spec.name} has no policy to play by")
    spec.check_sizes(np.array(sizes, np.int64))
    known = ENCODERS[spec.encoder].komi
    if known is not None and any((komi.low, komi.high) != (known, known) for komi, _ in distribution.komi):
        raise ValueError(f"network {spec.name} only supports komi {known:g}: use it for all games")
