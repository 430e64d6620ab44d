"""Schemas of game records, by which their shards are read, checked, joined and written.

A record is a NamedTuple of arrays, each annotated with its :class:`Column`: :class:`engine.records.games.Games`, or a
class with ``games`` and arrays of its own. A shard is an ``.npz`` inside ``.xz`` with an array for each column, in
smaller dtypes; it stores lengths where a record has the offsets of joined arrays. Start at :class:`Schema`.
"""

import io
import json
import lzma
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np

from engine.system.files import Known, read_packed_arrays, written_whole

GAME, MOVE, STONE, ROW, POINT = "game", "move", "stone", "row", "point"
"""Kinds of a column's first axis: one entry for each game, move, setup stone, row, or point of a row's board"""
OFFSETS = {"offsets": MOVE, "setup_offsets": STONE, "own_offsets": POINT}
"""Fields with offsets into joined arrays (of each game's moves and stones, of each row's points), and their axis"""

Record = TypeVar("Record", bound=tuple[Any, ...])
Arrays = dict[str, np.ndarray]


class Column(NamedTuple):
    """How shards store one array of a record; annotates the array's field."""

    dtype: str
    """dtype in a shard"""
    per: str = GAME
    """kind of the first axis: GAME, MOVE, STONE, ROW or POINT"""
    tail: tuple[int | None, ...] = ()
    """shape of one entry, that is the axes after the first; None = an axis of any length"""
    name: str = ""
    """name in a shard; empty = the field's name"""
    memory: str = ""
    """dtype in the record; empty = as in a shard"""
    unknown: float | None = None
    """entry that means "unknown"; None = the value is always known"""
    is_optional: bool = False
    """a shard may lack the column"""
    is_stored: bool = True
    """whether shards have the column; False = it is in the record only"""

    def named(self, field: str) -> "Column":
        """The column with empty ``name`` and ``memory`` filled in, for a field of this name."""
        return self._replace(name=self.name or field, memory=self.memory or self.dtype)


def columns_of(record: type) -> dict[str, Column]:
    """The columns of a record class by field, without those of its ``games``."""
    hints = get_type_hints(record, include_extras=True)
    return {field: column.named(field) for field, hint in hints.items() for column in getattr(hint, "__metadata__", ())}


class Schema(Generic[Record]):
    """Reads, checks, packs and writes one kind of shard."""

    def __init__(
        self, kind: str, record: type[Record], check: Callable[[Record], None],
        of_games: Mapping[str, Column | None] | None = None, decode: Callable[[Arrays], Arrays] = lambda arrays: {},
        encode: Callable[[Arrays], Arrays] = lambda fields: {},
    ) -> None:  # fmt: skip
        """Declare a kind of shard.

        Args:
            kind: name of the record in error messages, in the plural.
            check: raises ValueError if a record has impossible or contradictory values.
            of_games: the fields of ``games`` that a shard stores, with a column for each; None = as in shards of games.
            decode: returns, from a shard's arrays by name, new values of those that need more than a new dtype, and
                arrays that the shard lacks.
            encode: the inverse: returns, from the record's arrays by field, those to store in another form.
        """
        self.kind, self._record, self._check, self._decode, self._encode = kind, record, check, decode, encode
        self._games: Any = get_type_hints(record).get("games")
        self.columns, of_all_games = columns_of(record), columns_of(self._games) if self._games else {}
        for field, other in (of_games or {}).items():
            self.columns[field] = (other or of_all_games[field]).named(field)
        self._stored = {field: column for field, column in self.columns.items() if column.is_stored}
        self.known: Known = {column.name: (column.dtype, (None, *column.tail)) for column in self._stored.values()}

    def read(self, path: Path) -> Record:
        """Read one shard.

        Raises:
            ValueError: the file is missing, not a shard of this kind, over the size limit, or inconsistent; one line.
        """
        return self.decoded(path, read_shard(path, self.kind, self.known))

    def decoded(self, path: Path, arrays: Arrays) -> Record:
        """The record from a shard's arrays by name in the shard; raises errors as :meth:`read` does."""
        needed = {column.name for column in self._stored.values() if not column.is_optional}
        if missing := needed - arrays.keys():
            raise ValueError(f"{path}: not a shard of {self.kind}, it lacks {', '.join(sorted(missing))}")
        try:
            arrays = arrays | self._decode(arrays)
            record = self._made({
                field: offsets_of(arrays[column.name]) if field in OFFSETS
                else arrays[column.name].astype(column.memory, copy=False)
                for field, column in self.columns.items() if column.name in arrays
            })  # fmt: skip
            self._check_counts(fields_of(record))
            self._check(record)
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(f"{path}: a damaged shard of {self.kind} ({error})") from error
        return record

    def _made(self, fields: Arrays) -> Record:
        """A record from its arrays, those of its games included, by field."""
        record: Any = self._record
        if self._games is None:
            return record(**fields)
        own = {name: fields[name] for name in record._fields if name in fields}
        of_games = {name: fields[name] for name in self._games._fields if name in fields and name not in own}
        return record(games=self._games(**of_games), **own)

    def _check_counts(self, fields: Arrays) -> None:
        """Check that the columns of each axis have the same length.

        Raises:
            ValueError: the lengths of two columns contradict each other.
        """
        counts = {GAME: len(fields["size"]), ROW: len(fields.get("game", ()))}
        counts |= {per: int(fields[name][-1]) for name, per in OFFSETS.items() if name in fields}
        for field, column in self.columns.items():
            expected = counts[column.per] + (field in OFFSETS)
            if len(fields[field]) != expected:
                raise ValueError(f"{field} has {len(fields[field])} entries, expected {expected}")

    def write(self, path: Path, record: Record, **more: np.generic) -> None:
        """Write one shard atomically; the same record always gives the same bytes.

        Args:
            more: scalars by name that the shard stores besides the record.
        """
        fields = fields_of(record)
        lengths = {name: np.diff(fields[name]) for name in OFFSETS if name in fields}
        encoded = fields | lengths | self._encode(fields)
        arrays: dict[str, Any] = {
            column.name: encoded[field].astype(column.dtype) for field, column in self._stored.items()
        }
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **arrays | more)
        with written_whole(path) as partial:
            partial.write_bytes(lzma.compress(packed.getvalue(), preset=6))

    def pack(self, record: Record) -> bytes:
        """A record as uncompressed bytes, for journals and for results of workers."""
        fields = fields_of(record)
        header = json.dumps([(name, array.dtype.str, array.shape) for name, array in fields.items()]).encode()
        return b"".join([len(header).to_bytes(4, "little"), header, *(array.tobytes() for array in fields.values())])

    def unpack(self, content: bytes) -> Record:
        """The record from the bytes of :meth:`pack`, unchecked."""
        at = 4 + int.from_bytes(content[:4], "little")
        fields: Arrays = {}
        for name, dtype, shape in json.loads(content[4:at]):
            fields[name] = np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape).copy()
            at += fields[name].nbytes
        return self._made(fields)


def read_shard(path: Path, kind: str, known: Known) -> Arrays:
    """Read the arrays of a shard that are in ``known``; other arrays are ignored.

    Args:
        kind: name of the shard's record in error messages, in the plural.
    Raises:
        ValueError: the file is missing, not a readable shard, or over the size limit; one line.
    """
    try:
        return read_packed_arrays(path, known)
    except ValueError as error:
        raise ValueError(f"{path}: not a readable .npz.xz shard of {kind} ({error})") from error


def fields_of(record: tuple[Any, ...]) -> Arrays:
    """The arrays of a record and of its games, by field."""
    fields: Arrays = record._asdict()  # type: ignore[attr-defined]  # records are NamedTuples
    games: Any = fields.pop("games", None)
    return fields if games is None else games._asdict() | fields


def join(parts: Sequence[Record]) -> Record:
    """Concatenate one or more records of the same class, games and rows in order, into one record."""
    firsts = offsets_of([len(fields_of(part)["size"]) for part in parts])

    def joined(name: str, pieces: Sequence[Any]) -> Any:
        if name == "games":
            return join(pieces)
        if name in OFFSETS:
            return offsets_of(np.concatenate([np.diff(piece) for piece in pieces]))
        if name == "game":
            pieces = [piece + first for piece, first in zip(pieces, firsts[:-1], strict=True)]
        return np.concatenate(pieces)

    kind: Any = type(parts[0])
    return kind(*map(joined, kind._fields, zip(*parts, strict=True)))


def refuse_impossible(checks: Mapping[str, np.ndarray]) -> None:
    """Raise an error if a check of a record failed.

    Args:
        checks: results (bool arrays) by the quantity that was checked; False = an impossible value.
    Raises:
        ValueError: a result is False; the message names the quantity.
    """
    for what, is_right in checks.items():
        if not is_right.all():
            raise ValueError(f"an impossible {what}")


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """int64[P+1]: the offsets of P concatenated pieces from their lengths, and then the total length."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
