"""Kills a process and checks that its child processes end with it. Linux."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def kill_parent(code: str, folder: Path, begun: Path) -> None:
    """Run Python code until its child process has created a file, kill it, and wait for the child's end.

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
    """Whether a process runs; False for a zombie."""
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
