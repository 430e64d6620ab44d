"""Finished games on disk from the moment they end, until they fill a shard.

With each game goes its ``resigner``, uint8: the colour that first had reason to resign, 0 = neither.

The file is a sequence of blocks: K games' rows (:data:`ROW`), then their moves, uint16 policy indices, all of it behind
a header with the block's length and checksum. A process that is killed leaves at most part of a block at the end, which
is cut off when the file is opened again.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.records.games import Games, join, offsets_of, select

HEADER = np.dtype([("games", "<u4"), ("bytes", "<u4"), ("checksum", "<u4")])
ROW = np.dtype([
    ("number", "<i8"), ("length", "<u2"), ("result", "i1"), ("ending", "u1"), ("margin", "<f4"), ("komi", "<f4"),
    ("territory", "?"), ("position", "<i2"), ("resigner", "u1"),
])  # fmt: skip


def numbers_in(path: Path) -> np.ndarray:
    """int64: the games in the whole blocks of a journal, which another process may be writing."""
    found = [np.frombuffer(body, ROW, count)["number"] for count, body in blocks_of(path.read_bytes())]
    return np.concatenate([np.zeros(0, np.int64), *found])


def blocks_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number of games and body of each block before the first that is damaged."""
    at = 0
    while at + HEADER.itemsize <= len(content):
        header = np.frombuffer(content, HEADER, 1, at)[0]
        at += HEADER.itemsize
        body = content[at : at + int(header["bytes"])]
        # Zeros, which some file systems leave at the end when power fails, are the header of nothing.
        if not header["bytes"] or len(body) < header["bytes"] or zlib.crc32(body) != header["checksum"]:
            break
        yield int(header["games"]), body
        at += len(body)


class BlockFile:
    """A file of blocks that only grows, or is emptied. Threads: one at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin one; what is damaged at its end goes."""
        self.blocks = list(blocks_of(path.read_bytes())) if path.exists() else []
        """number of games and body of each block that was there"""
        self._file = path.open("ab")
        self._file.truncate(sum(HEADER.itemsize + len(body) for _, body in self.blocks))

    def append(self, games: int, body: bytes) -> None:
        """Add a block.

        Raises:
            OSError: the disk is full.
        """
        header = np.array([(games, len(body), zlib.crc32(body))], HEADER)
        self._file.write(header.tobytes() + body)
        self._file.flush()

    def clear(self) -> None:
        """Leave nothing in the file."""
        self._file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def packed_games(games: Games, resigner: np.ndarray) -> bytes:
    """The body of a block.

    Args:
        resigner: uint8[G].
    """
    rows = np.zeros(len(games.size), ROW)
    rows["length"], rows["resigner"] = np.diff(games.offsets), resigner
    for name in ROW.names or ():
        if name in Games._fields:
            rows[name] = getattr(games, name)
    return rows.tobytes() + games.moves.astype("<u2").tobytes()


def unpacked_games(body: bytes, count: int, size: int) -> tuple[Games, np.ndarray]:
    """The games of a block, and their resigners (uint8[G]).

    Args:
        count: G, games of the block.
        size: of their boards.
    """
    rows = np.frombuffer(body, ROW, count)
    named = {name: rows[name].copy() for name in ROW.names or () if name not in ("length", "resigner")}
    games = Games(
        size=np.full(count, size, np.int64),
        offsets=offsets_of(rows["length"]),
        moves=np.frombuffer(body, "<u2", offset=count * ROW.itemsize).astype(np.uint16),
        **named,
    )
    return games, rows["resigner"].copy()


class GameJournal:
    """The games of one board size that are in no shard yet. Threads: one at a time."""

    def __init__(self, path: Path, size: int) -> None:
        """Open the file, or begin one; what is damaged at its end goes."""
        self._file = BlockFile(path)
        self._parts = [unpacked_games(body, count, size) for count, body in self._file.blocks]

    @property
    def count(self) -> int:
        """Games held."""
        return sum(len(games.size) for games, _ in self._parts)

    def held(self) -> tuple[Games, np.ndarray] | None:
        """All games held, by number, and their resigners; None if there are none."""
        if not self._parts:
            return None
        games, resigner = zip(*self._parts, strict=True)
        self._parts = [(join(games), np.concatenate(resigner))]
        order = np.argsort(self._parts[0][0].number, kind="stable")
        return select(self._parts[0][0], order), self._parts[0][1][order]

    def append(self, games: Games, resigner: np.ndarray) -> None:
        """Keep more games.

        Raises:
            OSError: the disk is full.
        """
        self._file.append(len(games.size), packed_games(games, resigner))
        self._parts.append((games, resigner.astype(np.uint8)))

    def clear(self) -> None:
        """Forget all games: they are in a shard."""
        self._parts = []
        self._file.clear()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
