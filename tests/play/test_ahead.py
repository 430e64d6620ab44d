"""Compiling ahead: play meets nothing that was left out, and processes that start together share the work."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.play import ahead
from engine.play.game_session import GameSession
from engine.system import jit

TOGETHER = """
import json, sys
from engine.play import ahead
from numba.core import event
seen = event.RecordingListener()
with event.install_listener("numba:compile", seen):
    ahead.compile_kernels("keima-1", ("engine.go.position.play_move", "engine.go.position.legal_moves"))
names = [(e.data["dispatcher"].py_func.__qualname__, type(e.data["dispatcher"]).__name__, str(e.data["args"]))
         for _, e in seen.buffer if e.is_end and e.data["dispatcher"].py_func.__module__.startswith("engine")]
print(json.dumps(names))
"""


def run(code, *words, **environment):
    """Start a Python process with this program."""
    known = os.environ | {"PYTHONPATH": str(jit.ENGINE_FOLDER.parent)} | environment
    return subprocess.Popen([sys.executable, "-c", code, *words], env=known, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("name", "encoder"), [("default", "keima-1"), ("alphago-9", "alphago-49")])
def test_play_compiles_nothing_that_was_not_compiled_ahead(name, encoder):
    """A player's own settings, such as rollouts beside its networks, included."""
    command = [sys.executable, "-m", "tests.play.warm_game", name, encoder]
    played = subprocess.run(command, cwd=jit.ENGINE_FOLDER.parent, stdout=subprocess.PIPE, text=True, check=True)
    assert played.stdout.strip().splitlines()[-1] == "[]", "python -m tests.play.warm_game writes the record anew"


def test_helpers_compile_what_the_first_move_waits_for_first():
    assert tuple(ahead.KERNELS) == ahead.FIRST + ahead.PAGE + ahead.LATER and ahead.PAGE
    assert not any("rollout" in name for name in ahead.FIRST), "compiling them takes as long as all of the first move"


def test_a_struct_that_the_record_names_has_its_name_alone():
    named = set(re.findall(r"\b[A-Z]\w+", ahead.RECORD.read_text())) & ahead._structs().keys()
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    found = [item for module in modules for item in module.values() if isinstance(item, type)]
    structs = {item for item in found if hasattr(item, "_fields")}
    assert len(named) > 10
    assert sorted(named) == sorted(struct.__name__ for struct in structs if struct.__name__ in named)


def test_two_processes_on_a_cold_cache_share_the_work(tmp_path):
    both = [run(TOGETHER, KEIMA_CACHE=str(tmp_path)) for _ in range(2)]
    found = [json.loads(process.communicate()[0]) for process in both]
    compiled = [tuple(name) for names in found for name in names]
    assert len(compiled) > 10
    assert len(set(compiled)) == len(compiled), "compiled twice"


def test_helpers_take_nothing_from_the_folder_they_start_in_and_end_with_the_engine(tmp_path):
    """A client starts engines where it likes; a folder there may be called as ours."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("open('taken', 'w').close()")
    known = os.environ | {"PYTHONPATH": str(jit.ENGINE_FOLDER.parent), "KEIMA_CACHE": str(tmp_path / "cache")}
    code = "from engine.play import ahead; ahead.core_count = lambda: 2; print(ahead.start_helpers('keima-2')[0].pid)"
    ended = subprocess.run([sys.executable, "-P", "-c", code], env=known, cwd=tmp_path, capture_output=True, text=True)
    helper = int(ended.stdout)
    while (state := Path(f"/proc/{helper}/stat")).exists() and state.read_text().split()[2] != "Z":
        time.sleep(0.1)
    assert not (tmp_path / "taken").exists()


def test_a_kernel_that_another_process_has_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    done = []

    def load(name, encoder):
        done.append(name)
        jit.stamp(name)

    monkeypatch.setattr(ahead, "KERNELS", dict.fromkeys(("one", "two"), ("first", "")))
    monkeypatch.setattr(ahead, "load", load)
    with ahead._lock_of("one", "keima-1"):
        assert ahead._is_claimed("one", "keima-1") and not ahead._is_claimed("two", "keima-1")
    for _ in range(2):
        ahead.compile_kernels("keima-1", ("one", "two"))
        assert done == ["one", "two"] and ahead.missing("keima-1", ("one", "two")) == []


def test_a_kernel_that_fails_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    monkeypatch.setattr(ahead, "KERNELS", {"engine.nothing.one": ("first", "(int64,)")})
    ahead._structs.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        ahead.compile_kernels("keima-1", ("engine.nothing.one",))
    assert ahead.missing("keima-1", ("engine.nothing.one",)) == ["engine.nothing.one"]


def test_a_keeper_keeps_to_the_boards_it_is_given():
    session = GameSession(9, sizes=(7, 13))
    with pytest.raises(ValueError, match="unacceptable size: 19, the network plays 7 to 13"):
        session.new_game(19)
    assert session.game.size == 9
    with pytest.raises(ValueError, match="unacceptable size: 7, the network plays 9 alone"):
        GameSession(9, sizes=(9, 9)).new_game(7)


def test_a_keeper_begins_on_the_nearest_board_it_is_given():
    """The engine refused every command, boardsize too, where its network did not play the 19x19 of the default."""
    assert [GameSession(size, sizes=(7, 13)).game.size for size in (5, 9, 19)] == [7, 9, 13]
