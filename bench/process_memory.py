"""Memory that processes take, as the system counts it."""

import sys
from contextlib import suppress
from pathlib import Path

STATUS = Path("/proc/self/status")


def own_mib(pid: int) -> float:
    """Memory that a process has taken for itself and that is resident. Linux."""
    return _status_mib(Path(f"/proc/{pid}/status"), "RssAnon:", "RssShmem:")


def _status_mib(status: Path, *fields: str) -> float:
    lines = status.read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields)) / 1024


class PeakMemory:
    """The most memory that the process takes from now on, beyond what it has.

    Linux is asked to forget what there was before; a process even inherits the peak of the one that started it.
    Elsewhere only what exceeds every earlier peak is seen, on Windows nothing.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            STATUS.with_name("clear_refs").write_text("5")
        self._before_mib = self._peak_mib()

    def grown_mib(self) -> float:
        """By how much the peak lies above what there was."""
        return self._peak_mib() - self._before_mib

    def _peak_mib(self) -> float:
        if STATUS.exists():
            return _status_mib(STATUS, "VmHWM:")
        if sys.platform == "win32":
            return 0.0
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
