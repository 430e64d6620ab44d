"""Reviews from Python: moves, losses, the annotated record, files."""

import pytest

import keima

GAME = "(;SZ[9]KM[7]PB[Ann];B[ee];W[ec];B[gd];W[dg];B[aa];W[cd];B[fg])"


@pytest.fixture(scope="module")
def engine():
    with keima.Engine("small", seed=1, threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def review(engine):
    return keima.review(GAME, engine, limit=keima.Limit(visits=16), name="mine")


def test_every_move_is_rated(review):
    assert [move.move for move in review.moves] == ["E5", "E7", "G6", "D3", "A9", "C6", "F3"]
    assert len(review.win_rate_black) == len(review.lead_black) == 8
    corner = review.moves[4]
    assert corner.kind in ("mistake", "blunder") and corner.points_lost > 3 and 0 < corner.win_rate_lost < 1
    assert corner.best == corner.pv[0] != "A9" and corner in review.costly
    assert set(review.accuracy) == {keima.BLACK, keima.WHITE}
    assert review.accuracy[keima.BLACK] < review.accuracy[keima.WHITE]
    assert str(review).startswith("Ann against White, 7 moves, accuracy: Black ")


def test_the_record_has_the_review(review, tmp_path):
    record = review.record()
    node = record.main_line()[4]
    assert (node.move == "A9" and "lost" in node.comment.lower()) or node.comment
    assert "SBKV" in node.properties
    page = review.save(tmp_path / "out")
    assert page.name == "mine.html" and page.with_suffix(".sgf").exists()
    assert review._repr_svg_().startswith("<svg")


def test_a_board_and_a_record_are_reviewed_too(engine, review):
    board = keima.Board.from_sgf(GAME)
    limit = keima.Limit(visits=2)
    assert len(keima.review(board, engine, limit=limit).moves) == 7
    assert len(keima.review(keima.Record(board), engine, limit=limit).moves) == 7


@pytest.mark.parametrize("game, reason", [
    ("(;SZ[9])", "a game without moves cannot be reviewed"),
    ("(;SZ[21];B[aa])", "board size is 21, at most 19 is reviewed"),
    ("(;SZ[5];B[aa])", "board size is 5, but the network plays 7 to 19"),
    ("(;SZ[9];B[aa];W[aa])", "move 2 at aa is illegal"),
])  # fmt: skip
def test_games_that_cannot_be_reviewed_are_refused(engine, game, reason):
    with pytest.raises(ValueError, match=reason):
        keima.review(game, engine)
