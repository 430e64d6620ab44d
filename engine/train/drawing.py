"""Plots of curves, as PNG; matplotlib comes with the extra ``train`` and nothing else needs it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_INCHES = (6.5, 5.0)


def new_figure(rows: int = 1, columns: int = 1) -> "Figure":
    """A figure of empty panels, in ``figure.axes`` row by row.

    Raises:
        ImportError: without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * PANEL_INCHES[0], rows * PANEL_INCHES[1]), layout="constrained")
    figure.subplots(rows, columns)
    return figure


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure, with a grid and, where lines have names, a legend."""
    for panel in figure.axes:
        panel.grid(alpha=0.3)
        if panel.get_legend_handles_labels()[1]:
            panel.legend(fontsize=7, framealpha=0.5, ncols=2)
    figure.savefig(path, dpi=110)
