"""Notices for people, on standard error: each line is printed once."""

import sys
from functools import cache


@cache
def say_once(line: str) -> None:
    """Print a line, unless this process has printed it before."""
    print(line, file=sys.stderr, flush=True)
