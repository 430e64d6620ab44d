"""Where compiled kernels are kept, and when they are thrown away."""

import shutil

import pytest

from engine import jit


@pytest.mark.parametrize("name", ["go/rules.py", "search/batch.py", "go/board.py", "jit.py"])
def test_an_edit_of_what_kernels_read_changes_the_key(name, tmp_path, monkeypatch):
    copy = tmp_path / "engine"
    shutil.copytree(jit.ENGINE_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "ENGINE_FOLDER", copy)
    before = jit.source_key()
    assert jit.source_key() == before
    path = copy / name
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    assert jit.source_key() != before


def test_without_a_home_folder_the_cache_lies_among_temporary_files(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("no home folder")

    monkeypatch.setattr(jit, "cache_root", no_home)
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(jit.tempfile, "tempdir", str(tmp_path))
    folder = jit._prepare()
    assert folder is not None and tmp_path in folder.parents
    jit.numba.config.CACHE_DIR = str(jit.FOLDER)


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setattr(jit, "cache_root", lambda: blocked)
    monkeypatch.setattr(jit, "_temporary_root", lambda: blocked)
    assert jit._prepare() is None
