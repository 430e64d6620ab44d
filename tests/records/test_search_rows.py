"""Shards of self-play rows: what is written reads back, and rows that contradict their games are one clear error."""

import lzma

import numpy as np
import pytest

from bench.reliability.originals import made_rows
from engine.records.search_rows import SEARCH_ROWS, read_search_rows, write_search_rows


def changed(array, value):
    """An array whose last number is another."""
    copy = array.copy()
    copy.flat[-1] = value
    return copy


def test_what_is_written_reads_back(tmp_path):
    rows = made_rows()
    write_search_rows(tmp_path / "rows.npz.xz", rows)
    for found in (read_search_rows(tmp_path / "rows.npz.xz"), SEARCH_ROWS.unpack(SEARCH_ROWS.pack(rows))):
        for name, array in found._asdict().items():
            if name != "games":
                np.testing.assert_array_equal(array, getattr(rows, name), err_msg=name)
        for name, array in found.games._asdict().items():
            np.testing.assert_array_equal(array, getattr(rows.games, name), err_msg=name)


def test_rows_read_as_the_table_of_their_columns_says(tmp_path):
    """Packed number by number, as the program wrote them before columns were declared by the record's fields."""
    arrays = {
        "size": np.array([2, 2], np.uint8), "komi": np.array([0.5, 1.0], np.float16),
        "rules": np.arange(14, dtype=np.uint8).reshape(2, 7), "length": np.array([2, 1], np.uint16),
        "moves": np.array([0, 4, 3], np.uint16), "result": np.array([1, 0], np.int8),
        "ending": np.array([2, 1], np.uint8), "margin": np.array([np.nan, 0.0], np.float32),
        "owner": np.array([[0, 0, 0, 0], [1, -1, 0, 1]], np.int8), "number": np.array([4, 1 << 40]),
        "network": np.array([1 << 63, 2], np.uint64), "step": np.array([10, 20]),
        "resigner": np.array([2, 0], np.uint8), "quits": np.array([True, False]),
        "lowest": np.array([[-0.9, 0.1], [0.2, 0.3]], np.float32), "row_game": np.array([0, 1], np.uint32),
        "row_ply": np.array([1, 0], np.uint16), "policy": np.array([[1, 2, 3, 0, 0], [0, 0, 0, 9, 0]], np.uint16),
        "value": np.array([0.5, -0.5], np.float32), "weight": np.array([1.5, 0.5], np.float32),
    }  # fmt: skip
    with lzma.open(tmp_path / "rows.npz.xz", "wb") as file:
        np.savez(file, **arrays)
    rows = read_search_rows(tmp_path / "rows.npz.xz")
    assert rows.games.offsets.tolist() == [0, 2, 3]
    names = {"rules": "flags", "row_game": "game", "row_ply": "ply", "value": "value_black"}
    for name in arrays.keys() - {"length"}:
        field = names.get(name, name)
        of = rows if field in rows._fields else rows.games
        np.testing.assert_array_equal(getattr(of, field), arrays[name], err_msg=name)


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
