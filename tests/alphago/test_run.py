"""The loop of ``keima alphago``: what is run again and what is not, however its folder is spelled, and signals."""

import json
import os
import signal
import sys

import pytest
from click.testing import CliRunner

from engine.alphago import run as loop
from engine.alphago import stages
from engine.alphago.run import CommandFailed
from engine.alphago.stages import PRESETS, Plan
from engine.system import programs as child_programs
from engine.system.programs import start_child
from gtp.cli import main
from gtp.cli.alphago import _about
from tests.alphago.small_plan import quietly, run_of, stage_of
from tests.bench.parents import kill_parent


def runs(out):
    """How often each program of a stage has been run."""
    return [len(path.read_text()) for path in sorted(out.glob("made-*"))]


@pytest.fixture
def programs(monkeypatch):
    """Commands are programs for Python, not for keima."""
    monkeypatch.setattr(child_programs, "PROGRAM", (sys.executable,))


def test_what_has_ended_is_not_run_again_and_what_follows_is(tmp_path, programs):
    run = run_of(out := tmp_path / "run")
    stage = stage_of(out, "0", "0", "0")
    quietly(run, stage)
    assert runs(out) == [1, 1, 1]
    read = run_of(out)
    quietly(read, stage)
    assert runs(out) == [1, 1, 1] and read.spent(stage) == run.spent(stage) > 0
    read.ended.discard(read.plan.key(stage.commands[1]))
    quietly(read, stage)
    assert runs(out) == [1, 2, 2]
    quietly(read, stage)
    assert runs(out) == [2, 3, 3], "a stage before it was run"


def test_a_command_that_fails_ends_the_run_there(tmp_path, programs):
    run = run_of(out := tmp_path / "run")
    for _ in range(2):
        with pytest.raises(CommandFailed, match="status 3"):
            quietly(run_of(out), stage_of(out, "0", "3", "0"))
    assert runs(out) == [1, 2] and not run.ended


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("end", "by"), [("waits", signal.SIGINT), ("deaf", signal.SIGKILL)])
def test_a_signal_is_passed_on_once_and_a_second_one_kills(tmp_path, programs, interruptible, monkeypatch, end, by):
    """And whatever was interrupted has not ended."""
    run, started, asked = run_of(out := tmp_path / "run"), [], []
    begun, stage = out / "made-0.txt", stage_of(out, end, "0")

    def impatient():
        if begun.exists() and begun.read_text() and (end == "deaf" or not asked):
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    monkeypatch.setattr(loop, "start_child", lambda *of: started.append(start_child(*of)) or started[-1])
    with pytest.raises(KeyboardInterrupt):
        quietly(run, stage, impatient)
    assert [process.wait(10) for process in started] == [-by] and not run.ended
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_begun_with_other_files_does_not_resume(tmp_path, programs):
    """The command itself does not see that a file has changed; what it makes would be of both."""
    run = run_of(out := tmp_path / "run")
    (out / "sl").mkdir()
    (network := out / "sl" / "network").write_text("one")
    stage = stage_of(out, "0", more=" --weights none+sl/network")
    run._is_due = True
    for _ in range(2):
        quietly(run, stage)
    network.write_text("other")
    with pytest.raises(CommandFailed, match=r"files of this command have changed \(.*sl/network\)"):
        quietly(run, stage)
    assert runs(out) == [2]


def test_a_folder_that_was_deleted_begins_anew(tmp_path):
    """Its command resumes nothing, and some refuse folders that are not empty."""
    run = run_of(tmp_path)
    command = next(one for one in run.plan.stages()[3].commands if one.makes == stages.RL)
    (network := tmp_path / stages.SL).parent.mkdir()
    for text in ("one", "other"):
        network.write_text(text)
        run._check_files(command, tmp_path / "rl")
        assert not (tmp_path / "rl").exists()
    (tmp_path / "rl").mkdir()
    network.write_text("third")
    with pytest.raises(CommandFailed, match=r"rl: files of this command have changed .*sl/network"):
        run_of(tmp_path)._check_files(command, tmp_path / "rl")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let children outlive their parent")
def test_a_run_that_is_killed_takes_its_command_along(tmp_path):
    """Otherwise the next one would work in the same folder beside it."""
    code = (
        "import sys; from pathlib import Path; from engine.system import programs\n"
        "from tests.alphago.small_plan import quietly, run_of, stage_of\n"
        "programs.PROGRAM = (sys.executable,); out = Path(sys.argv[1]) / 'run'\n"
        "run = run_of(out); quietly(run, stage_of(out, 'waits'))"
    )
    kill_parent(code, tmp_path, tmp_path / "run" / "made-0.txt")


def test_a_first_start_that_was_killed_leaves_a_folder_to_begin_in(tmp_path):
    for name in ("alphago.json.partial", "keima.lock"):
        (tmp_path / name).write_text("{")
    assert run_of(tmp_path).ended == set()
    (tmp_path / "games").mkdir()  # of its first command, which was killed
    assert run_of(tmp_path).ended == set()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "photo.jpg").write_text("")
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--out", str(tmp_path)])
    assert found.exit_code == 1 and "expected a new or empty folder" in found.output
    (tmp_path / "alphago.json").write_text("[]")
    found = CliRunner().invoke(main, ["alphago", "--preset", "tour", "--out", str(tmp_path)])
    assert found.exit_code == 1 and "not the record of keima alphago" in found.output


class Unrun:
    """A command that is not run: it only makes what it is said to make."""

    started = 0

    def __init__(self, arguments, core, log, printed, folder):
        Unrun.started += 1
        self.returncode = 0
        for command in (command for stage in self.plan.stages() for command in stage.commands):
            if command.arguments() == arguments:
                path = printed if command.prints else folder / command.makes
                path.touch()

    def poll(self):
        return self.returncode


@pytest.mark.parametrize("change", ["relative", "link", "moved", "device", "program", "games"])
def test_what_has_ended_is_known_however_it_is_spelled(tmp_path, monkeypatch, change):
    """The folder may be moved meanwhile, and another device be chosen; but other games are other games."""
    monkeypatch.setattr(loop, "start_child", Unrun)
    monkeypatch.setattr(stages, "find_gnugo", lambda: "/usr/games/gnugo")
    monkeypatch.chdir(tmp_path)
    out, device = tmp_path / "a", "cpu"
    (people := tmp_path / "kgs").mkdir()
    (people / "1.sgf").write_text("(;)")

    def run_all():
        run, before = run_of(out, people=(people,), device=device), Unrun.started
        monkeypatch.setattr(Unrun, "plan", run.plan, raising=False)
        for stage in run.plan.stages():
            quietly(run, stage)
            assert run.spent(stage) > 0
        return Unrun.started - before

    ran = run_all()
    assert ran == sum(len(stage.commands) for stage in Plan(out, PRESETS["tour"], (people,), device, 1).stages())
    if change == "relative":
        out, people = out.relative_to(tmp_path), tmp_path / ".." / tmp_path.name / "kgs"
    elif change == "link":
        (tmp_path / "b").symlink_to(out)
        out = tmp_path / "b"
    elif change == "moved":
        out = out.rename(tmp_path / "b")
    elif change == "device":
        device = "cuda"
    elif change == "program":
        for module in (child_programs, stages):
            monkeypatch.setattr(module, "PROGRAM", ("/other/python", "-m", "gtp.cli"))
    else:
        (people / "2.sgf").write_text("(;)")
    assert run_all() == (ran if change == "games" else 0)


def test_what_the_version_before_ended_has_ended(tmp_path):
    """Its commands had the paths of OUT in them."""
    plan = run_of(tmp_path).plan
    command = plan.stages()[2].commands[1]
    key = plan.key(command).replace("games/set", "OUT/games/set").replace("--out ", "--out OUT/")
    assert key.count("OUT/") == 3
    (tmp_path / "alphago.json").write_text(json.dumps({"ended": [key], "seconds": {key: 3.0}}))
    (tmp_path / "patterns").mkdir()
    (tmp_path / command.makes).touch()
    assert run_of(tmp_path).has_ended(command) and run_of(tmp_path).spent(plan.stages()[2]) == 3.0


def test_a_match_resumes_where_its_engines_are_spelled_otherwise(tmp_path):
    """Half of it may have been played on another device."""

    def begin(device, preset="tour"):
        run = run_of(tmp_path, preset, device=device)
        command = run.plan.stages()[-1].commands[0]
        folder = (tmp_path / command.makes).parent
        folder.mkdir(parents=True, exist_ok=True)
        run._check_files(command, folder)
        return command.words, folder / loop.MATCH

    words, path = begin("cpu")
    settings = {role: words[words.index(f"--{role}") + 1] for role in ("first", "second")} | {"size": 7}
    path.write_text(json.dumps(settings))
    words, _ = begin("cuda")
    found = json.loads(path.read_text())
    assert found["first"] in words and found["second"] in words and found["size"] == 7
    assert found["first"] != settings["first"]
    begin("cuda", "evening")
    assert json.loads(path.read_text()) == found, "another match is refused by keima match itself"


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "under a minute"), (150, "about 2 min"), (7200, "about 2.0 h"), (5000, "about 83 min")]
)
def test_the_time_that_is_left_is_said_in_words(seconds, words):
    """A tour had 0.0 h left from beginning to end."""
    assert _about(seconds) == words
