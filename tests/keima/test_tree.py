"""The tree of a search: its arrays, its nodes and its picture."""

import numpy as np
import pytest

from keima import BLACK, WHITE, Board, Engine, Limit


@pytest.fixture(scope="module")
def engine():
    """The default network, reproducible."""
    with Engine(threads=1, seed=1) as engine:
        yield engine


def searched(engine, board, visits=200):
    """Results and tree of a search from an empty tree."""
    engine.clear()
    return engine.analyse(board, Limit(visits=visits)), engine.tree()


def test_the_root_s_children_are_the_candidates(engine):
    info, tree = searched(engine, Board(9, moves="E5"))
    assert tree.root.visits == info.visits == 200 and tree.root.move is None and tree.root.parent is None
    children = {node.move: node for node in tree.root.children}
    for one in info.candidates:
        node = children.pop(one.move)
        assert (node.visits, node.color, node.to_move, node.depth) == (one.visits, WHITE, BLACK, 1)
        assert node.prior == pytest.approx(one.prior) and node.parent == tree.root
        assert node.win_rate.black == pytest.approx(one.win_rate.black)
        assert node.lead.black == pytest.approx(one.lead.black, abs=1e-4)
    assert not children
    assert tree.root.win_rate.black == pytest.approx(info.win_rate.black)
    assert tree.root.lead.black == pytest.approx(info.lead.black, abs=1e-4)


def test_visits_add_up_and_children_follow_their_parents(engine):
    _, tree = searched(engine, Board(9))
    assert len(tree) > 100
    for node in tree:
        children = node.children
        assert sum(child.visits for child in children) <= node.visits
        assert [child.visits for child in children] == sorted((child.visits for child in children), reverse=True)
        assert all(child.row > node.row and child.parent == node and child.color is node.to_move for child in children)
    assert (np.diff(tree.depth) >= 0).all() and tree.parent[0] == -1 and (tree.parent[1:] >= 0).all()
    assert sum(child.visits for child in tree.root.children) == tree.root.visits - 1


def test_a_node_has_its_line_and_its_board(engine):
    board = Board(9, moves="E5 C3")
    _, tree = searched(engine, board)
    line = tree.root.pv()
    node = tree.root
    for move in line:
        node = next(child for child in node.children if child.move == move)
    assert node.path() == line and not node.children and node.pv() == []
    expected = board.copy()
    for move in line:
        expected.play(move)
    assert node.board() == expected and node.board().n_moves == 2 + len(line)


def test_a_tree_does_not_change_with_the_search(engine):
    board = Board(9)
    _, tree = searched(engine, board, 50)
    visits = tree.visits.copy()
    engine.analyse(board, Limit(visits=150))
    assert (tree.visits == visits).all() and engine.tree().root.visits == 150
    with pytest.raises(ValueError, match="read-only"):
        tree.visits[0] = 1


def test_a_tree_can_be_had_while_a_search_runs(engine):
    engine.clear()
    with engine.analysis(Board(9, moves="E5"), interval=0.001) as analysis:
        for _ in analysis:
            tree = engine.tree()
            assert tree.board == Board(9, moves="E5") and tree.root.visits > 0
            break


def test_a_move_leaves_the_tree_of_its_search(engine):
    engine.clear()
    board = Board(9)
    played = engine.play(board, Limit(visits=60))
    tree = engine.tree()
    assert tree.board == board and tree.root.visits == 60 and played.move in [node.move for node in tree.root.children]


def test_without_a_search_there_is_no_tree(engine):
    engine.clear()
    with pytest.raises(ValueError, match=r"^the engine has no tree"):
        engine.tree()
    engine.analyse([Board(9)], Limit(visits=5))
    with pytest.raises(ValueError, match=r"^the engine has no tree"):
        engine.tree()


def test_the_top_of_a_tree_is_drawn(engine):
    _, tree = searched(engine, Board(9))
    drawing = tree._repr_svg_()
    assert drawing.count("<circle") == 30 and drawing.count("<path") == 29
    assert tree.svg(nodes=5).count("<circle") == 5
    assert tree.svg(nodes=10**6, depth=1).count("<circle") == 1 + len(tree.root.children)
    assert repr(tree) == f"<Tree of {len(tree)} nodes, 200 visits>"
