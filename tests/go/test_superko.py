"""Repetition under the three ko rules, on positions made for it."""

import numpy as np
import pytest

from bench.reliability.rules_twin import Twin
from bench.reliability.superko import play_beside_twin
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, point_of
from engine.go.position import begin, legal_moves, new_position, superko_key
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL, RULE_KO, RULE_SETS, Rules
from tests.go.positions import game_from

KO_RULES = [KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL]
every_ko_rule = pytest.mark.parametrize("ko", KO_RULES, ids=["simple", "positional", "situational"])

KO = """
    . X O . .
    X O . O .
    . X O . .
    . . . . .
    . . . . .
"""

TRIPLE_KO = """
    . X O . . . . . .
    X O . O . . . . .
    . X O . . . . . .
    . X O . . . . . .
    X . X O . . . . .
    . X O . . . . . .
    . X O . . . . . .
    X O . O . . . . .
    . X O . . . . . .
"""

SENDING_TWO = """
    O . X . X
    O O O X X
    . . O X .
    . . O X .
    . . O X .
"""


def is_legal(game: Game, vertex: str) -> bool:
    """Whether the side to move may play there."""
    return game.is_legal(game.to_move, from_vertex(vertex, game.size))


def play_line(game: Game, line: str) -> None:
    """Play vertices by the sides in turn, each of them legal."""
    for vertex in line.split():
        assert is_legal(game, vertex), vertex
        game.play(game.to_move, from_vertex(vertex, game.size))


@every_ko_rule
def test_a_ko_is_retaken_only_after_a_move_elsewhere(ko):
    game = game_from(KO, rules=Rules("test", ko))
    play_line(game, "C4")
    assert not is_legal(game, "B4")
    play_line(game, "E1 D1 B4")
    assert not is_legal(game, "C4")


@every_ko_rule
def test_two_passes_lift_a_simple_ko_but_no_superko(ko):
    game = game_from(KO, rules=Rules("test", ko))
    play_line(game, "C4 pass pass")
    assert is_legal(game, "B4") == (ko == KO_SIMPLE)


@every_ko_rule
def test_triple_ko_cycles_under_simple_ko_only(ko):
    game = game_from(TRIPLE_KO, rules=Rules("test", ko))
    stones = game.position.board.color.copy()
    for _ in range(3):
        play_line(game, "C8 B5 C2 B8 C5")
        assert not is_legal(game, "B5")
        assert is_legal(game, "B2") == (ko == KO_SIMPLE)
        game.play(WHITE, from_vertex("B2", 9))
        np.testing.assert_array_equal(game.position.board.color, stones)
        if ko != KO_SIMPLE:
            break


@every_ko_rule
def test_triple_ko_goes_on_after_a_threat(ko):
    play_line(game_from(TRIPLE_KO, rules=Rules("test", ko)), "C8 B5 C2 B8 C5 J1 J9 B2")


@every_ko_rule
def test_sending_two_returning_one(ko):
    game = game_from(SENDING_TWO, rules=Rules("test", ko))
    stones = game.position.board.color.copy()
    play_line(game, "B5 D5")
    # Taking the one back leaves the stones as at the start, but White to move: the position recurs, no situation does.
    assert is_legal(game, "C5") == (ko != KO_POSITIONAL)
    game.play(BLACK, from_vertex("C5", 5))
    np.testing.assert_array_equal(game.position.board.color, stones)
    play_line(game, "pass")
    assert is_legal(game, "B5") == (ko == KO_SIMPLE)


@pytest.mark.parametrize("ko", KO_RULES[1:])
def test_a_suicide_that_repeats_before_any_capture_is_illegal(ko):
    game = Game(2, Rules("test", ko, suicide=True))
    for vertex in ("A1", "pass", "A2", "pass", "B1", "pass"):
        play_line(game, vertex)
    # The fourth stone would clear the board: the first position again, but this time with White to move.
    assert is_legal(game, "B2") == (ko == KO_SITUATIONAL)


@pytest.mark.parametrize("suicide", [False, True])
@pytest.mark.parametrize("ko", KO_RULES[1:], ids=["positional", "situational"])
@pytest.mark.parametrize(("size", "longest"), [(2, 15), (3, 120)])
def test_superko_keeps_long_games_from_repeating(size, longest, ko, suicide):
    random, lengths = np.random.default_rng(size), []
    for _ in range(4):
        game, twin = Game(size, Rules("test", ko, suicide=suicide)), Twin(size)
        mask = np.empty(size * size + 1, np.uint8)
        seen = {game.position.hashes[0]}
        while not game.is_over:
            legal_moves(game.position, game.to_move, mask)
            legal = np.flatnonzero(mask[:-1])
            assert {divmod(int(index), size) for index in legal} == twin.legal_cells(twin.to_move, [(ko, suicide)])[0]
            index = int(random.choice(legal)) if len(legal) else size * size
            game.play(game.to_move, int(point_of(index, size)))
            twin.play(divmod(index, size) if len(legal) else None, twin.to_move)
            key = game.position.hashes[game.n_moves]
            assert key not in seen or not len(legal)
            seen.add(key)
        lengths.append(game.n_moves)
    assert max(lengths) > longest


def test_play_accepts_a_repetition_and_goes_on():
    game = game_from(KO, rules=Rules("test", KO_POSITIONAL))
    play_line(game, "C4")
    retake = from_vertex("B4", 5)
    assert not game.is_legal(WHITE, retake)
    game.play(WHITE, retake)
    assert game.captures(WHITE) == 1
    assert game.position.hashes[0] == game.position.hashes[2]
    game.play(BLACK, PASS)
    assert game.n_moves == 3


def test_an_unknown_kind_of_ko_is_an_error():
    with pytest.raises(ValueError, match="kind of ko"):
        superko_key(np.uint64(1), BLACK, len(KO_RULES))
    position = new_position(5)
    position.rules[RULE_KO] = len(KO_RULES)
    with pytest.raises(ValueError, match="kind of ko"):
        begin(position, BLACK)


@pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
def test_every_rule_set_plays_as_its_slow_twin(rules):
    for size, most in ((2, 40), (3, 60), (5, 60)):
        assert play_beside_twin(size, rules, seed=size, most=most)[1] == []
