"""Win rates, intervals and ratings against values that are known in closed form or from a slow search."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.evaluation.elo import Z_95, elo_difference, rating_errors, ratings, wilson_interval


def expected_rate(difference):
    """Win rate that an Elo difference predicts."""
    return 1 / (1 + 10 ** (-difference / 400))


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (9, 12, 0.4677, 0.9111),
        (500, 1000, 0.4691, 0.5309),
    ],
)
def test_wilson_interval_matches_published_values(wins, games, low, high):
    assert wilson_interval(wins, games) == pytest.approx((low, high), abs=2e-4)


def test_no_games_tell_nothing():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_wilson_interval_holds_the_rate_of_games_that_all_ended_alike():
    for games in range(1, 200):
        for rate in (0.0, 1.0):
            low, high = wilson_interval(rate * games, games)
            assert 0.0 <= low <= rate <= high <= 1.0


@given(st.integers(1, 500), st.floats(0, 1))
def test_wilson_interval_ends_where_the_rate_is_z_deviations_off(games, share):
    wins = share * games
    rate = wins / games
    for bound in wilson_interval(wins, games):
        deviation = math.sqrt(bound * (1 - bound) / games)
        assert abs(bound - rate) == pytest.approx(Z_95 * deviation, abs=1e-6) or bound in (0.0, 1.0)


@pytest.mark.parametrize(
    ("rate", "elo"), [(0.5, 0.0), (10 / 11, 400.0), (0.64, 99.95), (0.0, -math.inf), (1.0, math.inf)]
)
def test_elo_difference_of_a_rate(rate, elo):
    assert elo_difference(rate) == pytest.approx(elo, abs=0.01)
    assert expected_rate(elo) == pytest.approx(rate, abs=1e-5)


def test_ratings_of_two_players_are_those_of_their_rate():
    found = ratings({("a", "b"): 74.5, ("b", "a"): 24.5})
    assert list(found) == ["a", "b"]
    assert found["a"] - found["b"] == pytest.approx(elo_difference(0.75))
    assert sum(found.values()) == pytest.approx(0.0)


def test_ratings_recover_the_strengths_that_made_the_results():
    strengths = {"a": 150.0, "b": 20.0, "c": -30.0, "d": -140.0}
    wins = {
        (one, two): 1e6 * expected_rate(strengths[one] - strengths[two])
        for one in strengths
        for two in strengths
        if one != two
    }
    assert ratings(wins) == pytest.approx(strengths, abs=0.01)


def test_ratings_stay_finite_without_a_loss():
    found = ratings({("a", "b"): 20.0, ("b", "c"): 20.0})
    assert all(math.isfinite(value) for value in found.values())
    assert list(found) == ["a", "b", "c"]


def test_ratings_of_nobody():
    assert ratings({}) == {}


@pytest.fixture(scope="module")
def matches():
    """Ratings of three players in a chain, 200 games a pair, drawn anew many times from the same strengths."""
    true, drawn = {"a": 100.0, "b": 0.0, "c": -100.0}, np.random.default_rng(1)
    found = []
    for _ in range(400):
        wins = {}
        for first, second in (("a", "b"), ("b", "c")):
            won = float(drawn.binomial(200, expected_rate(true[first] - true[second])))
            wins |= {(first, second): won, (second, first): 200.0 - won}
        found.append(ratings(wins))
    return found, wins


def test_errors_of_ratings_are_those_of_repeated_matches(matches):
    found, wins = matches
    errors = rating_errors(wins)
    for name, error in errors.items():
        assert error == pytest.approx(np.std([one[name] for one in found]), rel=0.15), name
    assert errors["b"] < errors["a"]
    assert rating_errors({}) == {}


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_errors_of_differences_are_those_of_repeated_matches(matches, reference):
    """The end of a chain is known worse from the other end than from the mean of all."""
    found, wins = matches
    errors = rating_errors(wins, reference)
    assert errors.pop(reference) == 0.0
    for name, error in errors.items():
        assert error == pytest.approx(np.std([one[name] - one[reference] for one in found]), rel=0.15), name
