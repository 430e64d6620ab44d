"""Child processes: our own commands, GNU Go, and processes that end with this one.

Our own program is started with ``-P``, so that no file of the working folder is imported in place of a module.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

PROGRAM = (sys.executable, "-P", "-m", "gtp.cli")
GNUGO_FOLDERS = ("/usr/games", "/usr/local/games")
"""Folders in which packages install GNU Go, often not in the search path"""
DIE_WITH_PARENT = 1
"""Number of Linux's PR_SET_PDEATHSIG for prctl(2)"""


def keima(*words: object) -> list[str]:
    """A command of our own program, such as ``keima("gtp", "--size", 9)``."""
    return [*PROGRAM, *map(str, words)]


def find_gnugo() -> str:
    """Find the path of GNU Go; empty if it is not installed."""
    return shutil.which("gnugo", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *GNUGO_FOLDERS))) or ""


def gnugo(program: str, level: int) -> list[str]:
    """Command of GNU Go as an opponent.

    Args:
        program: from :func:`find_gnugo`.
        level: GNU Go's level, 0 to 10.
    """
    return [program, "--mode", "gtp", "--level", str(level), "--chinese-rules"]


def start_child(
    arguments: list[str], core: int | None, log: Path | None, printed: Path | None = None, folder: Path | None = None
) -> "subprocess.Popen[bytes]":  # fmt: skip
    """Start a child process; Linux kills it when this process ends for any reason.

    Args:
        core: processor that the child and its own children may use; None = any.
        log: file for its standard error, appended to; None = standard error of this process.
        printed: file for its standard output; None = as standard error.
        folder: its working folder; None = that of this process.
    Raises:
        OSError: the process could not be started.
    Threads: a thread that outlives the child, since Linux kills the child when the thread ends.
    """
    # Loaded before the fork: between fork and exec a child must not take a lock that another thread may hold.
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if prctl is not None:
            prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if core is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})

    with log.open("ab") if log else nullcontext() as file, printed.open("wb") if printed else nullcontext(file) as out:
        # Its own group, so that Ctrl-C reaches this process alone, which passes it on once.
        return subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=file, start_new_session=True, cwd=folder,
            preexec_fn=prepare if os.name == "posix" else None,
        )  # fmt: skip
