"""Programs as child processes: our own commands, GNU Go, and processes that end when this one does.

Our own program is started with ``-P``: otherwise a file of the working folder could stand in for a module.
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
"""Where packages put GNU Go, often outside the search path"""
DIE_WITH_PARENT = 1
"""Linux: PR_SET_PDEATHSIG of prctl(2)"""


def keima(*words: object) -> list[str]:
    """A command of our own program, such as ``keima("gtp", "--size", 9)``."""
    return [*PROGRAM, *map(str, words)]


def find_gnugo() -> str:
    """Path of the program GNU Go; empty where it is not installed."""
    return shutil.which("gnugo", path=os.pathsep.join((os.environ.get("PATH", os.defpath), *GNUGO_FOLDERS))) or ""


def gnugo(program: str, level: int) -> list[str]:
    """GNU Go as an opponent.

    Args:
        program: from :func:`find_gnugo`.
        level: 0 to 10.
    """
    return [program, "--mode", "gtp", "--level", str(level), "--chinese-rules"]


def start_child(
    arguments: list[str], core: int | None, log: Path | None, printed: Path | None = None, folder: Path | None = None
) -> "subprocess.Popen[bytes]":  # fmt: skip
    """Start a child process, which Linux kills as soon as this process ends for any reason.

    Args:
        core: the one processor that it and its own children may use; None = any.
        log: file for its standard error; None = standard error of this process, progress bars included.
        printed: file for its standard output; None = where standard error goes.
        folder: its working folder; None = that of this process.
    Raises:
        OSError: it could not be started.
    Threads: one that lives as long as the child may, since the child ends with it.
    """
    # Loaded here: between fork and exec a child must not wait for what other threads of this process hold.
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if prctl is not None:
            prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if core is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})

    with log.open("ab") if log else nullcontext() as file, printed.open("wb") if printed else nullcontext(file) as out:
        # Its own group: Ctrl-C comes to this process alone, which passes it on once.
        return subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=file, start_new_session=True, cwd=folder,
            preexec_fn=prepare if os.name == "posix" else None,
        )  # fmt: skip
