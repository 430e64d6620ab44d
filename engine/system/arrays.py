"""Arrays for kernels: structs of arrays declared once, views of their rows, and copying, filling, appending.

A struct of arrays is a NamedTuple. A field is declared as ``value: Annotated[np.ndarray, "float32[nodes, A]"]``: a
dtype, and lengths that are numbers or names. :func:`allocate` makes all arrays from these, :func:`row_of` gives kernels
one row of arrays that have a further axis in front.

Copying and filling are loops, which compilers turn into vector code; slice assignment they do not.
"""

import re
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numba.core import types
from numba.extending import overload

from engine.system.jit import kernel

Struct = TypeVar("Struct", bound=tuple)
FIELD = re.compile(r"(\w+)\[([\w, ]*)\]")


class Field(NamedTuple):
    """What an annotation says."""

    dtype: str
    shape: tuple[str, ...]
    """lengths: numbers, or names that :func:`allocate` is given"""


@cache
def fields_of(struct: type) -> dict[str, Field]:
    """The declared fields of a NamedTuple, in order."""
    found = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        match = FIELD.fullmatch(hint.__metadata__[0])
        assert match, f"{struct.__name__}.{name}: expected dtype[lengths], not {hint.__metadata__[0]!r}"
        found[name] = Field(match[1], tuple(word.strip() for word in match[2].split(",")))
    return found


def allocate(struct: type[Struct], rows: int | None = None, **lengths: int) -> Struct:
    """A struct of zeros.

    Args:
        rows: length of a further axis in front of every array; None = no such axis.
        lengths: of the named axes.
    """
    front = () if rows is None else (rows,)
    shapes = [
        (*front, *(int(word) if word.isdigit() else lengths[word] for word in field.shape))
        for field in fields_of(struct).values()
    ]
    kinds = (field.dtype for field in fields_of(struct).values())
    return struct(*(np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)))


def row_of(arrays: Struct, row: int) -> Struct:
    """The views of one row of every array, structs within the struct likewise; called by kernels."""
    return type(arrays)(*(row_of(array, row) if isinstance(array, tuple) else array[row] for array in arrays))


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
