"""Metrics of a network on held-out positions.

A network is given as an :data:`Evaluate`: a module in training, or a finished network behind an inference server.
Start at :func:`evaluate_positions`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from engine.features.encoder import Encoder
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE
from engine.go.phases import PHASE_KEYS, phase_of
from engine.nets.compute.precision import autocast
from engine.nets.compute.winograd_learning import learns_by_winograd, one_torch_thread, with_learning_winograd
from engine.nets.model import Model
from engine.nets.network import NetArrays, activated, softmax
from engine.records.games import Games, select
from engine.records.labels import Labels
from engine.records.replay import game_rules
from engine.train.batches import BatchBuilder, TrainingBatch, moves_under_symmetries
from engine.train.dataset import sample_games

CHUNK = 64
SAMPLE_SEED = 20160127
LEAST_PROBABILITY = 1e-300
"""Lower limit of probabilities before taking logarithms, against log 0"""
LEAST_LIKELY = 1e-7
"""Lower limit of probabilities in logarithms of :func:`label_metrics`, where values rounded to 1 would give log 0"""
ALL_SIZES = (MIN_SIZE, MAX_SIZE)

Evaluate = Callable[[np.ndarray, np.ndarray], NetArrays]
"""Computes a network's outputs from planes, float32[B, C, N, N], and globals, float32[B, G]"""


def in_training(model: Model, device: torch.device) -> Evaluate:
    """A module in training as :data:`Evaluate`, with the precision and convolutions of training.

    The caller chooses the module's mode, training or evaluation.
    """
    by_winograd = learns_by_winograd(device, model)
    network = with_learning_winograd(model) if by_winograd else model

    def evaluate(planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        with torch.inference_mode(), autocast(device), one_torch_thread(by_winograd):
            shown = torch.from_numpy(planes).to(device, memory_format=torch.channels_last)
            heads = network(shown, torch.from_numpy(globals_).to(device))
            return NetArrays(*(None if head is None else head.cpu().numpy() for head in activated(heads)))

    return evaluate


class PositionMetrics(NamedTuple):
    """A network's predictions for P positions of games against the moves and results of the games; NaN = missing."""

    ply: np.ndarray
    """int64[P]: number of moves before the position"""
    size: np.ndarray
    """int64[P]: board size"""
    move_rank: np.ndarray
    """float64[P]: rank of the move played, from 0: the number of more probable moves, and of equally probable ones with
    a lower policy index; NaN for a pass"""
    cross_entropy: np.ndarray
    """float64[P]: minus the logarithm of the probability of the move played, in nats; NaN for a pass"""
    value: np.ndarray
    """float64[P]: expected result for the side to move, -1 to 1"""
    result: np.ndarray
    """float64[P]: 1 = the side to move won, -1 = it lost; NaN = drawn or unknown"""

    def columns(self) -> dict[str, np.ndarray]:
        """Metrics of each position by name, float64[P]; NaN = unknown. :func:`mean_metrics` takes their means."""
        error = self.result - self.value
        return {
            "top1": np.where(np.isnan(self.move_rank), np.nan, self.move_rank < 1),
            "top5": np.where(np.isnan(self.move_rank), np.nan, self.move_rank < 5),
            "cross_entropy": self.cross_entropy,
            "value_mse": error**2,
            "value_accuracy": np.where(np.isnan(error), np.nan, np.sign(self.value) == self.result),
        }


def evaluate_one_size(
    evaluate: Evaluate, builder: BatchBuilder, games: Games, rows: np.ndarray, plies: np.ndarray, symmetries: int = 1
) -> list[PositionMetrics]:
    """Compare a network's outputs for positions with the moves played and the results of the games.

    Policy metrics exclude passes, even if the network has a pass output: published metrics do, and all networks are
    compared on the same positions. Illegal points are not masked.

    Args:
        rows, plies: int64[P]: games of one board size, and the number of moves before the position.
        symmetries: number of symmetries under which to evaluate each position, 1 to 8.
    Returns:
        metrics of the network alone and, if ``symmetries`` > 1, of its ensemble: the mean over the symmetries of the
        move probabilities, turned back by the inverse symmetry, and of the values.
    Threads: any, if ``evaluate`` is thread-safe.
    """
    size, count = int(games.size[rows[0]]), len(rows)
    shown, shown_under = np.repeat(np.arange(count), symmetries), np.tile(np.arange(symmetries), count)
    rules = game_rules(games, rows[shown], games.territory[rows[shown]])
    planes, globals_, colors = builder.encode(games, rows[shown], plies[shown], rules, shown_under)
    output = evaluate(planes, globals_)
    probabilities = values = None
    if output.policy is not None:
        table = moves_under_symmetries(size)[None, :symmetries]
        probabilities = np.take_along_axis(softmax(output.policy).reshape(count, symmetries, -1), table, axis=2)
    if output.value is not None:
        values = output.value.reshape(count, symmetries).astype(np.float64)
    played = games.moves[games.offsets[rows] + plies].astype(np.int64)
    sign = np.where(colors[::symmetries] == BLACK, 1.0, -1.0)
    result = np.where(games.result[rows] != 0, sign * games.result[rows], np.nan)
    found = []
    for used in sorted({1, symmetries}):
        move_rank = loss = np.full(count, np.nan)
        if probabilities is not None:
            move_rank, loss = _compare_moves(probabilities[:, :used].mean(axis=1), played, size)
        value = np.full(count, np.nan) if values is None else values[:, :used].mean(axis=1)
        found.append(PositionMetrics(plies, games.size[rows], move_rank, loss, value, result))
    return found


def _compare_moves(probabilities: np.ndarray, played: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """``move_rank`` and ``cross_entropy`` of :class:`PositionMetrics`.

    Args:
        probabilities: [P, A], in policy order.
        played: int64[P]: policy indices of the moves played.
    """
    is_point = played < size * size
    played = np.where(is_point, played, 0)[:, None]
    of_played = np.take_along_axis(probabilities, played, axis=1)
    # Outputs in bfloat16 are often equal; ranking the move played first among equals would be optimistic.
    is_lower = np.arange(probabilities.shape[1]) < played
    before = (probabilities > of_played) | ((probabilities == of_played) & is_lower)
    loss = -np.log(np.maximum(of_played[:, 0], LEAST_PROBABILITY))
    return np.where(is_point, before.sum(axis=1), np.nan), np.where(is_point, loss, np.nan)


def evaluate_positions(
    evaluate: Evaluate, encoder: Encoder, games: Games, rows: np.ndarray, plies: np.ndarray, symmetries: int = 1,
    batch: int = CHUNK, threads: int = 1, on_progress: Callable[[int], None] | None = None,
) -> list[PositionMetrics]:  # fmt: skip
    """Do :func:`evaluate_one_size` for positions of any board sizes; results are in the order of ``rows``.

    Args:
        rows, plies, symmetries: as for :func:`evaluate_one_size`.
        batch: maximum number of positions in a call of ``evaluate``, where each symmetry counts as one.
        threads: threads that call ``evaluate``; 1 = the calling thread alone.
        on_progress: called with the number of positions done since the last call.
    """
    builder, step = BatchBuilder(encoder), max(1, batch // symmetries)

    def work(part: np.ndarray) -> list[PositionMetrics]:
        found = evaluate_one_size(evaluate, builder, games, rows[part], plies[part], symmetries)
        if on_progress:
            on_progress(len(part))
        return found

    parts: list[np.ndarray] = []
    for size in np.unique(games.size[rows]):
        chosen = np.flatnonzero(games.size[rows] == size)
        parts += np.split(chosen, range(step, len(chosen), step))
    if threads == 1:
        found = [work(part) for part in parts]
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="evaluate") as pool:
            found = list(pool.map(work, parts))
    order = np.argsort(np.concatenate(parts))
    return [
        PositionMetrics(*(np.concatenate(arrays)[order] for arrays in zip(*pieces, strict=True)))
        for pieces in zip(*found, strict=True)
    ]


def mean_metrics(found: PositionMetrics) -> dict[str, float]:
    """Mean metrics, over all positions and by phase of the game (:mod:`engine.go.phases`).

    Returns:
        by name: ``top1`` and ``top5`` as fractions, ``cross_entropy`` in nats, ``value_mse`` ((z - v)^2 with z = 1 or
        -1) and ``value_accuracy`` as a fraction; by phase as ``top1/opening``. Unknown metrics are left out.
    """
    metrics, phase = {}, phase_of(found.ply + 1, found.size)
    for name, values in found.columns().items():
        known = ~np.isnan(values)
        if known.any():
            metrics[name] = float(values[known].mean())
        for n, key in enumerate(PHASE_KEYS):
            if (inside := known & (phase == n)).any():
                metrics[f"{name}/{key}"] = float(values[inside].mean())
    return metrics


def sample_positions(games: Games, count: int, sizes: tuple[int, int] = ALL_SIZES) -> tuple[np.ndarray, np.ndarray]:
    """A fixed sample of positions, spread over all games on boards of ``sizes`` (smallest, largest).

    Returns:
        the game's index and the ply of each position, as :func:`engine.train.dataset.sample_games`.
    Raises:
        ValueError: no game with moves is on such a board.
    """
    usable = (np.diff(games.offsets) > 0) & (games.size >= sizes[0]) & (games.size <= sizes[1])
    if usable.all() and len(usable):
        return sample_games(games, count, SAMPLE_SEED)
    if not usable.any():
        raise ValueError(f"no game with moves on a board of {sizes[0]} to {sizes[1]} points a side")
    rows, plies = sample_games(select(games, usable), count, SAMPLE_SEED)
    return np.flatnonzero(usable)[rows], plies


def game_metrics(
    evaluate: Evaluate, encoder: Encoder, games: Games, rows: np.ndarray, plies: np.ndarray
) -> dict[str, float]:
    """Evaluate a network at positions of games: :func:`mean_metrics`, and the number of ``positions``.

    Args:
        rows, plies: int64[P]: each position's game, and the number of moves before it.
    """
    return {"positions": len(rows)} | mean_metrics(evaluate_positions(evaluate, encoder, games, rows, plies)[0])


def label_metrics(
    evaluate: Evaluate, encoder: Encoder, labels: Labels, count: int, sizes: tuple[int, int] = ALL_SIZES
) -> dict[str, float]:
    """Agreement with a teacher's labels, by board size.

    Args:
        count: maximum number of positions of each board size.
        sizes: smallest and largest board size to measure.
    Returns:
        for each board size N and each head of the network: ``value_mse/N`` ((v - t)^2 with values in [-1, 1]),
        ``value_ce/N`` and ``policy_kl/N`` (cross-entropy and Kullback-Leibler divergence in nats), ``teacher_top1/N``
        (share of equal first choices); if the labels have them, ``score_mae/N`` in points and ``ownership_mse/N``.
    """
    builder = BatchBuilder(encoder)
    rng = np.random.default_rng(20170127)
    metrics: dict[str, float] = {}
    of_row = labels.games.size[labels.game]
    for size in np.unique(of_row):
        if not sizes[0] <= size <= sizes[1]:
            continue
        rows = rng.permutation(np.flatnonzero(of_row == size))[:count]
        found: dict[str, list[np.ndarray]] = {}
        for start in range(0, len(rows), CHUNK):
            some = rows[start : start + CHUNK]
            batch = builder.from_labels(labels, some, np.zeros(len(some), np.int64))
            for name, values in _against_labels(evaluate(batch.planes, batch.globals), batch).items():
                found.setdefault(name, []).append(values)
        whole = {name: np.concatenate(parts) for name, parts in found.items()}
        metrics |= {f"{name}/{size}": float(one.mean()) for name, one in whole.items() if len(one)}
    return metrics


def _against_labels(output: NetArrays, batch: TrainingBatch) -> dict[str, np.ndarray]:
    """The terms of :func:`label_metrics` by name, each for the K positions where its target is known."""
    found: dict[str, np.ndarray] = {}
    known = batch.score_ownership_weight > 0.0
    if output.value is not None:
        found["value_mse"] = (output.value - batch.value) ** 2
        wins, won = (1.0 + output.value) / 2.0, (1.0 + batch.value) / 2.0
        found["value_ce"] = -(won * _log(wins) + (1.0 - won) * _log(1.0 - wins))
    if output.policy is not None:
        found["teacher_top1"] = output.policy.argmax(axis=1) == batch.policy.argmax(axis=1)
        found["policy_kl"] = (batch.policy * (_log(batch.policy) - _log(softmax(output.policy)))).sum(axis=1)
    if output.score is not None:
        found["score_mae"] = np.abs(output.score - batch.score)[known]
    if output.ownership is not None:
        found["ownership_mse"] = ((output.ownership - batch.ownership) ** 2).mean(axis=(1, 2))[known]
    return found


def _log(probabilities: np.ndarray) -> np.ndarray:
    """Natural logarithms of probabilities, limited below by ``LEAST_LIKELY``."""
    logarithms: np.ndarray = np.log(np.maximum(probabilities, LEAST_LIKELY))
    return logarithms
