"""The site of ``make docs``: it builds without a warning, and its reference has all of the package ``keima``."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keima
from tests.rooms import sources

ROOT = Path(__file__).resolve().parent.parent


def test_the_site_builds_without_a_warning(tmp_path):
    """A link, a picture or a name that a page or a docstring refers to and that is missing is a warning."""
    for package in ("sphinx", "myst_nb", "furo"):
        pytest.importorskip(package)
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d", tmp_path / "doctrees"]
    done = subprocess.run([*command, ".", site], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (site / "index.html").read_bytes() == (site / "README.html").read_bytes()


def test_the_reference_has_every_name_of_the_package():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")]
    named = re.findall(r"^\.\. auto\w+:: keima\.(\w+)$", "\n".join(pages), re.M)
    assert sorted(named) == sorted(set(keima.__all__) - {"__version__"})


def test_everything_public_in_the_package_has_a_docstring():
    """Classes, functions, and the fields of classes."""
    missing = []
    for path in sources("keima"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for place in (tree, *(node for node in classes if not node.name.startswith("_"))):
            for node, following in zip(place.body, [*place.body[1:], None], strict=True):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    if re.search(r"overload|\.setter", " ".join(map(ast.unparse, node.decorator_list))):
                        continue  # its twin has it
                    name, is_told = node.name, ast.get_docstring(node) is not None
                elif isinstance(node, ast.AnnAssign) and place is not tree:
                    name, is_told = ast.unparse(node.target), is_text(following)
                else:
                    continue
                if not is_told and not name.startswith("_"):
                    missing.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not missing


def is_text(node):
    """Whether a statement is the docstring of the line before."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
