"""Where people keep networks: folders of other programs, of this one, and of the user.

Start at :func:`candidates`. Nothing here reads a file: what looks like a network by its name need not be one.
"""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from weights import FOLDER

SUFFIXES = frozenset((".gz", ".bin", ".txt", ".safetensors", ""))
"""Leela Zero's own have none"""
MIN_BYTES = 1 << 12
"""No network is smaller"""
MAX_ENTRIES = 20_000
"""Files and folders that are looked at below one place, so that a huge one costs no more than a second"""
PROGRAMS = ("katago", "katrain", "lizzie", "leela-zero", "leelazero", "leelaz", "sabaki", "baduk", "kaya", "q5go")
"""How the folders begin into which people unpack programs that come with networks"""
PROGRAM_DEPTH = 5
EVERY_DEPTH = -1
"""Of a place that was named: all folders below it, however many there are"""


class Place(NamedTuple):
    """A folder to look into."""

    folder: Path
    depth: int
    """levels of folders below it that are looked into as well; or ``EVERY_DEPTH``"""


def places() -> list[Place]:
    """The folders there are on this machine, ours first."""
    here = Path.cwd()
    found = [Place(FOLDER, 0), Place(here, 0)]
    found += [Place(here / name, 1) for name in ("networks", "weights", "models")]
    found += [Place(Path(folder), 1) for folder in _package_folders("katrain")]
    roots = ["/usr", "/usr/local", "/opt/homebrew", "/home/linuxbrew/.linuxbrew"]
    with suppress(RuntimeError):
        home = Path.home()
        roots.append(str(home / ".local"))
        # KaTrain keeps what it downloads in its folder, and what a training run needs three levels below.
        found += [Place(home / ".katrain", 3), Place(home / ".katago", 2), Place(home / "Downloads", 0)]
        found += [Place(home / ".local" / "share" / "leela-zero", 1)]
        for base in (home, *(home / name for name in ("Downloads", "Desktop", "Documents"))):
            found += _programs(base)
    found += [Place(Path(root) / "share" / "katago", 2) for root in roots]
    bases = [os.environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")]
    for folder in ("/Applications", "/opt", *filter(None, bases)):
        found += _programs(Path(folder))
    return [place for place in found if _is_folder(place.folder)]


def candidates(places: Iterable[Place]) -> Iterator[Path]:
    """Files in some places that may be networks, each once."""
    seen = set()
    for place in places:
        left = [math.inf if place.depth == EVERY_DEPTH else MAX_ENTRIES]
        for path in _files(place.folder, place.depth, left):
            with suppress(OSError, RuntimeError):
                real = path.resolve()
                if real not in seen and path.stat().st_size >= MIN_BYTES:
                    seen.add(real)
                    yield path


def _files(folder: Path, depth: int, left: list[float]) -> Iterator[Path]:
    """Files of a folder whose names may be a network's, then those of the folders below; ``left`` counts down."""
    below = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            left[0] -= 1
            if left[0] < 0:
                return
            if path.is_file():
                if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
                    yield path
            elif depth and path.is_dir() and not path.is_symlink():
                below.append(path)
    for path in below:
        yield from _files(path, depth - 1, left)


def _programs(base: Path) -> Iterator[Place]:
    """Folders of programs in a folder where people put them."""
    with suppress(OSError):
        for path in sorted(base.iterdir()):
            if path.name.lower().startswith(PROGRAMS) and path.is_dir():
                yield Place(path, PROGRAM_DEPTH)


def _package_folders(name: str) -> list[str]:
    """Folders of an installed package, which is not imported for that."""
    with suppress(ImportError, ValueError):
        spec = find_spec(name)
        return list(spec.submodule_search_locations or ()) if spec else []
    return []


def _is_folder(path: Path) -> bool:
    """Whether there is such a folder that we may look at."""
    try:
        return path.is_dir()
    except OSError:
        return False
