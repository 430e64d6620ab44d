"""Operating system: folders, files, compiled kernels, child processes, executors. This file imports little."""

import os
import sys
from pathlib import Path

EARLIER = {
    ("config", "darwin"): "~/Library/Application Support/keima",
    ("config", "win32"): "$APPDATA/keima",
    ("cache", "darwin"): "~/Library/Caches/keima",
    ("cache", "win32"): "$LOCALAPPDATA/keima/cache",
}
"""(kind, platform) -> folder of earlier versions, which is used on if it exists; platformdirs may choose another"""


def user_folder(kind: str) -> Path:
    """The user's folder for Keima's ``config`` or ``cache``, by the platform's conventions; it may not exist.

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
"""Maximum length of the text that :func:`one_line` returns"""


def one_line(error: BaseException) -> str:
    """The first line of an error's message, cut to ``MOST_CHARACTERS``; the name of its type if there is no message."""
    first, *_ = str(error).strip().splitlines() or [""]
    return " ".join(first.split())[:MOST_CHARACTERS] or type(error).__name__
