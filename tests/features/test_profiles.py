"""Human profiles: the inputs that KataGo's networks of human play get for them, as part of a position's input."""

import numpy as np
import pytest

from engine.config.profiles import RANKS, YEARS, read_profile
from engine.features.encoder import ENCODERS, KATAGO, cache_key, encode, with_profile
from engine.features.profiles import DEFAULT_PROFILE, profile_keys, profile_values
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE
from engine.nets.files.header import PROFILE_VALUES

HUMAN = ENCODERS["katago-v7-human"]


def test_a_profile_tells_rank_source_time_board_and_date():
    nine = profile_values("rank_5k", 9)
    assert nine.shape == (2, PROFILE_VALUES) and (nine[0] == nine[1]).all()
    nine = nine[0]
    assert list(nine[:6]) == [1, 1, 0, 0, 0, 0]
    assert RANKS.index("5k") + 1 == 14
    for start in (6, 40):
        assert nine[start : start + 34].tolist() == [1.0] * 14 + [0.0] * 20
    assert nine[74] == 0.5 and nine[75:82].tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert nine[82:86] == pytest.approx([0.4 * (np.log(1260) - 6.5), 0.3 * (np.log(31) - 3),
                                         0.5 * (np.log(7) - 1.5), 0.25 * (np.log(2) - 1.5)])  # fmt: skip
    assert nine[86] == pytest.approx(0.5 * np.log(81 / 361)) and profile_values("rank_5k", 19)[0][86] == 0
    days = 18322
    assert nine[87:89] == pytest.approx([np.cos(days / 7 * 2 * np.pi), np.sin(days / 7 * 2 * np.pi)])
    assert nine[149:151] == pytest.approx([np.cos(days / 560000 * 2 * np.pi), np.sin(days / 560000 * 2 * np.pi)])
    assert nine[151:].tolist() == [0, 0, 1] + [0] * 38
    assert profile_values("proyear_1985", 9)[0][151:].argmax() == 5
    assert profile_values("proyear_2021", 9)[0][151:].argmax() == 6


def test_a_pair_of_ranks_shows_each_player_the_own_rank_first():
    black, white = profile_values("preaz_5k_3d", 19)
    for values, own, other in ((black, 14, 7), (white, 7, 14)):
        assert (values[6:40].sum(), values[40:74].sum()) == (own, other)
    same = profile_values("preaz_5k_5k", 19), profile_values("preaz_5k", 19)
    assert np.array_equal(*same)


def test_every_name_is_a_profile_of_its_own():
    names = [f"{kind}_{rank}" for kind in ("rank", "preaz") for rank in RANKS]
    names += [f"proyear_{year}" for year in YEARS] + ["rank_5k_3d", "rank_3d_5k"]
    keys = [tuple(profile_keys(profile_values(name, 19))) for name in names]
    assert len(set(keys)) == len(names) == 284 and min(min(pair) for pair in keys) > 0


@pytest.mark.parametrize(
    "name", ["", "rank_10d", "rank_21k", "rank_5k_3d_2d", "rank_", "proyear_1799", "proyear_2024", "rank_9d ", "5k"]
)
def test_an_unknown_profile_is_refused_in_one_line(name):
    with pytest.raises(ValueError, match=r"unknown human profile .*expected rank_9d to") as caught:
        read_profile(name)
    assert "\n" not in str(caught.value)


def shown(encoder, game):
    """Global values of a position, and its key in the result cache."""
    planes = np.zeros((encoder.planes, game.size, game.size), np.float32)
    globals_ = np.full(encoder.globals, np.nan, np.float32)
    scratch = encoder.new_scratch(game.size)
    encode(game.position, 0, scratch, planes, globals_)
    return globals_, int(cache_key(game.position, scratch))


def test_the_profile_is_part_of_the_input_and_of_the_key():
    game, keys = Game(9), set()
    own, _ = shown(KATAGO, game)
    for color in (BLACK, WHITE):
        for profile in ("", "rank_20k", "rank_20k_5d", "rank_5d_20k", "proyear_1950"):
            globals_, key = shown(with_profile(HUMAN, profile), game)
            expected = profile_values(profile or DEFAULT_PROFILE, 9)[color - BLACK]
            assert np.array_equal(globals_[19:], expected.astype(np.float32))
            assert color == WHITE or np.array_equal(globals_[:19], own)
            keys.add(key)
        if color == BLACK:
            game.play(BLACK, 23)
    assert len(keys) == 10


def test_only_networks_of_human_play_know_profiles():
    assert with_profile(KATAGO, "") is KATAGO
    with pytest.raises(ValueError, match="human profile rank_5k: the network knows none, expected one of KataGo's"):
        with_profile(KATAGO, "rank_5k")
    with pytest.raises(ValueError, match="unknown human profile 'nobody'"):
        with_profile(HUMAN, "nobody")
