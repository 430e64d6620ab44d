"""The rooms of the project and the imports between its modules, read off the sources with ``ast``.

An import counts wherever it stands in a file, also inside a function or for type checkers only. The command ``keima``
finds its subcommands in ``bench`` by name when they are called, so no room below imports it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "gtp", "bench", "weights", "keima")
FLOORS = (
    ("engine", "engine.config", "engine.system", "weights"),
    ("engine.go", "engine.nets"),
    ("engine.rollout", "engine.features", "engine.inference", "engine.pictures"),
    ("engine.records", "engine.search"),
    ("engine.play", "engine.train"),
    ("engine.insight", "engine.evaluation", "engine.selfplay", "engine.live"),
    ("engine.alphago", "engine.zero"),
    ("gtp",),
    ("keima",),
    ("bench",),
)
"""Rooms from the ground up; a room imports from floors below its own. "engine" is the package's own file."""


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
