"""Architecture hyperparameters (a network's "shape"): the whole numbers that fix its size, each with its range."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

from engine.config.declaration import check, option

MIN_SIZE, MAX_SIZE = 2, 25
"""Sizes of boards in the engine"""


def dimension(text: str, low: int, high: int, default: Any = MISSING) -> Any:
    """A field of a shape: its meaning and range; without a default it must be given."""
    return option(default, text, low=low, high=high)


def board_size() -> Any:
    """The field ``size`` of an architecture whose parameters belong to one board size."""
    return dimension("the one board size it plays", MIN_SIZE, MAX_SIZE, 19)


@dataclass(frozen=True)
class Shape:
    """Base of all shapes: the numbers of input planes and of global values; and ``size`` where that is fixed.

    Raises:
        ValueError: a value is no whole number or out of its range; one line.
    """

    planes: int
    # No field, for it has no annotation; a shape that reads global values makes it one.
    globals = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{item.name} is {str(value)[:40]!r}, expected a whole number")
        check(self)

    @classmethod
    def read(cls, values: Any) -> Self:
        """The shape of a file's header or of options.

        Raises:
            ValueError: unknown or missing names, or wrong values; one line.
        """
        known = [item.name for item in fields(cls)]
        needed = {item.name for item in fields(cls) if item.default is MISSING}
        if not isinstance(values, Mapping) or not needed <= set(values) <= set(known):
            raise ValueError(f"the shape has {_faults(values, known, needed)}, expected {', '.join(known)}")
        return cls(**values)


def _faults(values: Any, known: list[str], needed: set[str]) -> str:
    """What is wrong with the names of a shape."""
    if not isinstance(values, Mapping):
        return str(values)[:40]
    unknown = ", ".join(str(name)[:40] for name in values if name not in known)[:120]
    lacking = ", ".join(sorted(needed - set(values)))
    return " and ".join([f"unknown {unknown}"] * bool(unknown) + [f"no {lacking}"] * bool(lacking))
