"""Ownership by rollouts: the mean of single rollouts, half begun by each colour, for both kinds of rollouts."""

import numpy as np
import pytest

from engine.go.board import META_SIZE, copy_board, new_board
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, WHITE, on_board_points
from engine.go.random import seed_state
from engine.play.factory import shipped_tables
from engine.rollout import ownership
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.ownership import average_ownership, rollout_ownership
from engine.rollout.policy import new_weights, play_out_by_policy
from engine.rollout.run import owner_at_end, play_out
from tests.clock import stop_the_machines
from tests.go.positions import TANGLED


@pytest.mark.parametrize("policy", ["uniform", "learnt"])
def test_ownership_is_the_mean_of_single_games_half_of_them_begun_by_each_colour(policy, monkeypatch):
    board, _ = parse(TANGLED)
    size, scratch = int(board.meta[META_SIZE]), new_board(int(board.meta[META_SIZE]))
    before, tables, total = board.buffer.copy(), shipped_tables() if policy == "learnt" else None, np.zeros(36)
    monkeypatch.setattr(ownership, "GAMES_AT_ONCE", 30)
    found = rollout_ownership(board, tables, 40, 9)
    state, weights, replies = seed_state(9, 0), new_weights(size), new_last_good_replies()
    for color in [BLACK] * 15 + [WHITE] * 15 + [BLACK] * 5 + [WHITE] * 5:
        copy_board(scratch, board)
        if tables is None:
            play_out(scratch, color, state, 3 * size * size)
        else:
            play_out_by_policy(scratch, weights, tables, replies, 0.0, color, PASS, 0, state, 3 * size * size)
        total += [owner_at_end(scratch, point) for point in on_board_points(size).tolist()]
    np.testing.assert_allclose(found, total / 40, atol=1e-6)
    assert (board.buffer == before).all()
    assert np.abs(found).max() <= 1.0


def test_no_games_are_begun_after_the_deadline_but_for_the_first(monkeypatch):
    board, _ = parse(TANGLED)
    clock, games = stop_the_machines(monkeypatch, look_s=0.1), []

    def note(*arguments):
        games.append(arguments[3])
        average_ownership(*arguments)

    monkeypatch.setattr(ownership, "average_ownership", note)
    for seconds, expected in ((-1.0, 1), (0.25, 3), (100.0, 4)):
        games.clear()
        found = rollout_ownership(board, None, 200, 1, clock() + seconds)
        assert games == [64, 64, 64, 8][:expected]
        assert np.abs(found).max() <= 1.0 and np.abs(found).sum() > 1.0


def test_an_empty_board_is_even():
    out = np.empty(81, np.float32)
    average_ownership(new_board(9), new_board(9), None, 4000, seed_state(1, 0), out)
    assert abs(out.sum()) < 1.0
    square = out.reshape(9, 9)
    for image in (square[::-1], square[:, ::-1], square.T):
        assert np.abs(square - image).max() < 0.1
