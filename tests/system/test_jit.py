"""The cache of compiled kernels: its folder, and deletion of unused files."""

import ast
import errno
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from engine.system import jit

READ_BY_KERNELS = (
    "go/rules.py", "search/leaves.py", "go/board.py", "system/jit.py", "records/games.py", "selfplay/searches.py",
)  # fmt: skip


@pytest.mark.parametrize("name", READ_BY_KERNELS)
def test_an_edit_of_what_kernels_read_changes_the_key(name, tmp_path, monkeypatch):
    copy = tmp_path / "engine"
    shutil.copytree(jit.ENGINE_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "ENGINE_FOLDER", copy)
    before = jit.source_key()
    assert jit.source_key() == before
    path = copy / name
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    assert jit.source_key() != before


def test_what_no_kernel_reads_leaves_the_key_as_it_is():
    assert not {"play/player.py", "search/search.py", "insight/raw_outputs.py"} & jit.kernel_sources().keys()


def test_the_engine_imports_its_own_modules_by_name_alone():
    """What ``kernel_sources`` follows."""
    for path in jit.ENGINE_FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                assert not any(name.name.partition(".")[0] == "engine" for name in node.names), path
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """A cache folder of two versions' kernels and two results, one of each not used for longer than two weeks."""
    long_ago = time.time() - jit.STALE_AFTER_S - 60.0
    monkeypatch.setattr(jit, "FOLDER", tmp_path / "kernels-now")
    for name in ("kernels-now", "kernels-old", "kernels-lately", jit.RESULTS):
        (tmp_path / name).mkdir()
    for name in ("kernels-old/complete", "kernels-lately/complete", "settled/old.npz", "settled/lately.npz"):
        (tmp_path / name).touch()
        if "old" in name:
            os.utime(tmp_path / name, (long_ago, long_ago))
    os.utime(tmp_path / "kernels-now", (long_ago, long_ago))
    return tmp_path


@pytest.mark.parametrize("tidy", [jit.mark_warm, jit.drop_unused])
def test_what_was_not_used_for_two_weeks_goes(cache_folder, tidy):
    tidy()
    left = {path.relative_to(cache_folder).as_posix() for path in cache_folder.rglob("*") if path.name != "complete"}
    assert left == {"kernels-now", "kernels-lately", "settled", "settled/lately.npz"}


def test_what_another_process_deletes_meanwhile_is_passed_over(cache_folder, monkeypatch):
    """Two starts tidy the cache at once."""
    glob = jit.Path.glob
    monkeypatch.setattr(jit.Path, "glob", lambda folder, pattern: [folder / "gone", *glob(folder, pattern)])
    jit.drop_unused()
    assert not (cache_folder / "kernels-old").exists() and not (cache_folder / jit.RESULTS / "old.npz").exists()


def test_without_a_home_folder_the_cache_lies_among_temporary_files(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("no home folder")

    monkeypatch.setattr(jit, "cache_root", no_home)
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path))
    folder = jit._prepare()
    assert folder is not None and tmp_path in folder.parents
    jit.numba.config.CACHE_DIR = str(jit.FOLDER)


KERNELS = """
from engine.system.jit import kernel

@kernel
def twice(number):
    return 2 * number

@kernel
def call_twice(number):
    return twice(number) + 1
"""


@pytest.fixture
def call_kernel(tmp_path):
    """Returns a function that calls a kernel in a new process with a cache of its own; it returns what was printed."""
    (tmp_path / "kernels_here.py").write_text(KERNELS)

    def call(code):
        path = os.pathsep.join([str(jit.ENGINE_FOLDER.parent), str(tmp_path)])
        known = os.environ | {"PYTHONPATH": path, jit.CACHE_VARIABLE: str(tmp_path / "cache")}
        code = f"import sys; from kernels_here import call_twice; print(call_twice({code}))"
        ended = subprocess.run([sys.executable, "-c", code], env=known, cwd=tmp_path, capture_output=True, text=True)
        return ended.stdout + ended.stderr

    return call


def test_what_a_crash_left_incomplete_is_compiled_again(call_kernel, tmp_path):
    """Numba fails on a torn index or data file at every start."""
    assert call_kernel("3") == "7\n"
    for kind in ("nbi", "nbc"):
        for path in tmp_path.rglob(f"*.{kind}"):
            path.write_bytes(path.read_bytes()[:-20])
        said = call_kernel("4")
        assert said.startswith("9\n") and "compiled again" in said and "Traceback" not in said
        assert call_kernel("5") == "11\n"


def test_a_start_with_compiled_kernels_does_not_load_the_compiler(call_kernel):
    code = "3), 'numba.np.arrayobj' in sys.modules, ("
    assert (call_kernel(code), call_kernel(code)) == ("7 True ()\n", "7 False ()\n")


def test_a_full_disk_while_kernels_are_saved_is_said_once_and_the_kernels_work(tmp_path, monkeypatch, capfd):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    monkeypatch.setattr(jit.numba.config, "CACHE_DIR", str(tmp_path))
    jit._say_unsaved.cache_clear()

    @jit.kernel
    def twice(number):
        return 2 * number

    assert (twice(3), twice(0.5)) == (6, 1.0)
    said = capfd.readouterr().err.splitlines()
    assert said == [f"kernel cache {jit.FOLDER}: not saved (No space left on device), the next start compiles again"]


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setattr(jit, "cache_root", lambda: blocked)
    monkeypatch.setattr(jit, "_temporary_root", lambda: blocked)
    assert jit._prepare() is None


def test_kernels_are_plain_python_where_numba_is_told_so(tmp_path):
    """So they are debugged (CONTRIBUTING.md)."""
    code = (
        "import types; from engine.features.symmetry import apply_symmetry as a, symmetry_steps as steps; "
        "print(type(a) is types.FunctionType, steps(9, 4), a.py_func(80, 9, 1))"
    )
    known = os.environ | {"PYTHONPATH": str(jit.ENGINE_FOLDER.parent), "NUMBA_DISABLE_JIT": "1"}
    ended = subprocess.run([sys.executable, "-c", code], env=known, cwd=tmp_path, capture_output=True, text=True)
    assert ended.stdout == "True (0, 1, 9) 8\n", ended.stderr


def test_whole_numbers_of_any_width_arrive_alike_and_constants_are_known(monkeypatch):
    # Without a cache folder: what is loaded from one was compiled elsewhere, and leaves nothing to be looked at here.
    monkeypatch.setattr(jit, "FOLDER", None)

    @jit.kernel
    def plus_one(number):
        return number + 1

    @jit.kernel
    def called_with_constants_and_narrow_numbers(numbers, small, flag):
        return plus_one(0) + plus_one(numbers[0]) + plus_one(small[0]) + plus_one(np.int64(7)) + plus_one(flag)

    numbers, small = np.array([3], np.int16), np.array([200], np.uint8)
    assert called_with_constants_and_narrow_numbers(numbers, small, True) == 1 + 4 + 201 + 8 + 2
    assert {str(one[0]) for one in plus_one.body.overloads} == {"Literal[int](0)", "int64", "bool"}
    assert not plus_one.overloads, "no wrapper for Python was made"
    assert plus_one(2) == 3


def test_words_keep_their_width():
    @jit.kernel
    def double(word):
        return word + word

    @jit.kernel
    def doubled(words):
        return double(words[0])

    assert doubled(np.array([1 << 63], np.uint64)) == 0
    assert doubled(np.array([1 << 31], np.uint32)) == 1 << 32


def test_a_kernel_may_be_sent_to_another_process():
    """As Ray and processes that are spawned do."""
    code = (
        "import pickle, sys; from engine.go.geometry import cell_count; from numba.core import serialize\n"
        "if sys.argv[1:]: print(pickle.loads(bytes.fromhex(sys.argv[1]))(9))\n"
        "else: print(serialize.dumps(cell_count).hex())"
    )
    known = os.environ | {"PYTHONPATH": str(jit.ENGINE_FOLDER.parent)}
    sent = subprocess.run([sys.executable, "-P", "-c", code], env=known, capture_output=True, text=True, check=True)
    words = [sys.executable, "-P", "-c", code, sent.stdout.strip()]
    found = subprocess.run(words, env=known, capture_output=True, text=True)
    assert found.stdout == "111\n", found.stderr
