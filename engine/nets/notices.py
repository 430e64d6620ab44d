"""Notices on standard error, each printed once, and ranges of board sizes in words; needs no torch."""

import sys
import threading
from functools import cache

_SAYING = threading.Lock()
"""Held while a line is printed: a cached function may run in several threads at once"""


def said_sizes(sizes: tuple[int, int]) -> str:
    """Text for a smallest and a largest board size: "7 to 19", or "19 alone" if they are equal."""
    return f"{sizes[0]} to {sizes[1]}" if sizes[0] < sizes[1] else f"{sizes[0]} alone"


def say_once(line: str) -> None:
    """Print a line on standard error, unless this process has printed it before. Threads: any."""
    with _SAYING:
        say(line)


@cache
def say(line: str) -> None:
    """Print a line on standard error; :func:`say_once` calls it for the first time a line is said."""
    print(line, file=sys.stderr, flush=True)
