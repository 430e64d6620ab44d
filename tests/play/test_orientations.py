"""The end of a game is judged alike in all eight orientations of its board, however the board came about."""

from collections import defaultdict

import numpy as np
import pytest

from bench.strength.endings import from_shard
from engine.config import PlayOptions
from engine.features.symmetry import SYMMETRIES, canonical_board, symmetry_table
from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE, META_KO_COLOR, META_KO_POINT
from engine.go.diagram import render
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points
from engine.go.sgf import read_sgf
from engine.play.factory import shipped_tables
from engine.play.life_and_death import end_by_owners, estimate_end
from engine.rollout.ownership import rollout_ownership
from tests.go.positions import TANGLED, game_from, random_game
from tests.playing import DEAD_STONES, SEKI_AT_C3
from weights import DEFAULT, find_network


def turned_game(game, symmetry):
    """The game's last board in another orientation, with its prisoners, as a game that begins there."""
    size, source = game.size, game.position.board
    points, table = on_board_points(size), symmetry_table(size)[symmetry]
    other = Game(size, game.rules, game.komi)
    stones = [points[table[:-1][source.color[points] == color]].tolist() for color in (BLACK, WHITE)]
    captured = (int(source.meta[META_CAPTURED_BLACK]), int(source.meta[META_CAPTURED_WHITE]))
    other.setup_stones(*stones, BLACK, captured)
    return other


def turned_map(values, size, symmetry):
    """What belongs to points, in policy order, in another orientation."""
    turned = np.empty_like(values)
    turned[symmetry_table(size)[symmetry, :-1]] = values
    return turned


def judged(found, size):
    """What an estimate says, but for the owners: leads, open points, and bool[N*N]: dead."""
    return found.lead_black, found.n_open, np.isin(on_board_points(size), found.dead)


def assert_turned(found, expected, size, symmetry):
    lead, n_open, dead = judged(expected, size)
    assert judged(found, size)[:2] == (lead, n_open)
    np.testing.assert_array_equal(judged(found, size)[2], turned_map(dead, size, symmetry))


@pytest.mark.parametrize("policy", ["uniform", "learnt"])
@pytest.mark.parametrize("text", [TANGLED, DEAD_STONES, SEKI_AT_C3], ids=["tangled", "dead stones", "seki"])
def test_an_estimate_is_the_same_in_all_orientations(text, policy):
    game, tables = game_from(text, rules="japanese"), shipped_tables() if policy == "learnt" else None
    expected = estimate_end(game.position, tables=tables)
    for symmetry in range(SYMMETRIES):
        found = estimate_end(turned_game(game, symmetry).position, tables=tables)
        assert_turned(found, expected, game.size, symmetry)
        owners = turned_map(expected.ownership_black, game.size, symmetry)
        np.testing.assert_array_equal(found.ownership_black, owners)


def test_an_estimate_does_not_depend_on_the_course_of_the_game():
    game = random_game(7, 60, seed=4)
    game.play(game.to_move, PASS)
    anew = turned_game(game, 0)
    assert anew.position.board.empty.tolist() != game.position.board.empty.tolist()
    owners = [estimate_end(one.position).ownership_black for one in (game, anew)]
    np.testing.assert_array_equal(*owners)


def test_owners_of_a_symmetric_board_are_symmetric():
    owners = estimate_end(game_from(". . . . .\n" * 2 + ". . X . .\n" + ". . . . .\n" * 2).position).ownership_black
    for symmetry in range(SYMMETRIES):
        np.testing.assert_array_equal(owners, turned_map(owners, 5, symmetry))


def test_random_owners_are_counted_alike_in_all_orientations():
    """What is doubtful there, chain by chain, is so in no real game."""
    random, n_dead = np.random.default_rng(5), set()
    for seed in range(40):
        game = random_game(9, 120, seed, rules="japanese")
        owners = random.uniform(-1.0, 1.0, 81).astype(np.float32)
        expected = end_by_owners(game.position, owners)
        for symmetry in range(1, SYMMETRIES):
            found = end_by_owners(turned_game(game, symmetry).position, turned_map(owners, 9, symmetry))
            assert_turned(found, expected, 9, symmetry)
        n_dead.add(len(expected.dead))
    assert len(n_dead) > 5


def test_one_orientation_stands_for_all_and_keeps_the_ko():
    game = game_from(". X O . .\nX . X O .\n. X O . .\n. . . . .\n. . . . X", WHITE)
    game.play(WHITE, from_vertex("B4", 5))
    board = game.position.board
    assert board.meta[META_KO_POINT] == from_vertex("C4", 5) and board.meta[META_KO_COLOR] == BLACK
    canonical, symmetries = canonical_board(board)
    assert canonical.meta[META_KO_COLOR] == BLACK and len(symmetries) == 1
    index = np.flatnonzero(on_board_points(5) == board.meta[META_KO_POINT])
    turned = symmetry_table(5)[symmetries[0], index]
    assert on_board_points(5)[turned] == canonical.meta[META_KO_POINT]
    boards = [canonical_board(turned_game(game, symmetry).position.board)[0] for symmetry in range(SYMMETRIES)]
    assert len({render(one) for one in boards}) == 1
    assert all((one.buffer == boards[0].buffer).all() for one in boards)


@pytest.mark.shared
def test_final_scores_of_real_games_are_the_same_in_all_orientations(shared_path, make_player):
    """The whole path: rollouts, the network's eight symmetries, dead stones and count."""
    player, found = make_player(PlayOptions(), network=find_network(DEFAULT), size=19), defaultdict(set)
    for file in sorted((shared_path / "refs" / "endings_turned").glob("*.sgf")):
        player.load_sgf(file.read_bytes())
        estimate = player.estimate_end()
        found[file.name.partition("_")[0]].add((player.final_score(), estimate.n_open, len(estimate.dead)))
    assert len(found) == 3
    assert all(len(scores) == 1 for scores in found.values()), found


@pytest.mark.shared
def test_last_boards_of_real_games_are_counted_alike_in_all_orientations(shared_path):
    tables = shipped_tables()
    for game in from_shard(shared_path / "data" / "validation.npz.xz", 300, 7):
        last = read_sgf(game.data).to_game()
        owners = rollout_ownership(last.position.board, tables, 32, 1)
        expected = end_by_owners(last.position, owners)
        for symmetry in range(1, SYMMETRIES):
            found = end_by_owners(turned_game(last, symmetry).position, turned_map(owners, 19, symmetry))
            assert_turned(found, expected, 19, symmetry)
