"""Memory of processes, as the operating system counts it."""

import sys
from contextlib import suppress
from pathlib import Path

STATUS = Path("/proc/self/status")


def own_mib(pid: int) -> float:
    """Resident memory of a process in MiB, without mapped files. Linux only."""
    return _status_mib(Path(f"/proc/{pid}/status"), "RssAnon:", "RssShmem:")


def session_peak_mib(pid: int) -> float:
    """Sum of the peak resident memory in MiB, mapped files included, of all processes of a session. Linux only.

    Args:
        pid: the session's first process; its children belong to the session unless they have left it.
    """
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has ended meanwhile
            # After the name in parentheses: state, parent, process group, session.
            if (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[3] == str(
                pid
            ):
                total += _status_mib(folder / "status", "VmHWM:")
    return total


def _status_mib(status: Path, *fields: str) -> float:
    lines = status.read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields)) / 1024


class PeakMemory:
    """Growth of this process's peak memory since the object was made.

    On Linux the peak is reset first, since a process inherits its parent's peak. On other systems only growth beyond
    all earlier peaks is measured; on Windows the growth is always 0.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            STATUS.with_name("clear_refs").write_text("5")
        self._before_mib = self._peak_mib()

    def grown_mib(self) -> float:
        """Growth in MiB, 0 or more."""
        return self._peak_mib() - self._before_mib

    def _peak_mib(self) -> float:
        if STATUS.exists():
            return _status_mib(STATUS, "VmHWM:")
        if sys.platform == "win32":
            return 0.0
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
