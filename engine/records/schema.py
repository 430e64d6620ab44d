"""Records of games as tables of columns, by which their shards are read, checked, joined and written.

A record is a NamedTuple of arrays, each annotated with its :class:`Column`: :class:`engine.records.games.Games`, or a
class with ``games`` and arrays of its own. A shard is an ``.npz`` inside ``.xz`` with an array for each column, in
smaller dtypes; where a record has the offsets of joined arrays, a shard has their lengths. Start at :class:`Schema`.
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
"""What a column has an entry for each of; points are those of all rows"""
OFFSETS = {"offsets": MOVE, "setup_offsets": STONE, "own_offsets": POINT}
"""Fields that say where the moves, stones or points of each game or row begin"""

Record = TypeVar("Record", bound=tuple[Any, ...])
Arrays = dict[str, np.ndarray]


class Column(NamedTuple):
    """How shards hold an array of a record: the annotation of its field."""

    dtype: str
    """in a shard"""
    per: str = GAME
    """what it has an entry for each of"""
    tail: tuple[int | None, ...] = ()
    """shape of an entry; None = any length"""
    name: str = ""
    """in a shard; empty = that of the field"""
    memory: str = ""
    """dtype in the record; empty = that in a shard"""
    unknown: float | None = None
    """the entry where nothing is known of a game; None = always known"""
    is_optional: bool = False
    """whether a shard may lack it"""
    is_stored: bool = True
    """whether shards hold it at all"""


def columns_of(record: type) -> dict[str, Column]:
    """The columns of a record by field, those of its ``games`` left out."""
    return {
        field: column._replace(name=column.name or field, memory=column.memory or column.dtype)
        for field, hint in get_type_hints(record, include_extras=True).items()
        for column in getattr(hint, "__metadata__", ())
    }


class Schema(Generic[Record]):
    """One kind of shards."""

    def __init__(
        self, kind: str, record: type[Record], check: Callable[[Record], None],
        of_games: Mapping[str, Column | None] | None = None, decode: Callable[[Arrays], Arrays] = lambda arrays: {},
        encode: Callable[[Arrays], Arrays] = lambda fields: {},
    ) -> None:  # fmt: skip
        """Declare shards.

        Args:
            kind: what they are of, in words.
            check: raises ValueError where values are impossible or contradict each other.
            of_games: the fields of ``games`` that a shard holds; with a column where it is not that of games' shards.
            decode: of a shard's arrays those that differ in more than dtype, as the record has them.
            encode: the reverse, by fields of the record.
        """
        self.kind, self._record, self._check, self._decode, self._encode = kind, record, check, decode, encode
        self._games: Any = get_type_hints(record).get("games")
        self.columns, of_all_games = columns_of(record), columns_of(self._games) if self._games else {}
        for field, other in (of_games or {}).items():
            column = other or of_all_games[field]
            self.columns[field] = column._replace(name=column.name or field, memory=column.memory or column.dtype)
        self._stored = {field: column for field, column in self.columns.items() if column.is_stored}
        self.known: Known = {column.name: (column.dtype, (None, *column.tail)) for column in self._stored.values()}

    def read(self, path: Path) -> Record:
        """Read one shard.

        Raises:
            ValueError: the file is missing, no such shard, larger than shards are, or its numbers contradict each
                other; one line.
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
        """The record of some fields."""
        record: Any = self._record
        if self._games is None:
            return record(**fields)
        own = {name: fields[name] for name in record._fields if name in fields}
        of_games = {name: fields[name] for name in self._games._fields if name in fields and name not in own}
        return record(games=self._games(**of_games), **own)

    def _check_counts(self, fields: Arrays) -> None:
        """Refuse columns whose numbers of entries contradict each other.

        Raises:
            ValueError: they do.
        """
        counts = {GAME: len(fields["size"]), ROW: len(fields.get("game", ()))}
        counts |= {per: int(fields[name][-1]) for name, per in OFFSETS.items() if name in fields}
        for field, column in self.columns.items():
            expected = counts[column.per] + (field in OFFSETS)
            if len(fields[field]) != expected:
                raise ValueError(f"{field} has {len(fields[field])} entries, expected {expected}")

    def write(self, path: Path, record: Record, **more: np.generic) -> None:
        """Write one shard, whole or not at all; the same record always makes the same bytes.

        Args:
            more: numbers that a shard has besides.
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
        """A record as bytes, not compressed: what workers send back, and what journals hold."""
        fields = fields_of(record)
        header = json.dumps([(name, array.dtype.str, array.shape) for name, array in fields.items()]).encode()
        return b"".join([len(header).to_bytes(4, "little"), header, *(array.tobytes() for array in fields.values())])

    def unpack(self, content: bytes) -> Record:
        """The record of :meth:`pack`, unchecked."""
        at = 4 + int.from_bytes(content[:4], "little")
        fields: Arrays = {}
        for name, dtype, shape in json.loads(content[4:at]):
            fields[name] = np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape).copy()
            at += fields[name].nbytes
        return self._made(fields)


def read_shard(path: Path, kind: str, known: Known) -> Arrays:
    """The known arrays of a shard; others are passed over.

    Raises:
        ValueError: the file is missing, no shard, one of another kind, or larger than shards are; one line.
    """
    try:
        return read_packed_arrays(path, known)
    except ValueError as error:
        raise ValueError(f"{path}: not a readable .npz.xz shard of {kind} ({error})") from error


def fields_of(record: tuple[Any, ...]) -> Arrays:
    """The arrays of a record by name, those of its games among them."""
    fields: Arrays = record._asdict()  # type: ignore[attr-defined]  # records are NamedTuples
    games: Any = fields.pop("games", None)
    return fields if games is None else games._asdict() | fields


def join(parts: Sequence[Record]) -> Record:
    """Records of one class joined into one, games and rows in order; at least one part."""
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
    """Refuse arrays in which some value is impossible.

    Args:
        checks: bool arrays by what they check; each must be true everywhere.
    Raises:
        ValueError: what is impossible.
    """
    for what, is_right in checks.items():
        if not is_right.all():
            raise ValueError(f"an impossible {what}")


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """int64[P+1]: where each of P joined pieces begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
