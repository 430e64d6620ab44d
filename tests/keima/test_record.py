"""Records of the library: variations, comments, marks, clocks, boards at nodes, and SGF without loss."""

from xml.etree import ElementTree

import pytest

import keima

TREE = (
    "(;FF[4]SZ[9]KM[6.5]RU[Japanese]PB[Ann]WR[3 dan]RE[B+R]XX[kept];B[ee]BL[12.5]C[a \\] b]TR[ee]LB[cc:1]"
    "(;W[ec];B[eg])(;W[ce](;B[gc])(;B[cg]))(;AB[aa]AE[ee]PL[W];W[bb]))"
)


def test_a_record_is_read_with_its_variations():
    record = keima.Record.read(TREE)
    assert (record.size, record.komi, record.rules, record.handicap) == (9, 6.5, "japanese", 0)
    assert (record.black, record.white, record.white_rank, record.result) == ("Ann", "", "3 dan", "B+R")
    assert [node.move for node in record.nodes] == [None, "E5", "E7", "E3", "C5", "G7", "C3", None, "B8"]
    first = record.root.children[0]
    assert first is record.nodes[1] and first.color is keima.BLACK and first.parent is record.root
    assert [node.move for node in record.main_line()] == ["E5", "E7", "E3"] and record.end.move == "E3"
    assert [child.depth for child in first.children] == [2, 2, 2]
    assert repr(record) == "<Record Ann - White: 9x9, 3 nodes, B+R>" and repr(first) == "<Node 1: Black E5, 3 children>"


def test_the_board_at_every_node():
    record = keima.Record.read(TREE)
    for nodes in (record.nodes, record.nodes[::-1]):
        for node in nodes:
            alone = keima.Record.read(TREE).nodes[record.nodes.index(node)].board()
            assert node.board() == alone and node.board().moves == alone.moves and node.board().komi == 6.5
    board = record.nodes[4].board()
    board.play("A1")
    assert record.nodes[4].board().moves == [(keima.BLACK, "E5"), (keima.WHITE, "C5")]
    assert record.nodes[8].board().color_at("A9") is keima.BLACK


def test_variations_are_added_and_removed():
    record = keima.Record(keima.Board(9, moves="E5 C5"), black="Ann", white="Bob")
    first = record.root.children[0]
    new = first.play("G5")
    assert first.play("C5") is record.end and first.children == [record.end, new] and new.color is keima.WHITE
    assert new.play("pass").move == "pass" and first.play("G5", main=True) is new and first.children[0] is new
    with pytest.raises(ValueError, match="E5 is occupied"):
        first.play("E5")
    first.children[1].remove()
    assert [node.move for node in record.nodes] == [None, "E5", "G5", "pass"]
    again = keima.Record.read(record.to_sgf())
    assert [node.move for node in again.nodes] == [None, "E5", "G5", "pass"] and again.date == record.date != ""


def test_comments_marks_arrows_and_clocks():
    record = keima.Record.read(TREE)
    node = record.nodes[1]
    assert (node.comment, node.marks, node.time_left) == ("a ] b", {"E5": "triangle", "C7": "1"}, {keima.BLACK: 12.5})
    new = node.play("A1")
    new.comment, new.time_left = "two\nlines ]", {keima.WHITE: 30.25}
    new.marks, new.arrows = {"D4": "A:]", (0, 0): "circle", 8: "square"}, [("A1", "B2")]
    new.set_property("V", "0.5")
    again = keima.Record.read(record.to_sgf()).nodes[-1]
    assert (again.move, again.comment, again.time_left) == ("A1", "two\nlines ]", {keima.WHITE: 30.25})
    assert again.marks == {"D4": "A:]", "A9": "circle", "J9": "square"} and again.arrows == (("A1", "B2"),)
    assert again.properties["V"] == ["0.5"] and again.properties["W"] == ["ai"]
    drawn = [text.text for text in ElementTree.fromstring(again.svg()).findall(".//{*}text")]
    assert "A:]" in drawn and again._repr_svg_() == again.svg()
    with pytest.raises(TypeError):
        again.marks["D4"] = "B"


def test_nothing_is_lost_in_writing(tmp_path):
    record = keima.Record.read(TREE)
    record.save(tmp_path / "game.sgf")
    again = keima.Record.read(tmp_path / "game.sgf")
    assert [node.properties for node in again.nodes] == [node.properties for node in record.nodes]
    assert again.root.properties["XX"] == ["kept"] and again.to_sgf() == record.to_sgf()


def test_details_may_be_set():
    record = keima.Record()
    record.black, record.result, record.komi, record.rules = "x]\\", "W+0.5", 100, "aga"
    again = keima.Record.read(record.to_sgf())
    assert (again.black, again.result, again.komi, again.rules) == ("x]\\", "W+0.5", 100.0, "aga")
    again.black = ""
    assert "PB" not in again.to_sgf()
    for name, reason in (("B", "cannot be set"), ("SZ", "cannot be set"), ("b", "not an SGF property")):
        with pytest.raises(ValueError, match=reason):
            again.root.set_property(name, "aa")
    with pytest.raises(ValueError, match=r"komi is 6\.3"):
        again.komi = 6.3


def test_every_game_of_a_file_is_read():
    games = keima.Record.read_all("(;SZ[9];B[aa])(;SZ[13])(;SZ[9];B[zz])")
    assert [next(games).size, next(games).size] == [9, 13]
    with pytest.raises(ValueError, match=r"^game 3: SGF[^\n]*$"):
        next(games)


def test_a_broken_record_is_refused():
    with pytest.raises(ValueError, match=r"^SGF[^\n]*$"):
        keima.Record.read(b"(;GM[3])")
    variation = keima.Record.read("(;SZ[9];B[aa](;W[bb])(;W[aa]))").nodes[-1]
    with pytest.raises(ValueError, match="SGF: move 2 at aa is illegal"):
        variation.board()
