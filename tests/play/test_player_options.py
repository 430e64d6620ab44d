"""Options that change while a player plays: which do, when they count, and what stays."""

from contextlib import closing
from dataclasses import replace

import pytest

from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, WHITE
from engine.play.game_session import RESIGN, Purpose
from engine.play.player import Player
from tests.playing import is_pondering
from weights import find_network

SEARCH = SearchOptions(threads=1, memory=64, seed=5)
PLAY = PlayOptions(visits=20, seconds=0.0, early_stop=False)


@pytest.fixture
def player():
    made = Player(SEARCH, PLAY, size=7)
    yield made
    made.close()


def test_limits_count_from_the_next_move_on_and_the_tree_stays(player):
    player.genmove(BLACK, Purpose.ANSWER)
    assert player.last_genmove_report.visits == 20
    player.configure(replace(PLAY, visits=30), SEARCH)
    player.genmove(BLACK, Purpose.ANSWER)
    assert (player.last_genmove_report.visits, player.last_genmove_report.playouts_this_run) == (30, 10)


def test_noise_of_analyses_leaves_the_tree(player):
    player.genmove(BLACK, Purpose.ANSWER)
    player.configure(replace(PLAY, visits=30), replace(SEARCH, wide_root_noise=0.04))
    player.genmove(BLACK, Purpose.ANSWER)
    assert (player.last_genmove_report.visits, player.last_genmove_report.playouts_this_run) == (30, 10)
    assert player.search_options.wide_root_noise == 0.04


def test_options_of_the_search_begin_a_new_tree(player):
    player.genmove(BLACK, Purpose.ANSWER)
    player.configure(PLAY, replace(SEARCH, c_puct=2.0, threads=2))
    assert player.search_options.c_puct == 2.0
    player.genmove(BLACK, Purpose.ANSWER)
    assert player.last_genmove_report.playouts_this_run >= 20


@pytest.mark.parametrize("other", [{"seed": 6}, {"random_symmetry": False}])
def test_a_change_of_the_symmetries_shown_counts_for_positions_seen_before(other):
    """Their cached results were those of the symmetries before, whatever was set since."""

    def searched(options):
        # Another exploration between: a tree that is kept asks nothing again.
        player.configure(PLAY, replace(options, c_puct=1.3))
        player.configure(PLAY, options)
        player.genmove(BLACK, Purpose.ANSWER)
        return [(move.point, move.visits, move.value_stm) for move in player.last_genmove_report.moves]

    with closing(Player(SEARCH, PLAY, network=find_network("small"), size=7)) as player:
        first, changed = searched(SEARCH), searched(replace(SEARCH, **other))
        player.forget()
        assert searched(replace(SEARCH, **other)) == changed != first


def test_a_seed_chosen_later_repeats_games_and_none_is_another(player):
    def game():
        player.new_game(7)
        return [player.genmove(color) for color in (BLACK, WHITE) * 4]

    drawn = []
    for seed in (7, 7, 0, 0):
        player.configure(replace(PLAY, temperature=1.0), replace(SEARCH, seed=1))
        player.configure(player.options, replace(SEARCH, seed=seed))
        drawn.append((player.search_options.seed, game()))
    assert drawn[0] == drawn[1] and drawn[0][0] == 7
    assert drawn[2][0] != drawn[3][0] and drawn[2][1] != drawn[3][1]


def test_what_the_server_was_made_with_stays(player):
    for wrong in (replace(SEARCH, memory=128), replace(SEARCH, evaluators=3)):
        with pytest.raises(ValueError, match="cannot change any more"):
            player.configure(replace(PLAY, visits=7), wrong)
    assert (player.options, player.search_options) == (PLAY, SEARCH)


@pytest.mark.parametrize("symmetries", ["auto", "1"])
def test_a_policy_alone_knows_nothing_of_searches_before(player, symmetries):
    player.configure(PLAY, replace(SEARCH, root_symmetries=symmetries))
    player.genmove(BLACK, Purpose.ANSWER)
    player.configure(replace(PLAY, policy_only=True), player.search_options)
    player.genmove(BLACK)
    assert player.last_genmove_report.visits == 1
    player.configure(PLAY, player.search_options)
    player.genmove(WHITE)
    assert player.last_genmove_report.visits == 20


def test_resigning_and_lag_follow(player):
    for _ in range(6):
        player.genmove(BLACK)
        player.genmove(WHITE)
    player.configure(replace(PLAY, resign_below=1.0, resign_count=1, lag=1.5), SEARCH)
    assert player.clock.lag_s == 1.5
    assert player.genmove(BLACK) == RESIGN


def test_hopeless_moves_are_still_counted_when_other_options_change(player):
    player.configure(replace(PLAY, resign_below=1.0, resign_count=2), SEARCH)
    for _ in range(8):
        player.play(BLACK, player.genmove(BLACK, Purpose.ANSWER))
        player.play(WHITE, player.genmove(WHITE, Purpose.ANSWER))
    assert player.genmove(BLACK) != RESIGN
    player.configure(replace(player.options, visits=25), SEARCH)
    assert player.genmove(BLACK) == RESIGN


def test_an_opening_varies_as_soon_as_a_temperature_is_set(player):
    player.configure(replace(PLAY, temperature=2.0), SEARCH)
    assert len({player.genmove(BLACK, Purpose.ANSWER) for _ in range(12)}) > 1
    player.configure(PLAY, SEARCH)
    assert len({player.genmove(BLACK, Purpose.ANSWER) for _ in range(3)}) == 1


def test_changing_options_ends_pondering(player):
    player.configure(replace(PLAY, ponder=True, ponder_visits=10**6), SEARCH)
    player.genmove(BLACK)
    assert is_pondering()
    player.configure(replace(player.options, ponder=False), SEARCH)
    assert not is_pondering()
