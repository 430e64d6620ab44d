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
``number``         int64[G]       which game of its run of self-play; left out where there was none
``position``       int16[G]       moves before the only position that may be learnt from; left out where any may
=================  =============  ==============================================================================

Version 1 has no ``version``; all games are 19x19 from the empty board, Black first: ``delta`` (modulo 20 and 19, a
pass is row 19), ``length``, ``result``, ``komi``, ``source``, and where known ``margin`` and ``date`` as above.
"""

import io
import lzma
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE
from engine.go.rules import MAX_KOMI
from engine.system.files import Known, read_packed_arrays, written_whole

VERSION = 2
MAX_MOVES = 1000
"""Longest game that a shard of version 2 may hold; replay boards have room for it."""
ENDINGS = ("unknown", "counted", "resigned", "time", "forfeit", "void", "limit")
UNKNOWN, COUNTED, RESIGNED, TIME, FORFEIT, VOID, LIMIT = range(7)
"""How games end: indices into ``ENDINGS``. "limit": broken off after a number of moves, counted as the board stood"""


UNKNOWN_VALUES: dict[str, np.generic] = {
    "komi": np.float32(np.nan), "result": np.int8(0), "territory": np.False_, "margin": np.float32(np.nan),
    "ending": np.uint8(UNKNOWN), "first": np.uint8(BLACK), "handicap": np.uint8(0), "date": np.int32(0),
    "rank_black": np.int8(0), "rank_white": np.int8(0), "main_time": np.int32(-1),
    "number": np.int64(-1), "position": np.int16(-1),
}  # fmt: skip
"""What arrays with one entry a game hold, in their dtype, where nothing is known of it"""


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
    number: np.ndarray
    """int64[G]: which game of its run of self-play; -1 = none"""
    position: np.ndarray
    """int16[G]: moves before the only position that may be learnt from; -1 = any may"""


class Games(_GameArrays):
    """G game records, joined: M moves, S stones set up. Moves are policy indices of each game's own board.

    Only ``size``, ``offsets`` and ``moves`` are needed to make one: of the rest nothing is known then, and all games
    begin on the empty board with Black. Where they do not, ``starts_even`` is False and a replay must begin with
    :func:`engine.records.replay.set_up`.
    """

    __slots__ = ()

    def __new__(cls, *arrays: np.ndarray, **named: np.ndarray) -> "Games":
        given = dict(zip(cls._fields, arrays, strict=False)) | named
        count = len(given["size"])
        arrays_: dict[str, np.ndarray] = {name: np.full(count, value) for name, value in UNKNOWN_VALUES.items()}
        arrays_ |= {"setup_offsets": np.zeros(count + 1, np.int64), "setup": np.zeros(0, np.uint16)}
        return super().__new__(cls, **(arrays_ | given))

    def starts_even(self) -> np.ndarray:
        """bool[G]: whether the game begins on the empty board with Black, as most consumers replay it."""
        return (np.diff(self.setup_offsets) == 0) & (self.first == BLACK)

    def are_reached(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """bool[G], or of some rows: whether a game only leads to a position that a search reached.

        Its last move, a pass, stands for one that is not known, and it has no result.
        """
        return (self.position[rows] >= 0) & (self.result[rows] == 0) & np.isnan(self.margin[rows])


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


def policy_indices(points: np.ndarray | Sequence[int], size: int) -> np.ndarray:
    """int64[P]: policy indices of points on one board; ``size * size`` for a pass."""
    row, column = np.divmod(np.asarray(points, np.int64), size + 1)
    return np.where(row == 0, size * size, (row - 1) * size + column - 1)


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """int64[P+1]: where each of P joined pieces begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


OF_SELF_PLAY = ("number", "position")
"""Arrays that a shard leaves out where all games have -1"""
GAME_ARRAYS: Known = {
    "version": ("u1", ()), "source": ("u1", (None,)), "delta": ("u1", (None, 2)), "length": ("u2", (None,)),
    "setup_length": ("u2", (None,)), "setup": ("u2", (None,)), "size": ("u1", (None,)), "first": ("u1", (None,)),
    "result": ("i1", (None,)), "ending": ("u1", (None,)), "margin": ("f2", (None,)), "komi": ("f2", (None,)),
    "territory": ("?", (None,)), "handicap": ("u1", (None,)), "date": ("i4", (None,)), "rank_black": ("i1", (None,)),
    "rank_white": ("i1", (None,)), "main_time": ("i4", (None,)), "number": ("i8", (None,)),
    "position": ("i2", (None,)),
}  # fmt: skip
"""What a shard of either version holds"""
FIRST_ARRAYS = {"delta", "length", "result", "komi", "source"}
SECOND_ARRAYS = GAME_ARRAYS.keys() - {"version", "source", *OF_SELF_PLAY}


def read_arrays(path: Path, kind: str, known: Known, needed: Set[str]) -> dict[str, np.ndarray]:
    """The known arrays of one shard; others are passed over.

    Raises:
        ValueError: the file is missing, no shard, one of another kind, or larger than shards are.
    """
    try:
        arrays = read_packed_arrays(path, known)
    except ValueError as error:
        raise ValueError(f"{path}: not a readable .npz.xz shard of {kind} ({error})") from error
    if missing := needed - arrays.keys():
        raise ValueError(f"{path}: not a shard of {kind}, it lacks {', '.join(sorted(missing))}")
    return arrays


def shard_files(paths: Iterable[Path], held_out: Path | None) -> list[Path]:
    """The shard files named or found in folders, each folder's sorted, without the held-out one.

    Of a folder that ``keima data build`` made only the training shards count.

    Raises:
        ValueError: a folder holds no shard, or all that there is is held out.
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
    kept = [file for file in found if held_out is None or file.resolve() != held_out.resolve()]
    if found and not kept:
        raise ValueError(f"{held_out}: is to be measured on and cannot be learnt from, and there is nothing else")
    return kept


TERRITORY_SOURCE = 0
"""``source`` of the server that counted territory, in version 1"""
ROWS, COLUMNS = MAX_SIZE + 1, MAX_SIZE
"""Moduli of the steps in version 2"""


def read_games(path: Path) -> Games:
    """Read one shard of games, of either version.

    Raises:
        ValueError: not a shard of games, of a later version, or one whose numbers contradict each other.
    """
    data = read_arrays(path, "games", GAME_ARRAYS, {"length"})
    version = int(data["version"]) if "version" in data else 1
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
    known = {name: data[name].astype(UNKNOWN_VALUES[name].dtype) for name in UNKNOWN_VALUES if name in data}
    if "margin" in data:
        known["ending"] = np.where(np.isnan(known["margin"]), RESIGNED, COUNTED).astype(np.uint8)
    return Games(
        size=np.full(count, 19, np.int64),
        offsets=offsets_of(data["length"]),
        moves=np.minimum(row * 19 + column, 361).astype(np.uint16),
        territory=data["source"] == TERRITORY_SOURCE,
        **known,
    )


def _second_version(data: dict[str, np.ndarray]) -> Games:
    """Games of a shard of version 2."""
    if data["length"].sum(dtype=np.int64) != len(data["delta"]):
        raise ValueError("the number of moves is not that of the games")
    row, column = _places(data["delta"], ROWS, COLUMNS)
    size = data["size"].astype(np.int64)
    side = np.repeat(size, data["length"])
    is_pass = row == MAX_SIZE
    if not (is_pass | ((row < side) & (column < side))).all():
        raise ValueError("a move is off the board")
    return Games(
        size=size,
        offsets=offsets_of(data["length"]),
        moves=np.where(is_pass, side * side, row * side + column).astype(np.uint16),
        setup_offsets=offsets_of(data["setup_length"]),
        setup=data["setup"],
        **{name: data[name].astype(value.dtype) for name, value in UNKNOWN_VALUES.items() if name in data},
    )


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
        if name not in JOINED and array.shape != (expected,):
            raise ValueError(f"{name} has shape {array.shape}, expected ({expected},)")
    if len(games.moves) != games.offsets[-1] or len(games.setup) != games.setup_offsets[-1]:
        raise ValueError("the number of moves or stones is not that of the games")
    points = games.size**2
    refuse_impossible({
        "board size": (games.size >= MIN_SIZE) & (games.size <= MAX_SIZE),
        "result": np.isin(games.result, (-1, 0, 1)),
        "ending": games.ending < len(ENDINGS),
        "colour to begin": np.isin(games.first, (BLACK, WHITE)),
        "move": games.moves <= np.repeat(points, np.diff(games.offsets)),
        "position": games.position < np.maximum(1, np.diff(games.offsets)),
        "komi": ~(np.abs(games.komi) > MAX_KOMI),  # NaN is unknown
        "margin": ~np.isinf(games.margin),
        "stone set up": games.setup < 2 * np.repeat(points, np.diff(games.setup_offsets)),
    })  # fmt: skip


def refuse_impossible(checks: dict[str, np.ndarray]) -> None:
    """Refuse arrays in which some value is not what it should be.

    Args:
        checks: bool arrays by what they check; each must be true everywhere.
    Raises:
        ValueError: what is impossible.
    """
    for what, is_right in checks.items():
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
    more = {
        "version": np.array(VERSION),
        "length": length,
        "delta": steps,
        "setup_length": np.diff(games.setup_offsets),
    }
    whole = (name for name in Games._fields if name not in ("moves", *OFFSETS))
    arrays = {name: getattr(games, name) for name in whole} | more
    write_arrays(path, {name: array.astype(GAME_ARRAYS[name][0]) for name, array in arrays.items()})


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the arrays of one shard, whole or not at all."""
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    with written_whole(path) as partial:
        partial.write_bytes(lzma.compress(packed.getvalue(), preset=6))
