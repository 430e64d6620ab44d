"""Handicap: where stones are placed, and which of Black's stones are one."""

import subprocess

import pytest

from engine.go.game import Game
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, PASS, WHITE, from_vertex, point_at, to_vertex
from engine.go.handicap import fixed_handicap_points, free_handicap_points, handicap_places, star_points
from engine.go.position import META_HANDICAP
from engine.go.rules import RULE_SETS


def vertices(points: list[int], size: int) -> str:
    return " ".join(to_vertex(point, size) for point in points)


FIXED_19 = {
    2: "D4 Q16",
    3: "D4 Q16 D16",
    4: "D4 Q16 D16 Q4",
    5: "D4 Q16 D16 Q4 K10",
    6: "D4 Q16 D16 Q4 D10 Q10",
    7: "D4 Q16 D16 Q4 D10 Q10 K10",
    8: "D4 Q16 D16 Q4 D10 Q10 K4 K16",
    9: "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10",
}


@pytest.mark.parametrize("count", FIXED_19)
def test_fixed_handicap_on_19x19_is_the_table_of_gtp_2(count):
    assert vertices(fixed_handicap_points(19, count), 19) == FIXED_19[count]


@pytest.mark.parametrize(
    ("size", "count", "points"),
    [
        (7, 4, "C3 E5 C5 E3"),
        (8, 4, "C3 F6 C6 F3"),
        (9, 9, "C3 G7 C7 G3 C5 G5 E3 E7 E5"),
        (11, 5, "C3 J9 C9 J3 F6"),
        (12, 2, "C3 K10"),
        (13, 9, "D4 K10 D10 K4 D7 K7 G4 G10 G7"),
        (14, 3, "D4 L11 D11"),
        (25, 6, "D4 W22 D22 W4 D13 W13"),
    ],
)
def test_fixed_handicap_on_other_sizes(size, count, points):
    assert vertices(fixed_handicap_points(size, count), size) == points


@pytest.mark.parametrize(
    ("size", "count"), [(19, 1), (19, 10), (19, 0), (19, -2), (18, 5), (7, 5), (8, 5), (6, 2), (2, 2)]
)
def test_other_fixed_handicaps_are_refused(size, count):
    game = Game(size)
    with pytest.raises(ValueError, match=r"^invalid number of stones$"):
        game.fixed_handicap(count)
    assert (game.handicap, game.to_move) == (0, BLACK)


def test_handicap_stones_are_no_moves():
    game = Game(9)
    points = game.fixed_handicap(3)
    assert (game.handicap, game.to_move, game.n_moves) == (3, WHITE, 0)
    assert all(game.position.board.color[point] == BLACK for point in points)
    with pytest.raises(ValueError, match="cannot undo"):
        game.undo()
    game.play(WHITE, from_vertex("E5", 9))
    game.undo()
    game.set_rules(RULE_SETS["aga"])
    assert (game.handicap, game.to_move, game.position.meta[META_HANDICAP]) == (3, WHITE, 3)
    game.new(9)
    assert (game.handicap, game.to_move) == (0, BLACK)


def test_black_moves_in_a_row_at_the_start_are_handicap_stones():
    """Some clients send them so; White's bonus under Chinese rules depends on them."""
    game = Game(9, RULE_SETS["chinese"])
    for vertex, handicap in [("C3", 0), ("G7", 2), ("C7", 3)]:
        game.play(BLACK, from_vertex(vertex, 9))
        assert game.handicap == handicap
    game.play(WHITE, from_vertex("E5", 9))
    game.play(BLACK, from_vertex("G3", 9))
    game.play(BLACK, from_vertex("G2", 9))
    assert (game.handicap, game.n_moves) == (3, 6)
    for _ in range(4):
        game.undo()
    assert game.handicap == 2
    game.set_rules(RULE_SETS["aga"])
    assert game.handicap == 2


@pytest.mark.parametrize(("start", "handicap"), [((), 0), (("E5", "E6"), 2), (("E5",), 0)])
def test_a_position_set_up_by_one_colour_after_the_other_has_no_more_handicap(start, handicap):
    """As of KataGo: White's second move in a row says so, whatever the first was; later ones change nothing."""
    for first in (from_vertex("A9", 9), PASS):
        game = Game(9)
        game.setup_stones([from_vertex(vertex, 9) for vertex in start], [], BLACK)
        for vertex in ("C1", "C2", "C3"):
            game.play(BLACK, from_vertex(vertex, 9))
        game.play(WHITE, first)
        assert game.handicap == len(start) + 3
        game.play(WHITE, from_vertex("B9", 9))
        assert game.handicap == handicap
        for vertex in ("C4", "C5"):
            game.play(BLACK, from_vertex(vertex, 9))
        assert game.handicap == handicap
        game.undo()
        game.undo()
        game.undo()
        assert game.handicap == len(start) + 3
        game.play(BLACK, from_vertex("D1", 9))
        game.play(WHITE, from_vertex("B9", 9))
        game.play(WHITE, from_vertex("C9", 9))
        assert game.handicap == (handicap if first == PASS else len(start) + 3)


def test_what_else_counts_as_handicap():
    """Black's stones before White's first one, however they came there; KataGo counts them so."""
    game = Game(9)
    game.fixed_handicap(2)
    game.play(WHITE, PASS)
    game.play(BLACK, from_vertex("A1", 9))
    assert game.handicap == 3
    game.play(WHITE, from_vertex("J9", 9))
    game.play(BLACK, from_vertex("B1", 9))
    assert game.handicap == 3
    game.new(9)
    game.setup_stones([from_vertex("E5", 9), from_vertex("E6", 9)], [], BLACK)
    assert game.handicap == 2
    game.setup_stones([from_vertex("E5", 9), from_vertex("E6", 9)], [from_vertex("A1", 9)], BLACK)
    game.play(BLACK, from_vertex("B1", 9))
    assert game.handicap == 0
    game.setup_stones([from_vertex("E5", 9)], [], WHITE)
    game.play(WHITE, from_vertex("A1", 9))
    game.play(BLACK, from_vertex("B1", 9))
    assert game.handicap == 0


@pytest.mark.parametrize(
    ("size", "count"), [(19, 2), (19, 9), (19, 13), (9, 20), (8, 7), (5, 4), (3, 8), (2, 3), (25, 100)]
)
def test_free_handicap_places_exactly_as_many_as_asked(size, count):
    game = Game(size)
    points = game.place_free_handicap(count)
    assert len(set(points)) == len(points) == game.handicap == count
    assert int((game.position.board.color == BLACK).sum()) == count
    assert game.to_move == WHITE


def test_free_handicap_spreads_its_stones():
    assert vertices(free_handicap_points(19, 9), 19) == FIXED_19[9]
    assert vertices(free_handicap_points(5, 2), 5) == "C3 B4"
    rows_and_columns = [divmod(point, 20) for point in free_handicap_points(19, 16)]
    assert all(4 <= row <= 16 and 4 <= column <= 16 for row, column in rows_and_columns)


@pytest.mark.parametrize(("size", "count"), [(19, 1), (19, 0), (19, 361), (2, 4)])
def test_free_handicap_of_impossible_numbers_is_refused(size, count):
    with pytest.raises(ValueError, match=r"^invalid number of stones$"):
        Game(size).place_free_handicap(count)


@pytest.mark.parametrize(("size", "text"), [(5, ""), (5, "C3"), (5, "C3 D4 C3"), (5, "C3 pass"), (2, "A1 A2 B1 B2")])
def test_bad_free_handicaps_are_refused(size, text):
    with pytest.raises(ValueError, match=r"^bad vertex list$"):
        Game(size).set_free_handicap([from_vertex(vertex, size) for vertex in text.split()])


def test_handicap_needs_an_empty_board():
    for line in ("C3", "pass"):
        game = Game(9)
        game.play(BLACK, from_vertex(line, 9))
        for place in (game.fixed_handicap, game.place_free_handicap):
            with pytest.raises(ValueError, match=r"^board not empty$"):
                place(2)
        with pytest.raises(ValueError, match=r"^board not empty$"):
            game.set_free_handicap([from_vertex("E5", 9), from_vertex("E6", 9)])
    game = Game(9)
    game.set_free_handicap([from_vertex("E5", 9), from_vertex("E6", 9)])
    assert (game.handicap, game.to_move) == (2, WHITE)
    with pytest.raises(ValueError, match=r"^board not empty$"):
        game.fixed_handicap(2)


@pytest.mark.clients("gnugo")
def test_fixed_handicap_agrees_with_gnu_go(gnugo):
    # On 12x12 GNU Go plays on the fourth line, against the specification.
    cases = [(size, count) for size in range(7, 20) if size != 12 for count in range(2, 10)]
    commands = "".join(f"boardsize {size}\nclear_board\nfixed_handicap {count}\n" for size, count in cases)
    run = subprocess.run([gnugo, "--mode", "gtp"], input=commands, capture_output=True, text=True, timeout=60)
    answers = run.stdout.strip().split("\n\n")[2::3]
    for (size, count), answer in zip(cases, answers, strict=True):
        if answer.startswith("="):
            assert set(answer[1:].split()) == set(vertices(fixed_handicap_points(size, count), size).split())
        else:
            with pytest.raises(ValueError, match="invalid number of stones"):
                fixed_handicap_points(size, count)


@pytest.mark.parametrize("size", range(MIN_SIZE, MAX_SIZE + 1))
def test_stones_of_a_fixed_handicap_stand_on_star_points(size):
    """But for the middles of the sides on small boards, which are not marked."""
    stars = {int(point_at(row, column, size)) for row, column in star_points(size)}
    most = len(handicap_places(size))
    if not most:
        assert not stars
        return
    for count in range(2, most + 1):
        stones = set(fixed_handicap_points(size, count))
        assert len(stones) == count
        assert stones <= stars or (size < 13 and count > 5)
    assert stars <= set(fixed_handicap_points(size, most))
