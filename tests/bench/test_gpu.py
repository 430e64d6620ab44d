"""The GPU benchmark on the CPU: every figure is printed, without optional packages."""

import json
import subprocess
import sys
from pathlib import Path

TINY = """
--device cpu --network keima-6x64 --batch 1 --batch 2 --size 9 --side 32 --leaves 4 --threads 1 --memory 512
--seconds 0.01 --search-seconds 0.1 --repeats 1
"""
BARE = """
import runpy, sys
for name in ("rich", "sgfmill"):
    sys.modules[name] = None
sys.argv = ["bench.speed.gpu", *sys.argv[1:]]
runpy.run_module("bench.speed.gpu", run_name="__main__")
"""


def test_every_figure_is_one_json_line():
    program = [sys.executable, "-c", BARE, *TINY.split()]
    answer = subprocess.run(program, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=500)
    assert answer.returncode == 0, answer.stderr
    figures = {one["name"]: one for one in map(json.loads, answer.stdout.splitlines())}
    alone = [f"{kind}/keima-6x64/9/{batch}" for batch in (1, 2) for kind in ("plain", "share")]
    search = [f"{kind}/keima-6x64/9" for kind in ("search", "search_evaluations", "search_share", "cores")]
    assert list(figures) == ["matrix", *alone, *search]
    assert all(one["value"] > 0 for one in figures.values())
    assert figures["matrix"]["unit"] == "TFLOP/s" and figures["search/keima-6x64/9"]["unit"] == "visits/s"
