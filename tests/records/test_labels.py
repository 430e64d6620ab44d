"""Shards of labels: damage is one clear error, and folders of shards are searched as people mean them."""

import lzma

import numpy as np
import pytest

from engine.records.games import shard_files
from engine.records.labels import CHINESE_FLAGS, NO_MOVE, RECORDED, SELF_PLAYED, read_labels


def label_arrays():
    """Two 9x9 games of four moves with an evaluation each."""
    index = np.full((12, 2), NO_MOVE, np.uint16)
    index[0] = 40, 81
    return {
        "size": np.array([9, 9], np.uint8), "komi": np.array([7.5, 6.5], np.float16),
        "length": np.array([4, 4], np.uint16), "moves": np.array([1, 2, 3, 4, 5, 6, 7, 81], np.uint16),
        "row_game": np.array([0, 1], np.uint32), "row_ply": np.array([4, 0], np.uint16), "policy_index": index,
        "policy_byte": np.where(index == NO_MOVE, 255, 0).astype(np.uint8), "value": np.zeros(2, np.float16),
        "lead": np.zeros(2, np.float16), "ownership": np.zeros(162, np.int8),
    }  # fmt: skip


def write(path, arrays):
    """Pack arrays as a shard; returns the path."""
    with lzma.open(path, "wb") as file:
        np.savez(file, **arrays)
    return path


def test_a_shard_reads(tmp_path):
    """One that lacks what is optional, and one that has it."""
    arrays = label_arrays()
    labels = read_labels(write(tmp_path / "good.npz.xz", arrays))
    assert labels.ply.tolist() == [4, 0] and labels.game.tolist() == [0, 1]
    assert labels.policy[:, 0].tolist() == [1, 1] and labels.policy_index[:, 0].tolist() == [40, 81]
    assert labels.games.moves.tolist() == arrays["moves"].tolist() and labels.games.komi.tolist() == [7.5, 6.5]
    assert labels.own_offsets.tolist() == [0, 81, 162] and (labels.flags == CHINESE_FLAGS).all()
    assert labels.games.number.tolist() == [-1, -1] and labels.source.tolist() == [RECORDED, RECORDED]
    more = {"source": np.array([0, 1], np.uint8), "number": np.array([5, 6]), "rules": np.ones((2, 7), np.uint8)}
    labels = read_labels(write(tmp_path / "whole.npz.xz", arrays | more))
    assert labels.games.number.tolist() == [5, 6] and labels.source.tolist() == [RECORDED, SELF_PLAYED]
    assert labels.flags.tolist() == [7 * [1], 7 * [1]]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("policy_index", np.full((12, 2), 60000, np.uint16), "an impossible move"),
        ("row_ply", np.array([5, 0], np.uint16), "an impossible ply"),
        ("row_game", np.array([0, 2], np.uint32), "damaged shard of labels"),
        ("moves", np.array([1, 2, 3, 4, 5, 6, 7, 82], np.uint16), "an impossible move"),
        ("ownership", np.zeros(161, np.int8), "ownership_black has 161 entries, expected 162"),
        ("value", np.array([0, np.nan], np.float16), "an impossible value"),
        ("lead", np.zeros(3, np.float16), "lead_black has 3 entries, expected 2"),
        ("size", np.array([9, 99], np.uint8), "damaged shard of labels"),
    ],
)
def test_damage_is_one_clear_error(tmp_path, name, value, message):
    arrays = label_arrays() | {name: value}
    if name == "policy_index":
        arrays["policy_byte"] = np.zeros((12, 2), np.uint8)
    with pytest.raises(ValueError, match=message):
        read_labels(write(tmp_path / "bad.npz.xz", arrays))


def test_a_built_folder_means_its_training_shards(tmp_path):
    (tmp_path / "train").mkdir()
    for name in ("manifest.json", "test.npz.xz", "validation.npz.xz", "train/train-1.npz.xz", "train/train-0.npz.xz"):
        (tmp_path / name).write_bytes(b"")
    found = shard_files([tmp_path], tmp_path / "validation.npz.xz")
    assert [path.name for path in found] == ["train-0.npz.xz", "train-1.npz.xz"]


def test_other_folders_mean_all_their_shards_but_the_one_held_out(tmp_path):
    for name in ("b.npz.xz", "a.npz.xz", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in shard_files([tmp_path], tmp_path / "b.npz.xz")] == ["a.npz.xz"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no shard"):
        shard_files([tmp_path / "empty"], None)
