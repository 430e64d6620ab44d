"""The notebooks of docs/examples run from top to bottom, and hold the outputs of such a run."""

import ast
import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
NEEDS = {"games_to_data_frame": "pandas", "train_your_own": "torch"}
FORMS = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}
"""Method of an object -> form in which a notebook shows it"""


def cells_of(name):
    """The code cells of a notebook."""
    found = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def run_cell(code, names):
    """Run a cell; returns what it prints, and the value of its last line if that is an expression."""
    tree, printed, value = ast.parse(code), io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return printed.getvalue(), value


def forms_of(value):
    """The forms in which a notebook shows a value."""
    return {"text/plain"} | {form for method, form in FORMS.items() if hasattr(value, method)}


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_it_has_in_the_file(name, tmp_path, monkeypatch):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    for path in FOLDER.glob("*.sgf"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for cell in cells_of(name):
        printed, value = run_cell("".join(cell["source"]), names)
        outputs = cell["outputs"]
        assert bool(printed) == any(one["output_type"] == "stream" for one in outputs), cell["source"]
        shown = [one for one in outputs if one["output_type"] == "execute_result"]
        assert (value is not None) == bool(shown), cell["source"]
        assert all(forms_of(value) <= set(one["data"]) for one in shown)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_have_no_error_and_no_path_of_a_machine(name):
    for cell in cells_of(name):
        for one in cell["outputs"]:
            assert one["output_type"] in ("stream", "execute_result")
        assert cell["execution_count"] is not None
        assert not re.search(r"(/home/|/tmp/|/root/|/usr/|[A-Z]:\\\\)\w", json.dumps(cell["outputs"]))
