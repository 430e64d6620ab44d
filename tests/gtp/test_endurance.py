"""One process over many games: what it holds in memory stays what it was."""

import sys

import pytest

from bench.process_memory import own_mib
from tests.gtp.process import Engine

GAMES = 50
SETTLED = 20
"""Games after which pools and caches have the size that they keep"""
SLACK = 1.05


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
            used.append(own_mib(engine.process.pid))
    print("MiB after each game:", [round(mib) for mib in used])
    assert max(used[SETTLED:]) <= SLACK * used[SETTLED - 1]
