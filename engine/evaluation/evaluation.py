"""Evaluation of a finished network on held-out games: the report of ``keima evaluate``.

Threads replay and encode positions for the network, which an inference server runs: one evaluator a core on the CPU,
or batches merged from all threads on a GPU. Start at :func:`evaluate_network`.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.config.declaration import core_count
from engine.evaluation.rollout_values import COUNTS, rollout_values
from engine.evaluation.values import (
    CONSTANT,
    NETWORK,
    Estimate,
    by_move,
    calibration_error,
    error_table,
    errors_beside,
    histogram,
    reliability,
)
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.records.games import Games, mover_ranks
from engine.records.labels import Labels
from engine.records.sgf_values import rank_text
from engine.rollout.policy import Tables
from engine.train.metrics import PositionMetrics, evaluate_positions, label_metrics, mean_metrics, sample_positions

BATCH = {"cpu": 32, "cuda": 512}
"""Positions in one call of the network, by device type; larger batches than this are no faster on a CPU"""
WINNERS = {1: "won by Black", -1: "won by White", 0: "without a known winner"}


NewBar = Callable[[str, int], Callable[[float], None]]
"""Opens a progress bar with a title and total; returns a function to call with the steps done since its last call"""


def _no_bar(title: str, total: int) -> Callable[[float], None]:
    """A :data:`NewBar` that shows nothing."""
    return lambda steps: None


class Wanted(NamedTuple):
    """What to measure: options of :func:`evaluate_network`."""

    positions: int
    """number of positions in the sample, which is fixed and spread over all games"""
    symmetries: int = 1
    """1 = the network alone; 8 = also its ensemble, the mean output under all eight symmetries"""
    rollouts: int = 0
    """number of sampled positions from which to make rollouts"""
    game: int = 0
    """number (from 1) of the game for which to report the value before every move; 0 = none"""
    counts: tuple[int, ...] = COUNTS
    """numbers of rollouts from a position, ascending; policies make the last"""


class Beside(NamedTuple):
    """Baselines to compare a network's value with."""

    networks: Mapping[str, Network] = {}
    """by name, other networks, with a value head"""
    policies: Mapping[str, Estimate] = {}
    """by name, functions that estimate values by rollouts of a policy"""
    tables: Tables | None = None
    """rollout policy for the baseline of ``Wanted.counts`` rollouts; None = no such baseline"""


NOTHING = Beside()


def evaluate_network(
    network: Network, games: Games, wanted: Wanted, new_bar: NewBar = _no_bar, beside: Beside = NOTHING,
    labels: Labels | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure a network's policy and value on games and, if given, on a teacher's labels.

    Args:
        new_bar: opens the progress bar of each slow part.
        beside: baselines; rollouts are made from ``wanted.rollouts`` positions.
    Returns:
        the report by name: the metrics of :func:`engine.train.metrics.mean_metrics` (with eight symmetries those of
        the ensemble, and those of the network alone as ``plain/top1`` and so on) and of
        :func:`engine.train.metrics.label_metrics`, ``positions``, ``symmetries``, ``skipped_games`` (number of games
        on sizes that the network does not play); where known ``calibration``, ``calibration_error``, ``histogram`` and
        ``by_move`` (:mod:`engine.evaluation.values`), ``by_rank`` (:func:`_by_rank`), ``rollouts``
        (:func:`_beside_rollouts`), ``game`` (:func:`_through_game`), ``constant_mse`` (error of the best constant
        value), and ``beside`` and ``policy_rollouts`` (:func:`engine.evaluation.values.errors_beside`). ``rollouts``
        and ``policy_rollouts`` have ``ms``, milliseconds of one core for a position by the same names, and the latter
        ``rollouts``, their number.
    Raises:
        ValueError: the network plays none of the games' board sizes, a baseline network does not play all sampled
            sizes, or ``wanted.game`` is no game that the network can play through.
        RuntimeError: a network failed.
    """
    sizes = network.spec.sizes
    _check_game(games, wanted.game, sizes)
    rows, plies = sample_positions(games, wanted.positions, sizes)
    for other in beside.networks.values():
        other.spec.check_sizes(games.size[rows])
    with MeasuredNetwork(network, games, wanted.symmetries, new_bar) as measured:
        clock = _Clock(network)
        found = measured.metrics_at(rows, plies, "positions")
        network_ms = clock.ms(len(rows))
        skipped = int(((games.size < sizes[0]) | (games.size > sizes[1])).sum())
        report: dict[str, Any] = {"positions": len(rows), "symmetries": wanted.symmetries, "skipped_games": skipped}
        report |= _sample_metrics(found)
        report |= _by_rank(found[-1], mover_ranks(games, rows, plies))
        if labels:
            report |= label_metrics(measured.server.ask, measured.encoder, labels, wanted.positions, sizes)
        if wanted.game and "value" in network.spec.heads:
            row = wanted.game - 1
            moves = np.arange(games.offsets[row + 1] - games.offsets[row])
            through = measured.metrics_at(np.full(len(moves), row), moves, f"game {wanted.game}")[-1]
            report["game"] = _through_game(games, row, through)
    return report | _errors_beside(found[-1], games, rows, beside, wanted, new_bar, network_ms)


class _Clock:
    """Milliseconds since its creation: of all cores together, or on another device than the CPU, of the wall."""

    def __init__(self, network: Network | None = None) -> None:
        self._time = time.process_time if network is None or network.device == "cpu" else time.perf_counter
        self._start_s = self._time()

    def ms(self, positions: int) -> float:
        """Milliseconds a position."""
        return 1000.0 * (self._time() - self._start_s) / positions


class MeasuredNetwork:
    """Computes a network's metrics at positions of games, through its own inference server; a context manager."""

    def __init__(self, network: Network, games: Games, symmetries: int, new_bar: NewBar) -> None:
        """Start the inference server.

        Raises:
            ValueError: the network's encoder is unknown.
        """
        spec = network.spec
        if spec.encoder not in ENCODERS:
            raise ValueError(f"network {spec.name}: unknown encoder {spec.encoder!r}, expected {', '.join(ENCODERS)}")
        self.encoder, self._games, self._symmetries, self._new_bar = ENCODERS[spec.encoder], games, symmetries, new_bar
        self._batch = BATCH["cpu" if network.device == "cpu" else "cuda"]
        self.server = InferenceServer(network, max_batch=self._batch)

    def metrics_at(self, rows: np.ndarray, plies: np.ndarray, title: str) -> list[PositionMetrics]:
        """:func:`engine.train.metrics.evaluate_positions` with a progress bar."""
        done, threads = self._new_bar(title, len(rows)), core_count() + self.server.evaluators
        return evaluate_positions(
            self.server.ask, self.encoder, self._games, rows, plies, self._symmetries, self._batch, threads, done
        )

    def __enter__(self) -> "MeasuredNetwork":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()


def _errors_beside(
    found: PositionMetrics, games: Games, rows: np.ndarray, beside: Beside, wanted: Wanted, new_bar: NewBar,
    network_ms: float,
) -> dict[str, Any]:  # fmt: skip
    """The entries of the report that compare the network's value with baselines, by name.

    Args:
        found: the network's metrics, P positions.
        rows: int64[P]: the game of each position.
        network_ms: time of an evaluation, in milliseconds.
    """
    known = np.flatnonzero(~np.isnan(found.result))
    if not len(known):
        return {}
    found, rows = PositionMetrics(*(array[known] for array in found)), rows[known]
    values = {NETWORK: found.value}
    report: dict[str, Any] = {}
    for name, network in beside.networks.items():
        with MeasuredNetwork(network, games, wanted.symmetries, new_bar) as measured:
            values[name] = measured.metrics_at(rows, found.ply, name)[-1].value
    if beside.networks:
        report["beside"] = errors_beside(games, rows, found.ply, found.result, values)
    if not np.isnan(found.value).all():
        report["constant_mse"] = errors_beside(games, rows, found.ply, found.result, {})[CONSTANT]
    some = slice(wanted.rollouts)
    rows, plies, found = rows[some], found.ply[some], PositionMetrics(*(array[some] for array in found))
    if wanted.rollouts and beside.tables:
        counts, threads = wanted.counts, core_count()
        # Outside the measured time: kernels are compiled or loaded, and memory is allocated.
        rollout_values(games, rows[:1], plies[:1], beside.tables, (1,))
        clock, done = _Clock(), new_bar(f"{counts[-1]:,} rollouts each", len(rows))
        rolled = rollout_values(games, rows, plies, beside.tables, counts, threads, done)
        ms = clock.ms(len(rows))
        times = {NETWORK: network_ms} | {str(count): ms * count / counts[-1] for count in counts}
        report["rollouts"] = _beside_rollouts(found, rolled, counts) | {"ms": times}
    if wanted.rollouts and beside.policies:
        values = {name: array[some] for name, array in values.items()}
        times = {NETWORK: network_ms}
        for name, estimate in beside.policies.items():
            clock = _Clock()
            values[name] = estimate(games, rows, plies, wanted.counts[-1], new_bar(f"rollouts by {name}", len(rows)))
            times[name] = clock.ms(len(rows))
        report["policy_rollouts"] = errors_beside(games, rows, plies, found.result, values)
        report["policy_rollouts"] |= {"rollouts": wanted.counts[-1], "ms": times}
    return report


def _check_game(games: Games, number: int, sizes: tuple[int, int]) -> None:
    """Raise ValueError if game ``number`` does not exist, has no moves, or has a board size that the network does not
    play; 0 = no game.
    """
    if not number:
        return
    if number > len(games.size):
        raise ValueError(f"there is no game {number}: there are {len(games.size):,} games, numbered from 1")
    size = int(games.size[number - 1])
    if not sizes[0] <= size <= sizes[1]:
        raise ValueError(f"game {number} is on {size}x{size}, the network plays {sizes[0]} to {sizes[1]}")
    if games.offsets[number] == games.offsets[number - 1]:
        raise ValueError(f"game {number} has no moves")


def _sample_metrics(found: list[PositionMetrics]) -> dict[str, Any]:
    """The report's metrics of the sample, from those of the network alone (first) and of its ensemble (last)."""
    chosen = found[-1]
    report: dict[str, Any] = mean_metrics(chosen)
    if len(found) > 1:
        report |= {f"plain/{name}": value for name, value in mean_metrics(found[0]).items()}
    if "value_mse" in report:
        report["calibration"] = reliability(chosen)
        report["calibration_error"] = calibration_error(report["calibration"])
        report["histogram"] = histogram(chosen)
        columns = chosen.columns()
        report["by_move"] = by_move(chosen.ply, {name: columns[name] for name in ("value_mse", "value_accuracy")})
    return report


def _by_rank(found: PositionMetrics, ranks: np.ndarray) -> dict[str, Any]:
    """Mean metrics by rank of the mover; empty if no rank is known.

    Args:
        ranks: int64[P], as in ``Games.rank_black``.
    Returns:
        ``by_rank``: a row for each known rank, weakest first, with ``rank`` as text, the number of ``positions``, and
        the known means of :meth:`PositionMetrics.columns` by name.
    """
    rows = []
    for rank in np.unique(ranks[ranks != 0]).tolist():
        inside = ranks == rank
        columns = {name: values[inside & ~np.isnan(values)] for name, values in found.columns().items()}
        means = {name: float(values.mean()) for name, values in columns.items() if len(values)}
        rows.append({"rank": rank_text(rank), "positions": int(inside.sum())} | means)
    return {"by_rank": rows} if rows else {}


def _beside_rollouts(found: PositionMetrics, values: np.ndarray, counts: tuple[int, ...]) -> dict[str, Any]:
    """Mean (z - v)^2 of the network's value (if it has one) and of the mean of each number of rollouts.

    Returns:
        ``positions``, the errors ``network``, and by number of rollouts such as ``100``, and ``by_move`` with these in
        each row.
    """
    errors = {"network": found.columns()["value_mse"]}
    errors |= {str(count): (found.result - values[:, i]) ** 2 for i, count in enumerate(counts)}
    return error_table(found.ply, {name: error for name, error in errors.items() if not np.isnan(error).any()})


def _through_game(games: Games, row: int, found: PositionMetrics) -> dict[str, Any]:
    """A game's report: its ``number``, ``winner`` in words, and ``value_black``, Black's value before each move."""
    black_to_move = (found.ply % 2 == 0) == (games.first[row] == BLACK)
    values = np.where(black_to_move, found.value, -found.value)
    return {"number": row + 1, "winner": WINNERS[int(games.result[row])], "value_black": values.tolist()}
