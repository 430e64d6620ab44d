"""Packed game shards, read and written: ``.npz`` inside ``.xz``. Labels are in :mod:`engine.records.labels`.

Games shard, version 2 (``keima data build``): G games, M moves, S stones set up before the first moves.

=================  =============  ==============================================================================
``version``        uint8          2
``size``           uint8[G]       points a side
``length``         uint16[G]      moves, passes included
``delta``          uint8[M, 2]    row and column of each move minus those of the move before, modulo 26 and 25,
                                  running over the whole shard (before the first move: 0, 0); a pass is row 25,
                                  column 0
``first``          uint8[G]       colour of the first move: 1 Black, 2 White; then colours alternate
``setup_length``   uint16[G]      stones set up
``setup``          uint16[S]      their codes, 2 * policy index + (1 for White)
``result``         int8[G]        1 Black won, -1 White won, 0 neither or unknown
``ending``         uint8[G]       index into ``ENDINGS``
``margin``         float16[G]     points won by, after komi; NaN = not counted or not known; 0 in a drawn game
``komi``           float16[G]     NaN = unknown
``territory``      bool[G]        counted by territory
``handicap``       uint8[G]       handicap stones
``date``           int32[G]       yyyymmdd; month and day, or all, 0 where unknown
``rank_black``     int8[G]        -30 to -1: 30 to 1 kyu; 1 to 10: dan; 21 to 29: professional dan; 0 = unknown
``rank_white``     int8[G]        the same
``main_time``      int32[G]       seconds; -1 = unknown
=================  =============  ==============================================================================

Version 1 has no ``version``; all games are 19x19 from the empty board, Black first: ``delta`` (modulo 20 and 19, a
pass is row 19), ``length``, ``result``, ``komi``, ``source``, and where known ``margin`` and ``date`` as above.
"""

import io
import lzma
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE

VERSION = 2
MAX_MOVES = 1000
"""Longest game that a shard of version 2 may hold; replay boards have room for it."""
ENDINGS = ("unknown", "counted", "resigned", "time", "forfeit", "void")
UNKNOWN, COUNTED, RESIGNED, TIME, FORFEIT, VOID = range(6)
"""How games end: indices into ``ENDINGS``."""


class _GameArrays(NamedTuple):
    """The arrays of :class:`Games`."""

    size: np.ndarray
    """int64[G]"""
    komi: np.ndarray
    """float32[G]; NaN = unknown"""
    offsets: np.ndarray
    """int64[G+1]: game g is moves[offsets[g]:offsets[g+1]]"""
    moves: np.ndarray
    """uint16[M]: row * size + column, size * size = pass"""
    result: np.ndarray
    """int8[G]: 1 Black won, -1 White won, 0 unknown (or drawn: then ``margin`` is 0)"""
    territory: np.ndarray
    """bool[G]: the game was counted by territory"""
    margin: np.ndarray
    """float32[G]: points won by, after komi, never negative; NaN = resigned, not counted or not known"""
    ending: np.ndarray
    """uint8[G]: index into ``ENDINGS``"""
    first: np.ndarray
    """uint8[G]: colour of the first move, BLACK or WHITE; then colours alternate"""
    setup_offsets: np.ndarray
    """int64[G+1]: stones on the board before the first move of game g are setup[setup_offsets[g]:setup_offsets[g+1]]"""
    setup: np.ndarray
    """uint16[S]: 2 * policy index + (1 for White)"""
    handicap: np.ndarray
    """uint8[G]: handicap stones; 0 = even"""
    date: np.ndarray
    """int32[G]: yyyymmdd; month and day, or all, 0 where unknown"""
    rank_black: np.ndarray
    """int8[G]: -30 to -1: 30 to 1 kyu; 1 to 10: dan; 21 to 29: professional dan; 0 = unknown"""
    rank_white: np.ndarray
    """int8[G]: the same"""
    main_time: np.ndarray
    """int32[G]: seconds; -1 = unknown"""


class Games(_GameArrays):
    """Game records, joined. Moves are policy indices of each game's own board.

    Arrays from ``margin`` on may be left out when one is made: then nothing is known, and all games begin on the empty
    board with Black. Where that is not so, ``starts_even`` is False and a replay must begin with
    :func:`engine.records.replay.set_up`.
    """

    __slots__ = ()

    def __new__(cls, *arrays: np.ndarray, **named: np.ndarray) -> "Games":
        given = dict(zip(cls._fields, arrays, strict=False)) | named
        return super().__new__(cls, **(_nothing_known(len(given["size"])) | given))

    def starts_even(self) -> np.ndarray:
        """bool[G]: whether the game begins on the empty board with Black, as most consumers replay it."""
        return (np.diff(self.setup_offsets) == 0) & (self.first == BLACK)


def _nothing_known(count: int) -> dict[str, np.ndarray]:
    """The arrays from ``margin`` on for games of which only moves, komi and result are known."""
    return {
        "margin": np.full(count, np.nan, np.float32),
        "ending": np.zeros(count, np.uint8),
        "first": np.full(count, BLACK, np.uint8),
        "setup_offsets": np.zeros(count + 1, np.int64),
        "setup": np.zeros(0, np.uint16),
        "handicap": np.zeros(count, np.uint8),
        "date": np.zeros(count, np.int32),
        "rank_black": np.zeros(count, np.int8),
        "rank_white": np.zeros(count, np.int8),
        "main_time": np.full(count, -1, np.int32),
    }


JOINED = ("moves", "setup")
OFFSETS = ("offsets", "setup_offsets")


def join(parts: Sequence[Games]) -> Games:
    """Games of several records, one after the other; at least one part."""
    lengths = {name: [np.diff(getattr(part, name)) for part in parts] for name in OFFSETS}
    return Games(**{
        name: offsets_of(np.concatenate(lengths[name])) if name in OFFSETS else
        np.concatenate([getattr(part, name) for part in parts])
        for name in Games._fields
    })  # fmt: skip


def select(games: Games, rows: np.ndarray) -> Games:
    """Some games of a record, in the order of ``rows`` (int64, or a bool mask)."""
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    arrays: dict[str, np.ndarray] = {}
    for name, offsets in zip(JOINED, (games.offsets, games.setup_offsets), strict=True):
        lengths = offsets[rows + 1] - offsets[rows]
        starts = offsets_of(lengths)
        arrays[name] = getattr(games, name)[np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], lengths)]
        arrays["offsets" if name == "moves" else "setup_offsets"] = starts
    return Games(**{name: getattr(games, name)[rows] for name in Games._fields if name not in arrays}, **arrays)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where each of some joined pieces begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


FIRST_ARRAYS = {"delta", "length", "result", "komi", "source"}
SECOND_ARRAYS = set(Games._fields) - {*JOINED, *OFFSETS} | {"length", "delta", "setup_length", "setup"}


def read_arrays(path: Path, kind: str, needed: set[str]) -> dict[str, np.ndarray]:
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
    """The shard files named or found in folders, each folder's sorted, without the held-out one.

    Of a folder that ``keima data build`` made only the training shards count.

    Raises:
        ValueError: a folder holds no shard.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted((path / "train" if (path / "manifest.json").exists() else path).glob("*.npz.xz"))
        if not inside:
            raise ValueError(f"{path}: no shard (.npz.xz) lies in this folder")
        found += inside
    return [file for file in found if held_out is None or file.resolve() != held_out.resolve()]


TERRITORY_SOURCE = 0
"""``source`` of the server that counted territory, in version 1"""
ROWS, COLUMNS = MAX_SIZE + 1, MAX_SIZE
"""Moduli of the steps in version 2"""


def read_games(path: Path) -> Games:
    """Read one shard of games, of either version.

    Raises:
        ValueError: not a shard of games, of a later version, or one whose numbers contradict each other.
    """
    data = read_arrays(path, "games", {"length"})
    version = int(data["version"]) if "version" in data and data["version"].ndim == 0 else 1
    if version not in (1, VERSION):
        raise ValueError(f"{path}: a shard of version {version}, this program reads versions 1 and {VERSION}")
    if missing := (FIRST_ARRAYS if version == 1 else SECOND_ARRAYS) - data.keys():
        raise ValueError(f"{path}: not a shard of games, it lacks {', '.join(sorted(missing))}")
    try:
        games = (_first_version if version == 1 else _second_version)(data)
        check_games(games)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: a damaged shard of games ({error})") from error
    return games


def _first_version(data: dict[str, np.ndarray]) -> Games:
    """Games of a shard of version 1."""
    row, column = _places(data["delta"], 20, 19)
    count = len(data["length"])
    known = {"date": data["date"]} if "date" in data else {}
    if "margin" in data:
        known["margin"] = data["margin"].astype(np.float32)
        known["ending"] = np.where(np.isnan(known["margin"]), RESIGNED, COUNTED).astype(np.uint8)
    return Games(
        size=np.full(count, 19, np.int64),
        komi=data["komi"].astype(np.float32),
        offsets=offsets_of(data["length"]),
        moves=np.minimum(row * 19 + column, 361).astype(np.uint16),
        result=data["result"],
        territory=data["source"] == TERRITORY_SOURCE,
        **known,
    )


def _second_version(data: dict[str, np.ndarray]) -> Games:
    """Games of a shard of version 2."""
    row, column = _places(data["delta"], ROWS, COLUMNS)
    size = data["size"].astype(np.int64)
    side = np.repeat(size, data["length"])
    is_pass = row == MAX_SIZE
    if not (is_pass | ((row < side) & (column < side))).all():
        raise ValueError("a move is off the board")
    same = {name: data[name] for name in SECOND_ARRAYS - {"length", "delta", "setup_length"}}
    return Games(**same | {
        "size": size,
        "komi": data["komi"].astype(np.float32),
        "margin": data["margin"].astype(np.float32),
        "offsets": offsets_of(data["length"]),
        "moves": np.where(is_pass, side * side, row * side + column).astype(np.uint16),
        "setup_offsets": offsets_of(data["setup_length"]),
    })  # fmt: skip


def _places(steps: np.ndarray, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of every move, from the steps between them."""
    return np.cumsum(steps[:, 0], dtype=np.int64) % rows, np.cumsum(steps[:, 1], dtype=np.int64) % columns


def check_games(games: Games) -> None:
    """Refuse games whose arrays do not belong together, or hold what nothing downstream expects.

    Raises:
        ValueError: what is wrong.
    """
    count = len(games.size)
    for name in Games._fields:
        array, expected = getattr(games, name), count + (name in OFFSETS)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} holds no numbers")
        if name not in JOINED and array.shape != (expected,):
            raise ValueError(f"{name} has shape {array.shape}, expected ({expected},)")
    if len(games.moves) != games.offsets[-1] or len(games.setup) != games.setup_offsets[-1]:
        raise ValueError("there are not as many moves or stones as the games have")
    points = games.size**2
    for is_right, what in (
        (((games.size >= MIN_SIZE) & (games.size <= MAX_SIZE)), "board size"),
        (np.isin(games.result, (-1, 0, 1)), "result"),
        (games.ending < len(ENDINGS), "ending"),
        (np.isin(games.first, (BLACK, WHITE)), "colour to begin"),
        (games.moves <= np.repeat(points, np.diff(games.offsets)), "move"),
        (games.setup < 2 * np.repeat(points, np.diff(games.setup_offsets)), "stone set up"),
    ):
        if not is_right.all():
            raise ValueError(f"an impossible {what}")


def write_games(path: Path, games: Games) -> None:
    """Write one shard of version 2; the same games always make the same bytes.

    The file appears under its name only when it is whole.

    Raises:
        ValueError: a game is longer than ``MAX_MOVES``.
    """
    length = np.diff(games.offsets)
    if length.max(initial=0) > MAX_MOVES:
        raise ValueError(f"a game of {length.max()} moves, at most {MAX_MOVES} are kept")
    side = np.repeat(games.size, length)
    is_pass = games.moves == side * side
    row, column = np.where(is_pass, MAX_SIZE, games.moves // side), np.where(is_pass, 0, games.moves % side)
    steps = np.stack([np.diff(row, prepend=0) % ROWS, np.diff(column, prepend=0) % COLUMNS], axis=1)
    arrays: dict[str, Any] = {name: getattr(games, name) for name in Games._fields if name not in (*JOINED, *OFFSETS)}
    arrays |= {
        "version": np.uint8(VERSION),
        "size": games.size.astype(np.uint8),
        "komi": games.komi.astype(np.float16),
        "margin": games.margin.astype(np.float16),
        "length": length.astype(np.uint16),
        "delta": steps.astype(np.uint8),
        "setup_length": np.diff(games.setup_offsets).astype(np.uint16),
        "setup": games.setup,
    }
    write_arrays(path, arrays)


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write the arrays of one shard; the file appears under its name only when it is whole."""
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(lzma.compress(packed.getvalue(), preset=6))
    partial.replace(path)
