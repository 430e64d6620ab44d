"""The scripts of docs/examples run as they are and say what their pages promise."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from engine.features import encoder
from engine.nets.architectures.registry import ARCHITECTURES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
VERTEX = r"(?:[A-HJ][1-9]|pass)"
EXAMPLES = {
    "alphago_pictures": (["{tmp}"], r"alphago-figure5.svg\n.*alphago-policies.svg\n.*alphago-layers.svg\n"),
    "analyse_position": (
        [],
        rf"Black to move, 200 visits\n.*\n(?:{VERTEX} +\d+ +\d+\.\d% +[+-]\d.*\n)+Black is expected",
    ),
    "play_two_networks": (["small", "default", "2", "7"], r"[A-G][1-7] .*\n(?s:.*)(?:wins by|[BW]\+\d|^0$)"),
    "own_architecture": ([], rf"parameters, PlainShape\(.*channels=24\)\n(?s:.*)plays {VERTEX} after 50 visits"),
    "own_encoder": (
        [],
        r"symmetry 0(?s:.*)symmetry 1(?s:.*)key of the position [0-9a-f]{16}, of the next one [0-9a-f]{16}",
    ),
    "read_tree": (["60"], rf"60 visits(?s:.*)\n{VERTEX} .*\n  {VERTEX} .*\n    {VERTEX} "),
}


def test_every_example_is_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, capsys, monkeypatch, tmp_path):
    arguments, expected = EXAMPLES[name]
    arguments = [word.replace("{tmp}", str(tmp_path)) for word in arguments]
    # A module by name: kernels that are loaded from the cache look for the one that they were compiled in.
    spec = importlib.util.spec_from_file_location(f"examples_{name}", FOLDER / f"{name}.py")
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, example)
    spec.loader.exec_module(example)
    assert f"python docs/examples/{name}.py" in example.__doc__
    known = dict(ARCHITECTURES), dict(encoder.ENCODERS)
    try:
        example.main(arguments)
    finally:
        for registry, before in zip((ARCHITECTURES, encoder.ENCODERS), known, strict=True):
            registry.clear()
            registry.update(before)
    assert re.search(expected, capsys.readouterr().out, re.M)
