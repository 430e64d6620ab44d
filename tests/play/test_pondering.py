"""The opponent's time: what is searched in it, what is kept, and what ends it. Rollouts alone, limited by visits."""

import threading
import time
from dataclasses import replace

import pytest

from engine.config import PlayOptions, SearchOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points
from engine.play.clock import absolute
from engine.play.game_session import RESIGN, Purpose
from engine.play.player import Player
from engine.play.pondering import Ponder
from engine.search.search import Search
from tests.playing import is_pondering, ponder_to_the_end

PONDERED = 400
PONDERING = PlayOptions(visits=20, seconds=0.0, ponder=True, ponder_visits=PONDERED)
ENDLESS = replace(PONDERING, ponder_visits=10**9)
STUCK_S = 60.0
"""Far longer than anything here takes; a thread that is alive after it never ends"""


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


def pondered(player, color):
    """What pondering knows of the colour's move when its limit of visits has ended it."""
    ponder_to_the_end()
    return player.look(color, visits=1)


def test_after_our_move_the_search_goes_on_in_the_position_behind_it(make):
    player = make()
    point = player.genmove(BLACK)
    assert is_pondering()
    assert player.last_genmove_report.moves[0].point == point
    found = pondered(player, WHITE)
    assert found.visits == PONDERED
    assert point not in {move.point for move in found.moves}


def test_the_tree_of_an_expected_answer_is_kept(make):
    player = make()
    player.genmove(BLACK)
    reply = pondered(player, WHITE).moves[0]
    assert reply.visits > 20
    player.play(WHITE, reply.point)
    assert player.genmove(BLACK) > 0
    assert player.last_genmove_report.visits - player.last_genmove_report.playouts_this_run == reply.visits


def test_an_unexpected_answer_starts_a_new_tree(make):
    player = make()
    player.genmove(BLACK)
    pondered(player, WHITE)
    player.play(BLACK, next(p for p in on_board_points(7).tolist() if player.game.is_legal(BLACK, p)))
    assert player.genmove(WHITE) > 0
    assert player.last_genmove_report.visits == player.last_genmove_report.playouts_this_run


def refused(change, argument):
    """A change that is not made, since there is a stone on the board."""
    with pytest.raises(ValueError):
        change(argument)


CHANGES = {
    "play": lambda player: player.play(WHITE, PASS),
    "undo": lambda player: player.undo(),
    "new game": lambda player: player.new_game(7),
    "record": lambda player: player.load_sgf(b"(;GM[1]SZ[7];B[dd])"),
    "score": lambda player: player.final_score(),
    "status": lambda player: player.final_status("dead"),
    "look": lambda player: player.look(WHITE, visits=1),
    "forget": lambda player: player.forget(),
    "options": lambda player: player.configure(PONDERING, player.search_options),
    "move shown": lambda player: player.genmove(WHITE, Purpose.ANSWER),
    "end": lambda player: player.close(),
    "rules": lambda player: player.set_rules(player.game.rules),
    "komi": lambda player: player.set_komi(0.5),
    "stones": lambda player: player.set_up([9], [10], BLACK),
    "fixed handicap": lambda player: refused(player.fixed_handicap, 2),
    "free handicap": lambda player: refused(player.place_free_handicap, 2),
    "chosen handicap": lambda player: refused(player.set_free_handicap, [9, 10]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_the_game_or_needs_the_search_ends_it(make, name):
    player = make(ENDLESS)
    player.genmove(BLACK)
    assert is_pondering()
    CHANGES[name](player)
    assert not is_pondering()


@pytest.mark.parametrize("least", [0, 1, 30])
def test_nothing_is_in_flight_wherever_it_is_ended(least):
    search = Search(SearchOptions(threads=2, seed=1), None, None)
    ponder = Ponder(search)
    ponder.start(Game(7).position, visits=10**9, seconds=0.0)
    while search.report().visits < least:
        assert is_pondering()
        time.sleep(0.001)
    ponder.stop()
    assert not is_pondering()
    assert search.in_flight() == 0
    assert search.report().visits >= least
    search.close()


class Forgetful:
    """A search that, like the real one, forgets as it begins that it was told to stop."""

    def __init__(self):
        self.called, self.may_begin, self.stopping = threading.Event(), threading.Event(), threading.Event()

    def set_position(self, position):
        pass

    def run(self, *limits, **more):
        self.called.set()
        self.may_begin.wait()
        self.stopping.clear()
        self.stopping.wait()

    def stop(self):
        self.stopping.set()
        self.may_begin.set()


def test_a_search_that_begins_after_it_was_stopped_is_stopped_again():
    search = Forgetful()
    ponder = Ponder(search)
    ponder.start(Game(7).position, visits=1, seconds=0.0)
    search.called.wait()
    stopper = threading.Thread(target=ponder.stop, daemon=True)
    stopper.start()
    stopper.join(STUCK_S)
    assert not stopper.is_alive() and not is_pondering()


def test_its_own_limits_end_it(make):
    player = make(replace(PONDERING, ponder_visits=2000))
    player.genmove(BLACK)
    assert pondered(player, WHITE).visits == 2000
    player = make(replace(ENDLESS, ponder_seconds=0.2))
    player.genmove(BLACK)
    assert pondered(player, WHITE).visits < 10**6, "not ended by a full memory"


@pytest.mark.parametrize(
    ("options", "clock", "ponders"),
    [
        ({}, None, False),
        ({"ponder": True}, None, True),
        ({"ponder": True, "visits": 20, "seconds": 0.0}, None, False),
        ({"ponder": True, "visits": 20, "seconds": 0.0}, absolute(600), True),
        ({"ponder": True, "visits": 20, "seconds": 0.0, "ponder_visits": 10**6}, None, True),
        ({"ponder": True, "visits": 20}, None, True),
        ({"ponder": True, "policy_only": True}, absolute(600), False),
    ],
)
def test_where_visits_alone_are_the_limit_pondering_has_to_be_asked_for_twice(make, options, clock, ponders):
    player = make(PlayOptions(**{"seconds": 0.05, **options}))
    if clock is not None:
        player.clock.configure(clock)
    player.genmove(BLACK)
    assert is_pondering() == ponders


def test_not_after_the_end_of_a_game(make):
    player = make(replace(ENDLESS, visits=100, resign_count=1, resign_below=-0.3), komi=-40.0)
    for row in range(1, 8):
        player.play(BLACK, from_vertex(f"C{row}", 7))
        player.play(WHITE, from_vertex(f"E{row}", 7))
    assert player.genmove(WHITE) == RESIGN
    assert not is_pondering()
    player.new_game(7)
    for row in range(1, 8):
        for color, column in ((BLACK, "B"), (WHITE, "D"), (BLACK, "C"), (WHITE, "E")):
            player.play(color, from_vertex(f"{column}{row}", 7))
    assert player.genmove(BLACK) == PASS
    assert not is_pondering()


def test_a_move_shown_is_not_pondered_on(make):
    player = make(ENDLESS)
    player.genmove(BLACK, Purpose.ANSWER)
    assert not is_pondering()
