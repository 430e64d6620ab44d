"""What the engine needs of the operating system: folders, files, compiled kernels, threads and Ray. Starts light."""

import os
import sys
from pathlib import Path

EARLIER = {
    ("config", "darwin"): "~/Library/Application Support/keima",
    ("config", "win32"): "$APPDATA/keima",
    ("cache", "darwin"): "~/Library/Caches/keima",
    ("cache", "win32"): "$LOCALAPPDATA/keima/cache",
}
"""Folders of earlier versions, where a variable of the environment can make platformdirs choose another one"""


def user_folder(kind: str) -> Path:
    """The user's folder for ``config`` or ``cache`` of Keima, where the platform has such; it may not exist.

    Raises:
        RuntimeError: the user has no home folder.
    """
    from platformdirs import PlatformDirs

    earlier = Path(os.path.expandvars(os.path.expanduser(EARLIER.get((kind, sys.platform), ""))))  # noqa: PTH111
    if earlier.is_absolute() and earlier.is_dir():
        return earlier
    folder = Path(getattr(PlatformDirs("keima", appauthor=False, roaming=True), f"user_{kind}_dir"))
    if not folder.is_absolute():
        raise RuntimeError("the user has no home folder")
    return folder


MOST_CHARACTERS = 200
"""Length of an error in one line"""


def one_line(error: BaseException) -> str:
    """The first line of an error's message, of bounded length; its type if the message is empty."""
    first, *_ = str(error).strip().splitlines() or [""]
    return " ".join(first.split())[:MOST_CHARACTERS] or type(error).__name__
