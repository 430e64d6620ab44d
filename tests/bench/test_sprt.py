"""The sequential test: Wald's test without draws, correct error rates, and the same result after a resume."""

import math
from dataclasses import replace
from random import Random

import pytest

from bench.match.folder import GameRecord
from bench.match.summary import BOUND, ERROR, Hypotheses, SequentialTest, likeliest, render, summarise

SETTINGS = {"size": 9, "komi": 7.5, "rules": "chinese", "time": {"main_s": 0.0}}


def games(*winners):
    names = {"first": "A", "second": "B"}
    return [GameRecord(number, "black", names, [], winner=winner) for number, winner in enumerate(winners, 1)]


def score(elo):
    return 1 / (1 + 10 ** (-elo / 400))


def drawn_game(rng, elo, draws):
    """A game at an Elo difference in which this share is drawn."""
    x, won = rng.random(), score(elo) - draws / 2
    return games("first" if x < won else "draw" if x < won + draws else "second")[0]


def test_without_draws_it_is_walds_test_of_two_rates():
    test = SequentialTest(Hypotheses(-10, 35), games(*["first", "second"] * 22, *["first"] * 8))
    low, high = score(-10), score(35)
    assert test.llr == pytest.approx(30 * math.log(high / low) + 22 * math.log((1 - high) / (1 - low)), abs=1e-9)


@pytest.mark.parametrize("mean", [0.3, 0.5, 0.62])
def test_no_probabilities_of_that_mean_are_likelier(mean):
    """Against all others: two points and a mean leave one of three probabilities free."""
    counts = {0.0: 7.0, 0.5: 9.0, 1.0: 14.0}
    found = likeliest(counts, mean)
    assert sum(found.values()) == pytest.approx(1)
    assert sum(points * p for points, p in found.items()) == pytest.approx(mean)

    def of(draws):
        p = {0.0: 1 - mean - draws / 2, 0.5: draws, 1.0: mean - draws / 2}
        return (
            sum(count * math.log(p[points]) for points, count in counts.items()) if min(p.values()) > 0 else -math.inf
        )

    best = max(of(i / 10_000) for i in range(1, 10_000))
    assert sum(count * math.log(found[points]) for points, count in counts.items()) == pytest.approx(best, abs=1e-4)


def test_a_game_that_is_repeated_is_no_evidence():
    one = replace(games("first")[0], moves=["E5", "C3"])
    test = SequentialTest(Hypotheses(0, 20), [one])
    llr = test.llr
    test.add(replace(one, game=2))
    assert test.llr == llr
    test.add(replace(one, game=3, moves=["E5", "C4"]))
    test.add(replace(one, game=4, first_color="white"))
    assert test.llr > 2 * llr


def test_draws_say_little_and_no_result_nothing():
    even = SequentialTest(Hypotheses(-20, 20), games(*["draw"] * 40))
    assert even.llr == pytest.approx(0, abs=1e-9) and even.accepted is None
    few, none = games("first", "draw", "second", "first"), games(None, None)
    assert SequentialTest(Hypotheses(0, 20), few + none).llr == SequentialTest(Hypotheses(0, 20), few).llr
    assert SequentialTest(Hypotheses(0, 20)).llr == 0


@pytest.mark.parametrize("draws", [0.0, 0.3])
@pytest.mark.parametrize("truth", [0, 200])
def test_it_errs_as_rarely_as_it_says(truth, draws):
    rng, wrong, matches = Random(f"{truth} {draws}"), 0, 100
    for _ in range(matches):
        test = SequentialTest(Hypotheses(0, 200))
        while test.accepted is None:
            test.add(drawn_game(rng, truth, draws))
        wrong += test.accepted != truth
    # Three standard deviations above the errors that are allowed.
    assert wrong <= matches * ERROR + 3 * math.sqrt(matches * ERROR * (1 - ERROR))


def test_what_was_accepted_stays_so_and_is_found_again():
    winners = ["first"] * 20 + ["second"] * 60
    test = SequentialTest(Hypotheses(0, 200), games(*winners))
    assert test.accepted == 200 and test.llr >= BOUND
    part = SequentialTest(Hypotheses(0, 200), games(*winners[:10]))
    for record in games(*winners[10:]):
        part.add(record)
    assert (part.accepted, part.llr) == (test.accepted, test.llr)


@pytest.mark.parametrize(
    "winners, words",
    [
        (["first"] * 20, "SPRT, 0 against 200 Elo: 200 Elo accepted (LLR +"),
        (["second"] * 20, "SPRT, 0 against 200 Elo: 0 Elo accepted (LLR -"),
        (["first", "second"], "SPRT, 0 against 200 Elo: undecided (LLR -"),
    ],
)
def test_the_table_tells_what_was_accepted(winners, words):
    records = games(*winners)
    assert any(line.startswith(words) for line in render(summarise(records, SETTINGS, Hypotheses(0, 200))).splitlines())
    assert "SPRT" not in render(summarise(records, SETTINGS))


@pytest.mark.parametrize("low, high", [(20, 0), (5, 5), (0, math.inf), (math.nan, 1), (0, 7000)])
def test_hypotheses_are_in_order(low, high):
    with pytest.raises(ValueError, match="expected two Elo differences within 2000 of 0, the lower one first"):
        Hypotheses(low, high)
