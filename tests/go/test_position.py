"""History, copies and the button; legality is compared with the twin in test_board.py."""

import numpy as np
import pytest

from engine.go.geometry import PASS, WHITE, from_vertex
from engine.go.position import (
    META_BUTTON_TAKER,
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    PAST_BOARDS,
    Position,
    apply_rules,
    copy_position,
    is_legal_move,
    legal_moves,
    new_position,
    play_move,
    with_capacity,
)
from engine.go.rules import RULE_SETS

CORNER_KO = "B2 A2 A3 B1 A1"
"""Black has taken A2; White would take back there."""


def play_line(position: Position, line: str) -> None:
    """Play vertices by the sides in turn."""
    for vertex in line.split():
        play_move(position, from_vertex(vertex, 5), position.meta[META_TO_MOVE])


def test_passes_are_counted_in_a_row():
    position = new_position(5)
    for vertex, passes in [("pass", 1), ("pass", 2), ("C3", 0), ("pass", 1)]:
        play_line(position, vertex)
        assert position.meta[META_PASSES] == passes


def test_past_holds_the_last_eight_boards():
    position, boards = new_position(5), []
    for vertex in ["A1", "B1", "C1", "D1", "E1", "A2", "pass", "C2", "D2", "E2", "A3"]:
        play_line(position, vertex)
        boards.append(position.board.color.copy())
    for n in range(len(boards) - PAST_BOARDS, len(boards)):
        np.testing.assert_array_equal(position.past[(n + 1) % PAST_BOARDS], boards[n])


def test_a_copy_goes_on_by_itself_with_the_same_history():
    source = new_position(5)
    apply_rules(source, RULE_SETS["tromp-taylor"], 7.0)
    play_line(source, f"{CORNER_KO} pass pass")
    for copy in (new_position(5), with_capacity(source, 0), with_capacity(source, 500)):
        copy_position(copy, source)
        assert copy.meta.tolist() == source.meta.tolist()
        retake = from_vertex("A2", 5)
        assert not is_legal_move(copy, retake, WHITE)
        play_line(copy, "pass")
        assert source.meta[META_N_MOVES] == 7
        assert copy.hashes[:8].tolist() == source.hashes[:8].tolist()


def test_legal_moves_end_with_the_pass():
    position, mask = new_position(5), np.zeros(26, np.uint8)
    play_line(position, "C3")
    assert legal_moves(position, WHITE, mask) == 25
    assert mask[12] == 0
    assert mask[25] == 1
    assert is_legal_move(position, PASS, WHITE)


@pytest.mark.parametrize(("rules", "taker", "passes"), [("aga-button", WHITE, 1), ("aga", 0, 2)])
def test_the_first_pass_takes_the_button_where_there_is_one(rules, taker, passes):
    position = new_position(5)
    apply_rules(position, RULE_SETS[rules], 7.0)
    play_line(position, "C3 pass pass")
    assert position.meta[META_BUTTON_TAKER] == taker
    assert position.meta[META_PASSES] == passes


@pytest.mark.parametrize(("rules", "legal"), [("aga-button", True), ("aga", False)])
def test_positions_may_recur_once_the_button_is_taken(rules, legal):
    position = new_position(5)
    apply_rules(position, RULE_SETS[rules], 7.0)
    play_line(position, f"{CORNER_KO} pass pass")
    assert is_legal_move(position, from_vertex("A2", 5), WHITE) == legal
