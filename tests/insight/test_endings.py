"""The two passes that end a game, in analyses: worth the count that ``final_score`` gives; passes that lose."""

import threading
from functools import partial

import pytest

from engine.config import PlayOptions, SearchOptions
from engine.go import diagram
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, on_board_points
from engine.go.position import META_N_MOVES, with_capacity
from engine.go.rules import RULE_SETS
from engine.insight.analyses import Analyses, Job, Task
from engine.insight.review.losses import move_losses
from engine.insight.review.turns import turn_of
from engine.play.factory import load_parts, new_server
from engine.play.player import Player
from weights import DEFAULT, find_network

OPTIONS = SearchOptions(threads=1, seed=1)
FRIENDLY = ("chinese", "japanese", "aga")

FOUR_DEAD = """
    . X . X O . O . .
    X X X X O O O O O
    . X . X X O . O .
    X X X X X O O O O
    X . O . X O . O .
    X O O . X O O O O
    X . O . X X O . O
    X X X X . X O O O
    . X . X X X O . O
"""
"""Four dead white stones at C5: Black leads by 4.5 points with komi 6.5, White by 8.5 as the stones stand."""


def position_of(text, to_move, rules, komi=6.5):
    board = diagram.parse(text).board
    game = Game(int(board.meta[0]), rules=rules, komi=komi)
    points = on_board_points(game.size).tolist()
    black, white = ([point for point in points if board.color[point] == color] for color in (BLACK, WHITE))
    game.setup_stones(black, white, to_move)
    return game


@pytest.fixture(scope="module")
def analysed():
    """Analyses some positions of a game, by the default network on one thread."""
    parts = load_parts(OPTIONS, find_network(DEFAULT), "cpu")
    server = new_server(parts, shared=True)
    analyses = Analyses(parts, server, 2)

    def analyse(positions, visits):
        found, ended = {}, threading.Semaphore(0)

        def tell(n, analysis, goes_on):
            if not goes_on:
                found[n] = analysis
                ended.release()

        jobs = [
            Job(Task(position, OPTIONS, visits), 0, partial(tell, n), pytest.fail)
            for n, position in enumerate(positions)
        ]
        analyses.submit(jobs)
        for _ in positions:
            ended.acquire()
        return [found[n] for n in range(len(positions))]

    yield analyse
    analyses.close()
    server.close()


def snapshots(game):
    """The position, the one after a pass and the one after both."""
    found = []
    for passes in range(3):
        if passes:
            game.play(game.to_move, PASS)
        found.append(with_capacity(game.position, int(game.position.meta[META_N_MOVES])))
    return found


def final_lead(text, to_move, rules):
    player = Player(OPTIONS, PlayOptions(), find_network(DEFAULT), size=9)
    try:
        player.set_rules(RULE_SETS[rules])
        board = position_of(text, to_move, RULE_SETS[rules]).position.board
        points = on_board_points(9).tolist()
        black, white = ([point for point in points if board.color[point] == color] for color in (BLACK, WHITE))
        player.set_komi(6.5)
        player.set_up(black, white, to_move)
        player.play(to_move, PASS)
        player.play(player.game.to_move, PASS)
        return player.score().lead_black
    finally:
        player.close()


def as_turns(positions, analyses, colors):
    played = [PASS, PASS, None]
    return [turn_of(n, colors[n % 2], found, played[n]) for n, found in enumerate(analyses)]


@pytest.mark.parametrize("rules", FRIENDLY)
@pytest.mark.parametrize("first", [BLACK, WHITE])
@pytest.mark.parametrize("visits", [16, 100])
def test_passes_that_end_a_game_are_worth_the_count(analysed, rules, first, visits):
    """Dead stones lie on the board: as the stones stand Black's lead would be another by a dozen points."""
    positions = snapshots(position_of(FOUR_DEAD, first, RULE_SETS[rules]))
    lead = final_lead(FOUR_DEAD, first, rules)
    found = analysed(positions, visits)
    second = BLACK + WHITE - first
    turns = as_turns(positions, found, (first, second))
    assert [turn.lead_black for turn in turns] == pytest.approx([lead] * 3, abs=1.0)
    assert {turn.winrate_black for turn in turns} == {1.0 if lead > 0 else 0.0}
    for turn in turns[:2]:
        for move in turn.moves:
            assert move.point != PASS or move.lead_black == pytest.approx(lead, abs=1.0)
    assert [move.counted for move in move_losses(turns, [(first, PASS), (second, PASS)], 9)] == [0.0, 0.0]


def test_under_strict_rules_dead_stones_live_after_both_passes(analysed):
    positions = snapshots(position_of(FOUR_DEAD, WHITE, RULE_SETS["tromp-taylor"]))
    lead = final_lead(FOUR_DEAD, WHITE, "tromp-taylor")
    assert lead < final_lead(FOUR_DEAD, WHITE, "chinese") - 5
    found = analysed(positions, 100)
    turns = as_turns(positions, found, (WHITE, BLACK))
    assert turns[2].lead_black == lead
    moves = move_losses(turns, [(WHITE, PASS), (BLACK, PASS)], 9)
    assert moves[0].counted == 0.0, "White loses nothing by a pass"
    assert moves[1].counted > 5.0, "Black could have captured the dead stones first"


UNDECIDED = {
    "straight three": ("XXXX", "OOOO", "...O"),
    "bent three": ("OOXX", ".OOX", "..OX"),
    "pyramid four": ("OOOX", "O.OO", "...O"),
    "bulky five": ("OOOX", "..OO", "...O"),
    "straight three upwards": (".OXX", ".OXX", ".OXX"),
}
"""White corners, four columns of the lowest three rows, in which the first move decides over life and death"""
AROUND = """
    . X . X X O . O .
    X X X X X O O O O
    . X . X X O . O .
    X X X X X O O O O
    X X X X X O . O .
    X X X X X O O O O
    1 1 1 1 X O . O .
    2 2 2 2 X O O O O
    3 3 3 3 X O . O .
"""


def undecided(shape, color):
    """A board that is settled but for a corner in which a colour has nothing but an eye space."""
    text = AROUND
    for number, row in enumerate(UNDECIDED[shape], 1):
        text = text.replace(" ".join([str(number)] * 4), " ".join(row))
    if shape == "straight three upwards":
        text = text.replace("    X X X X X O O O O\n    . O X X", "    O O X X X O O O O\n    . O X X")
    return text if color == WHITE else text.translate(str.maketrans("XO", "OX"))


@pytest.mark.parametrize("shape", UNDECIDED)
@pytest.mark.parametrize("color", [BLACK, WHITE])
@pytest.mark.parametrize("to_move", [BLACK, WHITE])
def test_a_pass_that_loses_is_blamed(analysed, shape, color, to_move):
    """Twenty positions: the corner's side passes and it dies, or the other side passes and it lives."""
    rules = RULE_SETS[("chinese", "japanese", "tromp-taylor")[list(UNDECIDED).index(shape) % 3]]
    positions = snapshots(position_of(undecided(shape, color), to_move, rules))[:2]
    found = analysed(positions, 100)
    turns = as_turns(positions, found, (to_move, BLACK + WHITE - to_move))
    (move,) = move_losses(turns, [(to_move, PASS)], 9)
    assert move.counted > 5.0
