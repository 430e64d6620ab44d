"""The command lines of the engines that benches play with: our own, and GNU Go, which costs nothing and never changes.

Ours is started with ``-P``: otherwise a file of the working folder could stand in for a module.
"""

import os
import shutil
import sys

PROGRAM = (sys.executable, "-P", "-m", "gtp.cli")
GNUGO_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where packages put GNU Go, often beside the path of programs"""


def keima(*words: object) -> list[str]:
    """A command of our own program, such as ``keima("gtp", "--size", 9)``."""
    return [*PROGRAM, *map(str, words)]


def find_gnugo() -> str:
    """Where GNU Go lies; empty where it is not installed."""
    return shutil.which("gnugo", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *GNUGO_FOLDERS))) or ""


def gnugo(program: str, level: int) -> list[str]:
    """GNU Go as an opponent.

    Args:
        program: from :func:`find_gnugo`.
        level: 0 to 10.
    """
    return [program, "--mode", "gtp", "--level", str(level), "--chinese-rules"]
