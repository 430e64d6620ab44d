"""When a position counts as finished: ownership, dead stones and open points, by rollouts of both kinds."""

import numpy as np
import pytest

from engine.go import diagram
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, on_board_points, to_vertex
from engine.play.factory import shipped_tables
from engine.play.life_and_death import chains_with, estimate_end, points_that_capture
from engine.search.endings import is_near_end
from tests.playing import SEKI_AT_C3

CLOSED = """
    . X . X O . .
    . X X X O O .
    X X . X O . O
    . . X X O O .
    X X . X O . O
    . X X X O O .
    . X . X O . .
"""
DAME = CLOSED.replace("O . O\n    . . X X O O .", "O . O\n    . . X . O O .")
DEAD = CLOSED.replace("    . X X X O O .\n    X X .", "    O X X X O O .\n    X X .")
BREACH = """
    . X . X O . .
    . X X X O O .
    X X . X O . O
    . . . . . . .
    X X . X O . O
    . X X X O O .
    . X . X O . .
"""
ATARI = """
    . X . X O . .
    . X X X O O .
    X X . X O . O
    . . X . O O .
    X X X O X . O
    . X X X O O .
    . X . X O . .
"""

MUTUAL_ATARI = """
    X X O O O O . X X
    X O O O X O O O X
    X X X X X X O O X
    O X X . . X X O O
    O O X X X . X O O
    . O O X . X . X O
    X . O O X X X X X
    . O X O X O X . X
    . . . O O O O X .
"""

IN_SEKI = "A2 B2 C2 B1 C1 A5 B5 E5 B4 C4 D4 E4 A3 B3 D3 D2 D1"
"""Of SEKI_AT_C3: Black's chain there, and White's around it"""


FALSE_EYE = """
    . X . X X O . O .
    X X X X X O O O O
    . X . X X O . O .
    X X X X X O O O O
    . X X . X O . O .
    X X X X X O O O O
    X X X X X O O O .
    O O O X X O . O O
    . O . O X O O . O
"""
"""White's corner has an eye at A1, but the one at C1 is false: D1 is in atari."""

CORNER = """
    . X . X O . . . .
    X X X X O O . O .
    . X X O O . . . .
    X X X O . . O . .
    . O O O O O O . .
    O O . O . . . O .
    X X O O . O . . .
    O X X X O . . O .
    O O . X O . . . .
"""
"""Lower left: Black holds four points bent in the corner, three of them filled; whatever he does it is one eye."""

GROUP_INSIDE = """
    . X . X O . . . .
    . X X X O . X X .
    X X . X O . . . .
    . X X X O O O O O
    X X . X O . . . O
    . X X X O O O O O
    X . X . X X X X O
    . X X X X . X O O
    . . X . . X X O .
"""
"""Upper right: two black stones in White's area"""


IN_ATARI_INSIDE = """
    . O O O . . . . .
    O O . O . O . . .
    O X O O O . O O O
    X X X X O O O . O
    . X . X X O X O .
    O X X . X X X O O
    O O O O X X . X X
    O X X O O X X . .
    . X X O O O . X .
"""
"""Black's four stones in the corner are in atari, but they fill White's only eye: White is dead all the same"""


def settled(text, komi=6.5, tables=None):
    board = diagram.parse(text).board
    size = int(board.meta[0])
    game = Game(size, komi=komi)
    points = on_board_points(size).tolist()
    stones = [[point for point in points if board.color[point] == color] for color in (BLACK, WHITE)]
    game.setup_stones(*stones, BLACK)
    return estimate_end(game.position, tables=tables), game


@pytest.mark.parametrize(
    ("text", "n_open", "dead", "lead_black"),
    [(CLOSED, 0, [], 0.5), (DAME, 1, [], -0.5), (DEAD, 0, ["A6"], 0.5)],
)
@pytest.mark.parametrize("policy", ["uniform", "learnt"])
def test_finished_positions(text, n_open, dead, lead_black, policy):
    found, game = settled(text, tables=shipped_tables() if policy == "learnt" else None)
    assert found.n_open == n_open
    assert [to_vertex(point, 7) for point in found.dead] == dead
    assert found.lead_black == lead_black
    assert found.lead(WHITE) == -lead_black
    assert found.is_settled == (n_open == 0)
    assert found.n_dame == n_open and is_near_end(game.position)


def test_an_open_border_is_no_dame():
    found, _ = settled(BREACH, tables=shipped_tables())
    assert found.n_open > found.n_dame


def test_dead_stones_count_as_long_as_they_stand():
    found, _ = settled(DEAD)
    assert found.strict_lead(BLACK) < found.lead(BLACK)


def test_a_border_that_is_not_closed_is_open():
    found, _ = settled(BREACH)
    assert found.n_open >= 7


def test_a_stone_left_in_atari_is_open():
    found, _ = settled(ATARI)
    assert found.n_open > 0


@pytest.mark.parametrize("policy", ["uniform", "learnt"])
def test_chains_that_can_capture_each_other_are_open(policy):
    """Rollouts give White's chain at the top to Black, but White to move captures four stones."""
    found, _ = settled(MUTUAL_ATARI, tables=shipped_tables() if policy == "learnt" else None)
    assert not found.is_settled and found.n_open >= 20


def test_the_network_is_heard():
    """A network that contradicts the rollouts leaves no point sure that is not proven."""
    _, game = settled(BREACH)
    against = np.full(49, -1.0, np.float32)
    assert (
        estimate_end(game.position, against).ownership_black.sum() < estimate_end(game.position).ownership_black.sum()
    )


@pytest.mark.parametrize(("komi", "color", "value"), [(0.5, BLACK, 1.0), (0.5, WHITE, -1.0), (20.5, BLACK, -1.0)])
def test_the_value_of_ending(komi, color, value):
    found, _ = settled(CLOSED, komi)
    assert found.value_of_ending(color) == value
    assert found.surely_won(color) == (value > 0)


def test_what_is_open_lessens_the_value_of_ending():
    found, _ = settled(BREACH, komi=0.5)
    assert found.value_of_ending(BLACK) < 0.5
    assert not found.surely_won(BLACK)


def test_points_that_capture():
    found, game = settled(DEAD)
    assert [to_vertex(point, 7) for point in points_that_capture(game.position.board, found.dead, BLACK)] == ["A7"]
    assert points_that_capture(game.position.board, found.dead, WHITE) == []


@pytest.mark.parametrize("policy", ["uniform", "learnt"])
def test_stones_in_seki_are_alive(policy):
    """Rollouts play into a seki and give its stones to either side, which is no reason to take them off."""
    found, game = settled(SEKI_AT_C3, komi=7.5, tables=shipped_tables() if policy == "learnt" else None)
    assert found.dead == []
    assert found.lead_black == 6.5
    in_seki = {to_vertex(point, 9) for chain in chains_with("seki", game.position, found.dead) for point in chain}
    assert in_seki == set(IN_SEKI.split())


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        (FALSE_EYE, "A2 B2 C2 B1 D1"),
        (CORNER, "A3 B3 B2 C2 D2 D1"),
        (GROUP_INSIDE, "G8 H8"),
        (IN_ATARI_INSIDE, "A4 A3 B3 C3 D3 A2 D2 E2 D1 E1 F1"),
    ],
    ids=["a false eye", "four bent in the corner", "a chain without eyes", "no seki while stones are in atari"],
)
def test_groups_without_two_eyes_are_dead(text, dead):
    found, _ = settled(text, tables=shipped_tables())
    assert {to_vertex(point, 9) for point in found.dead} == set(dead.split())


SQUARE_FOUR = """
    . O X O X X . X .
    X X X O O X O X X
    O X X O O X X X O
    O O X X O X X O O
    O . O X O O X X O
    . O O X X O X X O
    . . O X X O O O O
    O O X X . X O . .
    . O O X X X O . .
"""
"""From a game against KataGo: White's chain on the right has one eye, the square of four"""
DISPUTED = "D9 D8 E8 G8 B9 J7 D7 E7 H6 J6 E6 E5 F5 J5 F4 J4 F3 G3 H3 J3 G2 G1"


def test_a_group_with_one_eye_that_nothing_saves_is_dead():
    """Rollouts let White make two eyes every other time, networks are in doubt."""
    found, _ = settled(SQUARE_FOUR, komi=7.0, tables=shipped_tables())
    assert {to_vertex(point, 9) for point in found.dead} == set(DISPUTED.split())
    assert found.lead_black == 40.0


def test_the_source_that_is_sure_outweighs_the_one_that_is_not():
    position = Game(9).position
    rollouts = estimate_end(position, None, shipped_tables()).ownership_black
    assert np.abs(rollouts).max() < 0.5
    for sure, told in ((0.95, 1), (-0.95, -1)):
        found = estimate_end(position, np.full(81, sure, np.float32), shipped_tables()).ownership_black
        assert (np.sign(found) == told).all() and np.abs(found).min() > 0.3
    unknown = estimate_end(position, np.zeros(81, np.float32), shipped_tables()).ownership_black
    np.testing.assert_allclose(unknown, rollouts, atol=1e-5)
