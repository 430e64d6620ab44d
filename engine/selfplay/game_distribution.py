"""Distribution of rules, komi and temperature over the games of bulk play.

On the command line an entry is ``VALUE=SHARE`` (:func:`parse_share`); shares need not sum to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from engine.go.geometry import MIN_SIZE
from engine.go.position import apply_rules, new_position
from engine.go.random import UNIT, mixed
from engine.go.rules import RULE_FIELDS, RULE_KOMI_X2, SCORING_TERRITORY, Rules, twice_komi

T = TypeVar("T")
Shares = tuple[tuple[T, float], ...]
"""Values and their relative frequencies"""
USUAL = "usual"
USUAL_AREA_KOMI, SMALL_AREA_KOMI, SMALL_SIZE = 7.5, 7.0, 9
"""Usual komi under area scoring on boards larger than ``SMALL_SIZE``, and on all others; one point less under territory
scoring"""
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 10.0


class Komi(NamedTuple):
    """A komi, or a range of them."""

    low: float = np.nan
    """NaN = the usual komi of the board and the rules"""
    high: float = np.nan

    def twice(self, size: int, rules: Rules) -> tuple[int, int]:
        """Minimum and maximum komi, in half points."""
        if np.isnan(self.low):
            area = SMALL_AREA_KOMI if size <= SMALL_SIZE else USUAL_AREA_KOMI
            usual = twice_komi(area - (rules.scoring == SCORING_TERRITORY))
            return usual, usual
        return twice_komi(self.low), twice_komi(self.high)

    def __str__(self) -> str:
        if np.isnan(self.low):
            return USUAL
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class GameDistribution:
    """Independent distributions of rules, komi and temperature."""

    rules: Shares[Rules]
    komi: Shares[Komi]
    temperature: Shares[float]

    def record(self) -> dict[str, dict[str, float]]:
        """The shares by value, for manifests."""
        return {
            "rules": {rules.name: share for rules, share in self.rules},
            "komi": {str(komi): share for komi, share in self.komi},
            "temperature": {str(temperature): share for temperature, share in self.temperature},
        }

    def draw(self, seed: int, numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw rules, komi and temperature of each game, a function of the seed, the game's number and the board size.

        Args:
            numbers: int64[K]: the games' numbers.
        Returns:
            rules with komi, int64[K, RULE_FIELDS], and temperatures, float64[K].
        """
        units = [unit_of(seed, numbers, 8 * size + i) for i in range(4)]
        which, komi = _drawn(self.rules, units[0]), _drawn(self.komi, units[1])
        flags = np.zeros((len(self.rules), RULE_FIELDS), np.int64)
        bounds = np.zeros((len(self.rules), len(self.komi), 2), np.int64)
        for i, (rules, _) in enumerate(self.rules):
            position = new_position(MIN_SIZE)
            apply_rules(position, rules, 0.0)
            flags[i] = position.rules
            bounds[i] = [one.twice(size, rules) for one, _ in self.komi]
        rules_of_games = flags[which]
        low, high = bounds[which, komi].T
        rules_of_games[:, RULE_KOMI_X2] = low + (units[2] * (high - low + 1)).astype(np.int64)
        temperatures = np.array([value for value, _ in self.temperature])
        return rules_of_games, temperatures[_drawn(self.temperature, units[3])]


def unit_of(seed: int, numbers: np.ndarray, stream: int) -> np.ndarray:
    """float64[K] in [0, 1): a random number for each game, independent between streams."""
    start = mixed(mixed(np.array([seed], np.uint64)) + np.uint64(stream))
    units: np.ndarray = (mixed(start + numbers.astype(np.uint64)) >> np.uint64(11)) * UNIT
    return units


def _drawn(shares: Shares[T], units: np.ndarray) -> np.ndarray:
    """int64[K]: indices into ``shares``, drawn in proportion to the shares by ``units``, uniform numbers in [0, 1)."""
    ends = np.cumsum([share for _, share in shares])
    return np.minimum(np.searchsorted(ends / ends[-1], units, "right"), len(ends) - 1)


def parse_share(text: str, read: Callable[[str], T]) -> tuple[T, float]:
    """Parse ``VALUE=SHARE`` into a value and its share; without ``=SHARE`` the share is 1.

    Raises:
        ValueError: ``read`` refuses the value, or the share is not a positive number; one line.
    """
    # Rules may be a JSON object, which contains no "=".
    what, _, share = text.partition("=")
    try:
        weight = float(share or 1)
    except ValueError:
        weight = np.nan
    if not 0 < weight < np.inf:
        raise ValueError(f"{text!r}: the share {share!r} is not a positive number, expected VALUE=SHARE")
    return read(what.strip()), weight


def read_size(text: str) -> int:
    """Parse a board size.

    Raises:
        ValueError: not a number; one line.
    """
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"board size {text!r}, expected a number") from error


def read_komi(text: str) -> Komi:
    """Parse a komi: ``usual``, a number, or a range ``LOW..HIGH``.

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
    """Parse a temperature.

    Raises:
        ValueError: out of range, or not a number; one line.
    """
    try:
        found = float(text)
    except ValueError:
        found = np.nan
    if not MIN_TEMPERATURE <= found <= MAX_TEMPERATURE:
        raise ValueError(f"temperature {text!r}, expected {MIN_TEMPERATURE} to {MAX_TEMPERATURE}")
    return found
