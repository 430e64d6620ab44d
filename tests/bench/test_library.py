"""The reliability campaign's part for the library's board: it finds no difference, and differences are found."""

import numpy as np
import pytest

from bench.reliability import legality, library
from bench.reliability.rules_twin import Twin
from engine.go.rules import RULE_SETS


@pytest.mark.parametrize("rules", ["tromp-taylor", "aga-button", "japanese"])
def test_random_games_agree_with_the_twin(rules):
    assert library.play_beside_twin(3, rules, 1, 40) == (40, [])


def test_numbers_of_games_are_the_twins():
    games = library.n_games(library.new_board(2, "aga"), 5)
    assert games == library.n_games_of_twin(Twin(2), RULE_SETS["aga"], 5)


def test_a_difference_is_reported_with_its_game():
    board, twin = library.new_board(3, "chinese"), Twin(3)
    board.play("B2")
    found = library.differences(board, twin)
    assert [fault.split(":")[0] for fault in found] == [
        "legal for black",
        "legal for white",
        "the stones differ",
        "score 9.0, expected 0",
    ]


@pytest.mark.clients("gnugo")
def test_gnu_go_lists_the_same_moves_and_counts_the_same_points(gnugo, monkeypatch):
    monkeypatch.setattr(legality, "GNU_GO", gnugo)
    for rules, options in library.GNU_GO_OPTIONS.items():
        script = library.gnu_go_script(rules, 1, 60)
        assert sum(command.startswith("play") for command, _ in script) == 60
        assert legality.compare(script, *options) == []
    rng = np.random.default_rng(3)
    for rules, option in library.SCORE_RULES.items():
        boards = [library.finished_game(5, rules, rng) for _ in range(2)]
        assert library.score_differences(boards, option) == []
        boards[0].komi = 1
        (fault,) = library.score_differences(boards, option)
        assert fault.startswith(f"{rules}: score ") and "(;" in fault
