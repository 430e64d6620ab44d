"""Compiling ahead: play meets nothing that was left out, and processes that start together share the work."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.play import ahead
from engine.play.keeper import GameKeeper
from engine.system import jit

NOTHING_LEFT = """
import sys
from engine.play import ahead
name, encoder = sys.argv[1:]
for piece in ahead.PIECES.values():
    piece(encoder)
from engine.system.jit import _Kernel

def compiled():
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    kernels = {id(item): item for module in modules for item in vars(module).values() if isinstance(item, _Kernel)}
    return {
        f"{one.py_func.__module__}.{one.py_func.__qualname__}{signature}"
        for one in kernels.values() for signature in one.overloads
    }

before = compiled()
from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import rules_named
from engine.play.keeper import Purpose
from gtp.cli.options import options_from
from gtp.cli.settings import read_settings
from gtp.startup import PlayerSettings, load_player
from tests.playing import DEAD_STONES, position
from weights import find_network, players

play = PlayOptions(visits=20, seconds=0.0, resign_below=-1.0)
own = (read_settings(players()[name]) if name in players() else {}) | {"size": 9, "seed": 1}
setup, search = options_from(SetupOptions, own), options_from(SearchOptions, own)
settings = PlayerSettings(setup, play, search, find_network(name))
player = load_player(settings)
for _ in range(30):
    player.genmove(BLACK)
    player.genmove(WHITE)
for rules in ("chinese", "japanese", "tromp-taylor"):
    position(player, DEAD_STONES, BLACK)
    player.set_rules(rules_named(rules))
    player.final_score()
    player.final_status("seki")
    player.genmove(BLACK)
    player.play(WHITE, PASS)
    player.genmove(BLACK)
    player.genmove(WHITE)
    player.genmove(BLACK, Purpose.CLEAN_UP)
    player.undo()
print(sorted(compiled() - before))
player.close()
"""
TOGETHER = """
import json, sys
from engine.play import ahead
from numba.core import event
seen = event.RecordingListener()
with event.install_listener("numba:compile", seen):
    ahead.compile_pieces("keima-1", ("game",))
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
    process = run(NOTHING_LEFT, name, encoder)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert output.strip().splitlines()[-1] == "[]"


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


def test_a_piece_that_another_process_has_is_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    done = []
    pieces = {"one": lambda encoder: done.append("one"), "two": lambda encoder: done.append("two")}
    monkeypatch.setattr(ahead, "PIECES", pieces)
    with ahead._lock_of("one", "keima-1"):
        assert ahead._is_claimed("one", "keima-1") and not ahead._is_claimed("two", "keima-1")
    ahead.compile_pieces("keima-1", ("one", "two"))
    assert done == ["one", "two"] and ahead.missing("keima-1", ("one", "two")) == []
    ahead.compile_pieces("keima-1", ("one", "two"))
    assert done == ["one", "two"]


def test_a_piece_that_fails_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "FOLDER", tmp_path)

    def fails(encoder):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(ahead, "PIECES", {"one": fails})
    with pytest.raises(RuntimeError, match="no compiler"):
        ahead.compile_pieces("keima-1", ("one",))
    assert ahead.missing("keima-1", ("one",)) == ["one"]


def test_a_keeper_keeps_to_the_boards_it_is_given():
    keeper = GameKeeper(9, sizes=(7, 13))
    with pytest.raises(ValueError, match="unacceptable size: 19, the network plays 7 to 13"):
        keeper.new_game(19)
    assert keeper.game.size == 9
    with pytest.raises(ValueError, match="unacceptable size: 7, the network plays 9 alone"):
        GameKeeper(9, sizes=(9, 9)).new_game(7)


def test_a_keeper_begins_on_the_nearest_board_it_is_given():
    """The engine refused every command, boardsize too, where its network did not play the 19x19 of the default."""
    assert [GameKeeper(size, sizes=(7, 13)).game.size for size in (5, 9, 19)] == [7, 9, 13]
