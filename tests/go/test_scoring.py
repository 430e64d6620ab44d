"""Scores by hand and by the twin: area and territory, seki and taxes, dead stones, bonus and button."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reliability.rules_twin import Cell, Twin, neighbours
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points, point_at, to_vertex
from engine.go.position import count_none_beside_atari, legal_moves
from engine.go.rules import RULE_SETS, SCORING_AREA, SCORING_TERRITORY, TAX_ALL, TAX_NONE, TAX_SEKI, Rules
from engine.go.scoring import area_owner, dead_points, final_score_black, remove_dead, result_text
from engine.go.seki import score_with_dame_filled, seki_stones
from tests.go.positions import DAME, KO_MOUTH, ONE_EYE, SEKI, TWO_EYES, game_from
from tests.go.score_twin import eyes, score_without_atari_black, taxed_score_black

AREA = Rules("area", scoring=SCORING_AREA)
TERRITORY = Rules("territory", scoring=SCORING_TERRITORY)


def points(game: Game, text: str) -> list[int]:
    return [from_vertex(vertex, game.size) for vertex in text.split()]


DEAD_STONES = """
    . . . X O . .
    . O . X O . .
    . O . X O X .
    . . . X O . .
    X X X X O O O
    O O O O O . .
    . . . . . . .
"""


def test_area_owner_is_tromp_and_taylors():
    game, owner = game_from(DAME), np.empty(25, np.int8)
    area_owner(game.position.board, owner)
    assert owner.reshape(5, 5).tolist() == [
        [1, 1, 0, -1, -1],
        [1, 1, 0, -1, -1],
        [1, 1, 0, -1, -1],
        [1, 1, 1, -1, -1],
        [1, 1, 0, -1, -1],
    ]


@pytest.mark.parametrize(
    ("diagram", "area", "territory"),
    [(DAME, (1, 1, 1), (1, 1, 1)), (TWO_EYES, (14, 14, 14), (-5, -5, -5)), (ONE_EYE, (14, 13, 15), (-6, -7, -5)),
     (SEKI, (25, 23, 21), (23, 21, 19))],
    ids=["unfilled dame", "two eyes", "one eye", "seki of three"],
)  # fmt: skip
def test_scores_under_each_tax(diagram, area, territory):
    for scoring, expected in [(SCORING_AREA, area), (SCORING_TERRITORY, territory)]:
        scores = [
            final_score_black(game_from(diagram, rules=Rules("test", scoring=scoring, tax=tax)).position)
            for tax in (TAX_NONE, TAX_SEKI, TAX_ALL)
        ]
        assert tuple(scores) == expected


@pytest.mark.parametrize(
    ("rules", "dead", "lead"),
    [
        (AREA, "", -14),
        (AREA, "B6 F5", -9),
        (AREA, "B6 B5 F5", -9),
        (TERRITORY, "", -9),
        (TERRITORY, "B5 F5", -4),
        (RULE_SETS["japanese"], "B5 F5", -4),
        (RULE_SETS["ancient-territory"], "B5 F5", -4),
        (RULE_SETS["stone-scoring"], "B5 F5", -9),
    ],
)
def test_dead_chains_are_taken_off(rules, dead, lead):
    game = game_from(DEAD_STONES, rules=rules)
    before = game.position.board.color.copy()
    assert final_score_black(remove_dead(game.position, points(game, dead))) == lead
    np.testing.assert_array_equal(game.position.board.color, before)


@pytest.mark.parametrize(
    ("diagram", "dead", "stones"),
    [
        (DAME, "", ""),
        (TWO_EYES, "", ""),
        (DEAD_STONES, "B6 F5", ""),
        (SEKI, "", "B7 D7 F7 A6 B6 C6 D6 E6 F6 G6 A5 B5 C5 D5 E5 F5 G5"),
        (SEKI, "D7", ""),
    ],
)
def test_seki_stones(diagram, dead, stones):
    game = game_from(diagram)
    assert seki_stones(game.position, points(game, dead)) == points(game, stones)


@pytest.mark.parametrize("point", [PASS, 10])
def test_only_stones_can_be_dead(point):
    with pytest.raises(ValueError, match="no stone at"):
        remove_dead(game_from(DEAD_STONES).position, [point])


def test_prisoners_of_the_game_and_dead_stones_count_under_territory():
    game = Game(5, TERRITORY, komi=0.5)
    for vertex in ["B1", "A1", "A2", "E5", "B3", "B2", "C2", "E4"]:
        game.play(game.to_move, from_vertex(vertex, 5))
    assert game.captures(BLACK) == 2
    # Two prisoners, two dead stones, 21 empty points, half a point of komi.
    assert final_score_black(remove_dead(game.position, points(game, "E5"))) == 2 + 2 + 21 - 0.5


@pytest.mark.parametrize(
    ("rules", "stones", "lead"),
    [
        ("chinese", 0, 81),
        ("chinese", 4, 77),
        ("aga", 4, 78),
        ("tromp-taylor", 4, 81),
        ("chinese", 9, 72),
        ("aga", 2, 80),
    ],
)
def test_white_gets_komi_and_the_handicap_bonus(rules, stones, lead):
    game = Game(9, RULE_SETS[rules], komi=0.5)
    if stones:
        game.fixed_handicap(stones)
    else:
        game.play(BLACK, from_vertex("E5", 9))
    assert final_score_black(game.position) == lead - 0.5


@pytest.mark.parametrize(("line", "lead"), [("C3", 25), ("C3 pass", 24.5), ("C3 pass pass", 24.5), ("pass C3", -24.5)])
def test_the_button_is_worth_half_a_point(line, lead):
    game = Game(5, RULE_SETS["aga-button"], komi=0)
    for vertex in line.split():
        game.play(game.to_move, from_vertex(vertex, 5))
    assert final_score_black(game.position) == lead


def test_an_empty_board_is_worth_the_komi():
    for rules in RULE_SETS.values():
        assert final_score_black(Game(7, rules, komi=6.5).position) == -6.5


def polyominoes(cells: int) -> set[frozenset[Cell]]:
    """All fixed shapes of connected cells, at the origin."""
    if cells == 1:
        return {frozenset({(0, 0)})}
    grown = set()
    for shape in polyominoes(cells - 1):
        for cell in shape:
            for row, column in [(cell[0] - 1, cell[1]), (cell[0], cell[1] - 1), *neighbours(99, cell)]:
                larger = shape | {(row, column)}
                top, left = min(r for r, _ in larger), min(c for _, c in larger)
                grown.add(frozenset((r - top, c - left) for r, c in larger))
    return {shape for shape in grown if len(shape) == cells}


@pytest.mark.parametrize(("cells", "shapes"), [(1, 1), (2, 2), (3, 6), (4, 19), (5, 63), (6, 216)])
def test_regions_of_every_shape_are_worth_the_eyes_of_the_twin(cells, shapes):
    found = polyominoes(cells)
    assert len(found) == shapes
    for shape in found:
        game = Game(10, Rules("test", scoring=SCORING_TERRITORY, tax=TAX_SEKI), 0)
        black = [(r, c) for r in range(10) for c in range(8) if (r - 1, c - 1) not in shape]
        game.setup_stones([point_at(r, c, 10) for r, c in black], [point_at(r, 9, 10) for r in range(10)], BLACK)
        assert final_score_black(game.position) == (cells if eyes(set(shape)) == 2 else 0)


CHOICES = st.lists(st.integers(0, 10**6), min_size=20, max_size=150)


@settings(derandomize=True, max_examples=80)
@given(st.integers(3, 9), CHOICES)
def test_random_positions_score_as_the_twin_does(size, choices):
    game, twin, mask = Game(size, AREA, 0), Twin(size), np.empty(size * size + 1, np.uint8)
    lead = 0
    for choice in choices:
        color = game.to_move
        legal_moves(game.position, color, mask)
        index = int(np.flatnonzero(mask)[choice % int(mask.sum())])
        game.play(color, int(on_board_points(size)[index]) if index < size * size else PASS)
        twin.play(divmod(index, size) if index < size * size else None, color)
        lead += 0 if index == size * size else 1 if color == BLACK else -1
    stones = sum(1 if color == BLACK else -1 for color in twin.stones.values())
    prisoners = twin.lost[WHITE] - twin.lost[BLACK]
    area = sum(1 if color == BLACK else -1 for color in twin.area().values())
    for tax, regions in [
        (TAX_NONE, area - stones),
        (TAX_SEKI, taxed_score_black(twin.stones, size, 0)),
        (TAX_ALL, taxed_score_black(twin.stones, size, 2)),
    ]:
        for rules, expected in [(AREA, stones + regions), (TERRITORY, prisoners + regions)]:
            game.set_rules(replace(rules, tax=tax))
            assert final_score_black(game.position) == expected
    game.set_rules(TERRITORY)
    count_none_beside_atari(game.position)
    assert final_score_black(game.position) == prisoners + score_without_atari_black(twin.stones, size)
    game.set_rules(TERRITORY)
    # Every stone played is on the board or a prisoner, so the two ways of counting differ by the moves made.
    assert final_score_black(game.position) == area - lead


SHARED_LIBERTY = """
    . X O . O
    O O O O O
    X X X X X
    . X . X .
    X X X X X
"""
"""Black's B5 is in atari; its last liberty is a dame"""


@pytest.mark.parametrize(
    ("diagram", "moves", "dead", "without_tax", "beside_none"),
    [
        (KO_MOUTH, "", "", 9, 8), (KO_MOUTH, "B7", "", 8, 8), (KO_MOUTH, "pass B7", "", 6, 7),
        (KO_MOUTH, "pass G1", "G1", 10, 9), (SHARED_LIBERTY, "", "", 2, 2),
    ],
    ids=["a ko's mouth", "connected", "taken", "beside a dead stone in atari", "a dame"],
)  # fmt: skip
def test_points_beside_an_own_chain_in_atari_do_not_count_where_a_network_says_so(
    diagram, moves, dead, without_tax, beside_none
):
    """KataGo's rules version 3."""
    game = game_from(diagram, rules=TERRITORY)
    for point in points(game, moves):
        game.play(game.to_move, point)
    position = remove_dead(game.position, points(game, dead))
    assert final_score_black(position) == without_tax
    count_none_beside_atari(position)
    assert final_score_black(position) == score_with_dame_filled(position) == beside_none


@pytest.mark.parametrize(
    "rules",
    [AREA, *(replace(TERRITORY, tax=tax) for tax in (TAX_SEKI, TAX_ALL))],
    ids=["area", "seki tax", "group tax"],
)
def test_under_other_rules_they_count_as_ever(rules):
    position = game_from(KO_MOUTH, rules=rules).position
    before = position.rules.copy(), final_score_black(position)
    count_none_beside_atari(position)
    assert (position.rules == before[0]).all() and final_score_black(position) == before[1]


def test_dead_points_are_whole_chains_that_mean_ownership_gives_away():
    game = game_from(DEAD_STONES)
    ownership = np.ones(49, np.float32)
    ownership.reshape(7, 7)[:5, 4:] = ownership.reshape(7, 7)[5:] = -1
    assert [to_vertex(p, 7) for p in dead_points(game.position.board, ownership, 0.2)] == ["B6", "B5", "F5"]
    ownership.reshape(7, 7)[1, 1] = -1
    assert [to_vertex(p, 7) for p in dead_points(game.position.board, ownership, 0.2)] == ["F5"]
    assert dead_points(game.position.board, np.zeros(49, np.float32), 0.2) == []
    weak = 0.3 * ownership
    assert len(dead_points(game.position.board, weak, 0.2)) == 1
    assert dead_points(game.position.board, weak, 0.5) == []


@pytest.mark.parametrize(
    ("lead", "text"),
    [(3.5, "B+3.5"), (-0.5, "W+0.5"), (0.0, "0"), (-0.0, "0"), (7.0, "B+7"), (-361.0, "W+361"), (100.5, "B+100.5")],
)
def test_result_text(lead, text):
    assert result_text(lead) == text
