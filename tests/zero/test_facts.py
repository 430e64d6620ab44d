"""What a network says of the empty board: the komi that self-play goes by, and moves seen through each symmetry."""

import math

import numpy as np
import pytest

from engine.features.symmetry import symmetry_table
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.zero.facts import EmptyBoard, facts_of_board, first_moves, look_at_empty_board

SIZE, SHARE = 3, 0.5


class Knowing(UniformNetwork):
    """Likes one point, under whatever symmetry it is asked, and Black to lead by three points more than the komi."""

    def __init__(self, point):
        super().__init__("keima-1")
        self._point = point

    def evaluate(self, planes, globals_):
        found = super().evaluate(planes, globals_)
        # As likely as all else together.
        found.policy[np.arange(len(planes)), symmetry_table(SIZE)[:, self._point]] = math.log(SIZE * SIZE)
        return found._replace(value=found.value + 0.25, score=found.score + 3.0)


@pytest.mark.parametrize(("point", "words"), [(4, "B2 50%"), (1, "B3 50%"), (9, "pass 50%")])
def test_the_mean_over_the_symmetries_is_of_the_same_moves(point, words):
    with InferenceServer(Knowing(point), threads=1) as server:
        board = look_at_empty_board(server, SIZE, "tromp-taylor", 2.0)
    assert board.policy.argmax() == point
    assert board.policy[point] == pytest.approx(SHARE) and board.policy.sum() == pytest.approx(1.0)
    assert first_moves(board, SIZE, 1) == words


@pytest.mark.parametrize("komi", [2.0, -3.5])
def test_the_score_does_not_count_the_komi(komi):
    with InferenceServer(Knowing(4), threads=1) as server:
        board = look_at_empty_board(server, SIZE, "tromp-taylor", komi)
    assert (board.score, board.value) == (3.0 + komi, 0.25)


def test_the_centre_of_an_even_board_is_not_at_its_edge():
    policy = np.zeros(37)
    policy[3 * 6 + 3] = 1.0
    assert facts_of_board(EmptyBoard(policy, 0.0, 0.0))["empty/centre"] == 1.0
