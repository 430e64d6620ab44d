"""Passing and playing on: what is chosen at the end of a game, and before it. Rollouts alone."""

import pytest

import engine.play.player
from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, other, to_vertex
from engine.go.scoring import final_score_black
from engine.play.backend import Backend
from engine.play.clock import absolute
from engine.play.game_session import RESIGN, Purpose
from engine.play.life_and_death import estimate_end
from engine.play.move_plan import SETTLED_A_MOVE, MovePlan, is_endgame
from engine.search.move_filter import EVERY_MOVE, only
from tests.playing import DEAD_STONES, SEKI_IN_A_CORNER, TWO_EYES, WALLS, position, scatter


@pytest.mark.parametrize("rules", ["chinese", "tromp-taylor", "japanese"])
@pytest.mark.parametrize("color", [BLACK, WHITE])
def test_a_game_ends(make_player, rules, color):
    """Under all rules, and with either side to begin, both pass within twice the board."""
    player = make_player(PlayOptions(visits=16, seconds=0.0, resign_below=-1.0), rules=rules, size=5)
    while not player.game.is_over and player.game.n_moves < 50:
        assert player.genmove(color) != RESIGN
        color = other(color)
    assert player.game.is_over


@pytest.mark.parametrize(("rules", "lead"), [("chinese", "B+8.5"), ("japanese", "B+4.5"), ("aga", "B+8.5")])
@pytest.mark.parametrize("opponent_passed", [False, True])
def test_where_dead_stones_are_agreed_upon_a_settled_game_is_passed(make_player, rules, lead, opponent_passed):
    player = position(make_player(rules=rules, komi=6.5), DEAD_STONES, WHITE if opponent_passed else BLACK)
    if opponent_passed:
        player.play(WHITE, PASS)
    assert player.genmove(BLACK) == PASS
    assert player.final_score() == lead


@pytest.mark.parametrize("to_move", [BLACK, WHITE])
def test_under_strict_rules_dead_stones_are_captured_before_passing(make_player, to_move):
    player = position(make_player(rules="tromp-taylor", komi=6.5), DEAD_STONES, to_move)
    assert final_score_black(player.game.position) < 0
    color = to_move
    while not player.game.is_over and player.game.n_moves < 60:
        if color == WHITE:
            player.play(WHITE, PASS)
        else:
            player.genmove(BLACK)
        color = other(color)
    assert player.game.is_over
    assert final_score_black(player.game.position) > 0


@pytest.mark.parametrize(("komi", "outcome"), [(14.5, 0.5), (15.0, 0.0)])
def test_under_strict_rules_a_draw_is_worth_a_capture_too(make_player, komi, outcome):
    player = position(make_player(rules="tromp-taylor", komi=komi), DEAD_STONES, BLACK)
    assert final_score_black(player.game.position) < 0
    while not player.game.is_over and player.game.n_moves < 60:
        player.genmove(BLACK)
        player.play(WHITE, PASS)
    assert final_score_black(player.game.position) == outcome
    assert player.final_score() == ("B+0.5" if outcome else "0")


def test_a_draw_is_no_loss(make_player):
    player = position(make_player(komi=15.0), DEAD_STONES, BLACK)
    found = player.estimate_end()
    assert (found.lead_black, found.value_of_ending(BLACK), found.value_of_ending(WHITE)) == (0.0, 0.0, 0.0)


IN_ATARI = """
    X X O O O X . . .
    X O O O X X X . .
    X X O O O O X . .
    X . X O O X . X .
    X X X X O X X . .
    . X O O O X O X .
    X X O O . O O X X
    X O . O . . O O X
    O O O . O . O . O
"""
"""From a game against GNU Go 3.8: White to move after Black's pass, two and a half points ahead, J1 in atari."""


def test_a_chain_left_in_atari_is_protected_before_the_game_ends(make_player):
    player = position(make_player(PlayOptions(visits=4000, seconds=0.0)), IN_ATARI, BLACK)
    player.play(BLACK, PASS)
    assert to_vertex(player.genmove(WHITE), 9) == "H1"


def test_a_lost_game_is_ended_too(make_player):
    player = position(make_player(rules="tromp-taylor", komi=40.5), DEAD_STONES, WHITE)
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) == PASS


@pytest.mark.parametrize("seed", range(8))
def test_a_lost_and_settled_game_is_passed_by_the_shallowest_search(make_player, seed):
    """With a handful of rollouts behind it, the search's hope is chance."""
    player = position(make_player(PlayOptions(visits=2 + seed, seconds=0.0), seed=seed), WALLS, BLACK)
    assert player.genmove(BLACK) == PASS


@pytest.mark.parametrize(("komi", "passes"), [(81.0, 1), (7.0, 2 * 81 + 1)])
def test_an_open_game_is_ended_where_it_is_hopeless_or_endless(make_player, komi, passes):
    """Under friendly pass rules the side that is behind may play on after a pass, but not for ever."""
    player = position(make_player(PlayOptions(visits=400, seconds=0.0, resign_below=-1.0), komi=komi), IN_ATARI, WHITE)
    color = WHITE
    for _ in range(passes):
        player.play(color, PASS)
        color = other(color)
    assert color == BLACK
    assert player.genmove(BLACK) == PASS


def test_the_side_that_is_behind_keeps_an_open_game_going(make_player):
    player = make_player(PlayOptions(visits=400, seconds=0.0, resign_below=-1.0))
    scatter(player, 31, BLACK)
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) != PASS


@pytest.mark.parametrize("rules", ["chinese", "japanese"])
def test_an_early_pass_is_no_reason_to_pass(make_player, rules):
    """Counted as it stands, the board would be all Black's."""
    player = make_player(rules=rules)
    player.play(BLACK, from_vertex("E5", 9))
    player.play(WHITE, PASS)
    assert player.genmove(BLACK) > 0


def test_nobody_passes_in_the_opening(make_player):
    player = make_player(PlayOptions(visits=1, seconds=0.0), size=7)
    for n in range(12):
        assert player.genmove(BLACK if n % 2 == 0 else WHITE) > 0


@pytest.mark.parametrize("color", [BLACK, WHITE])
@pytest.mark.parametrize("komi", [-50.0, 50.0])
def test_own_eyes_stay(make_player, color, komi):
    player = position(make_player(rules="tromp-taylor", komi=komi, size=5), TWO_EYES, color)
    assert player.genmove(color) == PASS


def test_a_finished_game_can_be_resumed(make_player):
    player = make_player(rules="tromp-taylor")
    for color, vertex in ((BLACK, "E5"), (WHITE, "pass"), (BLACK, "pass")):
        player.play(color, from_vertex(vertex, 9))
    assert player.game.is_over
    assert player.genmove(WHITE) > 0
    player.undo()
    player.undo()
    assert player.game.n_moves == 2


def test_a_game_that_is_surely_won_is_ended_after_the_opponents_pass(make_player):
    """However the seki in the corner is read; where dead stones are agreed upon there is nothing to play on for."""
    player = position(make_player(komi=60.5), SEKI_IN_A_CORNER, BLACK)
    player.play(BLACK, PASS)
    assert player.genmove(WHITE) == PASS
    assert player.last_genmove_report is None


def test_a_filter_without_the_pass_gets_a_move_even_at_the_end(make_player):
    player = position(make_player(), WALLS, WHITE)
    player.play(WHITE, PASS)
    assert player.genmove(BLACK, Purpose.ANSWER) == PASS
    moves = only(BLACK, [from_vertex("A1", 9)])
    assert player.genmove(BLACK, Purpose.ANSWER, moves=moves) == from_vertex("A1", 9)


def test_a_filter_of_own_eyes_alone_gets_one_of_them(make_player):
    player = position(make_player(rules="tromp-taylor", size=5), TWO_EYES, BLACK)
    eyes = [from_vertex(vertex, 5) for vertex in ("A1", "A5")]
    assert player.genmove(BLACK, Purpose.ANSWER, moves=only(BLACK, eyes)) in eyes
    assert player.genmove(BLACK, Purpose.ANSWER, moves=only(BLACK, [*eyes, PASS])) == PASS


def test_without_time_for_an_estimate_passing_on_a_full_board_is_a_move_like_others(make_player):
    """Under territory rules each other move would cost a point, under any a move into one's own eye may cost more."""
    player = position(make_player(), WALLS, WHITE)
    assert not is_endgame(player.game.position, cleanup=False, can_wait=True)
    (only_search,) = MovePlan(player.game, player.game.position, None, Backend(SearchOptions(), None, "cpu")).searches
    assert only_search.moves == EVERY_MOVE


def test_after_an_open_end_the_next_estimate_waits_until_it_could_be_settled(make_player, monkeypatch):
    """On 19x19 each move of the second half of a game spent 80 ms on an answer that was known."""
    player, moves, asked, n_open = position(make_player(), WALLS, BLACK), [], [], 3 * SETTLED_A_MOVE

    def estimated(board, *rest):
        asked.append(player.game.n_moves)
        return estimate_end(board, *rest)._replace(n_open=n_open, dead=[])

    monkeypatch.setattr(engine.play.player, "estimate_end", estimated)
    begun = player.game.n_moves
    for color in (BLACK, WHITE, BLACK, WHITE):
        moves.append(player.genmove(color))
    assert PASS not in moves and asked == [begun, begun + 3]
    player.genmove(BLACK)
    assert asked == [begun, begun + 3]
    player.game.play(WHITE, PASS)
    player.genmove(BLACK)
    assert asked[2:] == [begun + 6], "after a pass all depends on it"
    position(player, WALLS, BLACK)
    player.genmove(BLACK)
    assert len(asked) == 4, "another game"


@pytest.mark.parametrize("passes", [False, True])
def test_a_clock_does_not_wait_for_an_estimate_that_is_still_being_compiled(make_player, monkeypatch, passes):
    """A first start took 149 seconds for a move of a clock of two."""
    player = position(make_player(), WALLS, BLACK)
    if passes:
        player.game.play(BLACK, PASS)
    asked = []
    monkeypatch.setattr(engine.play.player, "estimate_end", lambda *rest: asked.append(rest) or estimate_end(*rest))
    player.clock.configure(absolute(600.0))
    player.fallback_loaded.clear()
    player.genmove(player.game.to_move, Purpose.ANSWER)
    assert not asked
    player.fallback_loaded.set()
    player.genmove(player.game.to_move, Purpose.ANSWER)
    assert asked
