"""Stored replies: returned only while the points around are unchanged."""

import numpy as np
import pytest

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, copy_board, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points
from engine.go.random import seed_state
from engine.rollout.last_good_replies import ENTRIES, new_last_good_replies, recall, remember
from engine.rollout.model import PatternModel, rollout_tables
from engine.rollout.patterns import all_states
from engine.rollout.policy import new_weights, play_out_by_policy
from tests.rollout import twin

TEXT = """
    . . . . . .
    . . X . . .
    . l O . . .
    . . . . . .
    . . . . m .
    . . . . . .
"""


def states(board):
    """States of all cells."""
    cell = np.zeros(len(board.color), np.uint8)
    all_states(board, cell)
    return cell


@pytest.fixture
def known():
    """A board with Black's last move at ``l``, and a table that holds White's reply ``m`` to it."""
    board, marks = parse(TEXT)
    play(board, marks["l"], BLACK)
    replies = new_last_good_replies()
    remember(replies, board, states(board), marks["l"], WHITE, marks["m"])
    return board, replies, marks["l"], marks["m"]


def test_a_reply_is_given_back(known):
    board, replies, last, move = known
    assert recall(replies, board, states(board), last, WHITE) == move


def test_a_reply_is_for_one_move_and_one_colour(known):
    board, replies, last, _ = known
    assert recall(replies, board, states(board), last, BLACK) == PASS
    for other in on_board_points(6).tolist():
        if other != last:
            assert recall(replies, board, states(board), other, WHITE) == PASS
    assert recall(new_last_good_replies(), board, states(board), last, WHITE) == PASS


@pytest.mark.parametrize(
    ("vertex", "remains"), [("A1", True), ("F6", True), ("A3", False), ("D1", False), ("F3", False)]
)
def test_only_the_eight_points_around_both_moves_count(known, vertex, remains):
    board, replies, last, move = known
    play(board, from_vertex(vertex, 6), WHITE)
    assert (recall(replies, board, states(board), last, WHITE) == move) == remains


def test_liberties_around_count_too(known):
    # White's stone beside the last move goes from two liberties to one by a move that is beside neither.
    board, replies, last, _ = known
    play(board, from_vertex("D4", 6), BLACK)
    assert board.libs[board.head[from_vertex("C4", 6)]] == 1
    assert recall(replies, board, states(board), last, WHITE) == PASS


def test_a_reply_that_is_occupied_is_not_given_back(known):
    board, replies, last, move = known
    play(board, move, BLACK)
    assert recall(replies, board, states(board), last, WHITE) == PASS


def test_a_ko_is_not_retaken_at_once():
    board, marks = parse(". X O .\nX m X O\n. X O .\n. . . .")
    replies = new_last_good_replies()
    play(board, marks["m"], WHITE)
    ko = int(board.meta[META_KO_POINT])
    assert (ko, board.meta[META_KO_COLOR]) == (from_vertex("C3", 4), BLACK)
    remember(replies, board, states(board), marks["m"], BLACK, ko)
    assert recall(replies, board, states(board), marks["m"], BLACK) == PASS
    # The same surroundings later, when the ko may be taken.
    board.meta[META_KO_POINT] = 0
    assert recall(replies, board, states(board), marks["m"], BLACK) == ko


def test_passes_are_neither_answered_nor_answers(known):
    board, _, last, move = known
    replies = new_last_good_replies()
    remember(replies, board, states(board), PASS, WHITE, move)
    remember(replies, board, states(board), last, WHITE, PASS)
    assert not replies.key.any()


def test_the_newest_reply_stays(known):
    board, replies, last, _ = known
    newer = from_vertex("D2", 6)
    remember(replies, board, states(board), last, WHITE, newer)
    assert recall(replies, board, states(board), last, WHITE) == newer
    assert np.count_nonzero(replies.key) == 1


def test_many_replies_are_never_mixed_up():
    # Entries may lose their slots to others, but what comes back was entered for that very situation.
    replies, entered, lost = new_last_good_replies(), {}, 0
    moments = [(moment.board.color.tobytes(), moment) for seed in range(12) for moment in games(seed)]
    for index, (colors, moment) in enumerate(moments):
        key = colors, moment.last, moment.color
        cell, empty = states(moment.board), moment.board.empty[: moment.board.meta[META_N_EMPTY]]
        entered[key] = int(empty[index % len(empty)])
        remember(replies, moment.board, cell, moment.last, 3 - moment.color, entered[key])
        assert recall(replies, moment.board, cell, moment.last, 3 - moment.color) == entered[key]
    assert np.count_nonzero(replies.key) > len(moments) // 2
    assert len(replies.key) == ENTRIES
    for colors, moment in moments:
        cell = states(moment.board)
        move = recall(replies, moment.board, cell, moment.last, 3 - moment.color)
        if move != PASS:
            assert moment.board.color[move] == 0
        lost += move != entered[colors, moment.last, moment.color]
    assert lost < len(moments) // 2


def games(seed):
    """Moments of a random game that is no pass and no ko, each on a board of its own."""
    for moment in twin.random_game(9, seed, 60):
        if moment.last != PASS and moment.board.meta[META_KO_POINT] == 0:
            board = new_board(9)
            copy_board(board, moment.board)
            yield moment._replace(board=board)


def test_rollouts_play_the_reply_as_often_as_told(known):
    board, replies, last, move = known
    words = twin.small_vocabulary(False)
    tables = rollout_tables(PatternModel(words, np.zeros(words.starts[-1], np.float32), {}))
    weights, scratch, state = new_weights(6), new_board(6), seed_state(1, 0)
    for probability, least, most in ((0.0, 0, 60), (0.5, 180, 260), (1.0, 400, 400)):
        played = 0
        for _ in range(400):
            copy_board(scratch, board)
            play_out_by_policy(scratch, weights, tables, replies, probability, WHITE, last, 0, state, 1)
            played += scratch.color[move] == WHITE
        assert least <= played <= most
