"""Figures of a network on held-out positions, and the curves of a run."""

import csv
from pathlib import Path

import numpy as np
import torch
from torch import nn

from engine.features.encoder import Encoder
from engine.nets.network import NetOutput
from engine.train.batches import Batch, BatchBuilder
from engine.train.dataset import sample_games
from engine.train.records import Games, Labels

CHUNK = 64
STAGES = (("opening", 0, 60), ("middle", 60, 150), ("endgame", 150, 100000))
"""Stage of a game by move number."""


def forward(model: nn.Module, batch: Batch, device: torch.device) -> NetOutput:
    """What a network in training says of a batch, as float32 arrays; None where it has no such head."""
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=_reduced(device)):
        planes = torch.from_numpy(batch.planes).to(device, memory_format=torch.channels_last)
        heads = model(planes, torch.from_numpy(batch.globals).to(device))
    policy, value, score, ownership = (None if head is None else head.float().cpu().numpy() for head in heads)
    return NetOutput(
        policy, None if value is None else np.tanh(value), score, None if ownership is None else np.tanh(ownership)
    )


def _reduced(device: torch.device) -> bool:
    return device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()


def game_figures(model: nn.Module, encoder: Encoder, games: Games, count: int, device: torch.device) -> dict:
    """How well a network foresees people's moves and the results of their games.

    Args:
        count: positions, a fixed sample spread over all games.
    Returns:
        ``positions``; with a policy ``top1``, ``top5`` as fractions and ``cross_entropy`` in nats; with a value
        ``value_mse`` ((z - v)^2 with z = 1 or -1) and ``value_accuracy``; each also by stage, as ``top1/opening``.
    """
    rows, plies = sample_games(games, count, seed=20160127)
    builder = BatchBuilder(encoder)
    found: dict[str, list[np.ndarray]] = {}
    for size in np.unique(games.size[rows]):
        chosen = np.flatnonzero(games.size[rows] == size)
        for part in np.split(chosen, range(CHUNK, len(chosen), CHUNK)):
            turns = np.zeros(len(part), np.int64)
            batch = builder.from_games(games, rows[part], plies[part], games.territory[rows[part]], turns)
            for name, values in _compare(forward(model, batch, device), batch).items():
                found.setdefault(name, []).append(values)
            found.setdefault("ply", []).append(plies[part])
    joined = {name: np.concatenate(values) for name, values in found.items()}
    ply = joined.pop("ply")
    figures: dict[str, float] = {"positions": len(ply)}
    for name, values in joined.items():
        figures[name] = float(np.nanmean(values))
        for stage, first, last in STAGES:
            chosen = values[(ply >= first) & (ply < last)]
            if not np.isnan(chosen).all():
                figures[f"{name}/{stage}"] = float(np.nanmean(chosen))
    return figures


def _compare(output: NetOutput, batch: Batch) -> dict[str, np.ndarray]:
    """Figures of single positions, NaN where there is nothing to compare with."""
    found = {}
    if output.policy is not None:
        target = batch.policy.argmax(axis=1)
        asked = target < output.policy.shape[1]
        logits = output.policy[np.arange(len(target)), np.where(asked, target, 0)]
        rank = np.where(asked, (output.policy > logits[:, None]).sum(axis=1), np.nan)
        top = output.policy.max(axis=1)
        loss = top + np.log(np.exp(output.policy - top[:, None]).sum(axis=1)) - logits
        found = {"top1": _share(rank, rank < 1), "top5": _share(rank, rank < 5), "cross_entropy": loss + 0 * rank}
    if output.value is not None:
        decided = np.where(batch.value_weight > 0, 0.0, np.nan)
        found["value_mse"] = (output.value - batch.value) ** 2 + decided
        found["value_accuracy"] = _share(decided, np.sign(output.value) == batch.value)
    return found


def _share(known: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """1 or 0, NaN where ``known`` is."""
    return np.where(np.isnan(known), np.nan, hit)


def label_figures(model: nn.Module, encoder: Encoder, labels: Labels, count: int, device: torch.device) -> dict:
    """Agreement with a teacher's labels, by board size.

    Returns:
        for each size N: ``value_mse/N`` ((v - t)^2 with values in [-1, 1]), ``teacher_top1/N``, ``score_mae/N`` in
        points, ``ownership_mse/N``.
    """
    builder = BatchBuilder(encoder)
    rng = np.random.default_rng(20170127)
    figures: dict[str, float] = {}
    of_row = labels.games.size[labels.game]
    for size in np.unique(of_row):
        rows = rng.permutation(np.flatnonzero(of_row == size))[:count]
        sums = np.zeros(4)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            batch = builder.from_labels(labels, part, np.zeros(len(part), np.int64))
            output = forward(model, batch, device)
            sums += (
                ((output.value - batch.value) ** 2).sum(),
                (output.policy.argmax(axis=1) == batch.policy.argmax(axis=1)).sum(),
                np.abs(output.score - batch.score).sum(),
                ((output.ownership - batch.ownership) ** 2).mean(axis=(1, 2)).sum(),
            )
        for name, total in zip(("value_mse", "teacher_top1", "score_mae", "ownership_mse"), sums, strict=True):
            figures[f"{name}/{size}"] = float(total / len(rows))
    return figures


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
        """Draw every curve, losses left and validation right; needs matplotlib (extra ``train``)."""
        try:
            import matplotlib
        except ImportError:
            return
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        series: dict[str, list[tuple[int, float]]] = {}
        for step, name, value in self._rows():
            series.setdefault(name, []).append((int(step), float(value)))
        figure, panels = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
        for name, points in sorted(series.items()):
            kind, _, label = name.partition("/")
            if kind == "train" or label.startswith(("top1", "value_mse", "teacher_top1")):
                panels[int(kind == "validation")].plot(*zip(*points, strict=True), label=label)
        for panel, title in zip(panels, ("training loss", "validation"), strict=True):
            panel.set(title=title, xlabel="step")
            panel.grid(alpha=0.3)
            if panel.lines:
                panel.legend(fontsize=8)
        figure.savefig(path, dpi=110)
        plt.close(figure)
