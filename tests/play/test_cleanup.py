"""The clean-up that KGS asks for when the players disagree about dead stones."""

from contextlib import closing

import pytest

from engine.config import PlayOptions
from engine.go.geometry import BLACK, PASS, WHITE, to_vertex
from engine.play.game_session import RESIGN, Purpose
from engine.play.player import Player
from tests.playing import DEAD_STONES, FEW, SEARCH, SEKI_IN_A_CORNER, WALLS, position


@pytest.mark.parametrize(("rules", "komi"), [("chinese", 0.5), ("japanese", 0.5), ("chinese", 60.5)])
def test_every_dead_stone_is_captured_before_the_pass(rules, komi):
    """Two white stones are dead, which decides nothing, and passes are friendly; but the opponent said they live."""
    with closing(Player(SEARCH, FEW, size=9, rules=rules, komi=komi)) as player:
        position(player, DEAD_STONES, BLACK)
        dead = sum(len(chain) for chain in player.final_status("dead"))
        for _ in range(40):
            answer = player.genmove(BLACK, Purpose.CLEAN_UP)
            if answer == PASS:
                break
            player.play(WHITE, PASS)
        assert answer == PASS
        assert player.game.captures(BLACK) == dead == 2
        assert player.final_status("dead") == []


def test_both_searches_of_a_capture_have_the_visits_of_one_move():
    """The second began anew with all of them: half as many again."""
    with closing(Player(SEARCH, PlayOptions(visits=100, seconds=0.0), size=9, komi=0.5)) as player:
        position(player, DEAD_STONES, BLACK)
        player.genmove(BLACK, Purpose.CLEAN_UP)
        assert player.last_genmove_report.visits == 50


def test_a_seki_is_left_alone():
    """One eye each and a dame between them: the side that plays C9 is captured, A9 and E9 are suicide."""
    with closing(Player(SEARCH, PlayOptions(visits=400, seconds=0.0), size=9)) as player:
        position(player, SEKI_IN_A_CORNER, WHITE)
        assert player.final_status("dead") == []
        assert {to_vertex(chain[0], 9) for chain in player.final_status("seki")} >= {"B9", "D9"}
        for _ in range(12):
            answer = player.genmove(WHITE, Purpose.CLEAN_UP)
            assert to_vertex(answer, 9) != "C9"
            if answer == PASS:
                break
            player.play(BLACK, PASS)
        assert player.game.captures(BLACK) == 0


def test_a_clean_board_is_passed():
    with closing(Player(SEARCH, FEW, size=9, komi=0.5)) as player:
        position(player, WALLS.replace(". O X X", ". . X X"), BLACK)
        assert player.genmove(BLACK, Purpose.CLEAN_UP) == PASS


def test_nobody_resigns():
    options = PlayOptions(visits=32, seconds=0.0, resign_count=1)
    with closing(Player(SEARCH, options, size=9, komi=60.5)) as player:
        position(player, DEAD_STONES, BLACK)
        for _ in range(4):
            assert player.genmove(BLACK, Purpose.CLEAN_UP) != RESIGN
            player.play(WHITE, PASS)
