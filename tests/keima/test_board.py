"""Boards of the library: moves and why they are illegal, rules, handicap, score, text, SGF, equality, pictures."""

import copy
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest

import keima
from engine.config import SetupOptions
from engine.go.rules import RULE_SETS

KO = """
    . X O . .
    X O . O .
    . X O . .
    . . . . .
    . . . . .
"""
"""Black takes a stone at C4"""


def test_a_game_is_played_and_taken_back():
    board = keima.Board(9)
    assert board.play("e5") == "E5" and board.play((2, 4)) == "E7" and board.play(0) == "A9" and board.pass_() == "pass"
    assert board.moves == [(keima.BLACK, "E5"), (keima.WHITE, "E7"), (keima.BLACK, "A9"), (keima.WHITE, "pass")]
    assert (board.n_moves, board.to_move, board.last_move, board.is_over) == (4, keima.BLACK, "pass", False)
    board.play("pass")
    assert board.is_over
    assert [board.undo() for _ in range(5)] == ["pass", "pass", "A9", "E7", "E5"]
    assert board == keima.Board(9) and board.last_move is None
    with pytest.raises(ValueError, match="no move has been played"):
        board.undo()


def test_either_colour_may_play():
    board = keima.Board(9)
    board.play("C3", "white")
    assert board.color_at("C3") is keima.WHITE and board.to_move is keima.BLACK and board.color_at("C4") is None


def test_illegal_moves_say_why():
    board = keima.Board.from_text(KO)
    board.play("C4")
    assert board.ko == "B4" and not board.is_legal("B4") and board.is_legal("B4", "black")
    reasons = {
        "C4": "C4 is occupied", "B4": "ko: B4 cannot be retaken now", "Z4": "'Z4' is not a vertex", (5, 0): "(5, 0)",
    }  # fmt: skip
    for move, reason in reasons.items():
        with pytest.raises(ValueError) as caught:
            board.play(move)
        assert reason in str(caught.value) and "\n" not in str(caught.value)
    assert board.n_moves == 1, "an illegal move changes nothing"


def test_superko_and_suicide_depend_on_the_rules():
    alone, two = ". X . .\nX X . .\n. . . O\n. . O .", "O . X .\nX X X .\n. . . .\n. . . ."
    for rules in ("japanese", "tromp-taylor"):
        with pytest.raises(ValueError, match="suicide: one stone without a liberty at A4"):
            keima.Board.from_text(alone, "white", rules=rules).play("A4")
    with pytest.raises(ValueError, match="suicide: two stones without a liberty at B4"):
        keima.Board.from_text(two, "white", rules="chinese").play("B4")
    board = keima.Board.from_text(two, "white", rules="new-zealand")
    board.play("B4")
    assert board.color_at("A4") is None and board.captures("black") == 2
    moves = "A2 B2 A1 B1 A2 A1"
    assert keima.Board(2, moves=moves, rules="chinese").is_legal("A2")
    for rules in ("aga", "goe"):
        with pytest.raises(ValueError, match=r"illegal move: A2 repeats an earlier position \(superko\)"):
            keima.Board(2, moves=moves, rules=rules).play("A2")


@pytest.mark.parametrize("rules", [*RULE_SETS, "jp", '{"ko": "SITUATIONAL", "scoring": "TERRITORY"}'])
def test_every_rule_set_has_a_name_that_makes_it_again(rules):
    board = keima.Board(9, rules=rules, moves="E5 C3 C7 G7")
    again = keima.Board(9, rules=board.rules)
    assert again._game.rules == board._game.rules
    board.rules = "aga"
    assert board.rules == "aga" and board.n_moves == 4
    assert board.legal_moves == [move for move in keima.board.moves_of(9) if board.is_legal(move)]


def test_legal_moves_end_with_the_pass():
    board = keima.Board.from_text(KO)
    board.play("C4")
    moves, mask = board.legal_moves, board.legal_mask()
    assert moves[-1] == "pass" and mask.dtype == bool and mask.shape == (5, 5)
    assert [move.policy_index for move in moves[:-1]] == np.flatnonzero(mask).tolist()
    assert "B4" not in moves and mask[1, 1] == False and board.legal_mask("black")[1, 1]  # noqa: E712 - an array's


def test_handicap_stones_stand_on_the_fixed_points():
    board = keima.Board(19, handicap=4, komi=0.5)
    assert (board.handicap, board.to_move, board.komi, board.n_moves) == (4, keima.WHITE, 0.5, 0)
    assert [board.color_at(point) for point in ("D4", "Q16", "D16", "Q4")] == [keima.BLACK] * 4
    for wrong in (1, 10, -2):
        with pytest.raises(ValueError, match=f"handicap: no fixed points for {wrong} stones"):
            keima.Board(19, handicap=wrong)


@pytest.mark.parametrize("wrong, reason", [
    ({"size": 1}, "unacceptable size: 1, expected 2 to 25"),
    ({"rules": "chess"}, "no rules are called 'chess'"),
    ({"komi": 6.3}, "komi is 6.3, expected whole or half points"),
    ({"size": 9, "moves": "E5 E5"}, "E5 is occupied"),
])  # fmt: skip
def test_a_wrong_start_is_refused(wrong, reason):
    with pytest.raises(ValueError) as caught:
        keima.Board(**wrong)
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_komi_is_the_engines_and_may_be_set():
    board = keima.Board()
    assert (board.size, board.komi, board.rules) == (19, SetupOptions.komi, SetupOptions.rules)
    twin = board.copy()
    board.komi = -3
    board.play("D4")
    board.undo()
    twin.play("D4")
    twin.undo()
    assert (board.komi, twin.komi, board.score().black, twin.score().black) == (-3.0, 7.5, 3.0, -7.5)


ENDED = """
    . X O . .
    . X O . .
    . X O . .
    O X O . .
    . X O . .
"""
"""White's stone at A2 is dead; without it Black owns 10 points, 5 of them stones, White 15 and 5"""


@pytest.mark.parametrize(("rules", "alive", "without"), [
    ("chinese", -11.5, -5.5),
    ("tromp-taylor", -11.5, -5.5),
    ("japanese", -9.5, -3.5),  # Black has two prisoners, White has one; and the dead stone
    ("stone-scoring", -9.5, -5.5),  # two points for White's group, and for Black's once it has an eye
])  # fmt: skip
def test_the_score_follows_the_rules(rules, alive, without):
    stones = keima.Board.from_text(ENDED).stones
    board = keima.Board.from_stones(
        5, np.flatnonzero(stones == 1), np.flatnonzero(stones == 2), rules=rules, komi=0.5, captured=(2, 1)
    )
    before = str(board)
    assert (board.score().black, board.score(dead=["A2"]).black) == (alive, without)
    assert str(board.score(["A2"])) == f"W+{-without:g}" and str(board) == before
    with pytest.raises(ValueError, match="no stone at A1"):
        board.score(dead=["A1"])


def test_stones_are_a_view():
    board = keima.Board(9)
    stones = board.stones
    board.play((0, 8))
    assert stones.shape == (9, 9) and stones.dtype == np.uint8 and stones[0, 8] == keima.BLACK and stones.sum() == 1
    assert np.shares_memory(stones, board._game.position.board.buffer)
    with pytest.raises(ValueError, match="read-only"):
        stones[0, 0] = 1


def test_chains_and_liberties():
    board = keima.Board(9, moves="E5 A1 E6 A2 F5")
    assert board.chain("E6") == ["E6", "E5", "F5"] and board.liberties("F5") == 7
    for wrong in ("D4", "pass"):
        with pytest.raises(ValueError, match=r"no stone at D4|a pass is not a point"):
            board.chain(wrong)


def test_text_is_read_back():
    board = keima.Board(9, moves="E5 E6 D6 A1 F6 B1 E7")
    again = keima.Board.from_text(str(board))
    assert again == board and again.to_move is keima.WHITE and again.captures("b") == 1
    assert str(again).replace("(", " ").replace(")", " ") == str(board).replace("(", " ").replace(")", " ")
    assert keima.Board.from_text(". X\nO .").to_move is keima.BLACK
    with pytest.raises(ValueError, match="expected a square diagram"):
        keima.Board.from_text("hello")


def test_stones_are_set_up_from_an_array():
    stones = keima.Board(9, moves="E5 C3 G7").stones
    again = keima.Board.from_stones(9, np.flatnonzero(stones == 1), np.flatnonzero(stones == 2), "white")
    np.testing.assert_array_equal(again.stones, stones)
    assert again.to_move is keima.WHITE and again.n_moves == 0
    with pytest.raises(ValueError, match="named twice"):
        keima.Board.from_stones(9, ["A1"], ["A1"])


def test_sgf_is_read_from_text_bytes_and_files(tmp_path):
    board = keima.Board(9, rules="japanese", komi=6.5, moves="E5 C3 pass G7")
    sgf, file = board.to_sgf(), tmp_path / "game.sgf"
    file.write_text(sgf, encoding="utf-8")
    for source in (sgf, sgf.encode(), file, str(file)):
        again = keima.Board.from_sgf(source)
        assert again == board and again.moves == board.moves and (again.rules, again.komi) == ("japanese", 6.5)
    assert keima.Board.from_sgf(sgf, 2).moves == board.moves[:2]
    with pytest.raises(ValueError, match=r"^SGF[^\n]*$"):
        keima.Board.from_sgf("(;SZ[9];B[zz])")
    with pytest.raises(FileNotFoundError):
        keima.Board.from_sgf(str(tmp_path / "none.sgf"))


def test_equality_and_hash_are_of_the_position():
    one, other = keima.Board(9, moves="E5 C3 G7"), keima.Board(9, moves="G7 C3 E5")
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    assert one != keima.Board(9, moves="E5 C3 G7", komi=0.5), "an analysis is for a komi"
    assert one != keima.Board(9, moves="E5 C3 G7", rules="japanese")
    other.play("pass")
    assert one != other and one != keima.Board(13) and one != "board"
    ko, none = keima.Board.from_text(KO), keima.Board.from_text(KO)
    ko.play("C4")
    none = keima.Board.from_text(str(ko))
    assert (ko.stones == none.stones).all() and ko.to_move == none.to_move and ko != none


@pytest.mark.parametrize("copied", [
    lambda board: pickle.loads(pickle.dumps(board)), copy.deepcopy, copy.copy, keima.Board.copy,
])  # fmt: skip
def test_copies_are_independent(copied):
    board = keima.Board(9, rules="aga", komi=0.5, handicap=2)
    for move in ("E5", "E6", "C5", "pass"):
        board.play(move)
    twin = copied(board)
    assert twin == board and twin.moves == board.moves and (twin.rules, twin.komi, twin.handicap) == ("aga", 0.5, 2)
    twin.play("A1")
    assert board.color_at("A1") is None and board.n_moves == 4
    twin.undo()
    twin.undo()
    assert twin.moves == board.moves[:3] and twin.liberties("E5") == 3


def test_a_short_repr_makes_the_board_again():
    for board in (
        keima.Board(), keima.Board(9, moves="E5 pass C3"),
        keima.Board(19, handicap=5, komi=0.5, rules="jp", moves="C3 D3"),
    ):  # fmt: skip
        again = eval(repr(board), {"Board": keima.Board})
        assert again == board and again.moves == board.moves and again._game.rules == board._game.rules
    assert repr(keima.Board(9)) == "Board(9)" and repr(keima.Board.from_text(KO)).startswith("<Board 5x5")
    out_of_turn = keima.Board(9)
    out_of_turn.play("E5", "white")
    assert repr(out_of_turn) == "<Board 9x9: 1 moves, Black to move>"


def test_a_picture_contains_what_was_asked():
    board = keima.Board(9, moves="E5 C3 G7 pass")
    policy = np.zeros(82)
    policy[[0, 40, 81]] = 0.2, 0.4, 0.4
    picture = board.svg(
        marks={"A1": "<b>&", "E5": "triangle"}, arrows=[("B2", "H8")], heat=policy, line=["D4", "pass", "D5"], width=123
    )
    root = ElementTree.fromstring(picture)
    texts = [text.text for text in root.findall(".//{*}text")]
    assert "<b>&" in texts and {"1", "3"} <= set(texts) and "2" not in texts[18:]
    assert root.get("width") == "123" and picture.count('fill="var(--heat)"') == 3, "two points, the head of an arrow"
    assert "prefers-color-scheme:dark" in picture and board._repr_svg_() == board.svg()
    numbered = ElementTree.fromstring(board.svg(numbers=True))
    assert [text.text for text in numbered.findall(".//{*}text")][18:] == ["3", "1", "2"], "row by row from the top"
    owned = board.svg(ownership=-np.ones((9, 9)))
    assert owned.count("<rect") == 2 + 81


def test_pictures_refuse_what_is_not_on_the_board(tmp_path):
    board = keima.Board(9)
    for wrong in ({"marks": {"pass": "A"}}, {"arrows": [("A1", "K1")]}, {"heat": np.zeros(80)}, {"line": ["T19"]}):
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            board.svg(**wrong)
    board.svg().save(tmp_path / "board.svg")
    assert ElementTree.parse(tmp_path / "board.svg").getroot().tag.endswith("svg")
