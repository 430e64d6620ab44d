"""Seki on boards whose dame are not filled, and the score that people agree upon there."""

from itertools import product

import numpy as np
import pytest

from engine.go.board import META_SIZE
from engine.go.diagram import parse
from engine.go.geometry import BLACK, WHITE, on_board_points, to_vertex
from engine.go.scoring import dead_points, final_score_black, remove_dead
from engine.go.seki import count_without_dead, new_count_memory, score_with_dame_filled, seki_points, seki_stones
from tests.go.positions import (
    DAME,
    ONE_EYE,
    SEKI,
    TO_CLOSE,
    TO_CONNECT,
    TWO_EYES,
    game_from,
    orientations,
    random_diagrams,
)
from tests.go.seki_twin import dame_to_fill, seki_cells

MOST_DAME = 9
"""Dame that the twin tries all sets of"""


def vertices(game, points):
    return " ".join(to_vertex(point, game.size) for point in points)


@pytest.mark.parametrize(("diagram", "n_stones"), [(DAME, 0), (TWO_EYES, 0), (ONE_EYE, 0), (TO_CONNECT, 0), (SEKI, 17)])
def test_only_what_no_dame_connects_is_in_seki(diagram, n_stones):
    """In ONE_EYE all of White's stones have two eyes: a seki takes two, so Black is dead or alive."""
    game = game_from(diagram)
    assert len(seki_stones(game.position, [])) == n_stones


@pytest.mark.parametrize("text", orientations(TO_CLOSE))
def test_the_dame_that_closes_a_second_eye_is_filled_in_any_orientation(text):
    game = game_from(text, rules="japanese")
    assert score_with_dame_filled(game.position) == 4 - 1
    assert seki_stones(game.position, []) == []


def drawn(text):
    """A diagram with a 1 behind each sign in seki, else a 0."""
    board, signs = parse(text).board, text.split()
    size = int(board.meta[META_SIZE])
    cells = [f"{sign}{mark}" for sign, mark in zip(signs, seki_points(board), strict=True)]
    return "\n".join(" ".join(cells[row * size : (row + 1) * size]) for row in range(size))


BOARDS = [DAME, TWO_EYES, ONE_EYE, TO_CONNECT, SEKI, TO_CLOSE, *random_diagrams(7, 300, 1), *random_diagrams(9, 100, 2)]


def test_seki_is_the_same_in_all_orientations():
    n_sekis = 0
    for text in BOARDS:
        found = drawn(text)
        assert [drawn(one) for one in orientations(text)] == orientations(found)
        n_sekis += "1" in found
    assert n_sekis > 20


def test_seki_is_what_a_search_among_all_ways_to_fill_finds():
    n_boards = n_sekis = 0
    for text in [*BOARDS[:6], *random_diagrams(5, 200, 3), *random_diagrams(6, 200, 4)]:
        board = parse(text).board
        size = int(board.meta[META_SIZE])
        signs = zip(product(range(size), repeat=2), text.split(), strict=True)
        stones = {cell: BLACK if sign == "X" else WHITE for cell, sign in signs if sign != "."}
        if max(len(dame_to_fill(stones, size, color)) for color in (BLACK, WHITE)) > MOST_DAME:
            continue
        marks = seki_points(board)
        assert {divmod(index, size) for index in np.flatnonzero(marks).tolist()} == seki_cells(stones, size)
        n_boards, n_sekis = n_boards + 1, n_sekis + marks.any()
    assert n_boards > 200 and n_sekis > 10


def test_a_group_that_a_dame_connects_to_its_second_eye_keeps_its_points():
    """As the board stands it would look like a seki, and its points would not count."""
    game = game_from(TO_CONNECT, rules="japanese")
    assert score_with_dame_filled(game.position) == final_score_black(game.position) - 2


def test_the_eyes_of_a_seki_do_not_count():
    game = game_from(SEKI, rules="japanese")
    assert score_with_dame_filled(game.position) == final_score_black(game.position) == 21
    marks = seki_points(game.position.board)
    assert vertices(game, on_board_points(7)[marks == 1][:3].tolist()) == "A7 B7 D7"


@pytest.mark.parametrize("rules", ["chinese", "tromp-taylor", "ancient-territory"])
def test_rules_that_do_not_tax_seki_alone_are_left_as_they_are(rules):
    game = game_from(TO_CONNECT, rules=rules)
    assert score_with_dame_filled(game.position) == final_score_black(game.position)


def test_a_game_that_has_hardly_begun_has_no_seki():
    game = game_from(". . . . .\n" * 4 + ". . X . .")
    assert not seki_points(game.position.board).any()


@pytest.mark.parametrize("rules", ["chinese", "japanese"])
@pytest.mark.parametrize("diagram", [DAME, TWO_EYES, ONE_EYE, TO_CONNECT, SEKI])
def test_counting_in_memory_takes_off_what_an_estimate_finds_dead(diagram, rules):
    game, random = game_from(diagram, rules=rules), np.random.default_rng(3)
    position, memory, found = game.position, new_count_memory(game.size, 500), set()
    for _ in range(20):
        ownership = random.uniform(-1.0, 1.0, game.size**2).astype(np.float32)
        dead = dead_points(position.board, ownership, 0.1)
        cleared = remove_dead(position, dead)
        before = position.board.color.copy()
        assert count_without_dead(position, ownership, 0.1, memory) == score_with_dame_filled(cleared)
        np.testing.assert_array_equal(memory.cleared.board.color, cleared.board.color)
        np.testing.assert_array_equal(position.board.color, before)
        found.add(len(dead))
    assert len(found) > 1
