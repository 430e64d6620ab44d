"""python -m bench.learner: the phases of a round, its curve and arena, resuming, failures, pauses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import learner
from bench.learner import Learner, main
from engine.features.encoder import KEIMA
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.model import new_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the learner pauses and kills children as Linux does")

PROGRAM = '''
"""Stands in for keima and the arena: writes what the named command makes, and the command into a log."""
import json, sys
from pathlib import Path

folder, words = Path(sys.argv[1]), sys.argv[2:]
named = dict(zip(words, words[1:]))
with (folder / "calls").open("a") as log:
    log.write(json.dumps(words) + "\\n")
if words[:2] == ["data", "label"] and (folder / "fail").exists():
    (folder / "fail").unlink()
    sys.exit(1)
if words[:2] == ["train", "dual"]:
    Path(named["--out"]).mkdir(parents=True, exist_ok=True)
    (Path(named["--out"]) / "network.safetensors").write_bytes((folder / "trained").read_bytes())
elif words[:2] == ["weights", "average"]:
    Path(words[4]).write_text("mean")
elif words[0] == "evaluate":
    # Of a round's networks the mean that has more of the new one is the best.
    error = 0.8
    if "rounds" in words[1]:
        error = float((folder / "error").read_text()) + ("mean-0.6" not in words[1]) * 0.05
    found = {"value_mse": error, "value_mse/19": error, "policy_kl/19": error, "top1": 0.4, "teacher_top1/19": 0.4}
    print(json.dumps(found))
'''


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes a learner whose new networks have an error of values and policy; the shipped one has 0.8."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    start = [sys.executable, "-I", "-S", str(program), str(tmp_path)]
    monkeypatch.setattr(learner, "keima", lambda *words: [*start, *map(str, words)])
    monkeypatch.setattr(learner, "ARENA", (*start, "arena"))
    monkeypatch.setattr(learner, "POLL_S", 0.02)
    monkeypatch.setattr(learner, "RETRY_S", 0.0)
    network = new_model("keima-resnet", {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 1, "channels": 8})
    save_network(tmp_path / "trained", network, new_spec(network, "trained"), {"step": 7})
    games = tmp_path / "games"
    games.mkdir()
    (games / "games-0.npz.xz").write_text("")
    (tmp_path / "run").mkdir()
    sources = {"games": str(games), "validation": "held", "labels": ["earlier"], "teacher": "fast", "judge": "strong"}

    def make(error: float) -> Learner:
        (tmp_path / "error").write_text(str(error))
        one = Learner(tmp_path / "run", sources)
        one._run_all(one._held_out())
        one._measure("0 default", one.shipped, one.folder / "held" / "default.json")
        return one

    return make


def calls(folder) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_a_better_network_goes_to_the_arena(made, tmp_path):
    one = made(0.7)
    one._round(1)
    words = [" ".join(call) for call in calls(tmp_path)]
    assert [sum(f" {name} " in f" {line} " for line in words) for name in ("reached", "label", "dual", "average")] == [
        4, 5, 1, 2,
    ]  # fmt: skip
    arenas = [line for line in words if line.startswith("arena")]
    assert len(arenas) == 2 and all("mean-0.6.safetensors name=new" in line for line in arenas)
    # Each round starts from the network of the round before, the first one from the shipped network.
    assert one._start(1) == one.shipped
    assert one._start(2) == str(tmp_path / "run" / "rounds" / "001" / "train" / "network.safetensors")
    curve = (tmp_path / "run" / "curve.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in curve] == [
        ["network", "steps"], ["0 default", "0"], ["1 network", "7"], ["1 mean-0.3", "7"], ["1 mean-0.6", "7"],
    ]  # fmt: skip
    assert curve[4].endswith(",0.7000,0.4000,0.7000,0.4000,0.7000")


def test_a_worse_network_does_not(made, tmp_path):
    made(0.9)._round(1)
    assert not any("arena" in call for call in calls(tmp_path))


def test_a_round_that_is_done_runs_nothing_again(made, tmp_path):
    made(0.7)._round(1)
    before = calls(tmp_path)
    made(0.7)._round(1)
    assert calls(tmp_path) == before


def test_a_phase_that_fails_is_run_again(made, tmp_path):
    (tmp_path / "fail").write_text("")
    made(0.9)
    diary = [json.loads(line) for line in (tmp_path / "run" / "diary.jsonl").read_text().splitlines()]
    assert [(line["phase"], line["exit"]) for line in diary] == [
        ("reached", 0), ("labels", 1), ("labels", 0), ("measure 0 default", 0),
    ]  # fmt: skip


def state(pid: int) -> str:
    """The state letter of a process: T = stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_pause_stops_the_learner_and_its_children(tmp_path):
    held = (
        f"from engine.system.files import alone_in\nfrom pathlib import Path\nimport subprocess\n"
        f"with alone_in(Path({str(tmp_path)!r})): subprocess.run(['sleep', '1000'])"
    )
    parent = subprocess.Popen([sys.executable, "-P", "-c", held], start_new_session=True)
    try:
        while len(learner._family(parent.pid)) < 2:
            time.sleep(0.01)
        family = learner._family(parent.pid)
        (tmp_path / "pid").write_text(str(parent.pid))
        for command, expected in (("pause", {"T"}), ("continue", {"S"})):
            answer = CliRunner().invoke(main, [command, str(tmp_path)])
            assert answer.exit_code == 0, answer.output
            while {state(pid) for pid in family} != expected:
                time.sleep(0.01)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
    answer = CliRunner().invoke(main, ["pause", str(tmp_path)])
    assert answer.exit_code == 1 and answer.output == f"Error: no learner runs in {tmp_path}\n"
