"""What the search plays: captures it cannot miss, passes that keep a won game won, and no pass that loses one."""

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, other, to_vertex
from engine.go.position import META_PASSES
from engine.go.scoring import final_score_black
from engine.go.seki import score_with_dame_filled
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.play.factory import shipped_patterns
from engine.search import worker
from engine.search.choosing import choose
from engine.search.leaves import score_finished_territory
from engine.search.move_filter import only
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from tests.go.positions import TO_CONNECT, game_from


def best_moves(game, visits: int = 2000, count: int = 1) -> set[str]:
    """The first choices of a search by rollouts alone."""
    search = Search(SearchOptions(threads=1, seed=1), None, None)
    search.set_position(game.position)
    size = int(game.position.board.meta[0])
    return {to_vertex(move.point, size) for move in search.run(SearchLimits(visits=visits)).moves[:count]}


MUTUAL_ATARI = """
    . . . . .
    . X X . .
    X O O X .
    X O X O .
    . . X O .
    """

THREE_IN_A_ROW = """
    . . . X O . O
    X X X X O O .
    O O O O O O O
    . O . O . O .
    O O O O O O O
    . O . O . O .
    O O O O O O O
    """

CAPTURES = {
    "a chain in atari decides the game": (
        """
        . X O . .
        X O O X .
        X O X X .
        X O O X .
        . X . X .
        """,
        BLACK,
        -2.5,
        {"D5", "C1"},
    ),
    "both sides are in atari, Black moves first": (MUTUAL_ATARI, BLACK, 0.5, {"B1"}),
    "both sides are in atari, White moves first": (MUTUAL_ATARI, WHITE, 0.5, {"B1"}),
    "the vital point of three in a row, to live": (THREE_IN_A_ROW, BLACK, -40.5, {"B7"}),
    "the vital point of three in a row, to kill": (THREE_IN_A_ROW, WHITE, -40.5, {"B7"}),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_rollouts_find_the_move_that_matters(name):
    text, to_move, komi, answers = CAPTURES[name]
    assert best_moves(game_from(text, to_move, komi), 4000) <= answers


SETTLED = """
    . X . X O . O
    X X X X O O .
    . X . X O . O
    X X X X O O O
    X . X X O O .
    X X . X O . O
    . X X X O O O
    """
"""Every empty point is an eye: 28 points for Black, 21 for White."""


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize(("to_move", "komi"), [(BLACK, 0.5), (WHITE, 7.5), (BLACK, 7.5)])
def test_nothing_is_left_but_to_pass(passed, to_move, komi):
    """Whichever side wins: own eyes are not filled, and every point of the opponent's is suicide."""
    game = game_from(SETTLED, to_move, komi, passed=passed)
    assert best_moves(game, 500) == {"pass"}


DEAD_STONE = """
    . X . X O . .
    X X X X O O .
    . X X X O O O
    X X . X O . O
    X X X X O O O
    X O . X O O .
    . . . X O . O
    """
"""A dead white stone stands in Black's area, which counts for White as long as it stands."""


def test_a_pass_is_not_answered_while_dead_stones_would_lose_the_game():
    """Black leads on the board, but with B2 standing its corner belongs to neither side: a pass would lose the game."""
    game = game_from(DEAD_STONE, BLACK, 4.5, passed=True)
    assert final_score_black(game.position) < 0
    moves = best_moves(game, 3000)
    assert "pass" not in moves
    for _ in range(12):
        if game.position.meta[META_PASSES] >= 2:
            break
        size = 7
        vertex = next(iter(best_moves(game, 1500)))
        game.play(game.to_move, from_vertex(vertex, size))
        if game.to_move == WHITE and game.position.meta[META_PASSES] < 2:
            game.play(WHITE, PASS)
    assert game.position.meta[META_PASSES] >= 2
    assert final_score_black(game.position) > 0


def test_a_pass_is_answered_when_the_board_is_won_as_it_stands():
    game = game_from(DEAD_STONE, WHITE, 4.5, passed=True)
    assert best_moves(game, 2000) == {"pass"}


def test_with_a_network_the_end_of_the_game_still_counts_by_the_rules():
    """A network that knows nothing; only finished games tell won from lost."""
    with InferenceServer(UniformNetwork(KEIMA.name), threads=1) as server:
        search = Search(SearchOptions(threads=1), server, KEIMA)
        search.set_position(game_from(SETTLED, BLACK, 0.5, passed=True).position)
        report = search.run(SearchLimits(visits=200))
        assert report.moves[0].point == PASS and report.moves[0].value_stm == 1.0
        assert report.moves[0].score_stm == 28 - 21 - 0.5
        search.set_position(game_from(SETTLED, BLACK, 7.5, passed=True).position)
        passing = next(move for move in search.run(SearchLimits(visits=200)).moves if move.point == PASS)
        assert passing.value_stm == -1.0


def test_under_territory_scoring_rollouts_find_the_dead_stones():
    """After two passes the dead white stone is a prisoner: Black has won, though no capture was made."""
    for to_move in (BLACK, WHITE):
        game = game_from(DEAD_STONE, to_move, 0.5, "japanese", passed=True)
        search = Search(SearchOptions(threads=1), None, None)
        search.set_position(game.position)
        passing = next(move for move in search.run(SearchLimits(visits=800)).moves if move.point == PASS)
        assert passing.value_stm == (1.0 if to_move == BLACK else -1.0)
        lead = 9 + 1 - 6 - 0.5
        assert passing.score_stm == pytest.approx(lead if to_move == BLACK else -lead)


@pytest.mark.parametrize("patterns", [lambda: None, shipped_patterns], ids=["uniform", "learnt"])
def test_a_finished_game_is_counted_as_people_count_it(patterns):
    """White's two eyes hang together by a dame that is not filled: no seki, so both count, as at the game's end."""
    game = game_from(TO_CONNECT, BLACK, 0.5, "japanese", passed=True)
    search = Search(SearchOptions(threads=1), None, None, patterns())
    search.set_position(game.position)
    passing = next(
        move for move in search.run(SearchLimits(visits=100), only(BLACK, [PASS])).moves if move.point == PASS
    )
    assert passing.score_stm == score_with_dame_filled(game.position) == final_score_black(game.position) - 2


@pytest.mark.parametrize("is_learnt", [False, True])
def test_a_network_leaves_the_dead_stones_to_the_rollouts_it_is_given(monkeypatch, is_learnt):
    tables, seen = shipped_patterns().tables if is_learnt else None, []

    def spy(*arguments):
        seen.append(arguments[4])
        score_finished_territory(*arguments)

    monkeypatch.setattr(worker, "score_finished_territory", spy)
    with InferenceServer(UniformNetwork(KEIMA.name), threads=1) as server:
        search = Search(SearchOptions(threads=1), server, KEIMA, ownership_tables=lambda: tables)
        search.set_position(game_from(DEAD_STONE, BLACK, 0.5, "japanese", passed=True).position)
        passing = next(
            move for move in search.run(SearchLimits(visits=100), only(BLACK, [PASS])).moves if move.point == PASS
        )
    assert passing.value_stm == 1.0 and seen and all(one is tables for one in seen)


def test_self_play_ends_by_itself():
    """Two searches by rollouts bring a game on 5x5 to two passes, with no illegal move on the way."""
    game = game_from("\n".join([". . . . ."] * 5), BLACK, 0.5)
    search = Search(SearchOptions(threads=1, seed=3), None, None)
    for _ in range(120):
        search.set_position(game.position)
        point = choose(search.run(SearchLimits(visits=300)))
        assert game.is_legal(game.to_move, point)
        game.play(game.to_move, point)
        if game.position.meta[META_PASSES] >= 2:
            break
    assert game.position.meta[META_PASSES] >= 2
    assert other(game.to_move) in (BLACK, WHITE)
