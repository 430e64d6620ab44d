"""Commands that run as child processes, and end when the process that started them does."""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

DIE_WITH_PARENT = 1
"""Linux: PR_SET_PDEATHSIG of prctl(2)"""


def start_child(
    arguments: list[str], core: int | None, log: Path | None, printed: Path | None = None
) -> "subprocess.Popen[bytes]":
    """A child process that on Linux ends when this one does, however that ends.

    Args:
        core: the one processor that it, and what it starts, may use; None = any.
        log: what it says on standard error goes there; None = to that of this process, its bar too.
        printed: where its standard output goes; None = where standard error does.
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
            arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=file, start_new_session=True,
            preexec_fn=prepare if os.name == "posix" else None,
        )  # fmt: skip
