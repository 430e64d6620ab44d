"""What kernels do with plain arrays: copy, fill, append.

Copying and filling are loops, which compilers turn into vector code; slice assignment they do not.
"""

from engine.system.jit import kernel


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
