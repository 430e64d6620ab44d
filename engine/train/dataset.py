"""Sampling of training data: endless batches drawn from games and labels.

A batch contains positions of one board size and is a pure function of (seed, step, rank), so a resumed run sees the
same batches as an uninterrupted one. Threads prepare batches ahead: replay, encoding and targets are kernels without
the interpreter's lock (about 25 us a position on 19x19), so threads scale like processes and nothing is copied.

If preparing a batch takes longer than training on it, each batch can serve several steps, by data echoing
(:class:`Echoes`): of every ``times`` steps one has a new batch, and the others repeat batches that were new about
:data:`SPAN` steps ago, twice as many, and so on, so that new batches are needed at a steady pace. A repeated batch
appears under another symmetry (:func:`engine.train.batches.under_symmetry`), so its inputs differ. Source: Choi et al.,
"Faster Neural Network Training with Data Echoing", 2019.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from engine.config import TrainOptions
from engine.features.encoder import Encoder
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.records.final_owners import FinalOwners
from engine.records.games import Games, mover_ranks, select
from engine.records.labels import Labels
from engine.records.replay import game_rules
from engine.records.schema import join
from engine.train.batches import BatchBuilder, TrainingBatch
from engine.train.ranks import Ranks
from engine.train.teacher import Teacher

T = TypeVar("T")
AHEAD = 3
"""Number of batches that are prepared ahead, for each thread"""
SPAN = 200
"""Minimum number of steps between two uses of a batch by :class:`Echoes`; at most ``times`` steps more pass"""
SEEN_SEED, ECHO_SEED = 20160129, 1
SEEN_DRAWS = 20
"""Number of draws that make up the sample for the training error; a draw has one board size and one shard"""
DECIDED = 0.95
"""Absolute value above which a label's value (-1 to 1) counts as that of a decided game"""


class Material(NamedTuple):
    """Training data from which :class:`Mixture` draws batches."""

    games: Sequence[Games] = ()
    """games by shard"""
    labels: Sequence[Labels] = ()
    """labels by shard"""
    owners: Sequence[FinalOwners] = ()
    """for each shard of ``games``, ownership of the last boards; empty = unknown"""
    teacher: Teacher | None = None
    """network whose outputs replace targets in a share ``teacher_share`` of the steps on games; None = no teacher"""
    boards: Mapping[int, float] | None = None
    """relative frequency of each board size among the steps; None = in proportion to the games or labels"""
    mover_rank: int = 0
    """lowest rank of the side to move in positions of games, as in ``Games.rank_black``; 0 = any, and unknown ones"""
    draw_rules: Callable[[np.ndarray, int], np.ndarray] | None = None
    """draws rules and komi, int64[B, RULE_FIELDS], for batches with the teacher's targets, from random numbers
    (int64[B]) and the board size; None = the rules and komi of the games"""


class Mixture:
    """Endless batches drawn from shards of games and of labels; see the module's docstring.

    N processes that train together share one stream: the batch of a step is N times as large, and each process gets
    one part of it.
    """

    def __init__(
        self, encoder: Encoder, material: Material, options: TrainOptions,
        sizes: tuple[int, int] = (MIN_SIZE, MAX_SIZE), ranks: Ranks | None = None,
    ):  # fmt: skip
        """Make a source of batches.

        Args:
            options: ``batch`` is the number of positions of a batch, ``label_share`` the share of the steps on labels.
            sizes: smallest and largest board of the network; other boards are ignored.
            ranks: the processes that train together; None = this one alone.
        Raises:
            ValueError: no data for the network's or the wanted board sizes, or positions that searches reached and no
                teacher that can label them.
        """
        self.encoder, self.options, self.ranks = encoder, options, ranks or Ranks()
        self.games, self.labels = list(material.games), list(material.labels)
        self.teacher, self.draw_rules = material.teacher, material.draw_rules
        self.owners: list[FinalOwners | None] = [*material.owners] or [None] * len(self.games)
        self._plies_of = [plies_of(shard, material.mover_rank) for shard in self.games]
        of_games = [np.where(some.total > 0, one.size, 0) for one, some in zip(self.games, self._plies_of, strict=True)]
        self._boards = material.boards
        self._game_sizes = _BySize(of_games, sizes, material.boards, reached_weights(self.games, options.reached_share))
        of_labels = [shard.games.size[shard.game] for shard in self.labels]
        weights = None
        if options.decided_weight < 1.0:
            weights = [np.where(np.abs(one.value_black) > DECIDED, options.decided_weight, 1.0) for one in self.labels]
        self._label_sizes = _BySize(of_labels, sizes, material.boards, weights)
        # For the training error, which needs moves and results.
        of_played = [np.where(shard.are_reached(), 0, of) for shard, of in zip(self.games, of_games, strict=True)]
        self._played_sizes = _BySize(of_played, sizes, material.boards)
        self._check_reached()
        for size in material.boards or ():
            if size not in self._game_sizes.sizes | self._label_sizes.sizes:
                raise ValueError(f"no training data for boards of {size}x{size}")
        if not self._game_sizes and not self._label_sizes:
            raise ValueError("no training data: neither games nor labels were given for boards of this network")
        self.label_share = 0.0 if not self._label_sizes else options.label_share if self._game_sizes else 1.0
        self._builder = BatchBuilder(encoder)

    def batch_at(self, step: int) -> TrainingBatch:
        """The batch of one step. Threads: any."""
        rng = np.random.default_rng([self.options.seed, step])
        from_labels, size, shard, rows = self._draw(rng, self.ranks.count * self.options.batch)
        symmetries, part = rng.integers(0, 8, len(rows)), slice(self.ranks.rank, None, self.ranks.count)
        if from_labels:
            return self._builder.from_labels(self.labels[shard], rows[part], symmetries[part])
        games = self.games[shard]
        plies = self._plies(games, rows, shard, rng)
        # Moves hardly depend on the scoring rule, so half of the territory games are shown under area scoring: the
        # network must not learn to imitate people under one scoring rule only.
        territory = games.territory[rows] & (rng.random(len(rows)) < 0.5)
        can_teach = self.teacher is not None and self.teacher.plays(size)
        taught = can_teach and (rng.random() < self.options.teacher_share or games.are_reached(rows).any())
        rules = game_rules(games, rows, territory)
        if taught and self.draw_rules:
            rules = self.draw_rules(rng.integers(0, 2**62, len(rows)), size)
        batch = self._builder.from_games(
            games, rows[part], plies[part], territory[part], symmetries[part], self.owners[shard],
            self.options.result_weight, rules[part],
        )  # fmt: skip
        if taught and self.teacher:
            batch = batch._replace(**self._taught(games, rows[part], plies[part], rules[part], symmetries[part]))
        return batch

    def _draw(self, rng: np.random.Generator, count: int) -> tuple[bool, int, int, np.ndarray]:
        """Whether a step is on labels, its board size, the index of its shard, and ``count`` items of the shard."""
        size, label_share = 0, self.label_share
        if self._boards:
            # The size first: it may be missing from the games or from the labels.
            names = [*self._boards]
            shares = np.array([self._boards[name] for name in names])
            size = names[int(rng.choice(len(names), p=shares / shares.sum()))]
            has_games, has_labels = (size in stream.sizes for stream in (self._game_sizes, self._label_sizes))
            label_share = self.options.label_share if has_games and has_labels else float(has_labels)
        from_labels = bool(rng.random() < label_share)
        return from_labels, *(self._label_sizes if from_labels else self._game_sizes).draw(rng, count, size)

    def _taught(self, games: Games, *positions: np.ndarray) -> dict[str, np.ndarray]:
        """The teacher's targets, by the fields of a batch that they replace.

        Under drawn rules the games' results do not hold: value, score and ownership are then unknown if the teacher has
        no such head.
        """
        assert self.teacher is not None
        targets = self.teacher.targets(games, *positions)
        if self.draw_rules:
            nothing = np.zeros(len(positions[0]), np.float32)
            targets = {"value_known": nothing, "score_ownership_weight": nothing} | targets
        return targets

    def echo_symmetry(self, step: int) -> int:
        """The further symmetry (0 to 7) for a step on a repeated batch; 0 = identity if the step's batch is new."""
        if batch_of(step, self.options.echo)[1] == 0:
            return 0
        return int(np.random.default_rng([self.options.seed, ECHO_SEED, step]).integers(8))

    def _check_reached(self) -> None:
        """Raise ValueError unless the teacher plays all board sizes that have positions which searches reached."""
        for size in sorted(self._game_sizes.sizes):
            if self.teacher is not None and self.teacher.plays(size):
                continue
            if any(shard.are_reached(shard.size == size).any() for shard in self.games):
                raise ValueError(
                    f"positions of {size}x{size} that searches reached have no moves and results of their own: add a "
                    "--teacher that plays this board size"
                )

    def _plies(self, games: Games, rows: np.ndarray, shard: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the ply (int64[B]) of one position of each game: among its :class:`Plies`, or among
        ``positions_per_game`` fixed ones of these.
        """
        shares, few = rng.random(len(rows)), self.options.positions_per_game
        if few > 0:
            # A low-discrepancy sequence by game, shard and seed fixes the few positions that are ever used.
            which = (shares * few).astype(np.int64)
            begin = shard * 7919 + self.options.seed % 1_000_003
            shares = np.modf((rows * few + which + 1 + begin) * 0.6180339887498949)[0]
        some = self._plies_of[shard]
        return some.first[rows] + some.step[rows] * (shares * some.total[rows]).astype(np.int64)

    @property
    def shows_games(self) -> bool:
        """Whether there are games with moves and results on boards that the network plays."""
        return len(self._played_sizes) > 0

    def seen_positions(self, count: int) -> tuple[Games, np.ndarray, np.ndarray]:
        """A fixed sample of training positions from games, to measure the training error; needs :attr:`shows_games`.

        Returns:
            games, and by position the game's index and the ply, both int64[P] without repetition, P about ``count``;
            board sizes are as frequent as in batches.
        """
        rng, drawn = np.random.default_rng(SEEN_SEED), []
        for _ in range(SEEN_DRAWS):
            _, shard, rows = self._played_sizes.draw(rng, -(-count // SEEN_DRAWS))
            drawn.append([np.full(len(rows), shard), rows, self._plies(self.games[shard], rows, shard, rng)])
        shards, rows, plies = np.unique(np.concatenate(drawn, axis=1), axis=1)
        known, game = np.unique([shards, rows], axis=1, return_inverse=True)
        shown = [select(self.games[shard], known[1][known[0] == shard]) for shard in np.unique(shards)]
        return join(shown), game.ravel(), plies

    def stream(self, first_step: int, finish: Callable[[TrainingBatch], T]) -> Generator[T]:
        """The batches of all steps from ``first_step`` on, prepared by ``workers`` threads that end with the generator.

        Args:
            finish: converts each batch, in the thread that prepared it.
        """
        echoes = Echoes(lambda number: finish(self.batch_at(number)), self.options.echo)
        return prepared_ahead(echoes, first_step, self.options.workers)


def batch_of(step: int, times: int) -> tuple[int, int]:
    """The number of a step's batch, and how many earlier steps had the same batch; each batch serves ``times`` steps.

    The first batches, numbered below about ``SPAN``, serve fewer steps: their other uses would fall before step 0.
    """
    cycle, age = divmod(step, times)
    return cycle + (times - 1 - age) * -(-SPAN // times), age


class Echoes(Generic[T]):
    """Data echoing: gives each step its batch, which is made once, kept, and used ``times`` times. Threads: any."""

    def __init__(self, make: Callable[[int], T], times: int) -> None:
        """Prepare; no batch is made yet.

        Args:
            make: makes the batch of a number; called when a step first needs the batch.
            times: number of steps that use each batch.
        """
        self._make, self._times = make, times
        self._made: dict[int, T] = {}
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Number of batches that are kept now, for later steps."""
        return len(self._made)

    def __call__(self, step: int) -> T:
        """The batch of one step; forgotten after the last step that uses it."""
        number, age = batch_of(step, self._times)
        is_last = age == self._times - 1
        with self._lock:
            made = self._made.pop(number, None) if is_last else self._made.get(number)
        if made is None:
            # A run that begins or resumes has no earlier batches; their numbers determine them.
            made = self._make(number)
            if not is_last:
                with self._lock:
                    self._made[number] = made
        return made


def prepared_ahead(batch_at: Callable[[int], T], first_step: int, workers: int) -> Generator[T]:
    """Yield the batch of every step from ``first_step`` on, endlessly, prepared ahead by threads.

    Args:
        batch_at: returns the batch of a step; called in any of the threads.
        workers: number of threads, which end when the generator is closed.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="batches")
    ready: deque[Future[T]] = deque()
    step = first_step
    try:
        while True:
            while len(ready) < AHEAD * workers:
                ready.append(pool.submit(batch_at, step))
                step += 1
            yield ready.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Plies(NamedTuple):
    """The positions of G games to train on: of game g the plies first[g] + k * step[g], k = 0 to total[g] - 1."""

    first: np.ndarray
    """int64[G]"""
    step: np.ndarray
    """int64[G]: 2 where one side's positions are left out, else 1"""
    total: np.ndarray
    """int64[G]; 0 = no position"""


def plies_of(games: Games, mover_rank: int) -> Plies:
    """The positions of games to train on: all, or a game's only position for training.

    Args:
        mover_rank: lowest rank of the side to move, as in ``Games.rank_black``; 0 = any.
    """
    is_only, length = games.position >= 0, np.diff(games.offsets)
    first = np.where(is_only, games.position, 0).astype(np.int64)
    step, count = np.ones(len(length), np.int64), np.where(is_only, 1, length)
    if mover_rank:
        ranks = np.stack([mover_ranks(games, np.arange(len(length)), first + k) for k in (0, 1)])
        wanted = (ranks != 0) & (ranks >= mover_rank)
        count = np.where(wanted.all(axis=0), count, (count + wanted[0]) // 2 * wanted.any(axis=0))
        first, step = np.where(wanted[0], first, first + 1), np.where(wanted.all(axis=0), 1, 2)
    return Plies(first, step, count)


class _BySize:
    """Draws items (games or labels) from several shards; all items of a draw have one board size and one shard."""

    def __init__(
        self, sizes: Sequence[np.ndarray], limits: tuple[int, int], boards: Mapping[int, float] | None,
        weights: Sequence[np.ndarray] | None = None,
    ):  # fmt: skip
        """Group the items by board size.

        Args:
            sizes: for each shard, int[K]: board size of each item.
            limits: smallest and largest board size to draw.
            boards: relative frequency of each board size; None = in proportion to the items' weights.
            weights: for each shard, float64[K]: relative frequency of each item; None = equal.
        """
        self._rows = [{int(size): np.flatnonzero(of == size) for size in np.unique(of)} for of in sizes]
        known = [(size, shard) for shard, held in enumerate(self._rows) for size in held]
        self._groups = [
            (size, shard) for size, shard in known if limits[0] <= size <= limits[1] and (not boards or size in boards)
        ]
        self.sizes = {size for size, _ in self._groups}
        self._masses = {
            (size, shard): np.cumsum(weights[shard][self._rows[shard][size]]) for size, shard in self._groups if weights
        }
        of_groups = [
            self._masses[size, shard][-1] if weights else len(self._rows[shard][size]) for size, shard in self._groups
        ]
        counts = np.array(of_groups, np.float64)
        if boards:
            of = np.array([size for size, _ in self._groups])
            counts *= [boards[size] / counts[of == size].sum() for size in of.tolist()]
        self._probabilities = counts / (counts.sum() or 1.0)

    def __len__(self) -> int:
        return len(self._groups)

    def draw(self, rng: np.random.Generator, count: int, size: int = 0) -> tuple[int, int, np.ndarray]:
        """Draw a board size, a shard's index, and ``count`` items of the shard (int64), with repetition.

        Args:
            size: the only board size to draw; 0 = any.
        """
        chances = self._probabilities
        if size:
            chances = np.where([of == size for of, _ in self._groups], chances, 0.0)
        size, shard = self._groups[int(rng.choice(len(self._groups), p=chances / chances.sum()))]
        rows, mass = self._rows[shard][size], self._masses.get((size, shard))
        if mass is None:
            return size, shard, rng.choice(rows, count)
        return size, shard, rows[draw_by_mass(mass, rng, count)]


def draw_by_mass(mass: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw ``count`` indices (int64) with repetition, from the cumulative sum of their weights (float64)."""
    return np.minimum(np.searchsorted(mass, rng.random(count) * mass[-1], "right"), len(mass) - 1)


def reached_weights(shards: Sequence[Games], share: float) -> list[np.ndarray] | None:
    """Sampling weights of games that only lead to a position that a search reached, and of all other games.

    Args:
        share: share of the reached positions among all drawn of a board size that has other games too.
    Returns:
        for each shard, float64[G]: weights with mean 1 over each board size; None = no reached positions.
    """
    if not any(shard.are_reached().any() for shard in shards):
        return None
    sizes = np.concatenate([shard.size for shard in shards])
    is_reached = np.concatenate([shard.are_reached() for shard in shards])
    weights = np.ones(len(sizes))
    for size in np.unique(sizes):
        reached, others = (sizes == size) & is_reached, (sizes == size) & ~is_reached
        if reached.any() and others.any():
            count = reached.sum() + others.sum()
            weights[reached], weights[others] = share * count / reached.sum(), (1.0 - share) * count / others.sum()
    return np.split(weights, np.cumsum([len(shard.size) for shard in shards])[:-1])


def sample_games(games: Games, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A fixed sample of positions without repetition, spread over all games as evenly as their lengths allow.

    Of a game with an only position for training, only that position is taken.

    Returns:
        the game's index and the ply of each position, both int64[count], or of all positions if there are fewer.
    """
    rng, n_games = np.random.default_rng(seed), len(games.size)
    first = np.maximum(games.position, 0).astype(np.int64)
    lengths = np.where(games.position >= 0, 1, np.diff(games.offsets))
    if count <= n_games and lengths.all():
        rows = rng.permutation(n_games)[:count]
        return rows, first[rows] + (rng.random(count) * lengths[rows]).astype(np.int64)
    game = np.repeat(np.arange(n_games), lengths)
    shuffled = np.lexsort((rng.random(len(game)), game))
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(game)) - starts[game]
    chosen = np.lexsort((rng.random(len(game)), place))[:count]
    return game[chosen], first[game[chosen]] + shuffled[chosen] - starts[game[chosen]]
