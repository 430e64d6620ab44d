"""What folders of finished work have in common: settings that must not change, and a file of JSON lines that grows.

A line is on the disk before the next piece of work is kept: however the process ends, only running work is lost. A last
line that a kill cut short is not read, and is cut off before the next one is written.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine.system.files import written_whole

Line = TypeVar("Line")


def same_settings(path: Path, settings: dict[str, Any], what: str, is_begun: bool = True) -> None:
    """Write the settings of new work; compare those of work that goes on.

    Args:
        path: of the file, in a folder that is there.
        settings: JSON values; of settings inside settings each is compared.
        what: the folder holds, in a word: ``match``.
        is_begun: whether any work is finished; until then other settings replace those in the file.
    Raises:
        ValueError: it was begun with others, or the file is damaged; one line.
        OSError: it cannot be read or written.
    """
    if not path.exists():
        _write(path, settings)
        return
    try:
        before = dict(_leaves(json.loads(path.read_text(encoding="utf-8")).items()))
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: not the settings of a {what}") from error
    now = dict(_leaves(json.loads(json.dumps(settings)).items()))
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    if changed and not is_begun:
        _write(path, settings)
    elif changed:
        said = ", ".join(f"{key} was {before.get(key)!r} and is {now.get(key)!r}" for key in changed)
        raise ValueError(f"{path.parent} holds a {what} with other settings: {said}; choose another folder")


def _write(path: Path, settings: dict[str, Any]) -> None:
    # Processes that share a campaign may begin it at once.
    with written_whole(path, is_shared=True) as part:
        part.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def read_lines(path: Path, read: Callable[[bytes], Line], what: str) -> list[Line]:
    """What the whole lines of a file hold; nothing where there is no file.

    Args:
        read: makes something of a line; raises ValueError, TypeError, KeyError or RecursionError where it is damaged.
        what: a line holds, in words: ``result of a match``.
    Raises:
        ValueError: a line is damaged; one line naming it.
        OSError: the file cannot be read.
    """
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else (), 1):
        try:
            found.append(read(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path}: line {number} is no {what}") from error
    return found


def add_line(path: Path, line: str) -> None:
    """Write one more line, which is on the disk when this returns; what a kill left of the last one goes.

    Raises:
        OSError: it cannot be written.
    """
    with path.open("ab+") as file:
        _cut_torn_line(file)
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _cut_torn_line(file: BinaryIO) -> None:
    """Cut a file after its last newline."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read() not in (b"", b"\n"):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _leaves(items: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings inside settings under one name each, as ``time.main_s``."""
    for key, value in items:
        if isinstance(value, dict):
            yield from _leaves(value.items(), f"{prefix}{key}.")
        else:
            yield prefix + key, value
