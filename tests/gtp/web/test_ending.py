"""The count at the end: its parts add up to the result under every rule set."""

import pytest

from engine.go import diagram
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, on_board_points
from engine.go.rules import RULE_SETS, rules_named
from engine.go.scoring import remove_dead
from engine.go.seki import score_with_dame_filled
from gtp.web.ending import count, toggled, winner_text
from tests.playing import DEAD_STONES, SEKI_IN_A_CORNER


def game_of(text, rules="chinese", komi=7.5):
    """A game from a diagram."""
    board = diagram.parse(text).board
    size = int(board.meta[0])
    game = Game(size, rules_named(rules), komi)
    points = on_board_points(size).tolist()
    game.setup_stones(*([point for point in points if board.color[point] == color] for color in (BLACK, WHITE)), BLACK)
    return game


def points(game, *vertices):
    return {from_vertex(vertex, game.size) for vertex in vertices}


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("text, dead", [(DEAD_STONES, ("B8", "B2")), (SEKI_IN_A_CORNER, ())])
def test_the_parts_add_up(rules, text, dead):
    game = game_of(text, rules)
    stones = points(game, *dead)
    lead = score_with_dame_filled(remove_dead(game.position, stones) if stones else game.position)
    found = count(game, stones)
    assert found.black - found.white == pytest.approx(lead) and found.black >= 0
    assert found.text.startswith("Black ") and found.text.endswith(winner_text(found.result))
    assert len(found.owners) == game.size**2


def test_area():
    found = count(game := game_of(DEAD_STONES), points(game, "B8", "B2"))
    assert (found.black, found.white, found.result) == (48.0, 40.5, "B+7.5")
    assert found.text == "Black 48 points, White 33 points and komi 7.5: Black wins by 7.5"


def test_stones_that_are_not_dead_make_the_regions_dame():
    assert count(game_of(DEAD_STONES), set()).black < 48.0


def test_a_click_turns_a_whole_chain():
    game = game_of(DEAD_STONES)
    chain = toggled(game, set(), from_vertex("A6", 9))
    assert len(chain) == 2 and toggled(game, chain, from_vertex("B6", 9)) == set()
    with pytest.raises(ValueError, match="no stone there"):
        toggled(game, set(), from_vertex("A9", 9))


@pytest.mark.parametrize(
    "result, text",
    [("B+3.5", "Black wins by 3.5"), ("W+R", "White wins by resignation"), ("W+T", "White wins on time"),
     ("0", "a draw"), ("Void", "no result"), ("B+Resign", "Black wins by resignation"), ("B+", "no result")],
)  # fmt: skip
def test_results_in_words(result, text):
    assert winner_text(result) == text
