"""The choice of the move to play."""

from collections import Counter

import numpy as np
import pytest

from engine.search.choosing import choose
from engine.search.report import MoveReport, Report


def report_of(*moves: tuple[int, int, float]) -> Report:
    """A report of (point, visits, prior), best first."""
    reports = [MoveReport(point, visits, prior, 0.1, -0.5, None, [point], [visits]) for point, visits, prior in moves]
    return Report(100, 100, 1.0, 0.1, None, reports, None, 100, 100)


def test_without_temperature_the_first_move_is_played():
    assert choose(report_of((30, 90, 0.2), (31, 9, 0.8))) == 30
    assert choose(report_of((30, 0, 0.7), (31, 0, 0.3))) == 30


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.75), (0.5, 0.9), (0.01, 1.0), (10.0, 0.527)])
def test_temperature_draws_by_visits(temperature, share):
    rng = np.random.default_rng(1)
    drawn = Counter(choose(report_of((30, 75, 0.0), (31, 25, 1.0)), temperature, rng) for _ in range(4000))
    assert drawn[30] / 4000 == pytest.approx(share, abs=0.02)


def test_before_any_visit_temperature_draws_by_priors():
    rng = np.random.default_rng(1)
    drawn = Counter(choose(report_of((30, 0, 0.6), (31, 0, 0.4)), 1.0, rng) for _ in range(4000))
    assert drawn[30] / 4000 == pytest.approx(0.6, abs=0.03)


def test_a_report_without_moves_is_refused():
    with pytest.raises(ValueError, match="no move"):
        choose(report_of())
