"""A sequential test of a match: it is over as soon as its result is plain, which takes fewer games than a fixed number.

Two Elo differences are held against each other by the log-likelihood ratio (LLR) of all games so far. Every outcome's
probability under each is the likeliest one at that score, so that the share of draws need not be known. Without draws
this is Wald's test of two win rates.

Source: Wald 1945, "Sequential Tests of Statistical Hypotheses"; Van den Bergh, "A Practical Introduction to the GSPRT".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bench.match.record import GameRecord
from engine.evaluation.elo import ELO_SCALE

ERROR = 0.05
"""Probability of accepting either difference when the other one is true"""
BOUND = math.log((1.0 - ERROR) / ERROR)
"""LLR at which the higher difference is accepted, and below whose negative the lower one is"""
POINTS = {"second": 0.0, "draw": 0.5, "first": 1.0}
UNSEEN = 1e-3
"""Games that stand for none won or none lost, without which some scores could not be explained"""
ROUNDS = 60
"""Halvings of an interval of some units: to the precision of a float"""


MOST_ELO = 2000.0
"""The weaker player is expected to score one point in 100,000 games"""


@dataclass(frozen=True)
class Hypotheses:
    """Two Elo differences of the first player, of which one is to be accepted.

    Raises:
        ValueError: they are not in order, or beyond what games can tell; one line.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -MOST_ELO <= self.low < self.high <= MOST_ELO:
            within = f"within {MOST_ELO:g} of 0, the lower one first"
            raise ValueError(f"{self.low:g} and {self.high:g}: expected two Elo differences {within}")


class SequentialTest:
    """Counts games in the order in which they ended; what is accepted once stays accepted."""

    def __init__(self, hypotheses: Hypotheses, records: Iterable[GameRecord] = ()) -> None:
        self.hypotheses = hypotheses
        self.llr = 0.0
        self.accepted: float | None = None
        """Elo difference; None = not decided"""
        self._games = dict.fromkeys(POINTS, 0)
        self._seen: set[tuple[str, ...]] = set()
        for record in records:
            self.add(record)

    def add(self, record: GameRecord) -> None:
        """Count a game, but none without a result, none that was played before, and none after the decision.

        See :func:`bench.match.record.different`.
        """
        if record.winner is None or self.accepted is not None or (record.moves and record.key in self._seen):
            return
        self._seen.add(record.key)
        self._games[record.winner] += 1
        self.llr = self._ratio()
        if abs(self.llr) >= BOUND:
            self.accepted = self.hypotheses.high if self.llr > 0 else self.hypotheses.low

    def _ratio(self) -> float:
        """The log-likelihood ratio of all games: above 0 where the higher difference explains them better."""
        counts = {POINTS[winner]: float(games) for winner, games in self._games.items() if games or winner != "draw"}
        counts = {points: games or UNSEEN for points, games in counts.items()}
        low, high = (likeliest(counts, _score_of(elo)) for elo in (self.hypotheses.low, self.hypotheses.high))
        return sum(games * math.log(high[points] / low[points]) for points, games in counts.items())


def likeliest(counts: dict[float, float], score: float) -> dict[float, float]:
    """Probabilities with a given mean under which some results are likeliest.

    They are ``share / (1 + t * (points - score))``; the multiplier t is where their mean is the score.

    Args:
        counts: points of a game -> games, more than 0; there are points on both sides of the score.
        score: mean points, between 0 and 1.
    Returns:
        points -> probability.
    """
    games = sum(counts.values())
    shares = {points: count / games for points, count in counts.items()}
    left, right = -1.0 / (max(shares) - score), 1.0 / (score - min(shares))
    for _ in range(ROUNDS):
        t = (left + right) / 2
        slope = sum(share * (points - score) / (1.0 + t * (points - score)) for points, share in shares.items())
        left, right = (t, right) if slope > 0 else (left, t)
    return {points: share / (1.0 + t * (points - score)) for points, share in shares.items()}


def _score_of(elo: float) -> float:
    """The expected points of a game at an Elo difference."""
    return 1.0 / (1.0 + math.exp(-elo / ELO_SCALE))
