"""The clean-up that KGS asks for when the players disagree about dead stones."""

from contextlib import closing

import pytest

from engine.config import PlayOptions
from engine.go.geometry import BLACK, PASS, WHITE
from engine.player import RESIGN, Player
from tests.test_player import DEAD_STONES, FEW, SEARCH, WALLS, position


@pytest.mark.parametrize(("rules", "komi"), [("chinese", 0.5), ("japanese", 0.5), ("chinese", 60.5)])
def test_every_dead_stone_is_captured_before_the_pass(rules, komi):
    """Two white stones are dead, which decides nothing, and passes are friendly; but the opponent said they live."""
    with closing(Player(SEARCH, FEW, size=9, rules=rules, komi=komi)) as player:
        position(player, DEAD_STONES, BLACK)
        dead = sum(len(chain) for chain in player.final_status("dead"))
        for _ in range(40):
            answer = player.genmove(BLACK, cleanup=True)
            if answer == PASS:
                break
            player.play(WHITE, PASS)
        assert answer == PASS
        assert player.game.captures(BLACK) == dead == 2
        assert player.final_status("dead") == []


def test_a_clean_board_is_passed():
    with closing(Player(SEARCH, FEW, size=9, komi=0.5)) as player:
        position(player, WALLS.replace(". O X X", ". . X X"), BLACK)
        assert player.genmove(BLACK, cleanup=True) == PASS


def test_nobody_resigns():
    options = PlayOptions(visits=32, seconds=0.0, resign_count=1)
    with closing(Player(SEARCH, options, size=9, komi=60.5)) as player:
        position(player, DEAD_STONES, BLACK)
        for _ in range(4):
            assert player.genmove(BLACK, cleanup=True) != RESIGN
            player.play(WHITE, PASS)
