"""What people install: the wheel made from the source distribution plays where nothing but its dependencies is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import engine

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gtp", "bench", "weights", "keima")
NOT_COPIED = (".git", ".venv", "runs", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
LIMIT_S = 1200.0


def test_every_file_of_the_packages_is_packed():
    """What is no Python is packed only where pyproject.toml says so."""
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    for package in PACKAGES:
        # Beside the suite's other processes, bytecode is being written there under passing names.
        files = [path for path in (ROOT / package).rglob("*") if "__pycache__" not in path.parts and path.is_file()]
        others = [path for path in files if path.suffix != ".py"]
        patterns = packed["*"] + packed.get(package, [])
        assert not [path for path in others if not any(path.match(pattern) for pattern in patterns)]
        folders = {path.parent for path in (ROOT / package).rglob("*.py")}
        assert all((folder / "__init__.py").exists() for folder in folders)


def test_the_constraints_have_a_version_of_every_package_asked_for():
    """Within the range that pyproject.toml gives."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [Requirement(text) for text in sum(project["optional-dependencies"].values(), project["dependencies"])]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert lines == sorted(lines, key=str.lower)
    for one in asked:
        name = canonicalize_name(one.name)
        assert name == project["name"] or one.specifier.contains(pins[name], prereleases=True), one


@pytest.mark.slow
def test_the_wheel_plays_in_an_empty_environment(tmp_path):
    """Without a network: the dependencies are those of this environment, lent by path; kernels are compiled anew."""
    source, found = tmp_path / "source", tmp_path / "dist"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_COPIED))
    run = {"check": True, "capture_output": True, "text": True, "timeout": LIMIT_S}
    subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(found), str(source)], **run)
    assert [path.name for path in found.glob("*.tar.gz")] == [f"keima-{engine.__version__}.tar.gz"]
    (wheel,) = found.glob(f"keima-{engine.__version__}-py3-none-any.whl")

    folder = tmp_path / "empty"
    venv.EnvBuilder(with_pip=False).create(folder)
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = shutil.which("python", path=str(scripts))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], **run)
    program = shutil.which("keima", path=str(scripts))
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", asked], **run).stdout.strip()
    # A folder named in a .pth file lends its packages, but not what its own .pth files name: this project, as edited.
    Path(site, "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run |= {"cwd": tmp_path, "env": kept | {"KEIMA_CACHE": str(tmp_path / "cache")}}
    where = subprocess.run([python, "-c", "import engine, keima; print(engine.__file__, keima.__file__)"], **run).stdout
    assert where.count(site) == 2
    assert engine.__version__ in subprocess.run([python, "-m", "keima", "--version"], **run).stdout
    assert engine.__version__ in subprocess.run([program, "--version"], **run).stdout
    options = ["gtp", "--size", "9", "--visits", "8"]
    said = subprocess.run([program, *options], input="name\ngenmove b\ngogui-title\nquit\n", **run).stdout
    assert re.fullmatch(r"= Keima\n\n= [A-HJ][1-9]\n\n= Keima with default\n\n=\n\n", said)
