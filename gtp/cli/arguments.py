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
    """The callback of an option whose text, or each text of a repeatable option, is parsed by a function.

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
    """A file that is written at the end of long work; its folder is checked for write permission before."""

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
    """An integer, perhaps with bounds; help shows it as N, in the style of the engine's options."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """See :meth:`click.ParamType.get_metavar`."""
        return "N"

    def _describe_range(self) -> str:
        return bounds_text(self.min, self.max)


THREADS = click.option("--threads", default=0, type=Whole(0), help="CPU threads of the networks; 0 = one a core")


class Number(click.FloatRange):
    """A finite number, perhaps with bounds; click's own ranges accept NaN, which is neither below nor above a bound."""

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
    """A word out of several, shown without click's brackets, which stand for optional arguments."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """See :meth:`click.ParamType.get_metavar`."""
        return "|".join(self.choices)
