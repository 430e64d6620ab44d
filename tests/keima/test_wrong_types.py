"""What is given in place of a board, a limit or a move is named in one line, with what would do."""

import pytest

import keima


@pytest.fixture(scope="module")
def engine():
    with keima.Engine("small", seed=1, threads=1) as engine:
        yield engine


BOARD = keima.Board(9, moves="E5 C3")
WRONG = {
    "a number of visits": (
        lambda engine: engine.analyse(BOARD, 50),
        r"limit is 50, expected keima.Limit\(visits=...\)",
    ),
    "a file": (lambda engine: engine.play("x.sgf"), r"got str; keima.Board.from_sgf\(...\) gives one"),
    "a record": (lambda engine: engine.play(keima.Record(BOARD)), r"got Record; .end.board\(\) gives one"),
    "a node": (lambda engine: engine.play(keima.Record(BOARD).root), r"got Node; .board\(\) gives one"),
    "no boards": (lambda engine: engine.analyse([1, 2], keima.Limit(visits=2)), "expected a keima.Board, got int"),
    "boards to trace": (lambda engine: engine.network.trace([BOARD, BOARD]), "expected a keima.Board, got list"),
    "boards that are texts": (lambda engine: engine.network.evaluate(["x"]), "expected a keima.Board, got str"),
    "no move": (lambda engine: keima.Board(9).play(None), "None is not a move, expected a vertex such as 'D4'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_named(engine, name):
    call, reason = WRONG[name]
    with pytest.raises(TypeError, match=reason):
        call(engine)


def test_no_boards_keep_the_tree(engine):
    engine.analyse(BOARD, keima.Limit(visits=8))
    assert engine.analyse([]) == [] and len(engine.tree()) > 1


def test_moves_may_be_a_text(engine):
    info = engine.analyse(BOARD, keima.Limit(visits=8), allow="E3 G5")
    assert {candidate.move for candidate in info.candidates} <= {"E3", "G5"}
    assert BOARD.svg(line="E3 G5").count(">2</text>") == 2, "the second number of the line, and that of the row"
