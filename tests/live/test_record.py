"""Records: nodes, positions at any of them, moves added, and text."""

import pytest

from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, to_vertex
from engine.go.rules import RULE_SETS
from engine.go.sgf_tree import read_trees
from engine.live.record import Record
from engine.live.words import counted, move_said, why_illegal

TREE = b"(;SZ[9]KM[6.5]C[a \\] b];B[ee](;W[ec];B[eg])(;W[ce](;B[gc])(;B[cg]))(;AB[aa]AE[ee]PL[W];W[bb]))"


def moves(game):
    """The moves of a game as text."""
    return " ".join(to_vertex(point, game.size) for _, point in game.moves())


def test_nodes_are_numbered_along_the_tree():
    record = Record(TREE)
    assert [node.id for node in record.nodes] == list(range(len(record.nodes))) and len(record.nodes) == 9
    assert record.root.parent is None and record.nodes[1].parent is record.root
    assert [child.move and to_vertex(child.move[1], 9) for child in record.nodes[1].children] == ["E7", "C5", None]
    assert [node.id for node in record.root.main_continuation()] == [1, 2, 3]
    assert record.nodes[-1].depth == 3


def test_the_game_at_a_node():
    record = Record(TREE)
    assert [moves(record.game_at(node)) for node in record.nodes[:7]] == [
        "", "E5", "E5 E7", "E5 E7 E3", "E5 C5", "E5 C5 G7", "E5 C5 C3",
    ]  # fmt: skip
    after = record.game_at(record.nodes[8])
    assert after.komi == 6.5 and sorted(to_vertex(point, 9) for point in after.stones()) == ["A9", "B8"]


def test_a_move_is_added_once_and_becomes_the_main_one_if_asked():
    record = Record(TREE)
    at, known = record.nodes[1], record.nodes[2]
    assert record.play(at, WHITE, from_vertex("E7", 9), False) is known and len(record.nodes) == 9
    new = record.play(at, WHITE, from_vertex("A1", 9), False)
    assert at.children[-1] is new and new.id == 9
    assert record.play(at, WHITE, from_vertex("A1", 9), True) is new and at.children[0] is new
    ((_, tree),) = read_trees(record.to_bytes())
    assert [list(node) for node in tree.main_line()][1:] == [["B"], ["W"]] and b"W[ai]" in record.to_bytes()


def test_nothing_is_lost_in_writing():
    before = Record(TREE)
    again = Record(before.to_bytes())
    assert [node.properties for node in again.nodes] == [node.properties for node in before.nodes]


def test_text_of_the_root():
    record = Record(TREE)
    assert record.text("C") == "a ] b" and record.text("PB") == ""
    record.set_text("PB", "x]\\:\u9ed2")
    assert Record(record.to_bytes()).text("PB") == "x]\\:\u9ed2"
    record.set_text("PB", "")
    assert b"PB" not in record.to_bytes()


def test_the_record_of_a_game():
    game = Game(13, komi=0.5)
    game.fixed_handicap(3)
    game.play(WHITE, from_vertex("G7", 13))
    record = Record.of_game(game, "Ann", "Bob")
    again = record.game_at(record.nodes[-1])
    assert (again.handicap, again.komi, moves(again)) == (3, 0.5, "G7") and record.text("DT")


@pytest.mark.parametrize(
    "data", [b"", b"(;SZ[9];B[aa];B[aa])", b"(;SZ[9];B[xx])", b"(;GM[3])", b"(;SZ[9];B[aa](;W[zz])(;W[bb]))"]
)
def test_what_is_wrong_is_refused(data):
    with pytest.raises(ValueError, match=r"^SGF[^\n]*$"):
        Record(data)


def test_illegal_moves_are_explained_only_if_illegal():
    game = Game(9)
    game.play(BLACK, from_vertex("D4", 9))
    assert why_illegal(game, WHITE, from_vertex("D4", 9)) == "D4 is occupied"
    assert why_illegal(game, WHITE, from_vertex("D5", 9)) == "" == why_illegal(game, WHITE, 0)
    assert "no such point" in why_illegal(game, WHITE, 3) or why_illegal(game, WHITE, 3) == ""
    assert why_illegal(game, WHITE, 10**4) == "no such point on a 9x9 board"


def test_a_suicide_that_superko_forbids_too_is_a_suicide():
    game = Game(2, RULE_SETS["tromp-taylor"])
    for color, vertex in ((BLACK, "B1"), (WHITE, "B2"), (BLACK, "A2")):
        game.play(color, from_vertex(vertex, 2))
    assert why_illegal(game, WHITE, from_vertex("B2", 2)) == "suicide: one stone without a liberty at B2"


def test_text_marks_arrows_and_clocks_of_a_node():
    record = Record(b"(;SZ[9];B[aa]CR[aa:bb]LB[cc:x\\:y]AR[aa:cc]BL[9.5]WL[never]C[a\n b])")
    node = record.nodes[1]
    found = {to_vertex(point, 9): text for point, text in node.marks.items()}
    assert found == {"A9": "circle", "B9": "circle", "A8": "circle", "B8": "circle", "C7": "x:y"}
    assert [[to_vertex(point, 9) for point in ends] for ends in node.arrows] == [["A9", "C7"]]
    assert (node.time_left, node.text("C"), node.text("N")) == ({BLACK: 9.5}, "a\n b", "")
    node.marks, node.arrows, node.time_left = (
        {from_vertex("A1", 9): "cross", from_vertex("B1", 9): "]:"},
        [],
        {WHITE: 3},
    )
    node.set_text("C", "")
    assert record.to_bytes().endswith(b";B[aa]LB[bi:\\]:]MA[ai]WL[3])\n")
    assert Record(record.to_bytes()).nodes[1].marks == node.marks


def test_removed_nodes_are_not_written():
    record = Record(TREE)
    record.remove(record.nodes[4])
    assert record.to_bytes().count(b"W[") == 2 and [child.id for child in record.nodes[1].children] == [2, 7]
    for node in (record.root, record.nodes[4]):
        with pytest.raises(ValueError, match="only a node below the root"):
            record.remove(node)


def test_every_game_of_a_file_is_read():
    first, broken, last = Record.read_all(b"(;SZ[9];B[aa])(;SZ[9];B[aa];B[aa])(;SZ[13])")
    assert (first.size, last.size) == (9, 13) and isinstance(broken, ValueError)


def test_words():
    assert counted(1, "stone") == "one stone" and counted(12, "stone") == "12 stones"
    assert move_said(12, WHITE, from_vertex("D4", 9), 9, 2) == "Move 12: White D4, two stones taken"
    assert move_said(3, BLACK, 0, 9) == "Move 3: Black passes"
