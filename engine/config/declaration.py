"""Declaration of options: parsing, checks, help texts and the resolution of automatic values."""

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import Field, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin

Options = TypeVar("Options")

CONDITIONS = {
    "cpu": "on the CPU",
    "gpu": "on a GPU",
    "katago": "with KataGo's networks",
    "network": "with a network",
    "rollouts": "without a network",
    "policy_only": "with policy-only",
    "adamw": "for AdamW",
    "muon": "for Muon",
    "sgd": "for SGD",
    "otherwise": "",
}
"""Condition of an automatic value -> its words in help"""
TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}
WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
SHOWN = 60
"""Maximum number of characters of a wrong value in a message"""


class Cores(NamedTuple):
    """A number of threads that depends on the number of CPU cores."""

    low: int = 1
    high: int = 256
    spare: int = 0
    """cores left to other threads"""
    follows: str = ""
    """name of an option whose value, unless it is 0, is taken instead"""

    def __str__(self) -> str:
        text = f"{self.low} to {self.high} (cores - {self.spare})" if self.spare else "one a core"
        return f"{self.follows} where they are given, or {text}" if self.follows else text

    def number(self, options: Any) -> int:
        """Number of threads here: the value of ``follows``, else the cores less ``spare``, within bounds."""
        given = getattr(options, self.follows) if self.follows else 0
        return given or max(self.low, min(self.high, core_count() - self.spare))


def option(
    default: Any, text: str, *, low: float | None = None, high: float | None = None, unit: str = "",
    choices: tuple[str, ...] = (), flag: str = "", read: Callable[[str], Any] | None = None, **automatic: Any,
) -> Any:  # fmt: skip
    """A dataclass field with range or choices, unit and help as metadata; an option of type tuple is repeatable.

    Args:
        default: with ``automatic`` it means the automatic value, and if it is negative, so do all negative numbers.
        flag: the name on the command line, if it differs from the field's name.
        read: parses a text, if the type does not say how; raises ``ValueError``.
        automatic: condition -> automatic value; the first true condition counts, ``otherwise`` is always true.
    """
    assert automatic.keys() <= CONDITIONS.keys(), automatic
    about = {"help": text, "low": low, "high": high, "unit": unit, "choices": choices, "flag": flag, "read": read}
    return field(default=default, metadata=about | {"automatic": automatic})


def resolve(options: Options, *conditions: str) -> Options:
    """Copy options, with automatic values in place of those that ask for them.

    Args:
        conditions: the conditions of :data:`CONDITIONS` that are true; an option without a value for any of them is not
            replaced.
    """
    decided = {}
    for item in fields(options):  # type: ignore[arg-type]  # a TypeVar cannot be bound to "some dataclass"
        if not is_automatic(item, getattr(options, item.name)):
            continue
        for condition, value in item.metadata["automatic"].items():
            if condition in (*conditions, "otherwise"):
                decided[item.name] = value.number(options) if isinstance(value, Cores) else value
                break
    return replace(options, **decided)  # type: ignore[type-var]


def is_automatic(item: Field[Any], value: Any) -> bool:
    """Whether a value of an option asks for the automatic value."""
    default: Any = item.default
    if not item.metadata.get("automatic"):
        return False
    return value == default or (item.type is not str and default < 0 and value < 0)


def key_of(name: str) -> str:
    """The name of an option in the settings file; on the command line it has two dashes before it."""
    return name.replace("_", "-")


def find_option(name: str, *kinds: type) -> Field[Any] | None:
    """Find an option in options classes by its name, with dashes or underscores; None = unknown."""
    return next((item for kind in kinds for item in fields(kind) if item.name == name.replace("-", "_")), None)


def parse(item: Field[Any], text: str, name: str = "") -> Any:
    """The value of an option from a text of the command line, GTP or a bench.

    Args:
        name: the option's name in messages; empty = its own.
    Raises:
        ValueError: wrong type or out of range; one line.
    """
    kind = type_of(item)
    value: Any = text
    if read := item.metadata.get("read"):
        value = read(text)
    elif kind is bool:
        value = {"true": True, "false": False}.get(text.lower(), text)
    elif kind is int and WHOLE.fullmatch(text):
        value = int(text)
    elif kind is float:
        with suppress(ValueError):
            value = float(text)
    return checked(item, value, name)


def type_of(item: Field[Any]) -> Any:
    """The type of an option's value: ``T`` of ``T``, of ``tuple[T, ...]`` and of ``T | None`` (None = not given)."""
    return get_args(item.type)[0] if get_args(item.type) else item.type


def checked(item: Field[Any], value: Any, name: str = "") -> Any:
    """Return a value, once it has the option's type and range; an integer is valid for a float and becomes one.

    A list, of an option that may be given several times, becomes a tuple of checked values.

    Args:
        name: the option's name in messages; empty = its own.
    Raises:
        ValueError: wrong type or out of range; one line.
    """
    if isinstance(value, list) and get_origin(item.type) is tuple:
        return tuple(checked(item, one, name) for one in value)
    wanted = type_of(item)
    if wanted is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) is not wanted:
        raise ValueError(f"{name or item.name} is {shown(value)}, expected {TYPES[wanted]}")
    _check_range(item, value, name)
    return value


def check(options: Any) -> None:
    """Refuse options with a value outside the declared range.

    Raises:
        ValueError: naming the option, its value and the range.
    """
    for item in fields(options):
        _check_range(item, getattr(options, item.name), item.name)


def _check_range(item: Field[Any], value: Any, name: str) -> None:
    """Refuse a value outside the option's range or choices."""
    low, high, choices = (item.metadata.get(key) for key in ("low", "high", "choices"))
    for one in value if isinstance(value, tuple) else (value,):
        # In this form of the comparison NaN is out of range.
        is_within = (low is None or one >= low) and (high is None or one <= high)
        if not is_within or (choices and one not in choices):
            raise ValueError(f"{name or item.name} is {shown(one)}, expected {range_text(item)}")


def shown(value: Any) -> str:
    """A value for a message, in one short line."""
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > 1 << 99):
        text = str(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def no_branch(name: str, value: object) -> ValueError:
    """Make the error for a value that an option declares as a choice, but the code does not implement."""
    return ValueError(f"{name} is {shown(value)}, which is declared but not implemented here")


def range_text(item: Field[Any]) -> str:
    """The range of an option in words, for messages and help."""
    if choices := item.metadata.get("choices"):
        return f"{', '.join(choices[:-1])} or {choices[-1]}"
    unit = item.metadata.get("unit")
    bounds = bounds_text(item.metadata.get("low"), item.metadata.get("high")) or "any value"
    return f"{bounds} {unit}" if unit else bounds


def bounds_text(low: float | None, high: float | None) -> str:
    """The bounds of a number in words; empty without bounds."""
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    return "" if high is None else f"{high} or less"


def help_text(item: Field[Any]) -> str:
    """An option's help: its sentence, its automatic value and its range."""
    about, text = item.metadata, item.metadata["help"]
    if automatic := about.get("automatic"):
        chosen = [f"{value} {CONDITIONS[name]}" for name, value in automatic.items() if CONDITIONS[name]]
        if "otherwise" in automatic:
            chosen.append(f"{'else ' if chosen else ''}{automatic['otherwise']}")
        text += f"; {str(item.default).removesuffix('.0')} = {', '.join(chosen)}"
    is_bounded = any(about.get(name) not in (None, ()) for name in ("low", "high", "choices"))
    return f"{text}; {range_text(item)}" if is_bounded else text


def sections(kind: type) -> list[tuple[str, list[Field[Any]]]]:
    """Pairs of a heading and options: those that an options class declares itself, then those of each base class."""
    parents = [one for one in kind.__mro__ if issubclass(one, Checked) and one is not Checked]
    options = [item for item in fields(kind) if "help" in item.metadata]
    return [(one.heading, [item for item in options if item.name in one.__annotations__]) for one in parents]


class Checked:
    """Base of options classes; the constructor refuses values out of range."""

    heading: ClassVar[str] = "Options"
    """heading of the class's options in help and in the settings file"""

    def __post_init__(self) -> None:
        check(self)


def machine_mib() -> int:
    """Memory of this machine or of its container, in MiB; 0 = unknown."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(found, default=0) >> 20


def core_count() -> int:
    """Number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
