"""Win rates with confidence intervals, and Elo ratings from game results. A draw counts as half a win.

Start at :func:`wilson_interval` for two players and :func:`rated` for several.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Z_95 = 1.959964
"""Half width of the 95% interval of a normal distribution, in standard deviations"""
ELO_SCALE = 400.0 / math.log(10.0)
"""Elo points for one natural-log unit of the odds of winning: 400 points are odds of ten to one"""
PRIOR_GAMES = 1.0
"""Number of draws added to the games of each pair of opponents, so that no rating is infinite"""
TOLERANCE = 1e-9
MAX_ROUNDS = 100_000


def wilson_interval(wins: float, games: int) -> tuple[float, float]:
    """95% confidence interval of the win rate.

    Args:
        wins: games won, a draw counting half.
        games: number of games; with 0 the interval is (0, 1).
    Source: Wilson 1927. Unlike mean +- z * sigma it stays inside [0, 1] and is accurate for few games.
    """
    if games == 0:
        return 0.0, 1.0
    rate, z = wins / games, Z_95
    centre = (rate + z * z / (2 * games)) / (1 + z * z / games)
    half = z / (1 + z * z / games) * math.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games))
    # The rate lies inside, which rounding may violate if all games were won or lost.
    return min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half))


class WinRate(NamedTuple):
    """A win rate, from 0 to 1, with its 95% interval."""

    rate: float
    low: float
    high: float


def win_rate(won: int, lost: int, drawn: int) -> WinRate:
    """The win rate and its 95% interval, a draw counting as half a win; rate 0.5 if there are no games."""
    games, points = won + lost + drawn, won + 0.5 * drawn
    return WinRate(points / games if games else 0.5, *wilson_interval(points, games))


def elo_difference(rate: float) -> float:
    """Elo difference that gives an expected win rate (0 to 1); -inf at 0 and inf at 1."""
    if rate <= 0.0:
        return -math.inf
    if rate >= 1.0:
        return math.inf
    return ELO_SCALE * math.log(rate / (1.0 - rate))


def ratings(wins: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Maximum likelihood Elo ratings, strongest first, with mean 0.

    The model is Bradley and Terry's: a player of strength g beats one of strength h with probability g / (g + h).
    Zermelo's iteration, g <- wins / (sum over opponents of games / (g + h)), increases the likelihood monotonically.
    ``PRIOR_GAMES`` draws are added to the games of each pair of opponents. Ratings of players whom no chain of games
    connects are not comparable.

    Args:
        wins: (winner, loser) -> games won, a draw counting half a win for each.
    Source: Hunter 2004, MM algorithms for generalized Bradley-Terry models, equation 3.
    """
    players = sorted({name for pair in wins for name in pair})
    scored = dict.fromkeys(players, 0.0)
    met: dict[str, dict[str, float]] = {name: {} for name in players}
    for first, second in {tuple(sorted(pair)) for pair in wins}:
        one, two = (wins.get(pair, 0.0) + PRIOR_GAMES / 2 for pair in ((first, second), (second, first)))
        scored[first] += one
        scored[second] += two
        met[first][second] = met[second][first] = one + two
    strength = dict.fromkeys(players, 1.0)
    for _ in range(MAX_ROUNDS):
        moved = 0.0
        for name in players:
            weight = sum(games / (strength[name] + strength[rival]) for rival, games in met[name].items())
            better = scored[name] / weight
            moved = max(moved, abs(math.log(better / strength[name])))
            strength[name] = better
        if moved < TOLERANCE:
            break
    elo = {name: ELO_SCALE * math.log(strength[name]) for name in players}
    mean = sum(elo.values()) / len(elo) if elo else 0.0
    return {name: elo[name] - mean for name in sorted(players, key=lambda name: elo[name], reverse=True)}


def unconnected(wins: Mapping[tuple[str, str], float]) -> tuple[str, str] | None:
    """Two players whom no chain of games connects; None if all players are connected."""
    players = list(dict.fromkeys(name for pair in wins for name in pair))
    reached, found = set(players[:1]), players[:1]
    while found:
        name = found.pop()
        rivals = {rival for pair in wins if name in pair for rival in pair} - reached
        reached |= rivals
        found += rivals
    alone = [name for name in players if name not in reached]
    return (players[0], alone[0]) if alone else None


def rating_errors(
    wins: Mapping[tuple[str, str], float], reference: str = "", elo: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Standard error of each player's Elo difference from a reference player, or from the mean of all ratings.

    Computed from the Fisher information at the maximum of the likelihood, with the draws of ``PRIOR_GAMES``. The
    information matrix is singular, since results do not fix the mean rating; hence the pseudo-inverse.

    Args:
        wins: as for :func:`ratings`.
        reference: the player from whom differences are taken; "" = the mean of all ratings.
        elo: the result of :func:`ratings` for ``wins``; None = computed here.
    """
    elo = ratings(wins) if elo is None else elo
    row = {name: i for i, name in enumerate(elo)}
    information = np.zeros((len(elo), len(elo)))
    for first, second in {tuple(sorted(pair)) for pair in wins}:
        games = wins.get((first, second), 0.0) + wins.get((second, first), 0.0) + PRIOR_GAMES
        rate = 1.0 / (1.0 + math.exp((elo[second] - elo[first]) / ELO_SCALE))
        weight = games * rate * (1.0 - rate) / ELO_SCALE**2
        one, two = row[first], row[second]
        information[[one, two], [one, two]] += weight
        information[[one, two], [two, one]] -= weight
    covariance = np.linalg.pinv(information, hermitian=True)
    variances = covariance.diagonal()
    if reference:
        k = row[reference]
        variances = variances + covariance[k, k] - 2.0 * covariance[:, k]
    return {name: math.sqrt(max(0.0, variances[i])) for name, i in row.items()}


def weakest(wins: Mapping[tuple[str, str], float]) -> str:
    """The player with the lowest rating; "" if there are no players."""
    return next(reversed(ratings(wins)), "")


@dataclass(frozen=True)
class Rated:
    """A player's Elo relative to a reference player or to the mean, with the 95% interval of the difference."""

    name: str
    elo: float
    low: float
    high: float


def rated(wins: Mapping[tuple[str, str], float], reference: str = "") -> list[Rated]:
    """Elo ratings of all players with 95% intervals, strongest first.

    Args:
        wins: as for :func:`ratings`.
        reference: the player with Elo 0; "" = the mean of all players is 0.
    """
    elo = ratings(wins)
    zero = elo[reference] if reference else 0.0
    halves = {name: Z_95 * error for name, error in rating_errors(wins, reference, elo).items()}
    return [Rated(name, own - zero, own - zero - halves[name], own - zero + halves[name]) for name, own in elo.items()]
