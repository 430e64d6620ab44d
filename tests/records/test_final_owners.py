"""Last boards of scored games: dead stones found by the recorded margin."""

import os

import numpy as np
import pytest

from engine.go.diagram import parse
from engine.go.geometry import BLACK, WHITE, index_of
from engine.go.scoring import final_score_black
from engine.go.seki import score_with_dame_filled
from engine.records.final_owners import find_final_owners, saved_final_owners
from engine.records.games import Games, read_games
from tests.go.positions import TO_CONNECT, game_from

FINISHED = """
    . X . X X O . O .
    X X X X X O O O O
    X . O X X O . O .
    X X X X X O O O O
    . X . X X O . O .
    X X X X X O O O O
    . X . X X O . O .
    X X X X X O O O O
    . X . X X O . O .
"""
"""The white stone at C7 is dead. By area Black has 45 points and White 36."""
KOMI = 6.5


def game_of(diagram: str, margin: float, result: int, territory: bool = False, copies: int = 1) -> Games:
    """Games that begin and end at a diagram: the stones are set up, then both pass."""
    board = parse(diagram).board
    size = int(board.meta[0])
    stones = [
        2 * index_of(int(point), size) + (board.color[point] == WHITE)
        for point in np.flatnonzero((board.color == BLACK) | (board.color == WHITE))
    ]
    return Games(
        size=np.full(copies, size), komi=np.full(copies, KOMI, np.float32), offsets=np.arange(copies + 1) * 2,
        moves=np.full(2 * copies, size * size, np.uint16), result=np.full(copies, result, np.int8),
        territory=np.full(copies, territory), margin=np.full(copies, margin, np.float32),
        setup_offsets=np.arange(copies + 1) * len(stones), setup=np.tile(np.array(stones, np.uint16), copies),
    )  # fmt: skip


def test_dead_stones_are_found_where_they_give_the_margin():
    owners = find_final_owners(game_of(FINISHED, margin=2.5, result=1))
    assert owners.row.tolist() == [0]
    assert owners.lead_black.tolist() == [2.5]
    owner = owners.ownership_black[0].reshape(9, 9)
    assert owner[2, 2] == 1, "the dead stone's point is Black's"
    assert owner.sum() == 45 - 36


@pytest.mark.parametrize(("margin", "result"), [(1.5, 1), (2.5, -1), (np.nan, 1)])
def test_a_margin_that_no_reading_gives_is_not_learnt_from(margin, result):
    owners = find_final_owners(game_of(FINISHED, margin, result))
    assert owners.row.tolist() == [-1]
    assert owners.lead_black.tolist() == [0]
    assert not owners.ownership_black[-1].any()


@pytest.mark.parametrize("dame_make_seki", [False, True])
def test_dame_that_are_not_filled_make_no_seki(dame_make_seki):
    """Players count the points of a group that a dame, not filled yet, connects to its second eye."""
    position = game_from(TO_CONNECT, rules="japanese").position
    count = final_score_black if dame_make_seki else score_with_dame_filled
    margin = count(position) - KOMI
    owners = find_final_owners(game_of(TO_CONNECT, abs(margin), 1 if margin > 0 else -1, territory=True))
    assert owners.row.tolist() == [-1 if dame_make_seki else 0]


def test_a_game_cut_short_to_one_position_has_no_end():
    """Its margin is that of the whole game, which the board may have by chance."""
    games = game_of(FINISHED, margin=2.5, result=1)
    assert find_final_owners(games).row.tolist() == [0]
    assert find_final_owners(games._replace(position=np.array([20], np.int16))).row.tolist() == [-1]


def test_threads_change_nothing():
    games = game_of(FINISHED, margin=2.5, result=1, copies=600)
    games.margin[::3] = 4.5
    alone, together = (find_final_owners(games, threads) for threads in (1, 3))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (alone.row < 0).sum() == 200


def test_what_was_found_is_read_back(tmp_path):
    games, done = game_of(FINISHED, margin=2.5, result=1), []
    first = saved_final_owners(games, tmp_path, on_progress=done.append)
    again = saved_final_owners(games, tmp_path, on_progress=done.append)
    assert done == [1], "the second time nothing is computed"
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    saved_final_owners(game_of(FINISHED, margin=1.5, result=1), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2, "other games, another file"


def test_a_file_that_is_read_counts_as_used(tmp_path):
    """What is not used for two weeks is deleted (engine/system/jit.py)."""
    games = game_of(FINISHED, margin=2.5, result=1)
    saved_final_owners(games, tmp_path)
    (path,) = tmp_path.iterdir()
    os.utime(path, (1e9, 1e9))
    saved_final_owners(games, tmp_path)
    assert path.stat().st_mtime > 1e9


@pytest.mark.parametrize("owner", [2, -128])
def test_saved_owners_that_are_none_are_found_anew(tmp_path, owner):
    """The absolute value of an int8 of -128 is -128."""
    games, done = game_of(FINISHED, margin=2.5, result=1), []
    first = saved_final_owners(games, tmp_path)
    (path,) = tmp_path.iterdir()
    damaged = first.ownership_black.copy()
    damaged[0, 40] = owner
    np.savez_compressed(path, **first._replace(ownership_black=damaged)._asdict())
    again = saved_final_owners(games, tmp_path, on_progress=done.append)
    assert done == [1]
    np.testing.assert_array_equal(again.ownership_black, first.ownership_black)


@pytest.mark.shared
def test_final_owners_of_most_real_scored_games_are_found(shared_path):
    games = read_games(shared_path / "data" / "validation.npz.xz")
    rows = np.flatnonzero(games.margin >= 0)[:300]
    few = games._replace(margin=np.where(np.isin(np.arange(len(games.size)), rows), games.margin, np.nan))
    assert (find_final_owners(few).row >= 0).sum() > 200
