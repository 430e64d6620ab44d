"""Processes that are killed outright, and whether what they had started ends with them. Linux."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def kill_parent(code: str, folder: Path, begun: Path) -> None:
    """Run some Python until its child has made a file, kill it, and wait until the child is gone too.

    Args:
        folder: the code's first argument.
    """
    parent = subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=ROOT)
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while not begun.exists():
        assert parent.poll() is None
        time.sleep(0.02)
    child = int(children.read_text().split()[0])
    parent.kill()
    parent.wait()
    while _is_alive(child):
        time.sleep(0.02)


def _is_alive(child: int) -> bool:
    """Whether a process still runs; one that has not been waited for does not."""
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
