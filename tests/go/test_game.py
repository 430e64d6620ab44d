"""One game: moves, undo, setup, handicap and rules."""

import pickle

import numpy as np
import pytest

from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE
from engine.go.game import Game
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, PASS, WHITE, from_vertex, on_board_points
from engine.go.position import legal_moves
from engine.go.rules import RULE_KO, RULE_KOMI_X2, RULE_SETS


def play_line(game: Game, line: str) -> None:
    """Play vertices by the sides in turn."""
    for vertex in line.split():
        game.play(game.to_move, from_vertex(vertex, game.size))


def play_randomly(game: Game, moves: int, seed: int) -> None:
    """Play legal moves, passes rarely."""
    random, mask = np.random.default_rng(seed), np.empty(game.size**2 + 1, np.uint8)
    for _ in range(moves):
        legal_moves(game.position, game.to_move, mask)
        choices = on_board_points(game.size)[mask[:-1] == 1]
        point = int(random.choice(choices)) if len(choices) and random.random() > 0.02 else PASS
        game.play(game.to_move, point)


def snapshot(game: Game) -> list[object]:
    """Everything that legality, superko, encoders and scoring read of a game."""
    position, n = game.position, game.n_moves
    return [
        position.board.color.tolist(),
        position.board.hash.tolist(),
        position.board.meta.tolist(),
        position.rules.tolist(),
        position.meta.tolist(),
        position.past.tolist(),
        position.seen.tolist(),
        position.hashes[: n + 1].tolist(),
        game.moves(),
    ]


def test_a_new_game_is_chinese_on_19x19():
    game = Game()
    assert (game.size, game.rules.name, game.komi, game.handicap) == (19, "chinese", 7.5, 0)
    assert (game.to_move, game.n_moves, game.moves(), game.is_over) == (BLACK, 0, [], False)


def test_komi_and_rules_survive_a_new_board():
    game = Game()
    game.set_komi(0.5)
    game.set_rules(RULE_SETS["japanese"])
    game.new(9)
    assert (game.size, game.komi, game.rules.name) == (9, 0.5, "japanese")
    assert game.position.rules[RULE_KOMI_X2] == 1


@pytest.mark.parametrize("size", [MIN_SIZE - 1, 0, -9, MAX_SIZE + 1])
def test_other_sizes_are_refused_and_change_nothing(size):
    game = Game(9)
    play_line(game, "E5")
    with pytest.raises(ValueError, match="unacceptable size"):
        game.new(size)
    assert (game.size, game.n_moves) == (9, 1)


@pytest.mark.parametrize("size", range(MIN_SIZE, MAX_SIZE + 1))
def test_every_size_plays(size):
    game = Game(size)
    play_randomly(game, 12, seed=size)
    assert game.n_moves == 12


def test_moves_turns_captures_and_end():
    game = Game(5)
    play_line(game, "B1 A1 A2")
    assert game.moves() == [(color, from_vertex(v, 5)) for color, v in [(BLACK, "B1"), (WHITE, "A1"), (BLACK, "A2")]]
    assert (game.to_move, game.captures(BLACK), game.captures(WHITE)) == (WHITE, 1, 0)
    game.play(BLACK, from_vertex("C3", 5))
    assert game.to_move == WHITE
    play_line(game, "pass")
    assert not game.is_over
    play_line(game, "pass")
    assert game.is_over
    play_line(game, "C4")
    assert not game.is_over


@pytest.mark.parametrize(
    ("color", "point"),
    [(BLACK, 21), (WHITE, 21), (BLACK, 6), (BLACK, -1), (BLACK, 10**6), (3, 8), (0, 8)],
)
def test_occupied_points_and_points_off_the_board_are_illegal(color, point):
    game = Game(5)
    play_line(game, "C3")
    assert game.moves() == [(BLACK, 21)]
    with pytest.raises(ValueError, match=r"^illegal move$"):
        game.play(color, point)
    assert game.n_moves == 1


def test_is_legal_off_the_board():
    game = Game(5)
    assert [game.is_legal(BLACK, point) for point in (PASS, -1, 5, 6, 7, 10**6)] == [
        True,
        False,
        False,
        False,
        True,
        False,
    ]


def test_play_accepts_suicide_of_several_stones_and_refuses_that_of_one():
    game = Game(5)
    game.setup_stones([from_vertex("A1", 5)], [from_vertex(v, 5) for v in ("B1", "B2", "A3", "E4", "D5")], BLACK)
    corner = from_vertex("E5", 5)
    assert not game.is_legal(BLACK, corner)
    with pytest.raises(ValueError, match="illegal move"):
        game.play(BLACK, corner)
    assert game.n_moves == game.captures(WHITE) == 0 and game.to_move == BLACK
    assert not game.is_legal(BLACK, from_vertex("A2", 5))
    game.play(BLACK, from_vertex("A2", 5))
    assert game.captures(WHITE) == 2
    game.undo()
    assert game.captures(WHITE) == 0


@pytest.mark.parametrize("rules", ["tromp-taylor", "aga-button", "chinese"])
@pytest.mark.parametrize(("size", "moves"), [(3, 80), (9, 200)])
def test_undo_and_replay_give_identical_histories(rules, size, moves):
    game = Game(size, RULE_SETS[rules])
    snapshots = [snapshot(game)]
    for n in range(moves):
        play_randomly(game, 1, seed=n)
        snapshots.append(snapshot(game))
    line = game.moves()
    for n in range(moves - 1, -1, -1):
        game.undo()
        assert snapshot(game) == snapshots[n]
    with pytest.raises(ValueError, match=r"^cannot undo$"):
        game.undo()
    for n, (color, point) in enumerate(line):
        game.play(color, point)
        assert snapshot(game) == snapshots[n + 1]


def test_undo_leaves_the_old_position_intact():
    game = Game(5)
    play_line(game, "C3 D3")
    old = game.position
    game.undo()
    play_line(game, "B3")
    assert old.board.color[from_vertex("D3", 5)] == WHITE
    assert old.moves[1] == from_vertex("D3", 5)


def test_room_for_moves_grows():
    game = Game(2)
    room = len(game.position.moves)
    play_randomly(game, 3 * room, seed=1)
    assert game.n_moves == 3 * room
    assert len(game.moves()) == 3 * room
    hashes = game.position.hashes[: 3 * room].tolist()
    game.undo()
    assert game.position.hashes[: 3 * room].tolist() == hashes


def test_set_rules_in_a_game_is_as_if_it_had_been_played_under_them():
    changed, from_start = Game(3, RULE_SETS["chinese"]), Game(3, RULE_SETS["aga-button"])
    play_randomly(changed, 60, seed=5)
    for color, point in changed.moves():
        from_start.play(color, point)
    changed.set_rules(RULE_SETS["aga-button"])
    assert changed.rules.name == "aga-button"
    assert snapshot(changed) == snapshot(from_start)
    changed.undo()
    assert changed.position.rules[RULE_KO] == from_start.position.rules[RULE_KO]


def test_set_komi_in_a_game_stays_through_undo():
    game = Game(5)
    play_line(game, "C3 D3")
    game.set_komi(-2.5)
    game.undo()
    assert game.komi == -2.5
    assert game.position.rules[RULE_KOMI_X2] == -5
    with pytest.raises(ValueError, match="half points"):
        game.set_komi(1.25)
    assert game.komi == -2.5
    with pytest.raises(ValueError, match="half points"):
        Game(9, komi=0.3)


def test_setup_begins_anew_from_any_position():
    game = Game(5)
    game.play(BLACK, from_vertex("C3", 5))
    game.setup_stones([from_vertex("A1", 5), from_vertex("B2", 5)], [from_vertex("B1", 5)], WHITE)
    assert (game.n_moves, game.to_move, game.handicap) == (0, WHITE, 0)
    assert game.position.board.meta[[META_CAPTURED_BLACK, META_CAPTURED_WHITE]].tolist() == [0, 0]
    assert game.position.board.color[from_vertex("C3", 5)] == 0
    play_line(game, "A2")
    with pytest.raises(ValueError, match="cannot undo"):
        for _ in range(2):
            game.undo()
    assert game.position.board.color[from_vertex("B1", 5)] == WHITE


@pytest.mark.parametrize(
    ("black", "white", "message"),
    [
        ("A1", "A1", "twice"),
        ("A1 A1", "", "twice"),
        ("A1", "B1 A2", "no liberty"),
        ("A2 B1", "A1", "no liberty"),
        ("pass", "", "not on the board"),
    ],
)
def test_setup_refuses_impossible_stones(black, white, message):
    game = Game(5)
    play_line(game, "C3")
    stones = [[from_vertex(vertex, 5) for vertex in text.split()] for text in (black, white)]
    with pytest.raises(ValueError, match=message):
        game.setup_stones(*stones, BLACK)
    assert game.n_moves == 1


@pytest.mark.parametrize("copied", [Game.copy, lambda game: pickle.loads(pickle.dumps(game))])
def test_a_copy_is_played_and_undone_by_itself(copied):
    game = Game(5, RULE_SETS["aga"], komi=0.5)
    game.setup_stones([from_vertex("A1", 5)], [from_vertex("E5", 5)], WHITE, captured=(2, 1))
    play_line(game, "C3 D4 A2")
    twin = copied(game)
    assert (twin.moves(), twin.to_move, twin.rules, twin.komi) == (game.moves(), game.to_move, game.rules, 0.5)
    for one, other in zip(twin.position[1:], game.position[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(twin.position.board.buffer, game.position.board.buffer)
    assert np.shares_memory(twin.position.board.color, twin.position.board.buffer)
    twin.undo()
    twin.set_komi(7.5)
    twin.set_rules(RULE_SETS["japanese"])
    play_line(twin, "B2 pass")
    game.undo()
    assert (game.n_moves, game.komi, game.rules.name, twin.n_moves) == (2, 0.5, "aga", 4)
    assert game.position.rules[RULE_KOMI_X2] == 1 and twin.position.rules[RULE_KOMI_X2] == 15
    assert [game.captures(color) for color in (BLACK, WHITE)] == [1, 2]


def test_a_move_is_played_only_if_it_is_legal():
    game = Game(2, RULE_SETS["tromp-taylor"])
    play_line(game, "B1 B2 A2")
    assert not game.play_if_legal(WHITE, from_vertex("B2", 2)) and not game.play_if_legal(WHITE, from_vertex("A2", 2))
    assert game.n_moves == 3 and game.play_if_legal(WHITE, PASS) and game.to_move == BLACK
    capacity = len(game.position.moves)
    while game.n_moves <= capacity:
        assert game.play_if_legal(game.to_move, PASS)
    expected = [(BLACK, from_vertex("B1", 2)), (WHITE, from_vertex("B2", 2)), (BLACK, from_vertex("A2", 2))]
    assert game.moves()[:3] == expected
