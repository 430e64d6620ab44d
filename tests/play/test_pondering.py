"""The opponent's time: what is searched in it, what is kept, and what ends it. Rollouts alone."""

import time

import pytest

from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points
from engine.play.clock import absolute
from engine.play.keeper import RESIGN
from engine.play.player import Player

PONDERING = PlayOptions(seconds=0.05, ponder=True)


@pytest.fixture
def make():
    """Players that are closed at the end."""
    players = []

    def make_player(options=PONDERING, **settings):
        players.append(Player(SearchOptions(threads=1, seed=1), options, size=7, **settings))
        players[-1].warm_up()
        return players[-1]

    yield make_player
    for player in players:
        player.close()


def visits_of(player):
    return player._search.report().visits


def wait_for_visits(player, visits):
    """Until pondering has come so far."""
    deadline = time.perf_counter() + 20
    while visits_of(player) < visits:
        assert time.perf_counter() < deadline
        time.sleep(0.01)


def test_after_our_move_the_search_goes_on_in_the_position_behind_it(make):
    player = make()
    point = player.genmove(BLACK)
    deadline = time.perf_counter() + 30.0
    # The tree of our own move is there until the thread has moved its root on.
    while point in {move.point for move in player._search.report().moves}:
        assert time.perf_counter() < deadline
        time.sleep(0.01)
    wait_for_visits(player, 300)
    assert player.ponder.is_running
    assert point not in {move.point for move in player._search.report().moves}
    assert player.report.moves[0].point == point


def test_the_tree_of_an_expected_answer_is_kept(make):
    player = make()
    player.genmove(BLACK)
    wait_for_visits(player, 2000)
    player.ponder.stop()
    reply = player._search.report().moves[0]
    player.play(WHITE, reply.point)
    assert player.genmove(BLACK) > 0
    kept = player.report.visits - player.report.playouts_this_run
    assert kept >= reply.visits / 2


def test_an_unexpected_answer_starts_a_new_tree(make):
    player = make()
    player.genmove(BLACK)
    wait_for_visits(player, 50)
    player.play(BLACK, next(p for p in on_board_points(7).tolist() if player.game.is_legal(BLACK, p)))
    assert player.genmove(WHITE) > 0
    assert player.report.visits == player.report.playouts_this_run


CHANGES = {
    "play": lambda player: player.play(WHITE, PASS),
    "undo": lambda player: player.undo(),
    "new game": lambda player: player.new_game(7),
    "record": lambda player: player.load_sgf(b"(;GM[1]SZ[7];B[dd])"),
    "score": lambda player: player.final_score(),
    "status": lambda player: player.final_status("dead"),
    "move shown": lambda player: player.genmove(WHITE, update=False),
    "end": lambda player: player.close(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_the_game_or_needs_the_search_ends_it(make, name):
    player = make()
    player.genmove(BLACK)
    wait_for_visits(player, 30)
    CHANGES[name](player)
    assert not player.ponder.is_running
    assert player._search.in_flight() == 0


def test_it_ends_at_once(make):
    """Also where it has hardly begun. The best of three, since the machine may be busy."""
    player = make()
    for pause_s in (0.0, 0.001, 0.01, 0.2):
        taken = []
        for _ in range(3):
            player.new_game(7)
            player.genmove(BLACK)
            time.sleep(pause_s)
            begin = time.perf_counter()
            player.ponder.stop()
            taken.append(time.perf_counter() - begin)
            assert not player.ponder.is_running
        assert min(taken) < 0.05


def test_its_own_limits_end_it(make):
    player = make(PlayOptions(seconds=0.05, ponder=True, ponder_visits=2000))
    player.genmove(BLACK)
    wait_for_visits(player, 2000)
    time.sleep(0.1)
    assert (visits_of(player), player.ponder.is_running) == (2000, False)
    player = make(PlayOptions(seconds=0.05, ponder=True, ponder_seconds=0.2))
    player.genmove(BLACK)
    time.sleep(0.6)
    assert not player.ponder.is_running


@pytest.mark.parametrize(
    ("options", "clock", "ponders"),
    [
        ({}, None, False),
        ({"ponder": True}, None, True),
        ({"ponder": True, "visits": 20, "seconds": 0.0}, None, False),
        ({"ponder": True, "visits": 20, "seconds": 0.0}, absolute(60), True),
        ({"ponder": True, "visits": 20, "seconds": 0.0, "ponder_visits": 10**6}, None, True),
        ({"ponder": True, "policy_only": True}, absolute(60), False),
    ],
)
def test_where_visits_alone_are_the_limit_pondering_has_to_be_asked_for_twice(make, options, clock, ponders):
    player = make(PlayOptions(**{"seconds": 0.05, **options}))
    if clock is not None:
        player.clock.configure(clock)
    player.genmove(BLACK)
    assert player.ponder.is_running == ponders


def test_not_after_the_end_of_a_game(make):
    player = make(PlayOptions(seconds=0.05, ponder=True, resign_count=1, resign_below=-0.3), komi=-40.0)
    for row in range(1, 8):
        player.play(BLACK, from_vertex(f"C{row}", 7))
        player.play(WHITE, from_vertex(f"E{row}", 7))
    assert player.genmove(WHITE) == RESIGN
    assert not player.ponder.is_running
    player.new_game(7)
    for row in range(1, 8):
        for color, column in ((BLACK, "B"), (WHITE, "D"), (BLACK, "C"), (WHITE, "E")):
            player.play(color, from_vertex(f"{column}{row}", 7))
    assert player.genmove(BLACK) == PASS
    assert not player.ponder.is_running


def test_a_move_shown_is_not_pondered_on(make):
    player = make()
    player.genmove(BLACK, update=False)
    assert not player.ponder.is_running
