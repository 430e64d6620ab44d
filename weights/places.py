"""The folders where people keep networks: Keima's, other programs' and the user's.

Start at :func:`candidates`. Files are chosen by name and size, without reading them.
"""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from weights import FOLDER, user_networks

SUFFIXES = frozenset((".gz", ".bin", ".txt", ".safetensors", ""))
"""Suffixes of network files; Leela Zero's own have none"""
MIN_BYTES = 1 << 12
"""Minimum size of a network file, in bytes; smaller files are passed over"""
MAX_ENTRIES = 20_000
"""Maximum number of files and folders visited below one place, about a second's work"""
PROGRAMS = ("katago", "katrain", "lizzie", "leela-zero", "leelazero", "leelaz", "sabaki", "baduk", "kaya", "q5go")
"""Beginnings of the names of folders into which people unpack programs with networks, in lower case"""
PROGRAM_DEPTH = 5
EVERY_DEPTH = -1
"""``Place.depth`` of a folder that the user names: search all folders below it, without the limit ``MAX_ENTRIES``"""


class Place(NamedTuple):
    """A folder to search."""

    folder: Path
    depth: int
    """levels of subfolders to search; ``EVERY_DEPTH`` = all"""


def places() -> list[Place]:
    """The places that exist on this machine, the folders of shipped and of downloaded networks first."""
    here = Path.cwd()
    found = [Place(FOLDER, 0)]
    with suppress(RuntimeError):
        found.append(Place(user_networks(), 0))
    found.append(Place(here, 0))
    found += [Place(here / name, 1) for name in ("networks", "weights", "models")]
    found += [Place(Path(folder), 1) for folder in _package_folders("katrain")]
    roots = ["/usr", "/usr/local", "/opt/homebrew", "/home/linuxbrew/.linuxbrew"]
    with suppress(RuntimeError):
        home = Path.home()
        roots.append(str(home / ".local"))
        # KaTrain keeps downloads in its folder, and files of training runs three levels below.
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
    """Yield the files in places that may be networks by name and size, each file once."""
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
    """Yield the files of a folder with a network's suffix, then those of its subfolders.

    Args:
        left: one number, the entries that may still be visited; counted down in place.
    """
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
    """Yield the subfolders of ``base`` that may hold a program of ``PROGRAMS``, as places to search."""
    with suppress(OSError):
        for path in sorted(base.iterdir()):
            if path.name.lower().startswith(PROGRAMS) and path.is_dir():
                yield Place(path, PROGRAM_DEPTH)


def _package_folders(name: str) -> list[str]:
    """The folders of an installed package, found without an import; empty if it is not installed."""
    with suppress(ImportError, ValueError):
        spec = find_spec(name)
        return list(spec.submodule_search_locations or ()) if spec else []
    return []


def _is_folder(path: Path) -> bool:
    """Whether the folder exists and is accessible."""
    try:
        return path.is_dir()
    except OSError:
        return False
