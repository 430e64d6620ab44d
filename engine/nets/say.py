"""What a person should know although everything goes on: one line on standard error, once."""

import sys
from functools import cache


@cache
def say_once(line: str) -> None:
    """Print a line, unless this process has printed it before."""
    print(line, file=sys.stderr, flush=True)
