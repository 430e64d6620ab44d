"""Reasons why a move lost, on positions where each is true, and on positions where one thing less is proven."""

from dataclasses import replace

import numpy as np
import pytest

from engine.go.board import META_SIZE
from engine.go.diagram import parse
from engine.go.geometry import BLACK, WHITE, from_vertex, index_of, on_board_points, other, to_sgf
from engine.go.sgf import read_sgf
from engine.insight.review.games import game_to_review
from engine.insight.review.losses import KINDS, move_losses
from engine.insight.review.reasons import reason_of, reasons_of
from engine.insight.review.turns import Candidate, Turn
from tests.go.ladder_twin import POSITIONS

OPEN = "\n".join(". . . . . . . . ." for _ in range(9))
CORNER = """
    X X . . . . . . .
    O O . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
    . . . . . . . . .
"""
"""Black's two stones in the upper left are in atari"""
FLIP = "A9 B9 C9"


def game_of(diagram, color, moves):
    """A game from a position, with moves that alternate from a colour."""
    board, _ = parse(diagram)
    size = int(board.meta[META_SIZE])
    points = on_board_points(size).tolist()
    setup = "".join(
        f"{name}{''.join(f'[{to_sgf(point, size)}]' for point in points if board.color[point] == own)}"
        for own, name in ((BLACK, "AB"), (WHITE, "AW"))
        if any(board.color[point] == own for point in points)
    )
    played = ""
    for vertex in moves.split():
        played += f";{'BW'[color - 1]}[{to_sgf(from_vertex(vertex, size), size)}]"
        color = other(color)
    return game_to_review(read_sgf(f"(;SZ[{size}]KM[7]{setup}{played})".encode()))


def candidate(lead, visits, line):
    """A candidate with a lead of Black's, and a win rate that follows from it."""
    return Candidate(line[0], visits, 0.5 + lead / 100, lead, 0.5, line)


def reason(diagram, color, moves, best, pv="J9", flip="", lost=8.0, before=1.0, after=-1.0, visits=(90,), number=1):
    """The reason of a move, the first one unless ``number`` says another.

    Args:
        best: candidates before the move, each with its number of ``visits``, equally good.
        pv: line after the move.
        flip: points that were the mover's by ``before`` and are by ``after``.
    """
    game = game_of(diagram, color, moves)
    size = game.record.size
    mover = game.steps[number - 1].color
    sign = 1.0 if mover == BLACK else -1.0
    turns = []
    for n in range(len(game.positions)):
        owners = np.zeros(size * size, np.float16)
        to_move = game.steps[n].color if n < len(game.steps) else other(game.steps[-1].color)
        lead = sign * (0.0 if n < number else -lost)
        for vertex in flip.split():
            owners[int(index_of(from_vertex(vertex, size), size))] = sign * (before if n < number else after)
        lines = [[vertex] for vertex in best.split()] if n == number - 1 else [pv.split()]
        counts = visits if n == number - 1 else [100]
        candidates = [
            candidate(lead, count, [from_vertex(one, size) for one in line])
            for line, count in zip(lines, counts, strict=True)
        ]
        turns.append(Turn(n, to_move, 100, 0.5 + lead / 100, lead, 5.0, candidates, owners, None))
    moves_rated = move_losses(turns, game.played, size)
    found = reason_of(game, turns, moves_rated[number - 1])
    assert reasons_of(game, turns, moves_rated).get(number, "") == found
    return found


def test_a_chain_dies_if_its_owner_changes_and_the_line_captures_it():
    assert reason(CORNER, BLACK, "J1", "C9", "C9", FLIP) == "The 2 black stones at A9 die, captured by C9."
    assert reason(CORNER, BLACK, "J1", "C9", "E5 C8 C9", FLIP) == "The 2 black stones at A9 die, captured by E5 C8 C9."
    one = CORNER.replace("X X", "X .").replace("O O", "O .", 1)
    assert reason(one, BLACK, "J1", "B9", "B9", "A9", lost=4) == "The black stone at A9 dies, captured by B9."


@pytest.mark.parametrize(
    "change",
    [
        {"flip": ""},
        {"before": 0.2},
        {"after": -0.2},
        {"pv": "J9"},
        {"pv": "E5 C9"},
        {"lost": 20.0},
    ],
    ids=["owners stay", "was unsettled", "is unsettled", "not captured", "saved in the line", "explains too little"],
)
def test_a_chain_that_is_not_proven_dead_is_not_said_to_die(change):
    assert reason(CORNER, BLACK, "J1", "C9", **{"pv": "C9", "flip": FLIP} | change) == ""


def test_a_chain_that_a_ladder_catches_dies():
    """White leaves two stones in a ladder that Black begins."""
    found = reason(POSITIONS["into the corner"], WHITE, "A9", "D4", "D4 E3", "D3 D2 E3")
    assert found == "The 2 white stones at D3 die in a ladder that begins with D4."


def test_a_chain_cannot_run_from_a_ladder_that_works():
    found = reason(POSITIONS["out of atari to nowhere"], WHITE, "E3", "A9")
    assert found.startswith("The 2 white stones at D3 cannot run: ") and found.endswith(" captures them in a ladder.")
    assert reason(POSITIONS["out of atari towards a friend"], WHITE, "E3", "A9") == ""


def test_a_ladder_that_does_not_work_is_known_if_it_was_chased():
    broken = POSITIONS["broken by a stone on the way"]
    text = "The ladder does not work: the 2 white stones at D3 escape."
    assert reason(broken, BLACK, "D4 E3 E4", "A9") == text
    assert reason(broken, BLACK, "D4 E3 J1", "A9") == "", "one atari is no ladder"
    assert reason(broken, BLACK, "D4 J1 E3", "A9") == "", "White let the stones be captured"
    assert reason(POSITIONS["into the corner"], BLACK, "D4 E3 E4", "A9") == "", "this one works"


def test_a_ladder_that_was_not_begun():
    corner = POSITIONS["into the corner"]
    flip = "D3 D2 E3 E2"
    assert (
        reason(corner, BLACK, "A9", "D4", "E4", flip)
        == "D4 captures the 2 white stones at D3 in a ladder; now they live."
    )
    assert "ladder" not in reason(corner, BLACK, "A9", "F5", "E4", flip), "the first choice is another move"
    assert reason(corner, BLACK, "A9", "D4", "E4") == "", "White's stones have not come to life"


def test_dead_stones_that_live():
    alive = """
        O O O O . . . . .
        X X X X . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
    """
    found = reason(alive, BLACK, "J1", "E9", flip="A9 B9 C9 D9")
    assert found == "The 4 white stones at B9 were dead and live now."
    assert "live" not in reason(alive.replace("O O O O", "O O O .", 1), BLACK, "J1", "E9", flip="A9 B9 C9 D9")


def test_a_region_changes_its_owner():
    corner = "F1 G1 H1 J1 G2 H2"
    assert (
        reason(OPEN, BLACK, "A9", "G2", flip=corner) == "6 points in the lower right around G1 go from Black to White."
    )
    assert reason(OPEN, BLACK, "A9", "G2", flip=corner, lost=30) == "", "twelve points do not explain thirty"
    assert reason(OPEN, BLACK, "A9", "G2", flip="F1 H1 J3 G5 A1 C1") == "", "points here and there are no region"
    side = reason(OPEN, BLACK, "A9", "G2", flip="J4 J5 J6 H5")
    assert side == "4 points on the right side around J5 go from Black to White."
    assert reason(OPEN, BLACK, "A9", "G2", flip="E4 E5 E6 D5").startswith("4 points in the centre around E5 go")
    stones = OPEN.replace(". . . . . . . . .", "X X . . . . . . .", 1)
    found = reason(stones, BLACK, "J1", "C9", flip="A9 B9 C9 A8")
    assert found == "4 points in the upper left around B9, 2 black stones among them, go from Black to White."


def test_tenuki_from_an_urgent_point():
    found = reason(OPEN, BLACK, "E5 C3 J9", "D3 A9", visits=(80, 20), number=3)
    assert found == "D3, near C3, is urgent: 80% of the visits are near it, and J9 is far away."
    for change in (
        {"visits": (60, 40)}, {"moves": "E5 C3 E3"}, {"best": "H8 A9"}, {"lost": 2.0}, {"moves": "E5 pass J9"},
        {"moves": "E5 C3 pass"},
    ):  # fmt: skip
        values = {"moves": "E5 C3 J9", "best": "D3 A9", "visits": (80, 20), "number": 3} | change
        assert reason(OPEN, BLACK, **values) == "", change


def test_four_percent_of_the_win_rate_are_worth_a_point():
    """Without leads a loss of 20% is explained by three points that change hands, as one of 5 points is."""
    game = game_of(CORNER, BLACK, "J1")
    points = [int(index_of(from_vertex(vertex, 9), 9)) for vertex in FLIP.split()]
    turns = []
    for n, (color, rate) in enumerate(((BLACK, 0.6), (WHITE, 0.4))):
        owners = np.zeros(81, np.float16)
        owners[points] = 1 - 2 * n
        line = [from_vertex("C9", 9)]
        turns.append(
            Turn(n, color, 100, rate, None, 5.0, [Candidate(line[0], 50, rate, None, 0.5, line)], owners, None)
        )
    (move,) = move_losses(turns, game.played, 9)
    assert (
        move.counted == pytest.approx(20)
        and reason_of(game, turns, move) == "The 2 black stones at A9 die, captured by C9."
    )


def test_no_reason_is_given_to_moves_that_are_not_blamed_or_without_ownership():
    game = game_of(CORNER, BLACK, "J1")
    assert reason(CORNER, BLACK, "J1", "C9", "C9", FLIP, lost=0.5) == ""
    assert reason(CORNER, BLACK, "C9", "C9", "C9", FLIP) == "", "the first choice"
    turns = [
        Turn(n, color, 100, 0.5, lead, 5.0, [candidate(lead, 50, [from_vertex("C9", 9)])], None, None)
        for n, (color, lead) in enumerate(((BLACK, 0.0), (WHITE, -8.0)))
    ]
    (move,) = move_losses(turns, game.played, 9)
    assert KINDS[move.kind] == "mistake" and reason_of(game, turns, move) == ""
    assert reason_of(game, turns, replace(move, kind=None)) == ""
