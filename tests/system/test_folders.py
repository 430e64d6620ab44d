"""The user's folders: the platform's, and those of earlier versions."""

import sys

import platformdirs
import pytest

from engine.system import user_folder


@pytest.mark.parametrize(("kind", "variable"), [("config", "XDG_CONFIG_HOME"), ("cache", "XDG_CACHE_HOME")])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such variables")
def test_a_folder_follows_its_variable(tmp_path, monkeypatch, kind, variable):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv(variable, str(tmp_path))
    assert user_folder(kind) == tmp_path / "keima"


@pytest.mark.parametrize(
    ("platform", "kind", "variable", "rest"),
    [
        ("win32", "config", "APPDATA", "keima"),
        ("win32", "cache", "LOCALAPPDATA", "keima/cache"),
        ("darwin", "config", "HOME", "Library/Application Support/keima"),
        ("darwin", "cache", "HOME", "Library/Caches/keima"),
    ],
)
def test_the_folder_of_an_earlier_version_is_found(tmp_path, monkeypatch, platform, kind, variable, rest):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert user_folder(kind) != tmp_path / rest
    (tmp_path / rest).mkdir(parents=True)
    assert user_folder(kind) == tmp_path / rest


def test_a_user_without_a_home_folder_has_none(monkeypatch):
    monkeypatch.setattr(platformdirs.PlatformDirs, "user_cache_dir", "~/.cache/keima")
    with pytest.raises(RuntimeError, match="no home folder"):
        user_folder("cache")
