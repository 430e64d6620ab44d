"""The settings file ``keima.toml``: every option of ``keima gtp`` by its name on the command line, without the dashes.

It is flat, since one line should be enough to change one thing::

    weights = "keima-6x96"
    ponder = true
    resign-below = -0.95

Start at :func:`chosen_file` and :func:`read_settings`. Only files that were named, and the user's own, are read: an
engine is started by other programs in whatever folder, where a file of that name may be anybody's.
"""

import json
import os
import re
import sys
import textwrap
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions, help_text, range_text, removed
from engine.go.rules import rules_named, twice_komi
from weights import anchored

CONFIG_VARIABLE = "KEIMA_CONFIG"
FILE_NAME = "keima.toml"
NO_FILE = "none"
"""Given for a file: none is read, not even the user's own"""
SECTIONS = {
    SetupOptions: "What plays",
    PlayOptions: "Thinking time, move choice, resigning",
    SearchOptions: "Search",
    SessionOptions: "Conversation",
}
"""Options classes in the order of the file, with their headings"""
CHECKS = {"rules": rules_named, "komi": twice_komi}
"""What decides about values that have no range"""
WIDTH = 100
"""Of comments"""
SHOWN = 60
"""Characters of a wrong value that a message repeats"""
TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


def options() -> list[Field]:
    """Every option that may stand in the file."""
    return [item for kind in SECTIONS for item in fields(kind)]


def key_of(name: str) -> str:
    """How an option is spelt in the file and, behind two dashes, on the command line."""
    return name.replace("_", "-")


def user_file() -> Path:
    """The user's own settings file, in the platform's folder for such; there may be none.

    Raises:
        RuntimeError: the user has no home folder.
    """
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
        return Path(base) / "keima" / FILE_NAME
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "keima" / FILE_NAME
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "keima" / FILE_NAME


def chosen_file(named: str | None) -> Path | None:
    """The file in force, to read or to write: the one named, else ``$KEIMA_CONFIG``, else the user's own.

    Returns:
        Path | None: None = none was wanted; only the user's own may be missing.
    Raises:
        ValueError: a file that was named does not exist.
    """
    text = named or os.environ.get(CONFIG_VARIABLE)
    if text == NO_FILE:
        return None
    if not text:
        with suppress(RuntimeError):
            return user_file()
        return None
    with suppress(OSError, RuntimeError):
        path = Path(text).expanduser()
        if path.is_file():
            return path
    where = "" if named else f" (from ${CONFIG_VARIABLE})"
    raise ValueError(f"settings file {text}{where}: no such file; expected a file, or {NO_FILE}")


def read_settings(path: Path) -> dict[str, Any]:
    """The options that a settings file sets, by their names in Python; no file, no options.

    Raises:
        ValueError: it cannot be read, is not TOML, or holds an unknown key or a value that is not allowed: one line
            naming the file, the key, its value and what was expected.
    """
    by_key = {key_of(item.name): item for item in options()}
    values = {}
    for key, value in _parse(path, _text_of(path)).items():
        if gone := removed(key):
            # A complete file of an earlier version names every option: that must not keep the engine from starting.
            print(f"{path}: {gone}", file=sys.stderr)
            continue
        if key not in by_key:
            import difflib  # Not at every start.

            close = difflib.get_close_matches(key.replace("_", "-"), by_key, 1)
            expected = f"did you mean {close[0]}?" if close else "expected an option of keima gtp without its dashes"
            raise ValueError(f"{path}: unknown key {_shown(key)} = {_shown(value)}, {expected}")
        item = by_key[key]
        try:
            values[item.name] = _checked(value, item, path.absolute().parent)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return values


def _text_of(path: Path) -> str:
    """The text of a settings file, empty if there is none."""
    try:
        data = path.read_bytes()
        # PowerShell 5 redirects into UTF-16.
        return data.decode("utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid TOML (byte {error.start} is no {error.encoding.upper()})") from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    """What TOML says."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Besides TOML's own, integers of thousands of digits.
        raise ValueError(f"{path}: not valid TOML ({error})") from error


def _checked(value: Any, item: Field, folder: Path) -> Any:
    """A value of the option's type and within its range; relative paths begin at a folder."""
    wanted = type(item.default)
    if wanted is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) is not wanted:
        raise ValueError(f"{key_of(item.name)} is {_shown(value)}, expected {TYPES[wanted]}")
    low, high, choices = (item.metadata[name] for name in ("low", "high", "choices"))
    is_within = (low is None or value >= low) and (high is None or value <= high)
    if not is_within or (choices and value not in choices):
        raise ValueError(f"{key_of(item.name)} is {_shown(value)}, expected {range_text(item)}")
    if item.name in CHECKS:
        CHECKS[item.name](value)
    return with_whole_paths({item.name: value}, folder)[item.name]


def with_whole_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options of which those that name files mean the same from any working directory.

    Args:
        folder: where relative paths begin.
    Raises:
        ValueError: a path that cannot be looked up.
    """
    values = dict(values)
    if "weights" in values:
        values["weights"] = anchored(values["weights"], folder)
    if values.get("log_file"):
        # Leaves a "~" that leads nowhere as it is.
        values["log_file"] = str(folder / os.path.expanduser(values["log_file"]))  # noqa: PTH111
    return values


def _shown(value: Any) -> str:
    """A value as the file may have it, in one short line."""
    try:
        text = toml_value(value)
    except ValueError:
        text = " ".join(str(value).split())
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def toml_value(value: Any) -> str:
    """A value as TOML.

    Raises:
        ValueError: no TOML can hold it.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is neither a number, nor text, nor true or false")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{value!r} cannot be written to a settings file: it is not all text") from error
    # JSON's escapes are TOML's too; only DEL, which JSON leaves as it is, must not stand there.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def render(values: Mapping[str, Any]) -> str:
    """A complete settings file that sets every option to a value, with its help and its default as comments."""
    lines = [
        "# Settings of Keima. Every option may be left out; the command line goes before this file.",
        f"# It is found by --config FILE, else by ${CONFIG_VARIABLE}, else in the user's own folder for settings.",
    ]
    for kind, heading in SECTIONS.items():
        lines += ["", "", f"# --- {heading} ---"]
        for item in fields(kind):
            lines += ["", *_comment(item), f"{key_of(item.name)} = {toml_value(values[item.name])}"]
    return "\n".join(lines) + "\n"


def _comment(item: Field) -> Iterator[str]:
    """An option's help and default."""
    text = f"{help_text(item)}; default {toml_value(item.default)}"
    yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Set some options in a settings file, all its other lines as they are; where there is none, make one.

    Raises:
        ValueError: the file is not a sound one, or holds these keys in a form that only its owner should edit.
        OSError: it cannot be written.
    """
    read_settings(path)
    text = _text_of(path)
    lines = {key_of(name): toml_value(value) for name, value in values.items()}
    changed = edited(text, lines)
    try:
        is_sound = _parse(path, changed) == _parse(path, text) | {key_of(name): values[name] for name in values}
    except ValueError:
        is_sound = False
    if not is_sound:
        wanted = ", ".join(f"{key} = {value}" for key, value in lines.items())
        raise ValueError(f"{path}: cannot be edited line by line; set it there yourself: {wanted}")
    _replace(path, changed)


def edited(text: str, values: Mapping[str, str]) -> str:
    """TOML text with the values of some keys replaced where they stand, or added behind the last line."""
    end = "\r\n" if "\r\n" in text else "\n"
    for key, value in values.items():
        line = re.compile(rf"""^([ \t]*["']?{re.escape(key)}["']?[ \t]*=[ \t]*)[^\s#]+""", re.MULTILINE)
        text, found = line.subn(rf"\g<1>{value}", text, count=1)
        if not found:
            text += ("" if text.endswith("\n") or not text else end) + f"{key} = {value}{end}"
    return text


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all; one that is a link stays one."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with fresh.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        if path.exists():
            fresh.chmod(path.stat().st_mode & 0o777)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
