"""Lines for people: those on standard error that are printed once, and how board sizes are said; needs no torch."""

import sys
from functools import cache


def said_sizes(sizes: tuple[int, int]) -> str:
    """The smallest and largest board in words."""
    return f"{sizes[0]} to {sizes[1]}" if sizes[0] < sizes[1] else f"{sizes[0]} alone"


@cache
def say_once(line: str) -> None:
    """Print a line, unless this process has printed it before."""
    print(line, file=sys.stderr, flush=True)
