"""The settings of a game in the browser, from the page's JSON and from a saved record."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.go.points import MAX_SIZE, MIN_SIZE
from engine.go.rules import rules_named, twice_komi

COLORS = ("black", "white", "random", "both", "none")
"""Who the human plays: a colour, one drawn at random, both colours, or none (the engine plays itself)"""
HANDICAPS = ("fixed", "placed")
MAX_HANDICAP = 9
MAX_MOVE_S, MAX_MAIN_S, MAX_PERIODS = 3600.0, 86400.0, 100


@dataclass(frozen=True)
class ClockSettings:
    """The clock of both players; byo-yomi or an increment after each move, or neither."""

    main_s: float = 0.0
    byo_s: float = 0.0
    """length of a byo-yomi period"""
    byo_periods: int = 0
    inc_s: float = 0.0
    """increment after each move (Fischer)"""


@dataclass(frozen=True)
class GameSettings:
    """Board, rules, players and time of a game."""

    size: int = 19
    rules: str = "chinese"
    komi: float = 7.5
    handicap: int = 0
    handicap_stones: str = "fixed"
    """``fixed``: on the fixed points; ``placed``: on points that Black chooses"""
    color: str = "black"
    """who the human plays, one of ``COLORS`` but ``random``"""
    level: str = "max"
    seconds: float = 0.0
    """the engine's time a move without a clock; 0 = the command's"""
    clock: ClockSettings | None = None

    @property
    def engines(self) -> tuple[bool, bool]:
        """Whether the engine plays Black, and White."""
        return self.color in ("white", "none"), self.color in ("black", "none")

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON; :func:`settings_from` reads them."""
        return asdict(self)


def settings_from(body: Mapping[str, Any], base: GameSettings, levels: list[str]) -> GameSettings:
    """The settings of a game by the page's names or the record's; missing ones are those of ``base``, but a
    missing handicap or clock is none.

    Args:
        levels: names of the levels.
    Raises:
        ValueError: a setting has a wrong type or is out of range; one line.
    """
    size = whole(body, "size", base.size, MIN_SIZE, MAX_SIZE)
    rules = rules_named(word(body, "rules", base.rules)).name
    komi = number(body, "komi", base.komi, -1000.0, 1000.0)
    twice_komi(komi)
    color = word(body, "color", base.color, COLORS)
    stones = word(body, "handicapStones", word(body, "handicap_stones", base.handicap_stones, HANDICAPS), HANDICAPS)
    handicap = whole(body, "handicap", 0, 0, MAX_HANDICAP)
    if handicap == 1:
        raise ValueError("handicap is 1, expected 0 or 2 to 9")
    clock = body.get("clock")
    return replace(
        base, size=size, rules=rules, komi=komi, handicap=handicap, handicap_stones=stones, color=color,
        level=word(body, "level", base.level, levels),
        seconds=number(body, "seconds", 0.0 if clock else base.seconds, 0.0, MAX_MOVE_S),
        clock=None if clock is None else clock_from(clock),
    )  # fmt: skip


def clock_from(body: Any) -> ClockSettings | None:
    """The clock by the page's names or the record's; None = no limit in it.

    Raises:
        ValueError: a value has a wrong type or is out of range; one line.
    """
    if not isinstance(body, Mapping):
        raise ValueError(f"clock is {shown(body)}, expected an object with mainSeconds")

    def of(name: str, own: str, high: float) -> float:
        return number(body, name, number(body, own, 0.0, 0.0, high), 0.0, high)

    clock = ClockSettings(
        of("mainSeconds", "main_s", MAX_MAIN_S),
        of("byoSeconds", "byo_s", MAX_MAIN_S),
        int(of("byoPeriods", "byo_periods", MAX_PERIODS)),
        of("incSeconds", "inc_s", MAX_MAIN_S),
    )
    if clock.byo_s and not clock.byo_periods:
        clock = replace(clock, byo_periods=1)
    if clock.byo_s and clock.inc_s:
        raise ValueError("clock has byoSeconds and incSeconds, expected one of them")
    return clock if clock.main_s or clock.byo_s or clock.inc_s else None


def number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    """A number of a JSON object; raises ``ValueError`` if it has another type or is out of range."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {shown(value)}, expected a number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {shown(value)}, expected {low:g} to {high:g}")
    return float(value)


def whole(body: Mapping[str, Any], name: str, default: int | None, low: int, high: int) -> int:
    """A whole number of a JSON object; raises ``ValueError`` if it is missing, has another type or is out of range."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {shown(value)}, expected a whole number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {shown(value)}, expected {low} to {high}")
    return value


def word(body: Mapping[str, Any], name: str, default: str, choices: "tuple[str, ...] | list[str]" = ()) -> str:
    """A text of a JSON object; raises ``ValueError`` if it is no text or none of the choices (empty = any)."""
    value = body.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {shown(value)}, expected a text")
    if choices and value not in choices:
        raise ValueError(f"{name} is {shown(value)}, expected one of {', '.join(choices)}")
    return value


def words(body: Mapping[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """A list of texts of a JSON object; raises ``ValueError`` if it has another type."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name} is {shown(value)}, expected a list of texts")
    return tuple(value)


def switch(body: Mapping[str, Any], name: str) -> bool:
    """A truth value of a JSON object; raises ``ValueError`` if it is missing or none."""
    value = body.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {shown(value)}, expected true or false")
    return value


def shown(value: Any) -> str:
    """A wrong value for a message, cut to 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
