"""The annotated SGF: properties written, content that stays, and replacement by a second review."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
from sgfmill import sgf, sgf_grammar

from engine.go.sgf import read_sgf
from engine.go.sgf_tree import read_trees
from engine.insight.review.annotate import FENCE, annotate, remove_review
from engine.insight.review.games import MARK
from tests.insight.reviews import PLAYED, reviewed

LEADS = (0, 0, 0, 0, 0, 0, 0, -3, 4, -16, 0)
"""Black loses 3 with move 7, White 7 with move 8, Black 20 with move 9, White 16 with move 10"""


def annotated(data=PLAYED, leads=LEADS, **more):
    review, tree = reviewed(data, leads)
    annotate(tree, review, **more)
    return tree.to_bytes()


def nodes_of(data):
    [(_, tree)] = read_trees(data)
    return tree.main_line()


def text_of(node, name):
    """A property's first value as text; empty if it is missing."""
    return sgf_grammar.text_value(node.get(name, [b""])[0]).decode()


def without_ours(data):
    [(_, tree)] = read_trees(data)
    remove_review(tree)
    return tree.to_bytes()


def test_graphs_and_marks_are_those_that_sabaki_shows():
    nodes = nodes_of(annotated())
    assert nodes[0]["SBKV"] == [b"50.00"] and nodes[8]["SBKS"] == [b"4.00"] and nodes[8]["SBKV"] == [b"54.00"]
    assert nodes[7]["DO"] == [b""] and nodes[8]["BM"] == [b"1"]
    assert nodes[9]["BM"] == [b"2"] and nodes[9]["HO"] == [b"1"]
    for node in nodes[1:]:
        assert sum(name in node for name in ("BM", "DO", "IT", "TE")) == 1


def test_lizzie_finds_an_analysis_in_each_node():
    """The side that has just moved, in percent; then the moves of the side to move."""
    nodes = nodes_of(annotated())
    first, moves = text_of(nodes[8], "LZ").split("\n")
    assert first.split()[:2] == ["Keima", "46.0"] and nodes[8]["SBKV"] == [b"54.00"]
    words = moves.split()
    assert words[0] == "move" and words[-1] == "info" and moves.count(" info ") == moves.count("move ")
    values = dict(zip(words[:10:2], words[1:10:2], strict=True))
    assert values["winrate"] == "5400" and values["scoreMean"] == "4.00"
    assert "LZOP" in nodes[0] and not any("LZ" in node for node in nodes[:1])


def test_comments_hold_a_line_that_sabaki_plays():
    said = text_of(nodes_of(annotated())[9], "C")
    assert "Blunder: E6 lost 20.0 points." in said
    assert "Better: G7 (Black 54.0%, B+4.0)." in said
    assert re.search(r"^B G7 F7$", said, re.MULTILINE)
    assert "Now Black 34.0%, W+16.0." in said
    assert "Most costly: #9 (20.0 points), #10 (16.0 points), #8 (7.0 points)." in text_of(
        nodes_of(annotated())[0], "C"
    )


def test_what_people_wrote_stays():
    data = annotated()
    nodes = nodes_of(data)
    assert nodes[0]["XY"] == [b"kept"] and nodes[0]["BR"] == [b"2k"]
    assert text_of(nodes[1], "C").startswith("centre" + FENCE.decode() + "\n\nExcellent")
    assert nodes[4]["TE"] == [b"1"] and b"TE" not in nodes[4].get(MARK, [])
    assert b"a line of ours" in data
    [(before, _)], [(after, _)] = read_trees(PLAYED), read_trees(without_ours(data))
    # AP, which says what has written the file, and CA stay.
    assert after.replace(b"AP[Keima:0.1.0]", b"") == before


def test_a_second_review_replaces_the_first():
    first = annotated()
    again = annotated(first)
    assert again == first
    other = annotated(first, leads=())
    assert other == annotated(leads=())
    assert b"HO[1]" not in other and b"Blunder" not in other


def test_a_review_is_found_by_its_comments_where_a_program_has_dropped_our_property():
    [(_, tree)] = read_trees(annotated())
    for node in tree.every_node():
        node.pop(MARK, None)
    remove_review(tree)
    assert [text_of(node, "C") for node in tree.main_line()[:3]] == ["Ours", "centre", ""]
    assert all("SBKV" not in node for node in tree.main_line())


def test_analyses_of_other_programs_stay_but_where_ours_replaces_them():
    def numbers(data, color, point):
        [(_, tree)] = read_trees(data)
        node = next(node for node in tree.every_node() if node.get(color) == [point])
        return node.get("SBKV"), node.get("KT")

    theirs = PLAYED.replace(b";W[aa]", b";W[aa]SBKV[61.00]KT[x]").replace(b";W[ce]", b";W[ce]KT[y]SBKV[9]SBKS[9]")
    first = annotated(theirs, katrain=False)
    assert numbers(first, "W", b"aa") == ([b"61.00"], [b"x"]), "in a variation"
    assert numbers(first, "W", b"ce") == ([b"50.00"], [b"y"])
    (_, ours) = numbers(annotated(first), "W", b"ce")
    assert ours is not None and ours != [b"y"]
    bare = without_ours(first)
    assert numbers(bare, "W", b"aa") == ([b"61.00"], [b"x"]) and numbers(bare, "W", b"ce") == (None, [b"y"])


def test_lines_of_the_engine_that_people_went_on_with_stay():
    [(_, tree)] = read_trees(annotated())
    line = next(node for node in tree.every_node() if node.get("B") == [b"gc"] and "SBKV" in node)
    line["C"] = [line["C"][0] + b" Why not?"]
    assert b"Why not?" in without_ours(tree.to_bytes())
    assert b"[gc]" not in without_ours(annotated())


def test_engine_lines_follow_the_move_before_and_end_with_the_game():
    data = annotated()
    game = sgf.Sgf_game.from_bytes(data)
    before = game.get_main_sequence()[8]
    assert [child.get_move() for child in before] == [("b", (5, 4)), ("b", (6, 6))]
    assert before[1].get("C").startswith(FENCE.decode() + "Instead of #9: Black 54.0%, B+4.0, 50 visits.")
    assert len(game.get_main_sequence()) == 11
    assert read_sgf(data).moves == read_sgf(PLAYED).moves
    assert len(list(sgf.Sgf_game.from_bytes(annotated(lines=2)).get_main_sequence()[8])) == 3
    assert len(list(sgf.Sgf_game.from_bytes(annotated(lines=0)).get_main_sequence()[8])) == 1


def test_katrain_finds_its_three_values():
    nodes = nodes_of(annotated())
    assert nodes[0]["KTV"] == [b"1.0"]
    owners, policy, text = (gzip.decompress(base64.b64decode(value)) for value in nodes[8]["KT"])
    assert len(np.frombuffer(owners, "<f2")) == 81 and len(np.frombuffer(policy, "<f2")) == 82
    found = json.loads(text)
    assert found["completed"] and found["root"] == {"visits": 100, "winrate": 0.54, "scoreLead": 4.0}
    assert found["moves"]["G7"]["pv"] == ["G7", "F7"] and found["moves"]["G7"]["order"] == 0
    assert b"KT[" not in annotated(katrain=False)


@pytest.mark.parametrize("encoding", ["gb18030", "latin-1", "shift_jis", "utf-8"])
def test_records_in_other_encodings_become_utf_8(encoding):
    name = {"gb18030": "李世乭", "latin-1": "Müller", "shift_jis": "本因坊", "utf-8": "이세돌"}[encoding]
    data = f"(;CA[{encoding}]SZ[9]PB[{name}];B[ee];W[ec]C[{name}])".encode(encoding)
    written = annotated(data, leads=(0, 0, 9))
    assert b"CA[UTF-8]" in written and f"PB[{name}]".encode() in written
    assert text_of(nodes_of(written)[2], "C").startswith(name)


def test_comments_with_brackets_and_backslashes_come_back():
    """To the byte, line ends included; a second review, too, finds them as they were."""
    for said in (rb"a \] and \\ and \: here", b"a line\r\n\tand one more\n\n", b" "):
        data = b"(;SZ[9]C[" + said + b"];B[ee];W[ec])"
        assert nodes_of(without_ours(annotated(data)))[0]["C"] == [said]
        assert annotated(annotated(data)) == annotated(data)


def test_odd_records_are_annotated_too():
    """A move in the root, both colours in a node, setup in the middle, a pass, nodes without moves."""
    for data in (
        b"(;SZ[9]B[ee];W[ec];B[gg])",
        b"(;SZ[9];B[ee]W[ec];B[gg])",
        b"(;SZ[9];B[ee];W[ec];AB[aa][bb];W[];B[gg];C[end])",
        b"(;SZ[9]HA[2]AB[cc][gg];W[ee];;B[];W[tt])",
    ):
        moves = read_sgf(data).moves
        written = annotated(data, leads=(0, 9, -9, 9, -9))
        assert read_sgf(written).moves == moves
        assert annotated(written, leads=(0, 9, -9, 9, -9)) == written
