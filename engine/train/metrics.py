"""Figures of a network on held-out positions, and the curves of a run.

Everything here sees a network as an :data:`Evaluate`, so that a module in training and a finished network behind an
inference server are measured by the same words. Start at :func:`judge`.
"""

import csv
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from engine.features.encoder import Encoder
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE
from engine.nets.compute.precision import likes_bfloat16
from engine.nets.network import NetOutput
from engine.records.games import Games, select
from engine.records.labels import Labels
from engine.records.replay import game_rules
from engine.train.batches import Batch, BatchBuilder
from engine.train.dataset import sample_games
from engine.train.drawing import new_figure, save_figure
from engine.train.teacher import softmax

CHUNK = 64
STAGES = (("opening", 0, 60), ("middle", 60, 150), ("endgame", 150, 100000))
"""Stage of a game by move number."""
SAMPLE_SEED = 20160127
LEAST_CHANCE = 1e-300
"""What a move of probability 0 counts as in a logarithm."""
ALL_SIZES = (MIN_SIZE, MAX_SIZE)

Evaluate = Callable[[np.ndarray, np.ndarray], NetOutput]
"""A network from outside: planes float32[B, C, N, N] and globals float32[B, G] in, float32 arrays instead of tensors
out. The policy may lack the pass: [B, N*N]."""


def in_training(model: nn.Module, device: torch.device) -> Evaluate:
    """A module in training as :data:`Evaluate`."""

    def evaluate(planes: np.ndarray, globals_: np.ndarray) -> NetOutput:
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=likes_bfloat16(device)):
            shown = torch.from_numpy(planes).to(device, memory_format=torch.channels_last)
            heads = model(shown, torch.from_numpy(globals_).to(device))
        policy, value, score, ownership = (None if head is None else head.float().cpu().numpy() for head in heads)
        return NetOutput(
            policy, None if value is None else np.tanh(value), score, None if ownership is None else np.tanh(ownership)
        )

    return evaluate


class Judged(NamedTuple):
    """What a network said of P positions of games beside what happened; NaN where one of the two is missing."""

    ply: np.ndarray
    """int64[P]: moves played before"""
    rank: np.ndarray
    """float64[P]: moves the policy puts before the one played, of equals those of a lower index; NaN for a pass"""
    cross_entropy: np.ndarray
    """float64[P]: nats; NaN for a pass"""
    value: np.ndarray
    """float64[P]: expected result for the side to move, -1 to 1"""
    result: np.ndarray
    """float64[P]: 1 = the side to move won, -1 = it lost; NaN where nobody did or it is unknown"""


def judge(
    evaluate: Evaluate, builder: BatchBuilder, games: Games, rows: np.ndarray, plies: np.ndarray, symmetries: int = 1
) -> list[Judged]:
    """Compare what a network says of positions with the move that was played and the result of the game.

    Passes count for no figure of the policy, whether or not the network can pass: the published figures leave them
    out, and all networks are to be judged on the same positions. Illegal points are not masked.

    Args:
        rows, plies: int64[P]: games of one board size, and the moves before the position.
        symmetries: how many of the eight each position is shown under.
    Returns:
        the network seeing each position as it is, and if there are more symmetries, the ensemble of all: their move
        probabilities, turned back, and their values averaged.
    """
    size, count = int(games.size[rows[0]]), len(rows)
    shown, turns = np.repeat(np.arange(count), symmetries), np.tile(np.arange(symmetries), count)
    rules = game_rules(games, rows[shown], games.territory[rows[shown]])
    planes, globals_, colors = builder.encode(games, rows[shown], plies[shown], rules, turns)
    output = evaluate(planes, globals_)
    chances = values = None
    if output.policy is not None:
        table = _turn_table(size)[:symmetries, : output.policy.shape[1]]
        chances = np.take_along_axis(softmax(output.policy).reshape(count, symmetries, -1), table[None], axis=2)
    if output.value is not None:
        values = output.value.reshape(count, symmetries).astype(np.float64)
    played = games.moves[games.offsets[rows] + plies].astype(np.int64)
    sign = np.where(colors[::symmetries] == BLACK, 1.0, -1.0)
    result = np.where(games.result[rows] != 0, sign * games.result[rows], np.nan)
    found = []
    for used in sorted({1, symmetries}):
        rank = loss = np.full(count, np.nan)
        if chances is not None:
            rank, loss = _compare_moves(chances[:, :used].mean(axis=1), played, size)
        value = np.full(count, np.nan) if values is None else values[:, :used].mean(axis=1)
        found.append(Judged(plies, rank, loss, value, result))
    return found


_turn_table = functools.cache(lambda size: symmetry_table(size).astype(np.int64))


def _compare_moves(chances: np.ndarray, played: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rank and cross-entropy of the moves played; see :class:`Judged`."""
    asked = played < size * size
    played = np.where(asked, played, 0)[:, None]
    chance = np.take_along_axis(chances, played, axis=1)
    # Outputs in bfloat16 are often equal; counting the move played as the first of its equals would flatter.
    before = (chances > chance) | ((chances == chance) & (np.arange(chances.shape[1]) < played))
    loss = -np.log(np.maximum(chance[:, 0], LEAST_CHANCE))
    return np.where(asked, before.sum(axis=1), np.nan), np.where(asked, loss, np.nan)


def judge_games(
    evaluate: Evaluate, encoder: Encoder, games: Games, rows: np.ndarray, plies: np.ndarray, symmetries: int = 1,
    batch: int = CHUNK, threads: int = 1, on_progress: Callable[[int], None] | None = None,
) -> list[Judged]:  # fmt: skip
    """:func:`judge` for positions of any board sizes, in the order given; the same however many threads.

    Args:
        batch: boards shown to the network at a time.
        threads: callers of ``evaluate``; 1 = the calling thread alone.
        on_progress: called with the number of positions done since the last call.
    """
    own, step = local(), max(1, batch // symmetries)

    def work(part: np.ndarray) -> list[Judged]:
        if not hasattr(own, "builder"):
            own.builder = BatchBuilder(encoder)
        judged = judge(evaluate, own.builder, games, rows[part], plies[part], symmetries)
        if on_progress:
            on_progress(len(part))
        return judged

    parts: list[np.ndarray] = []
    for size in np.unique(games.size[rows]):
        chosen = np.flatnonzero(games.size[rows] == size)
        parts += np.split(chosen, range(step, len(chosen), step))
    if threads == 1:
        found = [work(part) for part in parts]
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="judge") as pool:
            found = list(pool.map(work, parts))
    order = np.argsort(np.concatenate(parts))
    return [
        Judged(*(np.concatenate(arrays)[order] for arrays in zip(*pieces, strict=True)))
        for pieces in zip(*found, strict=True)
    ]


def figures_of(judged: Judged) -> dict[str, float]:
    """Figures over positions, each also by stage, as ``top1/opening``; left out where nothing is known.

    Returns:
        ``top1``, ``top5`` as fractions and ``cross_entropy`` in nats; ``value_mse`` ((z - v)^2 with z = 1 or -1) and
        ``value_accuracy`` as a fraction.
    """
    error = judged.result - judged.value
    by_name = {
        "top1": np.where(np.isnan(judged.rank), np.nan, judged.rank < 1),
        "top5": np.where(np.isnan(judged.rank), np.nan, judged.rank < 5),
        "cross_entropy": judged.cross_entropy,
        "value_mse": error**2,
        "value_accuracy": np.where(np.isnan(error), np.nan, np.sign(judged.value) == judged.result),
    }
    figures = {}
    for name, values in by_name.items():
        known = ~np.isnan(values)
        if known.any():
            figures[name] = float(values[known].mean())
        for stage, first, last in STAGES:
            inside = known & (judged.ply >= first) & (judged.ply < last)
            if inside.any():
                figures[f"{name}/{stage}"] = float(values[inside].mean())
    return figures


def sample_positions(games: Games, count: int, sizes: tuple[int, int] = ALL_SIZES) -> tuple[np.ndarray, np.ndarray]:
    """A fixed sample of positions, spread over all games on boards of some sizes: (game, ply), both int64[count].

    Raises:
        ValueError: there is no such game.
    """
    usable = (np.diff(games.offsets) > 0) & (games.size >= sizes[0]) & (games.size <= sizes[1])
    if usable.all() and len(usable):
        return sample_games(games, count, SAMPLE_SEED)
    if not usable.any():
        raise ValueError(f"no game with moves on a board of {sizes[0]} to {sizes[1]} points a side")
    rows, plies = sample_games(select(games, usable), count, SAMPLE_SEED)
    return np.flatnonzero(usable)[rows], plies


def game_figures(
    evaluate: Evaluate, encoder: Encoder, games: Games, count: int, sizes: tuple[int, int] = ALL_SIZES
) -> dict[str, float]:
    """How well a network foresees people's moves and the results of their games: :func:`figures_of` a sample.

    Args:
        count: positions, a fixed sample spread over all games on boards of these sizes.
    Raises:
        ValueError: there is no such game.
    """
    rows, plies = sample_positions(games, count, sizes)
    return {"positions": len(rows)} | figures_of(judge_games(evaluate, encoder, games, rows, plies)[0])


def label_figures(
    evaluate: Evaluate, encoder: Encoder, labels: Labels, count: int, sizes: tuple[int, int] = ALL_SIZES
) -> dict[str, float]:
    """Agreement with a teacher's labels, by board size.

    Args:
        count: most positions of each size.
    Returns:
        for each size N, as far as the network has the heads: ``value_mse/N`` ((v - t)^2 with values in [-1, 1]),
        ``teacher_top1/N``, ``score_mae/N`` in points, ``ownership_mse/N``.
    """
    builder = BatchBuilder(encoder)
    rng = np.random.default_rng(20170127)
    figures: dict[str, float] = {}
    of_row = labels.games.size[labels.game]
    for size in np.unique(of_row):
        if not sizes[0] <= size <= sizes[1]:
            continue
        rows = rng.permutation(np.flatnonzero(of_row == size))[:count]
        sums: dict[str, float] = {}
        for start in range(0, len(rows), CHUNK):
            batch = builder.from_labels(labels, rows[start : start + CHUNK], np.zeros(len(rows), np.int64)[:CHUNK])
            for name, values in _against_labels(evaluate(batch.planes, batch.globals), batch).items():
                sums[name] = sums.get(name, 0.0) + float(values.sum())
        figures |= {f"{name}/{size}": total / len(rows) for name, total in sums.items()}
    return figures


def _against_labels(output: NetOutput, batch: Batch) -> dict[str, np.ndarray]:
    """Figures of single positions with the teacher's targets."""
    found = {}
    if output.value is not None:
        found["value_mse"] = (output.value - batch.value) ** 2
    if output.policy is not None:
        found["teacher_top1"] = output.policy.argmax(axis=1) == batch.policy.argmax(axis=1)
    if output.score is not None and batch.area_weight.all():
        found["score_mae"] = np.abs(output.score - batch.score)
    if output.ownership is not None and batch.area_weight.all():
        found["ownership_mse"] = ((output.ownership - batch.ownership) ** 2).mean(axis=(1, 2))
    return found


PANELS = {
    "training loss": ("train/",),
    "validation: first choices": ("validation/top1", "validation/teacher_top1", "validation/seen/top1"),
    "validation: value, mean squared error": ("validation/value_mse", "validation/seen/value_mse"),
}
"""What is drawn of a run: titles, and how the names of the figures begin"""


class Curves:
    """Losses and validation figures of a run, in one CSV: columns step, name, value."""

    EVERY = 100

    def __init__(self, path: Path, step: int):
        """Go on in the file, dropping what lies beyond ``step`` (a run resumed from an earlier checkpoint)."""
        self._path, self._step = path, step
        kept = [row for row in self._rows() if int(row[0]) <= step]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("step", "name", "value"), *kept])
        self._sums: dict[str, list[torch.Tensor]] = {}
        self._latest: dict[str, float] = {}

    def _rows(self) -> list[list[str]]:
        if not self._path.exists():
            return []
        with self._path.open(newline="") as file:
            return list(csv.reader(file))[1:]

    def add(self, parts: dict[str, torch.Tensor]) -> None:
        """Enter one step's losses; their means are written every hundred steps."""
        self._step += 1
        for name, value in parts.items():
            self._sums.setdefault(name, []).append(value)
        if self._step % self.EVERY == 0:
            self._latest = {name: float(torch.stack(values).mean()) for name, values in self._sums.items()}
            self._write(self._step, {f"train/{name}": value for name, value in self._latest.items()})
            self._sums.clear()

    def validated(self, step: int, figures: dict[str, float]) -> None:
        """Enter validation figures."""
        self._write(step, {f"validation/{name}": value for name, value in figures.items()})

    def _write(self, step: int, values: dict[str, float]) -> None:
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerows((step, name, f"{value:.6g}") for name, value in values.items())

    def summary(self) -> str:
        """The latest means in a few words, for the progress bar."""
        return "training " + " ".join(f"{name} {value:.3f}" for name, value in self._latest.items())

    def plot(self, path: Path) -> None:
        """Draw the curves, one panel for each of PANELS; needs matplotlib (extra ``train``)."""
        figure = new_figure(1, len(PANELS))
        if figure is None:
            return
        series: dict[str, list[tuple[int, float]]] = {}
        for step, name, value in self._rows():
            series.setdefault(name, []).append((int(step), float(value)))
        for panel, (title, prefixes) in zip(figure.axes, PANELS.items(), strict=True):
            for name, points in sorted(series.items()):
                if name.startswith(prefixes):
                    panel.plot(*zip(*points, strict=True), label=name.partition("/")[2])
            panel.set(title=title, xlabel="step")
        save_figure(figure, path)
