"""The code of docs/python.md and of README runs as it stands, block after block."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/python.md")


def blocks_of(page):
    """The blocks of Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_run_one_after_another(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    blocks, names = blocks_of(page), {"__name__": "__main__"}
    assert blocks
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), names)
    assert capsys.readouterr().out


def test_the_first_lines_are_the_same_on_both_pages():
    assert blocks_of("README.md")[0] == blocks_of("docs/python.md")[0]
    assert len(blocks_of("README.md")[0].splitlines()) <= 10
