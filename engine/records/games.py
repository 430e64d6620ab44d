"""Packed shards of games, read and written: ``.npz`` inside ``.xz``. For labels see :mod:`engine.records.labels`.

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
``setup``          uint16[S]      codes of these stones, 2 * policy index + (1 for White)
``result``         int8[G]        1 Black won, -1 White won, 0 neither or unknown
``ending``         uint8[G]       index into ``ENDINGS``
``margin``         float16[G]     winning margin in points, after komi; NaN = not counted or unknown; 0 = drawn
``komi``           float16[G]     NaN = unknown
``territory``      bool[G]        counted by territory
``handicap``       uint8[G]       handicap stones
``date``           int32[G]       yyyymmdd; month and day, or all, 0 where unknown
``rank_black``     int8[G]        -30 to -1: 30 to 1 kyu; 1 to 10: dan; 21 to 29: professional dan; 0 = unknown
``rank_white``     int8[G]        as ``rank_black``
``main_time``      int32[G]       seconds; -1 = unknown
``number``         int64[G]       number of the game in its self-play run; optional
``position``       int16[G]       the only position to train on, by the number of moves before it; optional,
                                  -1 = all positions
=================  =============  ==============================================================================

Version 1 has no ``version``; all games are 19x19 from the empty board, Black first: ``delta`` (modulo 20 and 19, a
pass is row 19), ``length``, ``result``, ``komi``, ``source``, and where known ``margin`` and ``date`` as above.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE
from engine.go.rules import MAX_KOMI
from engine.records.schema import (
    MOVE,
    STONE,
    Arrays,
    Column,
    Schema,
    columns_of,
    offsets_of,
    read_shard,
    refuse_impossible,
)

VERSION = 2
MAX_MOVES = 1000
"""Maximum number of moves of a game in a shard of version 2, and room of replay boards"""
ENDINGS = ("unknown", "counted", "resigned", "time", "forfeit", "void", "limit")
UNKNOWN, COUNTED, RESIGNED, TIME, FORFEIT, VOID, LIMIT = range(7)
"""Indices into ``ENDINGS``, how a game ended; LIMIT: stopped by the move limit, and the board counted as it was"""


class _GameArrays(NamedTuple):
    """The arrays of :class:`Games` and their columns in shards of version 2."""

    size: Annotated[np.ndarray, Column("u1", memory="i8")]
    """int64[G]: points a side"""
    komi: Annotated[np.ndarray, Column("f2", memory="f4", unknown=np.nan)]
    """float32[G]: White's points; NaN = unknown"""
    offsets: Annotated[np.ndarray, Column("u2", name="length", memory="i8")]
    """int64[G+1]: game g is moves[offsets[g]:offsets[g+1]]"""
    moves: Annotated[np.ndarray, Column("u1", MOVE, (2,), name="delta", memory="u2")]
    """uint16[M]: policy indices, row * size + column; size * size = pass"""
    result: Annotated[np.ndarray, Column("i1", unknown=0)]
    """int8[G]: 1 Black won, -1 White won, 0 unknown (or drawn: then ``margin`` is 0)"""
    territory: Annotated[np.ndarray, Column("?", unknown=False)]
    """bool[G]: whether the game was counted by territory; False = by area, or unknown"""
    margin: Annotated[np.ndarray, Column("f2", memory="f4", unknown=np.nan)]
    """float32[G]: winning margin in points, after komi, never negative; NaN = resigned, not counted or unknown"""
    ending: Annotated[np.ndarray, Column("u1", unknown=UNKNOWN)]
    """uint8[G]: how the game ended, index into ``ENDINGS``"""
    first: Annotated[np.ndarray, Column("u1", unknown=BLACK)]
    """uint8[G]: colour of the first move, BLACK or WHITE; then colours alternate"""
    setup_offsets: Annotated[np.ndarray, Column("u2", name="setup_length", memory="i8")]
    """int64[G+1]: the setup stones of game g are setup[setup_offsets[g]:setup_offsets[g+1]]"""
    setup: Annotated[np.ndarray, Column("u2", STONE)]
    """uint16[S]: a code for each setup stone, 2 * policy index + (1 for White)"""
    handicap: Annotated[np.ndarray, Column("u1", unknown=0)]
    """uint8[G]: handicap stones; 0 = even"""
    date: Annotated[np.ndarray, Column("i4", unknown=0)]
    """int32[G]: yyyymmdd; month and day, or all, 0 where unknown"""
    rank_black: Annotated[np.ndarray, Column("i1", unknown=0)]
    """int8[G]: -30 to -1: 30 to 1 kyu; 1 to 10: dan; 21 to 29: professional dan; 0 = unknown"""
    rank_white: Annotated[np.ndarray, Column("i1", unknown=0)]
    """int8[G]: as ``rank_black``"""
    main_time: Annotated[np.ndarray, Column("i4", unknown=-1)]
    """int32[G]: each player's main time in seconds; -1 = unknown"""
    number: Annotated[np.ndarray, Column("i8", unknown=-1, is_optional=True)]
    """int64[G]: number of the game in its self-play run; -1 = none"""
    position: Annotated[np.ndarray, Column("i2", unknown=-1, is_optional=True)]
    """int16[G]: the only position to train on, by the number of moves before it; -1 = all positions of the game"""
    resigner: Annotated[np.ndarray, Column("u1", unknown=0, is_stored=False)]
    """uint8[G]: the colour whose values fell below the resignation threshold first; 0 = neither or unknown; not in
    shards"""


UNKNOWN_VALUES: dict[str, np.generic] = {
    field: np.dtype(column.memory).type(column.unknown)
    for field, column in columns_of(_GameArrays).items() if column.unknown is not None
}  # fmt: skip
"""By name of an array with one entry a game, the value that means "unknown", in the array's dtype"""


class Games(_GameArrays):
    """G game records, concatenated: M moves, S setup stones. Moves are policy indices on the board of their game.

    The constructor needs only ``size``, ``offsets`` and ``moves``; by default everything else is unknown, and all games
    begin on the empty board with Black. Where ``starts_even`` is False, a replay must begin with
    :func:`engine.records.replay.set_up`.
    """

    __slots__ = ()

    def __new__(cls, *arrays: np.ndarray, **named: np.ndarray) -> "Games":
        given = dict(zip(cls._fields, arrays, strict=False)) | named
        count = len(given["size"])
        given |= {name: np.full(count, value) for name, value in UNKNOWN_VALUES.items() if name not in given}
        no_setup: Arrays = {"setup_offsets": np.zeros(count + 1, np.int64), "setup": np.zeros(0, np.uint16)}
        return super().__new__(cls, **(no_setup | given))

    def starts_even(self) -> np.ndarray:
        """bool[G]: whether the game begins on the empty board with Black to move."""
        return (np.diff(self.setup_offsets) == 0) & (self.first == BLACK)

    def are_reached(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """bool[G], or bool[B] for some rows: whether a game only leads to a position that a search reached.

        Such a game has no result, and ends with a pass in place of the unknown move at that position.
        """
        return (self.position[rows] >= 0) & (self.result[rows] == 0) & np.isnan(self.margin[rows])


def select(games: Games, rows: np.ndarray) -> Games:
    """The games with indices ``rows`` (int64[K], or a mask bool[G]), in the order of ``rows``."""
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    arrays: Arrays = {}
    for name, joined in (("offsets", "moves"), ("setup_offsets", "setup")):
        offsets = getattr(games, name)
        lengths = offsets[rows + 1] - offsets[rows]
        starts = arrays[name] = offsets_of(lengths)
        arrays[joined] = getattr(games, joined)[np.arange(starts[-1]) + np.repeat(offsets[rows] - starts[:-1], lengths)]
    return Games(**{name: getattr(games, name)[rows] for name in Games._fields if name not in arrays}, **arrays)


def mover_ranks(games: Games, rows: np.ndarray, plies: np.ndarray) -> np.ndarray:
    """int64[P]: the rank of the side to move in positions of games, as in ``Games.rank_black``; 0 = unknown.

    Args:
        rows, plies: int64[P]: each position's game, and the number of moves before it.
    """
    is_black = (plies % 2 == 0) == (games.first[rows] == BLACK)
    return np.where(is_black, games.rank_black[rows], games.rank_white[rows]).astype(np.int64)


def policy_indices(points: np.ndarray | Sequence[int], size: int) -> np.ndarray:
    """int64[P]: policy indices of padded points on a board of ``size``; ``size * size`` for PASS."""
    row, column = np.divmod(np.asarray(points, np.int64), size + 1)
    return np.where(row == 0, size * size, (row - 1) * size + column - 1)


def shard_files(paths: Iterable[Path], held_out: Path | None) -> list[Path]:
    """Paths of the shards among files and in folders, sorted within each folder, without the held-out file.

    Of a folder made by ``keima data build`` only the training shards are taken.

    Raises:
        ValueError: a folder has no shard, or no shard but the held-out file was given.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted((path / "train" if (path / "manifest.json").exists() else path).glob("*.npz.xz"))
        if not inside:
            raise ValueError(f"{path}: no shard (.npz.xz) in this folder")
        found += inside
    kept = [file for file in found if held_out is None or file.resolve() != held_out.resolve()]
    if found and not kept:
        raise ValueError(f"{held_out}: held out for validation, and there are no other shards to train on")
    return kept


def check_games(games: Games) -> None:
    """Check games for impossible values.

    Raises:
        ValueError: a value is impossible; the message names its kind.
    """
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


def _moves_of(arrays: Arrays) -> Arrays:
    """Decode the moves of a shard, as ``delta``, from the differences of their rows and columns."""
    # A damaged shard may claim more moves than fit into memory.
    if arrays["length"].sum(dtype=np.int64) != len(arrays["delta"]):
        raise ValueError("the lengths of the games do not add up to the number of moves")
    moduli = STEP_MODULI if "version" in arrays else FIRST_MODULI
    row, column = np.cumsum(arrays["delta"], axis=0, dtype=np.int64).T % np.array(moduli)[:, None]
    side, is_pass = np.repeat(arrays["size"].astype(np.int64), arrays["length"]), row == moduli[0] - 1
    if not (is_pass | ((row < side) & (column < side))).all():
        raise ValueError("a move is off the board")
    return {"delta": np.where(is_pass, side * side, row * side + column)}


def _steps_of(fields: Arrays) -> Arrays:
    """Encode moves as differences of rows and columns, for a shard of version 2."""
    moves, side = fields["moves"], np.repeat(fields["size"], np.diff(fields["offsets"]))
    is_pass = moves == side * side
    row, column = np.where(is_pass, MAX_SIZE, moves // side), np.where(is_pass, 0, moves % side)
    return {"moves": np.diff(np.stack([row, column], axis=1), axis=0, prepend=0) % STEP_MODULI}


STEP_MODULI, FIRST_MODULI = (MAX_SIZE + 1, MAX_SIZE), (20, 19)
"""Moduli of (row, column) differences in shards of version 2 and of version 1; a pass has the row modulus - 1"""
FIRST_NAMES = {"delta", "length", "result", "komi", "source"}
"""Arrays that a shard of version 1 must have"""
TERRITORY_SOURCE = 0
"""Value of ``source``, in shards of version 1, for games of the server that scores by territory"""
GAMES = Schema("games", Games, check_games, decode=_moves_of, encode=_steps_of)


def read_games(path: Path) -> Games:
    """Read one shard of games, of either version.

    Raises:
        ValueError: the file is not a shard of games, has another version, or is inconsistent.
    """
    arrays = read_shard(path, "games", {**GAMES.known, "version": ("u1", ()), "source": ("u1", (None,))})
    version = int(arrays.get("version", 1))
    if version not in (1, VERSION):
        raise ValueError(f"{path}: a shard of version {version}, this program reads versions 1 and {VERSION}")
    if version == 1 and arrays.keys() >= FIRST_NAMES:
        arrays = _defaults_of_first(arrays) | arrays
    return GAMES.decoded(path, arrays)


def _defaults_of_first(arrays: Arrays) -> Arrays:
    """The arrays that a shard of version 1 lacks: constants, or derived from the arrays that it has."""
    count, margin = len(arrays["length"]), arrays.get("margin")
    more: Arrays = {name: np.full(count, value) for name, value in UNKNOWN_VALUES.items()}
    more |= {"size": np.full(count, 19), "territory": arrays["source"] == TERRITORY_SOURCE}
    if margin is not None:
        more["ending"] = np.where(np.isnan(margin), RESIGNED, COUNTED)
    return more | {"setup_length": np.zeros(count, np.int64), "setup": np.zeros(0, np.uint16)}


def write_games(path: Path, games: Games) -> None:
    """Write one shard of version 2 atomically; the same games always give the same bytes.

    Raises:
        ValueError: a game is longer than ``MAX_MOVES``.
    """
    longest = np.diff(games.offsets).max(initial=0)
    if longest > MAX_MOVES:
        raise ValueError(f"a game has {longest} moves, expected at most {MAX_MOVES}")
    GAMES.write(path, games, version=np.uint8(VERSION))
