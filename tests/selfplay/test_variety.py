"""Rules, komi and temperature by shares: as written on the command line, and as drawn."""

import numpy as np
import pytest

from engine.go.rules import RULE_KOMI_X2, RULE_SCORING, RULE_SETS, RULE_TAX, SCORING_TERRITORY, TAX_SEKI, rules_from
from engine.selfplay.game_distribution import (
    GameDistribution,
    Komi,
    parse_share,
    read_komi,
    read_size,
    read_temperature,
)


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        ("19=0.5", int, (19, 0.5)),
        ("9", int, (9, 1.0)),
        ("japanese=2", rules_from, (RULE_SETS["japanese"], 2.0)),
        ("6.5=1", read_komi, (Komi(6.5, 6.5), 1.0)),
        ("-7.5..22.5=0.25", read_komi, (Komi(-7.5, 22.5), 0.25)),
        ("0.6=0.3", read_temperature, (0.6, 0.3)),
    ],
)
def test_shares_are_read(text, read, expected):
    assert parse_share(text, read) == expected


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("19=0", int, "the share '0' is not a positive number"),
        ("19=many", int, "the share 'many' is not a positive number"),
        ("chess=1", rules_from, "no rules are called 'chess'"),
        ("7.3=1", read_komi, "komi '7.3', expected usual, a number in half points, or a range"),
        ("9..5", read_komi, "the range is empty"),
        ("cold", read_temperature, "temperature 'cold', expected 0.05 to 10"),
        ("nine=2", read_size, "board size 'nine', expected a number"),
    ],
)
def test_what_is_wrong_is_one_line(text, read, message):
    with pytest.raises(ValueError, match=message) as error:
        parse_share(text, read)
    assert "\n" not in str(error.value)


def test_the_usual_komi_follows_board_and_scoring():
    twice = {(size, name): Komi().twice(size, RULE_SETS[name]) for size in (9, 19) for name in RULE_SETS}
    assert twice[9, "chinese"] == (14, 14) and twice[19, "chinese"] == (15, 15)
    assert twice[9, "japanese"] == (12, 12) and twice[19, "korean"] == (13, 13)


def test_games_are_drawn_by_shares_and_repeat():
    rules = ((RULE_SETS["chinese"], 3.0), (RULE_SETS["japanese"], 1.0))
    mixture = GameDistribution(rules, ((Komi(), 1.0), (Komi(-3.0, 3.0), 1.0)), ((1.0, 1.0), (0.5, 1.0)))
    games = list(zip(*mixture.draw(1, np.arange(2000), 9), strict=True))
    territory = np.mean([flags[RULE_SCORING] == SCORING_TERRITORY for flags, _ in games])
    usual = np.mean([flags[RULE_KOMI_X2] >= 12 for flags, _ in games])
    cool = np.mean([temperature == 0.5 for _, temperature in games])
    # Five standard deviations of a share of 2,000.
    assert abs(territory - 0.25) < 0.05 and abs(usual - 0.5) < 0.056 and abs(cool - 0.5) < 0.056
    assert {int(flags[RULE_KOMI_X2]) for flags, _ in games if flags[RULE_KOMI_X2] < 12} == set(range(-6, 7))
    np.testing.assert_array_equal(games[7][0], mixture.draw(1, np.array([7]), 9)[0][0])
    assert all(
        (mixture.draw(*other)[0] != mixture.draw(1, np.arange(9), 9)[0]).any()
        for other in ((2, np.arange(9), 9), (1, np.arange(9), 13), (1, np.arange(1, 10), 9))
    )
    japanese = next(flags for flags, _ in games if flags[RULE_SCORING] == SCORING_TERRITORY)
    assert japanese[RULE_TAX] == TAX_SEKI
