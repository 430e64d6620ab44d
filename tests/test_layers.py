"""The shape of the project, as docs/architecture.md draws it: who may import whom, and how long things may grow."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.rooms import IMPORTS, MODULES, PACKAGES, ROOMS, ROOT, room_of, sources

MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 60, 120
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
    "engine.config.profiles",
    "engine.go.rules",
    "weights",
)
ONLY_IN = {
    ("torch", "safetensors"): ("engine.nets", "engine.inference", "engine.train", "gtp.cli", "bench"),
    ("click", "rich"): ("gtp.cli", "bench"),
    ("starlette", "uvicorn"): ("gtp.web",),
    ("ray",): ("engine.system.on_ray",),
    ("onnx",): ("engine.nets.files.onnx",),
    ("jinja2", "markupsafe", "matplotlib"): ("engine.pictures",),
}
"""Packages, and where alone they may be imported"""


def test_every_room_is_known_and_on_the_page():
    assert {room_of(name) for name in MODULES} == set(ROOMS)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d) \| `([\w/]+)/` \|", page, re.MULTILINE)
    rooms = [(str(floor), room.replace(".", "/")) for room, floor in ROOMS.items() if room != "engine"]
    assert sorted(listed) == sorted(rooms)


def test_the_folders_of_tests_are_the_rooms():
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/*.py")}
    assert folders - {"data"} == {room.rpartition(".")[2] for room in ROOMS} - {"engine"}


def test_no_test_imports_from_a_test():
    """What two of them need lies beside them; also in programs that they write."""
    taken = re.compile(r"\b(?:from|import) tests[\w.]*(?:\.| import )test_\w+")
    found = {path.name: taken.findall(path.read_text(encoding="utf-8")) for path in sources("tests")}
    assert not {name: lines for name, lines in found.items() if lines}


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
    heavy = ("torch", "numba", "numpy", "engine.go.board", "bench", "engine.records", "engine.train", "starlette",
             "uvicorn", "asyncio")  # fmt: skip
    code = f"import gtp.cli.gtp, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_library_starts_light():
    heavy = ("torch", "starlette", "uvicorn", "matplotlib", "jinja2", "ray", "pandas", "onnx", "onnxruntime", "click",
             "rich", "bench.match", "engine.train")  # fmt: skip
    code = f"import keima, sys; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_page_is_served_before_anything_heavy_is_imported():
    """The first paint waits for none of them; the page of keima play is answered while they load."""
    heavy = ("torch", "numba", "numpy", "sgfmill", "engine.go.board", "engine.play", "bench")
    code = (
        "import gtp.cli.play, gtp.web.app, gtp.web.connections, gtp.web.guard, sys;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_functions_stay_short_and_files_say_what_they_are():
    wrong = []
    for path in sources(*PACKAGES, "tests"):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if not ast.get_docstring(tree) and path.name != "__main__.py" and not name.startswith("tests/"):
            wrong.append(f"{name} has no docstring")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                limit = MAX_KERNEL_LINES if marks & {"kernel", "inlined_kernel"} else MAX_FUNCTION_LINES
                if node.end_lineno - node.lineno + 1 > limit:
                    wrong.append(f"{name}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines")
    assert not wrong, "\n".join(wrong)
