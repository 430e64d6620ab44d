"""Legal moves and captures compared with GNU Go's over random games."""

import pytest

from bench.reliability import legality
from bench.reliability.legality import compare, random_moves, script_of


@pytest.mark.clients("gnugo")
@pytest.mark.parametrize(("size", "games"), [(5, 60), (9, 20), (13, 8), (19, 4)])
def test_random_games_agree_with_gnu_go(gnugo, monkeypatch, size, games):
    monkeypatch.setattr(legality, "GNU_GO", gnugo)
    script = [line for seed in range(games) for line in script_of(size, list(random_moves(size, seed)))]
    assert compare(script) == []


@pytest.mark.clients("gnugo")
def test_a_difference_is_reported_with_the_game_that_leads_to_it(gnugo, monkeypatch):
    monkeypatch.setattr(legality, "GNU_GO", gnugo)
    script = script_of(5, list(random_moves(5, 1))[:3])
    at = next(i for i, (command, _) in enumerate(script) if command == "captures black")
    script[at] = (script[at][0], "7")
    (fault,) = compare(script)
    assert fault.startswith("captures black: '= 0', expected '7', after boardsize 5; clear_board; play black ")
