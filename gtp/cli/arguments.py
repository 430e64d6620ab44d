"""Types of arguments, and options, that several commands share."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from engine.config.declaration import bounds_text

PATHS = click.Path(exists=True, path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print JSON instead of tables")
DEVICE = click.option("--device", default="auto", metavar="DEVICE", help="device: auto, cpu, cuda or mps")


def parsed(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Make click's callback for an option: it parses the text, or each text of a repeatable option.

    Args:
        read: parses a text; raises ``ValueError`` with the expectation.
    """

    def convert(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            if isinstance(value, tuple):
                return tuple(map(read, value))
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return convert


class NewFile(click.Path):
    """Type of the path of a file to write at the end of long work; refused at once if its folder is not writable."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See :meth:`click.ParamType.convert`."""
        found: Path = super().convert(value, param, ctx)  # type: ignore[assignment]  # as path_type says
        there = next(folder for folder in found.absolute().parents if folder.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            self.fail(f"{there} is not a writable folder.", param, ctx)
        return found


class Whole(click.IntRange):
    """Type of an integer with optional bounds; help shows it as N, in the style of the engine's options."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """See :meth:`click.ParamType.get_metavar`."""
        return "N"

    def _describe_range(self) -> str:
        return bounds_text(self.min, self.max)


THREADS = click.option("--threads", default=0, type=Whole(0), help="CPU threads of the networks; 0 = one a core")


class Number(click.FloatRange):
    """Type of a finite number with optional bounds; click's ranges accept NaN, which no bound excludes."""

    name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """See :meth:`click.ParamType.get_metavar`."""
        return "X"

    def _describe_range(self) -> str:
        low, high = (None if bound is None else float(bound) for bound in (self.min, self.max))
        if not self.min_open:
            return bounds_text(low, high)
        return ", ".join(filter(None, [f"more than {self.min}", bounds_text(None, high)]))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See :meth:`click.ParamType.convert`."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            expected = self._describe_range() or "any finite number"
            self.fail(f"{value} is not in the range {expected}.", param, ctx)
        return found


class OneOf(click.Choice[str]):
    """Type of one word out of several, which help shows without click's brackets: these mark optional arguments."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """See :meth:`click.ParamType.get_metavar`."""
        return "|".join(self.choices)
