"""Shards of self-play rows: what is written reads back, and rows that contradict their games are one clear error."""

import numpy as np
import pytest

from bench.reliability.originals import made_rows
from engine.records.search_rows import packed, read_search_rows, unpacked, write_search_rows


def changed(array, value):
    """An array whose last number is another."""
    copy = array.copy()
    copy.flat[-1] = value
    return copy


def test_what_is_written_reads_back(tmp_path):
    rows = made_rows()
    write_search_rows(tmp_path / "rows.npz.xz", rows)
    for found in (read_search_rows(tmp_path / "rows.npz.xz"), unpacked(packed(rows))):
        for name, array in found._asdict().items():
            if name != "games":
                np.testing.assert_array_equal(array, getattr(rows, name), err_msg=name)
        for name, array in found.games._asdict().items():
            np.testing.assert_array_equal(array, getattr(rows.games, name), err_msg=name)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        # The absolute value of an int8 of -128 is -128.
        ("owner", -128, "owner"), ("owner", 2, "owner"), ("game", 30, "game"), ("game", 0, "order of rows"),
        ("ply", 41, "ply"), ("ply", 3, "order of rows"), ("value_black", np.inf, "number"), ("weight", -1.0, "number"),
    ],
)  # fmt: skip
def test_rows_that_contradict_their_games_are_refused(tmp_path, name, value, words):
    rows = made_rows()
    write_search_rows(tmp_path / "rows.npz.xz", rows._replace(**{name: changed(getattr(rows, name), value)}))
    with pytest.raises(ValueError, match=rf"^\S+rows.npz.xz: a damaged shard .* \(an impossible {words}\)$"):
        read_search_rows(tmp_path / "rows.npz.xz")


def test_a_komi_that_is_not_known_is_refused(tmp_path):
    """Other shards may hold one; here it is part of what the network was shown."""
    rows = made_rows()
    games = rows.games._replace(komi=changed(rows.games.komi, np.nan))
    write_search_rows(tmp_path / "rows.npz.xz", rows._replace(games=games))
    with pytest.raises(ValueError, match="an impossible komi"):
        read_search_rows(tmp_path / "rows.npz.xz")


def test_a_row_without_a_target_is_refused(tmp_path):
    rows = made_rows()
    rows.policy[-1] = 0
    write_search_rows(tmp_path / "rows.npz.xz", rows)
    with pytest.raises(ValueError, match="an impossible target"):
        read_search_rows(tmp_path / "rows.npz.xz")
