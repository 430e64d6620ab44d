"""Matches between networks: results, intervals, errors."""

import math

import pytest

import keima


def test_a_match_is_the_same_again_and_has_all_games():
    seen, words = [], {"games": 4, "size": 7, "visits": (4, 1), "seed": 3}
    first = keima.match("small", "small", **words, on_progress=lambda *at: seen.append(at))
    assert first.games == 4 and seen[-1] == (4, 4)
    with keima.Network("small") as network:
        assert keima.match(network, network, **words) == first


def test_intervals_hold_the_result():
    found = keima.MatchResult(12, 3, 5)
    assert found.score == pytest.approx(0.675)
    assert found.interval[0] < found.score < found.interval[1]
    assert found.elo == pytest.approx(127, abs=1)
    assert str(found) == "12 won, 3 drawn, 5 lost: 68% [46%, 84%], Elo +127 [-30, +284]"
    assert keima.MatchResult(5, 0, 0).elo == math.inf


@pytest.mark.parametrize("wrong, reason", [
    ({"games": 0}, "games is 0, expected 1 or more"),
    ({"visits": (8, 0)}, r"visits is \(8, 0\), expected 1 or more"),
    ({"rules": "japanese"}, "rules"),
    ({"size": 5}, "network small plays boards"),
])  # fmt: skip
def test_wrong_arguments_are_refused(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        keima.match("small", "small", **{"games": 2, "size": 7, "visits": 1} | wrong)
