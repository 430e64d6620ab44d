"""Where networks are looked for: only in files that may be one, each once, and never without end."""

import sys

import pytest

from weights import FOLDER, places
from weights.places import MIN_BYTES, Place, candidates

DATA = b"x" * MIN_BYTES


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's folders, with nothing in them."""
    monkeypatch.setattr(places.Path, "home", lambda: tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def put(folder, *names, data=DATA):
    """Files in a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(data)


def found(folder, depth=5):
    """Names of candidates."""
    return [path.relative_to(folder).as_posix() for path in candidates([Place(folder, depth)])]


def test_files_that_may_be_networks_are_found_folder_after_folder(tmp_path):
    put(tmp_path, "z.bin.gz", "a.txt", "b.safetensors", "0f3ac1", "game.sgf", "engine.exe", ".hidden")
    put(tmp_path / "deep" / "deeper", "best-network", "MODEL.BIN")
    put(tmp_path, "small.txt", data=DATA[1:])
    top = ["0f3ac1", "a.txt", "b.safetensors", "z.bin.gz"]
    assert found(tmp_path) == [*top, "deep/deeper/MODEL.BIN", "deep/deeper/best-network"]
    assert found(tmp_path, 1) == top


def test_each_file_comes_once(tmp_path):
    put(tmp_path / "one", "net.gz")
    (tmp_path / "link.gz").symlink_to(tmp_path / "one" / "net.gz")
    (tmp_path / "one" / "round").symlink_to(tmp_path, target_is_directory=True)
    twice = [Place(tmp_path, 3), Place(tmp_path / "one", 0)]
    assert [path.name for path in candidates(twice)] == ["link.gz"]


def test_a_huge_folder_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "MAX_ENTRIES", 10)
    put(tmp_path, *(f"{i:02}.txt" for i in range(30)))
    assert len(found(tmp_path)) == 10


def test_a_folder_that_was_named_is_searched_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "MAX_ENTRIES", 10)
    put(tmp_path.joinpath(*"abcdefgh"), *(f"{i:02}.txt" for i in range(30)))
    assert len(found(tmp_path, places.EVERY_DEPTH)) == 30 and found(tmp_path) == []


def test_folders_that_cannot_be_read_are_left_out(tmp_path):
    assert found(tmp_path / "none") == []


def test_programs_keep_networks_where_they_always_do(home):
    kept = [
        home / ".katrain" / "katago_contribute" / "kata1" / "models", home / ".katago", home / "Downloads",
        home / ".local" / "share" / "leela-zero", home / ".local" / "share" / "katago" / "models",
        home / "LizzieYzy-2.5" / "weights", home / "Downloads" / "katago-v1.16.4-opencl", home / "here" / "networks",
        home / "here",
    ]  # fmt: skip
    for folder in kept:
        put(folder, "net.bin.gz")
    put(home, "elsewhere.bin.gz")
    put(home / "Pictures", "elsewhere.bin.gz")
    mine = [path for path in candidates(places.places()) if home in path.parents]
    assert sorted(mine) == sorted(folder / "net.bin.gz" for folder in kept)
    assert places.places()[0] == Place(FOLDER, 0)


def test_an_installed_katrain_is_looked_into_but_not_started(home, monkeypatch):
    put(home / "site" / "katrain" / "models", "net.bin.gz")
    (home / "site" / "katrain" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(home / "site")
    assert home / "site" / "katrain" / "models" / "net.bin.gz" in candidates(places.places())
    assert "katrain" not in sys.modules
