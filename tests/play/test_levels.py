"""Levels of play: the table, how the player honours a level, and the adaptive opponent."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from engine.config import ADAPTIVE, FULL, RANKS, PlayOptions
from engine.go.geometry import BLACK, WHITE
from engine.nets.fakes import HashNetwork
from engine.play import levels
from engine.play.game_session import RESIGN
from engine.search.level_choice import FULL_STRENGTH, Level
from engine.system.files import sha256_of
from tests.playing import SEARCH, scatter
from weights import DEFAULT, find

WEAK = Level(1, 3.0, 0.001, 1.0, 1.0)
SEARCHING = Level(6, 0.5, 0.1, 1.0, 0.0)


@pytest.fixture
def two_levels(monkeypatch, tiny_network):
    """A table of two levels on 9x9 for the tiny network."""
    entries = {"12k": levels.Entry(WEAK, -100.0, -200.0, 0.0), "3k": levels.Entry(SEARCHING, 300.0, 200.0, 400.0)}
    made = levels.Table("OGS 2026", "tiny", sha256_of(tiny_network), {9: entries})
    monkeypatch.setattr(levels, "table", lambda: made)
    return made


def test_the_table_is_bound_to_the_shipped_default():
    assert levels.table().network == DEFAULT
    assert levels.table().sha256 == sha256_of(find(DEFAULT))


@pytest.mark.parametrize("size", [7, 9, 13, 19])
def test_levels_are_ranks_the_weakest_first(size):
    there = levels.names(size)
    assert there[-1] == FULL
    assert list(there[:-1]) == [name for name in RANKS if name in there]
    assert len(there) > 10
    settings = [levels.settings_of(name, size) for name in there[:-1]]
    for weak, strong in pairwise(settings):
        assert weak.visits <= strong.visits
        assert weak.temperature >= strong.temperature


def test_full_strength_has_no_settings():
    assert levels.settings_of(FULL, 9) == FULL_STRENGTH
    assert levels.names(5) == (FULL,)
    assert levels.settings_of("10k", 5) == FULL_STRENGTH


def test_a_rank_is_said_with_its_server_and_board(two_levels):
    assert levels.described("12k", 9) == "12k (OGS 2026, 9x9)"
    assert levels.described("12k", 11) == "12k (OGS 2026, 11x11, measured on 9x9)"
    assert levels.described(FULL, 9) == "max (full strength)"


def test_a_level_that_a_board_lacks_is_the_nearest(two_levels):
    assert levels.nearest("20k", 9) == levels.nearest("8k", 9) == "12k"
    assert levels.nearest("5d", 9) == "3k"
    assert levels.nearest("5d", 25) == FULL


@pytest.mark.parametrize("text", ["", "scale = 1", "[board]\n9 = 3", 'scale = "x"\nnetwork = "y"\nsha256 = "z"'])
def test_a_damaged_table_is_refused_in_one_line(monkeypatch, tmp_path, text):
    path = tmp_path / "levels.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(levels, "LEVELS", path)
    with pytest.raises(ValueError, match=r"not a table of levels") as error:
        levels.table.__wrapped__()
    assert "\n" not in str(error.value)


def test_levels_are_refused_with_another_network(make_player, tiny_network):
    with pytest.raises(
        ValueError, match=r"level 10k was measured with the network default .*expected --weights default"
    ):
        make_player(PlayOptions(level="10k"), network=tiny_network)
    with pytest.raises(ValueError, match="not none"):
        make_player(PlayOptions(level=ADAPTIVE))
    player = make_player(network=tiny_network)
    with pytest.raises(ValueError, match="or --level max"):
        player.configure(replace(player.options, level="3d"), player.search_options)
    assert player.options.level == FULL


def test_a_level_sets_the_visits_of_each_move(make_player, two_levels, tiny_network):
    player = make_player(PlayOptions(level="12k"), network=tiny_network)
    assert player.genmove(BLACK) > 0
    assert player.last_genmove_report.visits == 1
    player.configure(replace(player.options, level="3k"), player.search_options)
    assert player.genmove(WHITE) > 0
    assert player.last_genmove_report.visits == SEARCHING.visits


def played(player, moves):
    color = BLACK
    for _ in range(moves):
        player.genmove(color)
        color = BLACK + WHITE - color
    return [point for _, point in player.game.moves()]


def test_a_seed_repeats_the_moves_of_a_level(make_player, two_levels, tiny_network):
    options = PlayOptions(level="12k")
    one, again, other = (played(make_player(options, network=tiny_network, seed=seed), 8) for seed in (1, 1, 2))
    assert one == again != other


def test_full_strength_is_what_it_was(make_player, tiny_network):
    options = PlayOptions(visits=12, seconds=0.0)
    assert played(make_player(options, network=tiny_network), 6) == played(
        make_player(replace(options, level=FULL), network=tiny_network), 6
    )


def test_levels_resign_late_and_far_behind():
    options = PlayOptions()
    late = levels.resigning(options)
    assert (late.resign_below, late.resign_count) == (levels.RESIGN_BELOW, levels.RESIGN_COUNT)
    assert levels.resigning(replace(options, resign_below=-1.0)).resign_below == -1.0
    assert levels.is_far_behind(200, -45.0, 19)
    assert not levels.is_far_behind(200, -30.0, 19)
    assert not levels.is_far_behind(100, -80.0, 19)
    assert levels.is_far_behind(200, None, 19)


def test_a_lost_game_is_played_on_at_a_level(make_player, two_levels, tiny_network, monkeypatch):
    """At full strength this player gives it up."""
    monkeypatch.setattr(levels, "is_far_behind", lambda *_: False)
    options = PlayOptions(resign_below=0.99, resign_count=1, policy_only=True)
    player = make_player(options, network=tiny_network)
    scatter(player, 40, BLACK)
    assert player.genmove(BLACK) == RESIGN
    player.configure(replace(options, level="12k", resign_below=-0.99), player.search_options)
    assert player.genmove(BLACK) != RESIGN


@pytest.mark.parametrize(
    ("results", "level"),
    [([], "10k"), ([True], "10k"), ([True, False], "10k"), ([True, True], "11k"), ([False, False], "9k")],
)
def test_the_adaptive_opponent_changes_by_a_rank_after_two_equal_results(results, level):
    assert levels.next_level("10k", results, 19) == level


def test_the_adaptive_opponent_stays_within_the_ranks():
    lowest, highest = levels.names(9)[0], levels.names(9)[-2]
    assert levels.next_level(lowest, [True] * 5, 9) == lowest
    assert levels.next_level(highest, [False] * 5, 9) == highest
    assert levels.next_level(FULL, [True] * 5, 9) == FULL


def test_the_adaptive_opponent_says_its_changes(make_player, two_levels, tiny_network, capsys):
    player = make_player(PlayOptions(level=ADAPTIVE), network=tiny_network)
    assert levels.nearest(player.level, 9) == "12k"
    for _ in range(2):
        player.game.play(BLACK, player.game.position.board.empty[0])
        player._standing = -0.9, 60, 9
        player.new_game(9)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "level auto: Keima lost, its level stays 12k (OGS 2026, 9x9)",
        "level auto: Keima lost, its level becomes 3k (OGS 2026, 9x9)",
    ]
    # An unclear or short game does not count.
    for standing in ((0.2, 60, 9), (0.9, 12, 9)):
        player._standing = standing
        player.new_game(9)
    assert (capsys.readouterr().err, player.level) == ("", "3k")


def test_drawn_moves_are_those_of_the_searched(two_levels):
    from engine.features.encoder import ZERO
    from engine.go.position import new_position
    from engine.go.random import seed_state
    from engine.inference.server import InferenceServer
    from engine.search.search import Search
    from engine.search.stoppers import SearchLimits

    with InferenceServer(HashNetwork(ZERO.name), threads=1) as server:
        search = Search(SEARCH, server, ZERO)
        position = search.set_position(new_position(7))
        report = search.run(SearchLimits(visits=8))
        searched = {move.point for move in report.moves if move.visits}
        scored = replace(report, moves=[replace(move, score_stm=0.0) for move in report.moves])
        found = {levels.drawn(scored, position, SEARCHING, seed_state(seed, 0)) for seed in range(30)}
        search.close()
    assert found <= searched
    assert np.all(np.array([*found]) > 0)
