"""Levels as the page offers them, and the adaptive opponent's rank from game to game."""

import json

import pytest

from engine.config import RANKS
from engine.play import levels
from gtp.web.ranks import FILE, Ranks
from weights import DEFAULT, find_network


@pytest.fixture
def ranks(tmp_path):
    return Ranks(find_network(DEFAULT), tmp_path)


def test_the_default_network_has_levels_where_it_plays(ranks):
    assert ranks.names(9) == [*levels.names(9), "auto"] and ranks.names(9)[-2] == "max"
    assert ranks.names(3) == ["max"]


def test_a_level_of_another_board_size_becomes_the_nearest(ranks, tmp_path, tiny_network):
    assert ranks.fitting("10k", 9) == "10k" and ranks.fitting("auto", 9) == "auto"
    assert ranks.fitting("10k", 3) == ranks.fitting("auto", 3) == "max"
    assert Ranks(tiny_network, tmp_path).fitting("10k", 9) == "max"


def test_other_networks_have_none(tmp_path, tiny_network):
    assert Ranks(tiny_network, tmp_path).names(9) == ["max"] == Ranks(None, tmp_path).names(9)


def test_the_adaptive_opponent_goes_down_after_wins_and_remembers(ranks, tmp_path):
    first = ranks.played("auto", 9)
    assert first == levels.FIRST and ranks.played("max", 9) == "max"
    for _ in range(levels.STREAK):
        said = ranks.note(True, 9)
    lower = ranks.played("auto", 9)
    assert lower != first and lower in said
    assert Ranks(find_network(DEFAULT), tmp_path).played("auto", 9) == lower
    assert lower in ranks.about("auto", 9) and levels.table().scale in ranks.about("auto", 9)


@pytest.mark.parametrize("level", RANKS)
def test_every_rank_is_remembered(tmp_path, level):
    """19x19 has fewer than 9x9."""
    (tmp_path / FILE).write_text(json.dumps({"level": level, "results": []}))
    assert Ranks(find_network(DEFAULT), tmp_path).played("auto", 9) == levels.nearest(level, 9)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"level": 3}', '{"level": "99k", "results": []}', "\x00"])
def test_a_damaged_file_counts_as_none(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert Ranks(find_network(DEFAULT), tmp_path).played("auto", 9) == levels.FIRST
