"""Where GNU Go lies, an opponent that costs nothing and never changes."""

import os
import shutil

FOLDERS = ("/usr/games", "/usr/local/games")
"""Where packages put it, often beside the path of programs"""


def find_gnugo() -> str:
    """The program; empty where it is not installed."""
    return shutil.which("gnugo", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *FOLDERS))) or ""
