"""One process over many games: what it holds in memory stays what it was."""

import sys
from pathlib import Path

import pytest

from tests.gtp.process import Engine

GAMES = 50
SETTLED = 20
"""Games after which pools and caches have the size that they keep"""
SLACK = 1.05


def resident_kib(pid: int) -> int:
    """Memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_fifty_games_in_one_process_leave_its_memory_flat():
    used = []
    with Engine("--weights", "default", "--visits", "60", "--memory", "128", "--temperature", "1") as engine:
        for game in range(GAMES):
            assert engine.ask("clear_board") == "="
            for move in range(60 + game % 30):
                if engine.ask(f"genmove {'bw'[move % 2]}") in ("= resign", "= pass"):
                    break
            used.append(resident_kib(engine.process.pid))
    print("MiB after each game:", [kib // 1024 for kib in used])
    assert max(used[SETTLED:]) <= SLACK * used[SETTLED - 1]
