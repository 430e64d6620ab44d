"""Other installed packages named as ours: found before anything of ours is imported, and told with what to do."""

import importlib.metadata
import os
import subprocess
import sys

import gtp.cli as shadowing
from gtp.cli.doctor import _packages
from tests.gtp.process import ROOT


def test_nothing_shadows_this_checkout():
    assert list(shadowing.shadows()) == []
    assert [finding.verdict for finding in _packages()] == ["well"]


def test_another_project_with_a_package_of_that_name_is_named(monkeypatch):
    owners = {"gtp": ["keima", "gtp-tools"], "engine": ["keima"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: owners)
    assert list(shadowing.shadows()) == ["gtp is also installed by gtp-tools"]
    (finding,) = _packages()
    assert finding.verdict == "WRONG" and "virtual environment" in finding.fix


def test_a_package_from_elsewhere_is_told_with_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shadowing, "HOME", tmp_path)
    assert next(iter(shadowing.shadows())) == f"engine is imported from {ROOT}, expected {tmp_path}"


def keima(tmp_path, name: str, *words: str) -> subprocess.CompletedProcess:
    """The command, where a folder that comes first on the path has another package of a name."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-P", "-m", "gtp.cli", *words]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)


def test_a_command_that_cannot_be_imported_says_which_package_is_in_the_way(tmp_path):
    ended = keima(tmp_path, "weights", "doctor")
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"Error: weights is imported from {tmp_path}, expected {ROOT}; install Keima into")


def test_so_does_the_whole_program(tmp_path):
    ended = keima(tmp_path, "engine", "--version")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"keima: engine is imported from {tmp_path}, expected {ROOT}; ")
