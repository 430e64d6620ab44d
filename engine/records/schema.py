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
"""First axis of a column: one entry a game, move, stone set up, row, or point of all rows"""
OFFSETS = {"offsets": MOVE, "setup_offsets": STONE, "own_offsets": POINT}
"""Fields with the offsets of each game's moves and stones, and of each row's points"""

Record = TypeVar("Record", bound=tuple[Any, ...])
Arrays = dict[str, np.ndarray]


class Column(NamedTuple):
    """Storage of a record's array in shards: the annotation of its field."""

    dtype: str
    """in a shard"""
    per: str = GAME
    """the first axis"""
    tail: tuple[int | None, ...] = ()
    """shape of an entry; None = any length"""
    name: str = ""
    """in a shard; empty = that of the field"""
    memory: str = ""
    """dtype in the record; empty = that in a shard"""
    unknown: float | None = None
    """entry of a game whose value is unknown; None = always known"""
    is_optional: bool = False
    """a shard may lack the column"""
    is_stored: bool = True
    """False = no shard has the column"""

    def named(self, field: str) -> "Column":
        """The column of a field, its defaults filled in."""
        return self._replace(name=self.name or field, memory=self.memory or self.dtype)


def columns_of(record: type) -> dict[str, Column]:
    """A record's own columns by field; those of its ``games`` are not included."""
    hints = get_type_hints(record, include_extras=True)
    return {field: column.named(field) for field, hint in hints.items() for column in getattr(hint, "__metadata__", ())}


class Schema(Generic[Record]):
    """One kind of shards."""

    def __init__(
        self, kind: str, record: type[Record], check: Callable[[Record], None],
        of_games: Mapping[str, Column | None] | None = None, decode: Callable[[Arrays], Arrays] = lambda arrays: {},
        encode: Callable[[Arrays], Arrays] = lambda fields: {},
    ) -> None:  # fmt: skip
        """Declare a kind of shard.

        Args:
            kind: name of the record in error messages, in the plural.
            check: raises ValueError if a record has impossible or contradictory values.
            of_games: the fields of ``games`` that a shard stores; a column replaces the one of games shards.
            decode: from a shard's arrays to the record's, for arrays that differ in more than dtype.
            encode: the inverse, by fields of the record.
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
            ValueError: the file is missing, not such a shard, over the size limit, or inconsistent; one line.
        """
        return self.decoded(path, read_shard(path, self.kind, self.known))

    def decoded(self, path: Path, arrays: Arrays) -> Record:
        """The record of a shard's arrays; errors as of :meth:`read`."""
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
        """A record from its arrays by name."""
        record: Any = self._record
        if self._games is None:
            return record(**fields)
        own = {name: fields[name] for name in record._fields if name in fields}
        of_games = {name: fields[name] for name in self._games._fields if name in fields and name not in own}
        return record(games=self._games(**of_games), **own)

    def _check_counts(self, fields: Arrays) -> None:
        """Check that the columns have matching lengths.

        Raises:
            ValueError: two columns contradict each other.
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
            more: further scalars of the shard.
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
    """The known arrays of a shard; unknown ones are ignored.

    Raises:
        ValueError: the file is missing, not a shard of this kind, or over the size limit; one line.
    """
    try:
        return read_packed_arrays(path, known)
    except ValueError as error:
        raise ValueError(f"{path}: not a readable .npz.xz shard of {kind} ({error})") from error


def fields_of(record: tuple[Any, ...]) -> Arrays:
    """The arrays of a record and of its games, by name."""
    fields: Arrays = record._asdict()  # type: ignore[attr-defined]  # records are NamedTuples
    games: Any = fields.pop("games", None)
    return fields if games is None else games._asdict() | fields


def join(parts: Sequence[Record]) -> Record:
    """Concatenate records of one class (at least one), games and rows in order."""
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
    """Check arrays for impossible values.

    Args:
        checks: bool arrays by the quantity that they check; each must be true everywhere.
    Raises:
        ValueError: a check failed; names the quantity.
    """
    for what, is_right in checks.items():
        if not is_right.all():
            raise ValueError(f"an impossible {what}")


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """int64[P+1]: the offsets of P concatenated pieces, and the total length."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
