"""Learning curves of a run: losses and validation metrics by step, in a CSV file and as charts."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import torch

from engine.nets.notices import say_once
from engine.pictures.charts import line_chart, side_by_side
from engine.pictures.drawing import png
from engine.system.files import written_whole

PANELS = {
    "training loss": ("train/",),
    "validation: first choices": ("validation/top1", "validation/teacher_top1", "validation/seen/top1"),
    "value, mean of (z - v)²: held out; seen = training data": ("validation/value_mse", "validation/seen/value_mse"),
}
"""Charts of a run: by title, the prefixes of the names of the metrics to draw"""
Series = dict[str, list[tuple[float, float]]]
"""Curves by name of the metric: (step, value) in the order of the file"""

HEADER = ("step", "name", "value")
ROW = re.compile(r"(\d{1,12}),([\w/.+-]{1,100}),(-?\d[\d.]{0,20}(?:e[+-]?\d{1,3})?|-?inf|nan)", re.ASCII)


def read_curves(path: Path) -> tuple[list[tuple[int, str, str]], int]:
    """(step, name, value) of every intact line of a ``curves.csv``, and the number of damaged lines.

    A killed process may leave part of a line, a power failure arbitrary bytes. A missing file counts as empty.
    """
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    found = [ROW.fullmatch(line) for line in lines if line != ",".join(HEADER)]
    rows = [(int(row[1]), row[2], row[3]) for row in found if row]
    return rows, len(found) - len(rows)


def series_of(path: Path) -> Series:
    """All curves in a run's ``curves.csv``, damaged lines left out; none if the file is missing."""
    found: Series = {}
    for step, name, value in read_curves(path)[0]:
        found.setdefault(name, []).append((float(step), float(value)))
    return found


class Curves:
    """Writes and draws losses and validation metrics of a run, in one CSV file with columns step, name, value."""

    EVERY = 100

    def __init__(self, path: Path, step: int):
        """Create the file, or continue it after removing damaged lines and those of steps after ``step``.

        Args:
            step: the step from which the run resumes, which may be before the last one in the file.
        """
        self._path, self._step = path, step
        rows, self.dropped = read_curves(path)
        with written_whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([HEADER, *(row for row in rows if row[0] <= step)])
        self._sums: dict[str, list[torch.Tensor]] = {}
        self._latest: dict[str, float] = {}

    def add(self, parts: dict[str, torch.Tensor]) -> None:
        """Add the losses (scalars by name) of the next step; every ``EVERY`` steps, write the means to the file."""
        self._step += 1
        for name, value in parts.items():
            self._sums.setdefault(name, []).append(value)
        if self._step % self.EVERY == 0:
            self.write_means()

    def write_means(self) -> None:
        """Write the means of the losses that were added since means were last written, if any."""
        if self._sums:
            self._latest = {name: float(torch.stack(values).mean()) for name, values in self._sums.items()}
            self.enter(self._step, {f"train/{name}": value for name, value in self._latest.items()})
            self._sums.clear()

    def enter(self, step: int, values: dict[str, float]) -> None:
        """Append values of a step (by name) to the file."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows((step, name, f"{value:.6g}") for name, value in values.items())

    def summary(self) -> str:
        """The mean losses that were written last, in words for the progress bar."""
        return "training " + " ".join(f"{name} {value:.3f}" for name, value in self._latest.items())

    def plot(self, path: Path, panels: Mapping[str, tuple[str, ...]] = PANELS) -> None:
        """Draw the curves to a PNG; without matplotlib print a hint instead.

        Args:
            panels: charts as in :data:`PANELS`; charts without curves are left out.
        """
        series = series_of(self._path)
        charts = []
        for title, begins in panels.items():
            names = sorted(name for name in series if name.startswith(begins))
            charts.append(line_chart(title, {name.partition("/")[2]: series[name] for name in names}, "step"))
        try:
            if any(charts):
                path.write_bytes(png(side_by_side(charts)))
        except ImportError:
            say_once(f"the curves are in {self._path}; to draw them: pip install matplotlib")
