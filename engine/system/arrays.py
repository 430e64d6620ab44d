"""Arrays for kernels: structs of arrays declared by annotations, views of their rows, and copying, filling, appending.

A struct of arrays is a NamedTuple. A field is declared as ``value: Annotated[np.ndarray, "float32[nodes, A]"]``, with a
dtype and a shape of numbers or names. :func:`allocate` makes all arrays by these declarations, :func:`row_of` gives
kernels one row of arrays that have a further first axis.

Copying and filling are loops, which LLVM vectorises; it does not vectorise slice assignment.
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
    """The declaration of an array in a struct: dtype and shape."""

    dtype: str
    shape: tuple[str, ...]
    """lengths: expressions of names given to :func:`allocate` and of constants of the struct's module"""


@cache
def fields_of(struct: type) -> dict[str, "Field | type"]:
    """Name -> field of a struct, in order: the declaration of an array, or the type of a nested struct."""
    found: dict[str, Field | type] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        match = FIELD.fullmatch(hint.__metadata__[0]) if hasattr(hint, "__metadata__") else None
        found[name] = Field(match[1], tuple(re.split(r", *", match[2]) if match[2] else ())) if match else hint
    return found


def allocate(struct: type[Struct], rows: int | None = None, **given: Any) -> Struct:
    """Make a struct of arrays, filled with zeros unless given.

    Args:
        rows: length of a further first axis of every array; None = no such axis.
        given: by name: lengths of axes, and fields to take as they are.
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
    """Evaluate the expression of an axis length, which mostly is a plain name."""
    found = given.get(word, constants.get(word))
    return int(eval(word, constants, given) if found is None else found)


def row_of(arrays: Struct, row: int) -> Struct:
    """A struct of views of one row of every array, nested structs included; kernels may call it."""
    return type(arrays)(*(row_of(array, row) if isinstance(array, tuple) else array[row] for array in arrays))


def numba_type(struct: type) -> types.Type:
    """Numba's type of a struct made by :func:`allocate`, or of a NamedTuple of Python numbers.

    Raises:
        TypeError: the struct has no declared fields.
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
    """Numba's version of :func:`row_of`: the code names every field, as Numba makes no NamedTuple from a generator."""
    parts = (
        f"row_of(arrays.{name}, row)" if isinstance(part, types.BaseNamedTuple) else f"arrays.{name}[row]"
        for name, part in zip(arrays.fields, arrays.types, strict=True)
    )
    scope: dict[str, Any] = {"struct": arrays.instance_class, "row_of": row_of}
    exec(f"def view(arrays, row):\n    return struct({', '.join(parts)})", scope)
    return scope["view"]


@kernel
def copy_items(target, source, count):
    """Copy the first ``count`` items of one one-dimensional array to the beginning of another."""
    for i in range(count):
        target[i] = source[i]


@kernel
def fill_items(target, value):
    """Set every item of a one-dimensional array to a value."""
    for i in range(len(target)):
        target[i] = value


@kernel
def append_once(items, start, end, item):
    """Append an item to a list if there is room and the list does not contain it.

    Args:
        items: a one-dimensional array; the list is ``items[start:end]``.
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
