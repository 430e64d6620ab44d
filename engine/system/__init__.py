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


def whole_line(error: BaseException) -> str:
    """An error's message with its lines joined to one."""
    return " ".join(str(error).split())


def with_kind(error: BaseException, text: str) -> str:
    """The text of an error, after the name of its type unless it is a ValueError, which names a wrong setting: any
    other exception is a bug or a problem of the machine.
    """
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
