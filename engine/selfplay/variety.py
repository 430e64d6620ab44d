"""What differs from game to game in bulk play: rules, komi and temperature, drawn by shares.

On the command line a share is written ``WHAT=SHARE`` (:func:`parse_share`); shares need not sum to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from engine.go.geometry import MIN_SIZE
from engine.go.position import apply_rules, new_position
from engine.go.rules import SCORING_TERRITORY, Rules, twice_komi

T = TypeVar("T")
Shares = tuple[tuple[T, float], ...]
"""Values and how often each is drawn, relative to the others"""
USUAL = "usual"
USUAL_AREA_KOMI, SMALL_AREA_KOMI, SMALL_SIZE = 7.5, 7.0, 9
"""Komi of even games by area, on boards up to ``SMALL_SIZE`` and on larger ones; by territory one point less"""
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 10.0


class Komi(NamedTuple):
    """A komi, or where it is drawn from."""

    low: float = np.nan
    """NaN = the usual komi of the board and the rules"""
    high: float = np.nan

    def draw(self, rng: np.random.Generator, size: int, rules: Rules) -> float:
        """White's points, in half points."""
        if np.isnan(self.low):
            area = SMALL_AREA_KOMI if size <= SMALL_SIZE else USUAL_AREA_KOMI
            return area - (rules.scoring == SCORING_TERRITORY)
        return int(rng.integers(twice_komi(self.low), twice_komi(self.high) + 1)) / 2

    def __str__(self) -> str:
        if np.isnan(self.low):
            return USUAL
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Variety:
    """The mixture that games are drawn from."""

    rules: Shares[Rules]
    komi: Shares[Komi]
    temperature: Shares[float]

    def draw(self, seed: int, number: int, size: int) -> tuple[np.ndarray, float]:
        """Rules with komi (int64[RULE_FIELDS]) and temperature of one game: a function of these three numbers."""
        rng = np.random.default_rng([seed, number, size])
        rules = _drawn(self.rules, rng)
        komi = _drawn(self.komi, rng).draw(rng, size, rules)
        position = new_position(MIN_SIZE)
        apply_rules(position, rules, komi)
        return position.rules, _drawn(self.temperature, rng)


def _drawn(shares: Shares[T], rng: np.random.Generator) -> T:
    """One of the values."""
    weights = np.array([share for _, share in shares])
    return shares[int(rng.choice(len(shares), p=weights / weights.sum()))][0]


def parse_share(text: str, read: Callable[[str], T]) -> tuple[T, float]:
    """A value and its share from ``WHAT=SHARE``; without a share it is 1.

    Raises:
        ValueError: ``read`` refuses the value, or the share is no positive number; one line.
    """
    # Rules may be a JSON object, which holds no "=".
    what, _, share = text.partition("=")
    try:
        weight = float(share or 1)
    except ValueError:
        weight = np.nan
    if not 0 < weight < np.inf:
        raise ValueError(f"{text!r}: the share {share!r} is no positive number, expected WHAT=SHARE")
    return read(what.strip()), weight


def read_komi(text: str) -> Komi:
    """``usual``, a number, or a range as ``LOW..HIGH``.

    Raises:
        ValueError: none of these; one line.
    """
    if text == USUAL:
        return Komi()
    low, dots, high = text.partition("..")
    try:
        found = Komi(float(low), float(high if dots else low))
        twice_komi(found.low), twice_komi(found.high)
    except ValueError as error:
        raise ValueError(f"komi {text!r}, expected usual, a number in half points, or a range as 5.5..9.5") from error
    if found.low > found.high:
        raise ValueError(f"komi {text!r}: the range is empty")
    return found


def read_temperature(text: str) -> float:
    """A temperature.

    Raises:
        ValueError: out of range, or no number; one line.
    """
    try:
        found = float(text)
    except ValueError:
        found = np.nan
    if not MIN_TEMPERATURE <= found <= MAX_TEMPERATURE:
        raise ValueError(f"temperature {text!r}, expected {MIN_TEMPERATURE} to {MAX_TEMPERATURE}")
    return found
