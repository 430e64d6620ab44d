"""The most memory that this process takes while something runs."""

import sys
from contextlib import suppress
from pathlib import Path

STATUS = Path("/proc/self/status")


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
            line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
            return int(line.split()[1]) / 1024
        if sys.platform == "win32":
            return 0.0
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
