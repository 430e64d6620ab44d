"""``make map``: the list of files in docs/architecture.md, made anew from the files' own first lines.

Order: floors from the ground up, rooms as tests/rooms.py has them, in a room imported files before those that
import them.
"""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

from tests.listed import with_list
from tests.rooms import FLOORS, IMPORTS, MODULES, ROOT, room_of

PAGE = ROOT / "docs" / "architecture.md"


def first_line(name: str) -> str:
    """The first sentence of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


def modules_of(room: str) -> list[str]:
    """A room's modules that hold code, imported ones before those that import them."""
    names = sorted(name for name in MODULES if room_of(name) == room and holds_code(name))
    graph = {
        name: sorted({found.target for found in IMPORTS[name] if not found.is_lazy} & set(names) - {name})
        for name in names
    }
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def holds_code(name: str) -> bool:
    """Whether a module is more than its docstring and an entry for ``python -m``."""
    path = MODULES[name]
    return name != "engine" and path.name != "__main__.py" and len(ast.parse(path.read_text(encoding="utf-8")).body) > 1


def lines() -> Iterator[str]:
    """The list as Markdown."""
    for number, rooms in enumerate(FLOORS):
        yield f"\n### Floor {number}\n"
        loose = [room for room in rooms if MODULES[room].name != "__init__.py"]
        if loose:
            yield from table(loose)
        for room in rooms:
            if names := [] if room in loose else modules_of(room):
                yield f"\n**`{room.replace('.', '/')}/`** {first_line(room)}.\n"
                yield from table(names)


def table(names: list[str]) -> Iterator[str]:
    """Some files, a line each."""
    yield "\n| file | what |\n|---|---|\n"
    for name in names:
        path, what = MODULES[name].relative_to(ROOT).as_posix(), first_line(name).replace("|", "\\|")
        yield f"| `{path}` | {what} |\n"


def page() -> str:
    """The whole page with the list of today."""
    return with_list(PAGE, "map", "".join(lines()))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
