"""KataGo's input against its slow twin, against inputs of KataGo itself, and known values on diagrams."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine.features.encoder import KATAGO, KATAGO_ATARI, KATAGO_SUICIDE, KATAGO_SUICIDE_ATARI, encode, key
from engine.features.katago import mark_caught
from engine.go.board import META_KO_POINT, META_SIZE, play
from engine.go.diagram import parse
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex, on_board_points, point_at
from engine.go.ladder import new_ladder_scratch
from engine.go.position import META_TO_MOVE, count_none_beside_atari, legal_moves
from engine.go.rules import RULE_KO, RULE_SETS, Rules, rules_named
from tests.features.katago_twin import KatagoGame, Ladders, UnreadError, katago_input
from tests.references import rows

OWN, OPPONENT, FORBIDDEN, RECENT, CAUGHT, WORKING, OWN_AREA, OPPONENT_AREA = 1, 2, 6, 9, 14, 17, 18, 19
KOMI, PASS_ENDS, BUTTON, WAVE = 5, 14, 17, 18
TWIN_NODES = 3000
"""Most moves that the twin reads; random games are chosen small enough for nearly all of them"""
AREA = Rules("area")
FRIENDLY = Rules("friendly", friendly_pass=True)
TERRITORY = Rules("territory", scoring=1, tax=1)


def encoded(position, symmetry=0, encoder=KATAGO):
    """Planes and globals, in arrays that held something else before."""
    size = int(position.board.meta[META_SIZE])
    planes, globals_ = np.full((22, size, size), 7, np.float32), np.full(19, 7, np.float32)
    encode(position, symmetry, encoder.new_scratch(size), planes, globals_)
    return planes, globals_


@st.composite
def all_rules(draw):
    """Any combination of flags."""
    territory = draw(st.booleans())
    return Rules(
        "drawn",
        ko=draw(st.integers(0, 2)),
        scoring=int(territory),
        tax=draw(st.integers(0, 2)),
        suicide=draw(st.booleans()),
        button=not territory and draw(st.booleans()),
        handicap_bonus=draw(st.integers(0, 2)),
        friendly_pass=draw(st.booleans()),
    )


def random_game(size, most, seed, rules):
    """Random legal moves near each other, passes, stones set up, and now and then a side that moves out of turn."""
    rng = np.random.default_rng(seed)
    stones = {}
    if rng.random() < 0.4:
        cells = [(row, column) for row in range(0, size, 2) for column in range(0, size, 2)]
        colors = rng.integers(1, 3) if rng.random() < 0.5 else None
        for i in rng.choice(len(cells), min(4, len(cells)), replace=False):
            stones[cells[i]] = int(colors or rng.integers(1, 3))
    game = KatagoGame(size, rules, int(rng.integers(-60, 61)) / 2, stones, int(rng.integers(1, 3)))
    passes, doubles = rng.choice([0.02, 0.1, 0.4]), rng.choice([0, 0, 0.05])
    marks, last = np.zeros(size * size + 1, np.uint8), None
    for _ in range(seed % most):
        color = 3 - game.color if rng.random() < doubles else game.color
        legal_moves(game.position, color, marks)
        choices = [(int(i) // size, int(i) % size) for i in np.flatnonzero(marks[:-1])]
        if last and rng.random() < 0.7:
            choices = [c for c in choices if abs(c[0] - last[0]) <= 2 and abs(c[1] - last[1]) <= 2] or choices
        cell = choices[rng.integers(len(choices))] if choices and rng.random() > passes else None
        last = cell or last
        game.play(cell, color)
        if rng.random() < 0.02:
            game.hide()
    return game


@settings(max_examples=400)
@example((2, 30), 11806, Rules("drawn", handicap_bonus=1))
@given(
    st.sampled_from([(2, 30), (3, 40), (4, 50), (5, 70), (6, 80), (7, 90), (9, 90)]), st.integers(0, 2**32), all_rules()
)
def test_input_equals_the_slow_twin(board, seed, rules):
    game = random_game(*board, seed, rules)
    for encoder in (KATAGO, KATAGO_SUICIDE):
        try:
            expected = katago_input(game, encoder is KATAGO_SUICIDE, TWIN_NODES)
        except UnreadError:
            assume(False)
        planes, globals_ = encoded(game.position, encoder=encoder)
        for plane in range(22):
            np.testing.assert_array_equal(planes[plane], expected[0][plane], err_msg=f"plane {plane}")
        np.testing.assert_array_equal(globals_, expected[1])


@pytest.mark.shared
def test_input_equals_katagos_bit_for_bit(shared_path):
    compared = rows(shared_path / "refs" / "features_v7.jsonl.gz")
    assert {row["rules"] for row in compared} < set(RULE_SETS)
    for row in compared:
        size = row["boardsize"]
        game = Game(size, rules_named(row["rules"]), row["komi"])
        if row["handicap_stones"]:
            game.set_free_handicap([from_vertex(vertex, size) for vertex in row["handicap_stones"]])
        for color, vertex in row["moves"]:
            game.play(BLACK if color == "B" else WHITE, from_vertex(vertex, size))
        planes, globals_ = encoded(game.position)
        expected = np.zeros((22, size * size), np.float32)
        for plane, ones in row["spatial"].items():
            expected[int(plane), slice(None) if ones == "all" else ones] = 1
        np.testing.assert_array_equal(planes.reshape(22, -1), expected, err_msg=str(row["id"]))
        assert globals_.tobytes() == np.array(row["global"], np.float32).tobytes(), row["id"]


@settings(max_examples=100)
@given(st.integers(0, 2**32), all_rules())
def test_equal_keys_mean_equal_input(seed, rules):
    """On so small a board positions come again with other histories, komis and rules."""
    rng, seen, scratch = np.random.default_rng(seed), {}, KATAGO.new_scratch(3)
    planes, globals_ = np.empty((22, 3, 3), np.float32), np.empty(19, np.float32)
    marks = np.zeros(10, np.uint8)
    for komi in (0.0, 0.5, 0.0):
        game = Game(3, rules if rng.random() < 0.7 else replace(rules, tax=2 - rules.tax, ko=0), komi)
        for _ in range(80):
            color = int(game.to_move) if rng.random() < 0.95 else 3 - int(game.to_move)
            legal_moves(game.position, color, marks)
            choices = [PASS, *on_board_points(3)[marks[:-1] == 1]]
            game.play(color, int(choices[rng.integers(len(choices))]))
            encode(game.position, 0, scratch, planes, globals_)
            picture = planes.tobytes() + globals_.tobytes()
            assert seen.setdefault(int(key(game.position, scratch)), picture) == picture


def from_diagram(text, rules=AREA, to_move=BLACK):
    """A game that begins from a diagram."""
    board, _ = parse(text)
    game = Game(int(board.meta[META_SIZE]), rules, 0.0)
    game.setup_stones(
        *([p for p in on_board_points(game.size) if board.color[p] == c] for c in (BLACK, WHITE)), to_move
    )
    return game


def played(rules, *vertices, size=9, komi=0.0):
    """A game after some moves, Black's and White's in turn."""
    game = Game(size, rules, komi)
    for vertex in vertices:
        game.play(game.to_move, from_vertex(vertex, size))
    return game


def cells(plane):
    """Rows and columns of a plane's ones."""
    return [(int(row), int(column)) for row, column in np.argwhere(plane)]


@settings(max_examples=300)
@given(st.integers(5, 8), st.integers(0, 2**32))
def test_ladders_equal_plain_recursion(size, seed):
    """On crowded boards of stones dropped at random, where every third chain is short of liberties."""
    rng, scratch = np.random.default_rng(seed), new_ladder_scratch(size)
    board = scratch.board
    for point in rng.permutation(on_board_points(size))[: rng.integers(size, size * size * 3 // 4)]:
        play(board, int(point), int(rng.integers(1, 3)))
    board.meta[META_KO_POINT] = PASS
    stones = {(r, c): int(board.color[point_at(r, c, size)]) for r in range(size) for c in range(size)}
    stones = {cell: color for cell, color in stones.items() if color != EMPTY}
    try:
        expected, ataris = Ladders(size, TWIN_NODES).caught(stones, None)
    except UnreadError:
        assume(False)
    caught, working = np.zeros((size, size), np.uint8), np.zeros((size, size), np.uint8)
    for color in (BLACK, WHITE):
        mark_caught(scratch, color, caught.reshape(-1), working.reshape(-1))
        assert set(cells(caught)) == expected
        assert set(cells(working)) == ataris[color]


def test_a_ladder_of_many_second_choices_is_read_to_its_end():
    """White's stone in the corner runs across the board twice, with stones to capture all the way."""
    game = Game(19, AREA, 0.0)
    game.setup_stones([point_at(5, 14, 19), point_at(12, 3, 19)], [point_at(0, 3, 19), point_at(18, 18, 19)], BLACK)
    planes, _ = encoded(game.position)
    assert cells(planes[CAUGHT]) == [(18, 18)]
    assert cells(planes[WORKING]) == [(17, 18), (18, 17)]


def test_two_kos_catch_a_chain():
    game = from_diagram("""
        X X X O X .
        . . X . O X
        . . . X X .
        . . . X X X
        . . X O X X
        . O X . X .
    """)
    planes, _ = encoded(game.position)
    # Whatever White captures at the top, Black has one of two kos to take.
    assert (1, 4) in cells(planes[CAUGHT])
    stones = dict.fromkeys(cells(planes[OWN]), BLACK) | dict.fromkeys(cells(planes[OPPONENT]), WHITE)
    assert (1, 4) not in Ladders(6, TWIN_NODES, two_kos=False).caught(stones, None)[0]


def test_ladders_of_the_last_three_boards():
    """White runs, and Black does not follow."""
    game = from_diagram("""
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """)
    two, three = [(6, 3), (7, 3)], [(6, 3), (6, 4), (7, 3)]
    planes, _ = encoded(game.position)
    assert [cells(plane) for plane in planes[CAUGHT : WORKING + 1]] == [two, two, two, [(5, 3)]]
    expected = {"D4": [two, two, two, []], "E3": [three, two, two, [(6, 5)]], "E4": [[], three, two, []]}
    for vertex, caught in expected.items():
        game.play(game.to_move, from_vertex(vertex, 9))
        planes, _ = encoded(game.position)
        assert [cells(plane) for plane in planes[CAUGHT : WORKING + 1]] == caught


DEAD = """
    X X X X X X X
    X . . . X . X
    X . O . X X X
    X . . . X . .
    X X X X X . .
    . . . . . . .
    . . . . . . .
"""


def test_stones_in_which_no_two_eyes_fit_are_area_of_the_colour_around_them():
    planes, _ = encoded(from_diagram(DEAD).position)
    assert planes[OWN_AREA].sum() == 49 and planes[OPPONENT_AREA].sum() == 0


def test_where_suicide_may_clear_their_eye_they_are_not():
    for encoder, rules in ((KATAGO_SUICIDE, AREA), (KATAGO, replace(AREA, suicide=True))):
        planes, _ = encoded(from_diagram(DEAD, rules).position, encoder=encoder)
        assert cells(planes[OPPONENT_AREA]) == [(2, 2)]
        assert planes[OWN_AREA].sum() == 40


def test_with_a_tax_only_independent_life_and_stones_are_shown():
    text = """
        . X . O .
        X X . O O
        . . . . .
        X X X X X
        . . . . .
    """
    own = {tax: encoded(from_diagram(text, replace(AREA, tax=tax)).position)[0][OWN_AREA] for tax in (0, 1, 2)}
    assert (own[0].sum(), own[1].sum(), own[2].sum()) == (14, 13 - 5, 13 - 5)


def test_territory_scoring_shows_no_areas():
    planes, globals_ = encoded(from_diagram(DEAD, TERRITORY).position)
    assert not planes[OWN_AREA : OPPONENT_AREA + 1].any() and globals_[WAVE] == 0


def test_moves_and_passes_show_latest_first():
    planes, globals_ = encoded(played(AREA, "C3", "pass", "E5", "G7", "A1", "B2", "J9").position)
    assert [cells(plane) for plane in planes[RECENT : RECENT + 5]] == [[(0, 8)], [(7, 1)], [(8, 0)], [(2, 6)], [(4, 4)]]
    _, globals_ = encoded(played(AREA, "C3", "pass", "E5", "pass", "A1").position)
    assert globals_[:5].tolist() == [0, 1, 0, 1, 0]


def test_where_a_pass_would_end_the_game_it_is_told_unless_passes_are_friendly():
    _, strict = encoded(played(AREA, "C3", "pass").position)
    assert strict[0] == 1 and strict[PASS_ENDS] == 1
    planes, friendly = encoded(played(FRIENDLY, "C3", "pass").position)
    assert not friendly[:5].any() and friendly[PASS_ENDS] == 0 and not planes[RECENT : RECENT + 5].any()
    _, territory = encoded(played(replace(TERRITORY, friendly_pass=True), "C3", "pass").position)
    assert territory[0] == 1 and territory[PASS_ENDS] == 1


def test_after_the_end_only_its_last_pass_shows():
    for rules in (AREA, FRIENDLY, TERRITORY):
        _, globals_ = encoded(played(rules, "C3", "pass", "pass").position)
        assert globals_[:5].tolist() == [1, 0, 0, 0, 0] and globals_[PASS_ENDS] == 1
        planes, globals_ = encoded(played(rules, "C3", "pass", "pass", "E5").position)
        assert globals_[:5].tolist() == [0, 1, 0, 0, 0] and globals_[PASS_ENDS] == 0
        assert planes[RECENT : RECENT + 5].sum() == 1


def test_a_side_that_moves_twice_begins_a_new_record():
    game = played(AREA, "C3", "D4", "pass")
    game.play(BLACK, PASS)
    _, globals_ = encoded(game.position)
    assert globals_[:5].tolist() == [1, 0, 0, 0, 0] and globals_[PASS_ENDS] == 1
    game.play(BLACK, from_vertex("E5", 9))
    planes, globals_ = encoded(game.position)
    assert planes[RECENT : RECENT + 5].sum() == 1 and not globals_[:5].any()


def test_out_of_turn_no_ko_and_no_move_shows():
    game = from_diagram("""
        . X O . .
        X . X O .
        . X O . .
        . . . . .
        . . . . .
    """, to_move=WHITE)  # fmt: skip
    game.play(WHITE, point_at(1, 1, 5))
    assert cells(encoded(game.position)[0][FORBIDDEN]) == [(1, 2)]
    game.position.meta[META_TO_MOVE] = WHITE
    planes, _ = encoded(game.position)
    assert not planes[FORBIDDEN].any() and not planes[RECENT : RECENT + 5].any()


def test_komi_holds_all_that_white_is_given():
    def own_komi(game):
        return round(float(encoded(game.position)[1][KOMI]) * 20, 3)

    assert own_komi(played(AREA, komi=7.5)) == -7.5
    assert own_komi(played(AREA, "C3", komi=7.5)) == 7.5
    assert own_komi(played(TERRITORY, "C3", komi=6.5)) == 7.5
    assert own_komi(played(TERRITORY, "C3", "pass", "E5", komi=6.5)) == 8.5
    assert own_komi(played(AREA, "C3", komi=900)) == 81 + 20
    chinese, aga = RULE_SETS["chinese"], RULE_SETS["aga-button"]
    assert own_komi(played(chinese, "C3", "pass", "E5", "pass", "G7", komi=0.5)) == 3.5
    game = Game(9, chinese, 0.5)
    game.fixed_handicap(4)
    assert own_komi(game) == 4.5
    game.play(WHITE, from_vertex("E5", 9))
    assert own_komi(game) == -4.5
    assert own_komi(played(aga, "C3", "pass", "E5", komi=7)) == 7.0 + 0.5 + 1


def test_the_wave_rises_where_draws_are_possible():
    for size, komis in ((9, (7.0, 7.5, 8.0, 8.5, 9.0)), (8, (6.0, 6.5, 7.0, 7.5, 8.0))):
        waves = [float(encoded(played(AREA, "A1", size=size, komi=komi).position)[1][WAVE]) for komi in komis]
        assert waves == [0, 0.5, 0, -0.5, 0]


def test_the_button_shows_until_it_is_taken():
    rules = RULE_SETS["aga-button"]
    assert encoded(played(rules, "C3").position)[1][BUTTON] == 1
    _, globals_ = encoded(played(rules, "C3", "pass").position)
    assert globals_[BUTTON] == 0 and globals_[0] == 1 and globals_[PASS_ENDS] == 0


def test_an_unknown_kind_of_ko_is_an_error():
    position = Game(5).position
    position.rules[RULE_KO] = 3
    with pytest.raises(ValueError, match="kind of ko"):
        encoded(position)


@pytest.mark.parametrize("encoder", [KATAGO_ATARI, KATAGO_SUICIDE_ATARI])
@pytest.mark.parametrize("scoring", [0, 1])
@pytest.mark.parametrize("tax", [0, 1, 2])
def test_networks_that_count_no_point_beside_atari_are_shown_the_same_input(encoder, scoring, tax):
    """KataGo shows them other owners in the phases after a territory game alone, which are not played here."""
    for seed in range(6):
        rules = Rules("one", scoring=scoring, tax=tax)
        position = random_game(7, 60, 7 * seed + 40, rules).position
        before = encoded(position, seed, KATAGO_SUICIDE if encoder is KATAGO_SUICIDE_ATARI else KATAGO)
        own_key = key(position, KATAGO.new_scratch(7))
        count_none_beside_atari(position)
        for one, two in zip(before, encoded(position, seed, encoder), strict=True):
            np.testing.assert_array_equal(one, two)
        is_counted_otherwise = scoring == 1 and tax == 0
        assert (key(position, encoder.new_scratch(7)) != own_key) == is_counted_otherwise
