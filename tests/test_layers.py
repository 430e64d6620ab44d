"""The shape of the project, as docs/architecture.md draws it: who may import whom, and how long things may grow.

The rules are read off the sources with ``ast``. An import counts wherever it stands in a file, also inside a function
or for type checkers only. The command ``keima`` finds its subcommands in ``bench`` by name when they are called, so no
room below imports it.
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
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 400, 60, 120
FLOORS = (
    ("engine", "engine.config", "engine.system", "weights"),
    ("engine.go", "engine.nets"),
    ("engine.rollout", "engine.features", "engine.inference"),
    ("engine.records", "engine.search"),
    ("engine.play", "engine.train"),
    ("engine.insight", "engine.evaluation", "engine.selfplay"),
    ("gtp",),
    ("bench",),
)
"""Rooms from the ground up; a room imports from floors below its own. "engine" is the package's own file."""
APART = {
    "engine.nets": {"engine.go"},
    "engine.inference": {"engine.go", "engine.rollout", "engine.features"},
    "engine.records": {"engine.nets", "engine.inference"},
}
"""Rooms that must not know rooms below them: networks see no board, the server sees tensors and slots alone"""
STANDARD_LIBRARY_ONLY = (
    "gtp.protocol",
    "engine.config",
    "engine.config.declaration",
    "engine.go.rules",
    "weights",
)
ONLY_IN = {
    ("torch", "safetensors"): (
        "engine.nets",
        "engine.inference",
        "engine.train",
        "engine.evaluation",
        "gtp.cli",
        "bench",
    ),
    ("click", "rich"): ("gtp.cli", "bench"),
    ("ray",): ("engine.system.crew",),
}
"""Packages, and where alone they may be imported"""


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
ROOMS = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


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


IMPORTS = {name: list(imports_of(name)) for name in MODULES}


def test_there_are_few_rooms_and_every_one_is_known():
    rooms = {room_of(name) for name in MODULES}
    assert rooms == set(ROOMS)
    assert len(rooms - {"engine"}) <= 17 and len(FLOORS) <= 8


def test_imports_point_down():
    wrong = [
        f"{name}:{found.line} imports {found.target}"
        for name, all_found in IMPORTS.items()
        for found in all_found
        if found.target.split(".")[0] in (*PACKAGES, "tests") and not may_import(room_of(name), room_of(found.target))
    ]
    assert not wrong, "\n".join(wrong)


def may_import(room: str, other: str) -> bool:
    """Whether a room may import from another one, or from itself."""
    if other not in ROOMS:
        return False
    return other == room or (ROOMS[other] < ROOMS[room] and other not in APART.get(room, ()))


def test_no_two_modules_import_each_other():
    graph = {
        name: {found.target for found in all_found if found.target in MODULES and not found.is_lazy} - {name}
        for name, all_found in IMPORTS.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_packages_stay_where_they_belong():
    wrong = [
        f"{name}:{found.line} imports {found.target}"
        for packages, places in ONLY_IN.items()
        for name, all_found in IMPORTS.items()
        for found in all_found
        if found.target.split(".")[0] in packages and not name.startswith(places)
    ]
    wrong += [
        f"{name}:{found.line} imports {found.target}"
        for name in STANDARD_LIBRARY_ONLY
        for found in IMPORTS[name]
        if found.target.split(".")[0] not in sys.stdlib_module_names and found.target not in STANDARD_LIBRARY_ONLY
    ]
    assert not wrong, "\n".join(wrong)


def test_the_command_starts_light():
    heavy = ("torch", "numba", "numpy", "engine.go.board", "bench", "engine.records", "engine.train")
    code = f"import gtp.cli.play, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_files_and_functions_stay_short_and_say_what_they_are():
    wrong = []
    for path in sources(*PACKAGES, "tests"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if text.count("\n") > MAX_FILE_LINES:
            wrong.append(f"{name} has {text.count(chr(10))} lines")
        if not ast.get_docstring(tree) and path.name != "__main__.py" and not name.startswith("tests/"):
            wrong.append(f"{name} has no docstring")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                limit = MAX_KERNEL_LINES if marks & {"kernel", "inlined_kernel"} else MAX_FUNCTION_LINES
                if node.end_lineno - node.lineno + 1 > limit:
                    wrong.append(f"{name}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines")
    assert not wrong, "\n".join(wrong)


def test_the_map_is_that_of_today():
    from tests import architecture_map

    assert architecture_map.PAGE.read_text(encoding="utf-8") == architecture_map.page(), "make map writes it anew"
