"""Figures of a network on held-out positions, and the curves of a run."""

import csv
from pathlib import Path

import numpy as np
import torch

from engine.features.encoder import Encoder
from engine.nets.resnet import ResNet
from engine.train.dataset import Batch, BatchBuilder, sample_games
from engine.train.records import Games, Labels

CHUNK = 64
STAGES = (("opening", 0, 60), ("middle", 60, 150), ("endgame", 150, 100000))
"""Stage of a game by move number."""


def forward(model: ResNet, batch: Batch, device: torch.device) -> tuple[np.ndarray, ...]:
    """Policy logits, value, score, ownership of a batch as float32 arrays."""
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=_reduced(device)):
        planes = torch.from_numpy(batch.planes).to(device, memory_format=torch.channels_last)
        policy, value, score, ownership = model(planes, torch.from_numpy(batch.globals).to(device))
    return tuple(out.float().cpu().numpy() for out in (policy, value.tanh(), score, ownership.tanh()))


def _reduced(device: torch.device) -> bool:
    return device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()


def policy_figures(model: ResNet, encoder: Encoder, games: Games, count: int, device: torch.device) -> dict:
    """How often people's moves are the network's first choice, or among its first five.

    Args:
        count: positions, a fixed sample spread over all games.
    Returns:
        ``positions``, ``top1``, ``top5`` as fractions, ``cross_entropy`` in nats, and ``top1/STAGE``.
    """
    rows, plies = sample_games(games, count, seed=20160127)
    builder = BatchBuilder(encoder)
    ranks, losses = [], []
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        turns = np.zeros(len(rows[part]), np.int64)
        batch = builder.from_games(games, rows[part], plies[part], games.territory[rows[part]], turns)
        logits = forward(model, batch, device)[0]
        target = logits[np.arange(len(logits)), batch.policy.argmax(axis=1)]
        ranks.append((logits > target[:, None]).sum(axis=1))
        top = logits.max(axis=1)
        losses.append(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - target)
    rank = np.concatenate(ranks)
    figures = {
        "positions": len(rank),
        "top1": float((rank == 0).mean()),
        "top5": float((rank < 5).mean()),
        "cross_entropy": float(np.concatenate(losses).mean()),
    }
    for name, first, last in STAGES:
        chosen = (plies >= first) & (plies < last)
        if chosen.any():
            figures[f"top1/{name}"] = float((rank[chosen] == 0).mean())
    return figures


def label_figures(model: ResNet, encoder: Encoder, labels: Labels, count: int, device: torch.device) -> dict:
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
            logits, value, score, ownership = forward(model, batch, device)
            sums += (
                ((value - batch.value) ** 2).sum(),
                (logits.argmax(axis=1) == batch.policy.argmax(axis=1)).sum(),
                np.abs(score - batch.score).sum(),
                ((ownership - batch.ownership) ** 2).mean(axis=(1, 2)).sum(),
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
        self._sums: dict[str, list[float]] = {}
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
            self._sums.setdefault(name, []).append(float(value))
        if self._step % self.EVERY == 0:
            self._latest = {name: float(np.mean(values)) for name, values in self._sums.items()}
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
            if kind == "train" or label.startswith(("top", "value_mse", "teacher_top1")):
                panels[int(kind == "validation")].plot(*zip(*points, strict=True), label=label)
        for panel, title in zip(panels, ("training loss", "validation"), strict=True):
            panel.set(title=title, xlabel="step")
            panel.grid(alpha=0.3)
            if panel.lines:
                panel.legend(fontsize=8)
        figure.savefig(path, dpi=110)
        plt.close(figure)
