"""The settings file ``keima.toml``: every option of ``keima gtp`` by its name on the command line, without the dashes.

It is flat, since one line should be enough to change one thing::

    weights = "small"
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field
from pathlib import Path
from typing import Any

from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions, removed
from engine.config.declaration import checked, help_text, key_of, sections, shown
from engine.go.rules import rules_named, twice_komi
from weights import anchored

CONFIG_VARIABLE = "KEIMA_CONFIG"
FILE_NAME = "keima.toml"
NO_FILE = "none"
"""Given for a file: none is read, not even the user's own"""
MOST_BYTES = 1 << 20
"""Of a settings file; TOML's reader takes seconds, and many times the memory, for more"""
KINDS = (SetupOptions, PlayOptions, SearchOptions, SessionOptions)
"""Options classes in the order of the file"""


def _one_line(name: str) -> None:
    """Refuse a name that a reply cannot hold."""
    if not (name.strip() and name.isprintable()):
        raise ValueError(f"name is {shown(name)}, expected a line of text")


CHECKS: dict[str, Callable[[Any], object]] = {"rules": rules_named, "komi": twice_komi, "name": _one_line}
"""What decides about values that have no range"""
WIDTH = 100
"""Of comments"""
Sections = Sequence[tuple[str, Sequence[Field[Any]]]]
"""Options under headings, as a settings file has them"""
SECTIONS: Sections = [section for kind in KINDS for section in sections(kind)]
TITLE = (
    "Settings of Keima. Every option may be left out; the command line goes before this file.",
    f"It is found by --config FILE, else by ${CONFIG_VARIABLE}, else in the user's own folder for settings.",
)


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


def read_settings(path: Path, known: Sections = SECTIONS) -> dict[str, Any]:
    """The options that a settings file sets, by their names in Python; no file, no options.

    Args:
        known: the options that it may set.
    Raises:
        ValueError: it cannot be read, is not TOML, or holds an unknown key or a value out of range: one line
            naming the file, the key, its value and what was expected.
    """
    values: dict[str, Any] = {}
    items = {key_of(item.name): item for _, section in known for item in section}
    for key, value in _parse(path, _text_of(path)).items():
        if gone := removed(key):
            # A complete file of an earlier version names every option: that must not keep the engine from starting.
            print(f"{path}: {gone}", file=sys.stderr)
            continue
        item = items.get(key)
        if item is None:
            raise ValueError(f"{path}: unknown key {shown(key)} = {shown(value)}, {_expected(key, items)}")
        try:
            read = well_formed(item, checked(item, value, key))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        values |= with_whole_paths({item.name: read}, path.absolute().parent)
    return values


def _expected(key: str, known: Iterable[str]) -> str:
    """What may have been meant by a key that is none."""
    import difflib  # Not at every start.

    close = difflib.get_close_matches(key_of(key), known, 1)
    return f"did you mean {close[0]}?" if close else "expected an option without its dashes"


def well_formed(item: Field[Any], value: Any) -> Any:
    """A value of an option that the rules of Go accept.

    Raises:
        ValueError: no such rules, or a komi that is not in half points; one line.
    """
    if item.name in CHECKS:
        CHECKS[item.name](value)
    return value


def _text_of(path: Path) -> str:
    """The text of a settings file, empty if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"{path}: more than {MOST_BYTES:,} bytes, expected a settings file")
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


def with_whole_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options of which those that name files mean the same from any working directory.

    Args:
        folder: where relative paths begin.
    Raises:
        ValueError: a path that cannot be looked up.
    """
    values = dict(values)
    for name in ("weights", "patterns"):
        if name in values:
            values[name] = anchored(values[name], folder)
    if values.get("log_file"):
        # Leaves a "~" that leads nowhere as it is.
        values["log_file"] = str(folder / os.path.expanduser(values["log_file"]))  # noqa: PTH111
    return values


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


def render(values: Mapping[str, Any], known: Sections = SECTIONS, title: Sequence[str] = TITLE) -> str:
    """A complete settings file that sets every option to a value, with its help and its default as comments."""
    lines = [f"# {line}" for line in title]
    for heading, items in known:
        lines += ["", "", f"# --- {heading} ---"]
        for item in items:
            lines += ["", *_comment(item), f"{key_of(item.name)} = {toml_value(values[item.name])}"]
    return "\n".join(lines) + "\n"


def _comment(item: Field[Any]) -> Iterator[str]:
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
    # The command starts without numpy, which that module needs.
    from engine.system.files import written_whole

    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, is_shared=True) as part:
        part.write_text(text, encoding="utf-8", newline="")
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
