"""Arrays for kernels: structs of arrays declared once, views of their rows, and copying, filling, appending.

A struct of arrays is a NamedTuple. A field is declared as ``value: Annotated[np.ndarray, "float32[nodes, A]"]``: a
dtype, and lengths that are numbers or names. :func:`allocate` makes all arrays from these, :func:`row_of` gives kernels
one row of arrays that have a further axis in front.

Copying and filling are loops, which compilers turn into vector code; slice assignment they do not.
"""

import re
import sys
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numba import from_dtype, typeof
from numba.core import types
from numba.extending import overload

from engine.system.jit import kernel

Struct = TypeVar("Struct", bound=tuple)
FIELD = re.compile(r"(\w+)\[(.*)\]")


class Field(NamedTuple):
    """The annotation of a field."""

    dtype: str
    shape: tuple[str, ...]
    """lengths: expressions of the names that :func:`allocate` is given and of the constants of the struct's module"""


@cache
def fields_of(struct: type) -> dict[str, "Field | type"]:
    """The declared fields of a NamedTuple, in order; of structs within it their types."""
    found: dict[str, Field | type] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        match = FIELD.fullmatch(hint.__metadata__[0]) if hasattr(hint, "__metadata__") else None
        found[name] = Field(match[1], tuple(re.split(r", *", match[2]) if match[2] else ())) if match else hint
    return found


def allocate(struct: type[Struct], rows: int | None = None, **given: Any) -> Struct:
    """A struct of zeros.

    Args:
        rows: length of a further axis in front of every array; None = no such axis.
        given: the lengths of the named axes; and fields that are made already, by their names.
    """
    constants, front = vars(sys.modules[struct.__module__]), () if rows is None else (rows,)
    made = []
    for name, field in fields_of(struct).items():
        if name in given:
            made.append(given[name])
        elif isinstance(field, Field):
            shape = (_length(word, constants, given) for word in field.shape)
            made.append(np.zeros((*front, *shape), field.dtype))
        else:
            made.append(allocate(field, rows, **given))
    return struct(*made)


def _length(word: str, constants: dict[str, Any], given: dict[str, Any]) -> int:
    """The value of a length's expression; most are plain names."""
    found = given.get(word, constants.get(word))
    return int(eval(word, constants, given) if found is None else found)


def row_of(arrays: Struct, row: int) -> Struct:
    """The views of one row of every array, structs within the struct likewise; called by kernels."""
    return type(arrays)(*(row_of(array, row) if isinstance(array, tuple) else array[row] for array in arrays))


def numba_type(struct: type) -> types.Type:
    """The type that Numba gives a struct whose arrays :func:`allocate` made, or one of Python numbers.

    Raises:
        TypeError: the struct does not say the types of its fields.
    """
    if not issubclass(struct, tuple):
        raise TypeError(f"{struct.__name__}: not a struct with declared fields")
    found: list[Any] = []
    for field in fields_of(struct).values():
        if isinstance(field, Field):
            found.append(types.Array(from_dtype(np.dtype(field.dtype)), len(field.shape), "C"))
        else:
            found.append(typeof(field(0)) if field in (bool, int, float) else numba_type(field))
    return types.BaseTuple.from_types(found, struct)


@overload(row_of, inline="always")
def _row_of(arrays, row):
    """Numba builds a NamedTuple by one call that names every field; the fields are read off the type."""
    parts = (
        f"row_of(arrays.{name}, row)" if isinstance(part, types.BaseNamedTuple) else f"arrays.{name}[row]"
        for name, part in zip(arrays.fields, arrays.types, strict=True)
    )
    scope: dict[str, Any] = {"struct": arrays.instance_class, "row_of": row_of}
    exec(f"def view(arrays, row):\n    return struct({', '.join(parts)})", scope)
    return scope["view"]


@kernel
def copy_items(target, source, count):
    """Copy the first ``count`` items of an array of one dimension into another."""
    for i in range(count):
        target[i] = source[i]


@kernel
def fill_items(target, value):
    """Set every item of an array of one dimension."""
    for i in range(len(target)):
        target[i] = value


@kernel
def append_once(items, start, end, item):
    """Append an item to a list if there is room and the list does not hold it.

    Args:
        items: an array of one dimension; the list is ``items[start:end]``.
    Returns:
        int: the list's new end.
    """
    if end == len(items):
        return end
    for i in range(start, end):
        if items[i] == item:
            return end
    items[end] = item
    return end + 1
