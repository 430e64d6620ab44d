"""The shape of the project, as docs/architecture.md draws it: who may import whom, and how long things may grow.

The rules are read off the sources with ``ast``. An import counts wherever it stands in a file, also inside a function
or for type checkers only. The command ``keima`` finds its subcommands by name when they are called, so ``gtp`` never
imports ``bench`` or ``engine.train``.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gtp", "bench", "weights")
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 120

CORE = {"engine", "engine.config", "engine.jit"}
RULES_OF_PLAY = CORE | {"engine.go"}
BELOW_SEARCH = RULES_OF_PLAY | {"engine.rollout", "engine.features", "engine.nets", "engine.inference"}
BESIDE_PLAYER = {
    "engine.analysis", "engine.choice", "engine.clock", "engine.settle", "engine.passing", "engine.resign",
    "engine.ponder", "engine.loading", "engine.opinion",
}  # fmt: skip
BELOW_PLAYER = BELOW_SEARCH | BESIDE_PLAYER | {"engine.search", "weights"}
BELOW_FRONT = BELOW_PLAYER | {"engine.player"}
ALLOWED = {
    "engine": set(),
    "engine.config": set(),
    "engine.jit": set(),
    "engine.go": CORE,
    "engine.rollout": RULES_OF_PLAY,
    "engine.features": RULES_OF_PLAY,
    "engine.nets": CORE - {"engine"},
    "engine.inference": CORE | {"engine.nets"},
    "engine.search": BELOW_SEARCH,
    "engine.clock": {"engine.config"},
    "engine.settle": RULES_OF_PLAY | {"engine.rollout"},
    "engine.resign": RULES_OF_PLAY,
    "engine.passing": RULES_OF_PLAY | {"engine.search", "engine.settle"},
    "engine.loading": BELOW_SEARCH | {"engine.search", "weights"},
    "engine.choice": BELOW_SEARCH | {"engine.search", "engine.loading", "engine.passing", "engine.settle"},
    "engine.analysis": BELOW_SEARCH | {"engine.search"},
    "engine.ponder": BELOW_SEARCH | {"engine.search"},
    "engine.opinion": BELOW_SEARCH,
    "engine.player": BELOW_PLAYER,
    "engine.pictures": BELOW_FRONT,
    "engine.records": RULES_OF_PLAY | {"engine.rollout", "engine.features"},
    "engine.train": BELOW_FRONT | {"engine.records"},
    "weights": set(),
    "gtp": BELOW_FRONT | {"engine", "engine.pictures"},
    "bench": BELOW_FRONT | {"engine", "engine.records", "engine.train", "gtp"},
}
"""Room -> rooms it may import besides itself; "engine" is the package's own file, with the version."""
STANDARD_LIBRARY_ONLY = ("gtp.protocol", "engine.config", "engine.go.rules", "weights")
TORCH_ROOMS = {"engine.nets", "engine.inference", "engine.train"}
TORCH = {"torch", "safetensors"}


class Import(NamedTuple):
    """One module named by an import statement."""

    target: str
    line: int
    is_lazy: bool
    """inside a function"""


def sources(*packages: str) -> list[Path]:
    """All source files of some packages."""
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    """Dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sources(*PACKAGES)}


def room_of(module: str) -> str:
    """Room of one of our modules: the second folder level inside engine, else the package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "engine" else parts[0]


def imports_of(name: str) -> Iterator[Import]:
    """Every module a module of ours imports."""

    def walk(node: ast.AST, is_lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, is_lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{MODULES[name]}:{child.lineno}: relative import"
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    yield Import(whole if whole in MODULES else child.module, child.lineno, is_lazy)
            else:
                yield from walk(child, is_lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from walk(ast.parse(MODULES[name].read_text(encoding="utf-8")), False)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name):
    room = room_of(name)
    assert room in ALLOWED, f"{name}: a room that docs/architecture.md and this test do not know"
    for found in imports_of(name):
        if found.target.split(".")[0] not in (*PACKAGES, "tests"):
            continue
        assert room_of(found.target) in ALLOWED[room] | {room}, f"{name}:{found.line} imports {found.target}"


@pytest.mark.parametrize("name", MODULES)
def test_torch_stays_in_its_rooms(name):
    if room_of(name) not in TORCH_ROOMS:
        for found in imports_of(name):
            assert found.target.split(".")[0] not in TORCH, f"{name}:{found.line} imports {found.target}"


@pytest.mark.parametrize("name", STANDARD_LIBRARY_ONLY)
def test_standard_library_only(name):
    for found in imports_of(name):
        assert found.target.split(".")[0] in sys.stdlib_module_names, f"{name}:{found.line} imports {found.target}"


def test_the_command_starts_light():
    heavy = ("torch", "numba", "numpy", "engine.go.board", "bench", "engine.records", "engine.train")
    code = f"import gtp.cli, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_no_two_modules_import_each_other():
    graph = {
        name: {found.target for found in imports_of(name) if found.target in MODULES and not found.is_lazy} - {name}
        for name in MODULES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("path", sources(*PACKAGES, "tests"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_stay_short(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_kernel = any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in node.decorator_list)
            lines = node.end_lineno - node.lineno + 1
            limit = MAX_KERNEL_LINES if is_kernel else MAX_FUNCTION_LINES
            assert lines <= limit, f"{path}:{node.lineno} {node.name} has {lines} lines"


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[-1] != "__main__"])
def test_every_module_says_what_it_is(name):
    assert ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8"))), f"{name} has no docstring"
