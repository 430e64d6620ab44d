"""The curves of a run: losses and validation metrics by step, as CSV and as a picture."""

import csv
from collections.abc import Mapping
from pathlib import Path

import torch

from engine.train.drawing import new_figure, save_figure

PANELS = {
    "training loss": ("train/",),
    "validation: first choices": ("validation/top1", "validation/teacher_top1", "validation/seen/top1"),
    "validation: value, mean squared error": ("validation/value_mse", "validation/seen/value_mse"),
}
"""What is drawn of a run: titles, and how the names of the metrics begin"""


class Curves:
    """Losses and validation metrics of a run, in one CSV: columns step, name, value."""

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
            self.enter(self._step, {f"train/{name}": value for name, value in self._latest.items()})
            self._sums.clear()

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Enter validation metrics."""
        self.enter(step, {f"validation/{name}": value for name, value in metrics.items()})

    def enter(self, step: int, values: dict[str, float]) -> None:
        """Enter values of a step as they are."""
        with self._path.open("a", newline="") as file:
            csv.writer(file).writerows((step, name, f"{value:.6g}") for name, value in values.items())

    def summary(self) -> str:
        """The latest means in a few words, for the progress bar."""
        return "training " + " ".join(f"{name} {value:.3f}" for name, value in self._latest.items())

    def plot(self, path: Path, panels: Mapping[str, tuple[str, ...]] = PANELS) -> None:
        """Draw the curves.

        Args:
            panels: titles, and how the names of the values begin that are drawn there.

        Raises:
            ImportError: without matplotlib.
        """
        figure = new_figure(1, len(panels))
        series: dict[str, list[tuple[int, float]]] = {}
        for step, name, value in self._rows():
            series.setdefault(name, []).append((int(step), float(value)))
        for panel, (title, prefixes) in zip(figure.axes, panels.items(), strict=True):
            for name, points in sorted(series.items()):
                if name.startswith(prefixes):
                    panel.plot(*zip(*points, strict=True), label=name.partition("/")[2])
            panel.set(title=title, xlabel="step")
        save_figure(figure, path)
