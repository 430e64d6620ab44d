"""Readers for packed game shards and teacher's labels: ``.npz`` inside ``.xz``.

Games shard: arrays ``delta`` uint8[M, 2], ``length`` uint16[G], ``result`` int8[G], ``margin`` float16[G] (NaN =
resigned), ``komi`` float16[G], ``date`` int32[G], ``source`` uint8[G]. A move is stored as row and column minus
those of the move before, modulo 20 and 19, running over the whole shard; a pass is row 19, column 0. Boards are
19x19, Black plays first, colours alternate.

Labels shard: games of any size with ``size``, ``komi``, ``length``, ``moves``, and rows that name a game and a ply
with the teacher's opinion: ``policy_index`` uint16[12, R], ``policy_byte`` uint8[12, R] (p = exp(-byte / 24), 255 =
none), ``value`` and ``lead`` float16[R] for Black, ``ownership`` int8 in tenths, Black positive, rows joined.
"""

import io
import lzma
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Games(NamedTuple):
    """Game records, joined. Moves are policy indices of each game's own board."""

    size: np.ndarray
    """int64[G]"""
    komi: np.ndarray
    """float32[G]; NaN = unknown"""
    offsets: np.ndarray
    """int64[G+1]: game g is moves[offsets[g]:offsets[g+1]]"""
    moves: np.ndarray
    """uint16[M]: row * size + column, size * size = pass"""
    result: np.ndarray
    """int8[G]: 1 Black won, -1 White won, 0 unknown"""
    territory: np.ndarray
    """bool[G]: the game was counted by territory"""


class Labels(NamedTuple):
    """A teacher's opinions of R positions of ``games``."""

    games: Games
    game: np.ndarray
    """int64[R]: index into games"""
    ply: np.ndarray
    """int64[R]: the position after that many moves"""
    policy_index: np.ndarray
    """uint16[R, 12]: most probable moves; 65535 = none"""
    policy: np.ndarray
    """float32[R, 12]: their probabilities"""
    value_black: np.ndarray
    """float32[R]: win minus loss for Black"""
    lead_black: np.ndarray
    """float32[R]: points"""
    ownership_black: np.ndarray
    """int8, joined: tenths"""
    own_offsets: np.ndarray
    """int64[R+1]"""


GAME_ARRAYS = {"delta", "length", "result", "komi", "source"}
LABEL_ARRAYS = {
    "size",
    "komi",
    "length",
    "moves",
    "row_game",
    "row_ply",
    "policy_index",
    "policy_byte",
    "value",
    "lead",
}


def _arrays(path: Path, kind: str, needed: set[str]) -> dict[str, np.ndarray]:
    """All arrays of one shard.

    Raises:
        ValueError: the file is missing, no shard, or one of another kind.
    """
    try:
        with lzma.open(path) as file:
            archive = np.load(io.BytesIO(file.read()), allow_pickle=False)
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, lzma.LZMAError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a readable .npz.xz shard ({error})") from error
    if missing := needed - arrays.keys():
        raise ValueError(f"{path}: not a shard of {kind}, it lacks {', '.join(sorted(missing))}")
    return arrays


def shard_files(paths: Iterable[Path], held_out: Path | None) -> list[Path]:
    """The shard files named or found in folders, each folder's sorted, without the held-out one."""
    found = [file for path in paths for file in (sorted(path.glob("*.npz.xz")) if path.is_dir() else [path])]
    return [file for file in found if held_out is None or file.resolve() != held_out.resolve()]


TERRITORY_SOURCE = 0
"""``source`` of the server that counted territory."""


def read_games(path: Path) -> Games:
    """Read one shard of 19x19 games."""
    data = _arrays(path, "games", GAME_ARRAYS)
    row = np.cumsum(data["delta"][:, 0], dtype=np.int64) % 20
    column = np.cumsum(data["delta"][:, 1], dtype=np.int64) % 19
    count = len(data["length"])
    return Games(
        size=np.full(count, 19, np.int64),
        komi=data["komi"].astype(np.float32),
        offsets=np.concatenate([[0], np.cumsum(data["length"], dtype=np.int64)]),
        moves=np.minimum(row * 19 + column, 361).astype(np.uint16),
        result=data["result"],
        territory=data["source"] == TERRITORY_SOURCE,
    )


def read_labels(path: Path) -> Labels:
    """Read one shard of labels."""
    data = _arrays(path, "labels", LABEL_ARRAYS)
    games = Games(
        size=data["size"].astype(np.int64),
        komi=data["komi"].astype(np.float32),
        offsets=np.concatenate([[0], np.cumsum(data["length"], dtype=np.int64)]),
        moves=data["moves"],
        result=np.zeros(len(data["size"]), np.int8),
        territory=np.zeros(len(data["size"]), bool),
    )
    game = data["row_game"].astype(np.int64)
    byte = data["policy_byte"].T
    return Labels(
        games=games,
        game=game,
        ply=data["row_ply"].astype(np.int64),
        policy_index=np.ascontiguousarray(data["policy_index"].T),
        policy=np.where(byte == 255, 0, np.exp(byte / np.float32(-24))).astype(np.float32),
        value_black=data["value"].astype(np.float32),
        lead_black=data["lead"].astype(np.float32),
        ownership_black=data["ownership"],
        own_offsets=np.concatenate([[0], np.cumsum(games.size[game] ** 2)]),
    )
