"""What a folder that is being filled says of itself: a JSON file, begun once and checked whenever the run goes on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.system.files import written_whole

FORMERLY = {"keima games": "keima played games"}
"""Formats of folders by the names that these had once; such folders go on"""


def refuse_foreign(out: Path, manifest: str, what: str, also: Sequence[str] = ()) -> None:
    """Refuse a folder of something else; locks, and what a killed first start left, are nothing.

    Args:
        manifest: name of the file that says that the folder is one of these.
        what: is in such a folder, in words.
        also: parts of the names of what may be there before the manifest is.
    Raises:
        ValueError: something else is there; one line.
    """

    def is_nothing(name: str) -> bool:
        return name.endswith(".lock") or name == f"{manifest}.partial" or any(part in name for part in also)

    if not out.exists() or (out / manifest).exists():
        return
    if not (out.is_dir() and all(is_nothing(one.name) for one in out.iterdir())):
        raise ValueError(f"{out}: already there, expected a new or empty folder, or one of {what}")


def open_manifest(path: Path, asked: dict[str, Any], begun: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a folder, a new one if there is none.

    Args:
        path: of the file; its folder is made where it is missing.
        asked: what must be the same each time, "options" among it.
        begun: what a new run has besides; a run that goes on has its own.
    Raises:
        ValueError: it was begun with something else, or is no such file; one line.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        manifest = asked | begun
        write_manifest(path, manifest)
        return manifest
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        before = {name: manifest[name] for name in (*asked, *begun)}
        options = dict(before["options"])
        before["format"] = FORMERLY.get(before["format"], before["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not the record of such a folder ({error})") from error
    for name in {**asked["options"], **options}:
        then, now = (found.get(name, "as by default") for found in (options, asked["options"]))
        if then != now:
            raise ValueError(f"{path.parent}: begun with {name} {then}, not {now}")
    for name, value in asked.items():
        if before[name] != value:
            raise ValueError(f"{path.parent}: begun with {name} {_named(before[name])}, not {_named(value)}")
    return manifest


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    with written_whole(path) as partial:
        partial.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _named(value: Any) -> Any:
    """A value for people: what has a name is called by it."""
    return value.get("name", value) if isinstance(value, dict) else value
