"""The settings file ``keima.toml``: every option of ``keima gtp`` by its name on the command line, without the dashes.

The file is flat, so that one line changes one option::

    weights = "small"
    ponder = true
    resign-below = -0.95

Start at :func:`chosen_file` and :func:`read_settings`. Only a named file or the user's own is read: other programs
start the engine in any folder, where a file of this name may belong to another user.
"""

import os
import sys
import textwrap
import tomllib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions, removed
from engine.config.declaration import checked, help_text, key_of, sections, shown
from engine.go.rules import rules_named, twice_komi
from engine.system import user_folder
from weights import anchored

CONFIG_VARIABLE = "KEIMA_CONFIG"
FILE_NAME = "keima.toml"
NO_FILE = "none"
"""Value of ``--config`` that means: read no settings file, not even the user's own"""
MOST_BYTES = 1 << 20
"""Maximum size of a settings file, in bytes; the TOML parser takes seconds and much memory for larger files"""
KINDS = (SetupOptions, PlayOptions, SearchOptions, SessionOptions)
"""Options classes in the order of a settings file"""


def _one_line(name: str) -> None:
    """Refuse an engine's name that is not one line of printable text, as GTP replies need."""
    if not (name.strip() and name.isprintable()):
        raise ValueError(f"name is {shown(name)}, expected a line of text")


CHECKS: dict[str, Callable[[Any], object]] = {"rules": rules_named, "komi": twice_komi, "name": _one_line}
"""Option without a declared range -> function that raises ``ValueError`` for a wrong value"""
WIDTH = 100
"""Maximum width of a comment, in characters"""
Sections = Sequence[tuple[str, Sequence[Field[Any]]]]
"""Options under headings, in the order of a settings file"""
SECTIONS: Sections = [section for kind in KINDS for section in sections(kind)]
TITLE = (
    "Settings of Keima. Every option is optional; the command line overrides this file.",
    f"Keima reads the file of --config FILE, else of ${CONFIG_VARIABLE}, else the user's own (docs/settings.md).",
)


def user_file() -> Path:
    """The user's own settings file; it may not exist. Raises the errors of :func:`engine.system.user_folder`."""
    return user_folder("config") / FILE_NAME


def chosen_file(named: str | None) -> Path | None:
    """The settings file to read or write: the one named, else ``$KEIMA_CONFIG``, else the user's own.

    Returns:
        Path | None: None = settings files are switched off, or the user has no home folder. The user's own file may not
        exist.
    Raises:
        ValueError: the named file does not exist.
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


def read_settings(
    path: Path, known: Sections = SECTIONS, renamed: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The options that a settings file sets, by their names in Python; empty if the file does not exist.

    Args:
        known: options that the file may set.
        renamed: name of an option in earlier versions -> its name now, both with underscores.
    Raises:
        ValueError: the file cannot be read, is not TOML, or has an unknown key or a value out of range: one line
            naming the file, the key, its value and the expectation.
    """
    values: dict[str, Any] = {}
    items = {key_of(item.name): item for _, section in known for item in section}
    for key, value in _toml_of(path).items():
        if key_of(key) not in items and (gone := removed(key)):
            # A complete file of an earlier version contains every option, and must not prevent the start.
            print(f"{path}: {gone}", file=sys.stderr)
            continue
        old = key.replace("-", "_")
        item = items.get(key_of(renamed[old]) if old in renamed else key)
        if item is None:
            raise ValueError(f"{path}: unknown key {shown(key)} = {shown(value)}, {_expected(key, items)}")
        try:
            read = well_formed(item, checked(item, value, key))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        values |= with_whole_paths({item.name: read}, path.absolute().parent)
    return values


def _text_of(path: Path) -> str:
    """The text of a settings file; empty if it does not exist.

    Raises:
        ValueError: the file cannot be read, is too large, or is neither UTF-8 nor UTF-16; one line.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror or error})") from error
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path}: more than {MOST_BYTES:,} bytes, expected a settings file")
    # PowerShell 5 redirects into UTF-16.
    encoding = "utf-16" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not valid TOML (byte {error.start} is not {error.encoding.upper()})") from error


def _toml_of(path: Path) -> dict[str, Any]:
    """The keys and values of a settings file.

    Raises:
        ValueError: the file cannot be read or is not TOML; one line.
    """
    text = _text_of(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueErrors beside TOML's own: integers of thousands of digits
        raise ValueError(f"{path}: not valid TOML ({error})") from error


def _expected(key: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown key: the most similar option, if there is one."""
    import difflib  # not at every start

    close = difflib.get_close_matches(key_of(key), known, 1)
    return f"did you mean {close[0]}?" if close else "expected an option without its dashes"


def well_formed(item: Field[Any], value: Any) -> Any:
    """Return the value of an option after the option's check in :data:`CHECKS`, if there is one.

    Raises:
        ValueError: unknown rules, a komi that is not in half points, or a name that is not one line; one line.
    """
    if item.name in CHECKS:
        CHECKS[item.name](value)
    return value


def with_whole_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Copy option values, with the paths in ``weights``, ``human_weights``, ``patterns`` and ``log_file`` made
    absolute.

    Args:
        folder: base of relative paths.
    Raises:
        ValueError: a path cannot be resolved; one line.
    """
    values = dict(values)
    for name in ("weights", "human_weights", "patterns"):
        if name in values:
            values[name] = anchored(values[name], folder)
    if values.get("log_file"):
        # Without a home folder, a "~" stays.
        values["log_file"] = str(folder / os.path.expanduser(values["log_file"]))  # noqa: PTH111
    return values


def toml_value(value: Any) -> str:
    """A value as TOML.

    Raises:
        ValueError: the text is not valid Unicode, as some file names are.
    """
    import tomlkit  # not at every start

    text: str = tomlkit.item(value).as_string()
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{value!r} cannot be written to a settings file: it is not valid Unicode") from error
    return text


def render(values: Mapping[str, Any], known: Sections = SECTIONS, title: Sequence[str] = TITLE) -> str:
    """A complete settings file: every option with its value, its help and its default; one without a value (None) is a
    comment.
    """
    lines = [f"# {line}" for line in title]
    for heading, items in known:
        lines += ["", "", f"# --- {heading} ---"]
        for item in items:
            value, key = values[item.name], key_of(item.name)
            lines += ["", *_comment(item), f"# {key} = true" if value is None else f"{key} = {toml_value(value)}"]
    return "\n".join(lines) + "\n"


def _comment(item: Field[Any]) -> Iterator[str]:
    """The lines of the comment above an option: its help and default."""
    text = help_text(item) if item.default is None else f"{help_text(item)}; default {toml_value(item.default)}"
    yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def write_settings(path: Path, values: Mapping[str, Any]) -> None:
    """Set options in a settings file and keep its other lines; a missing file is created.

    Raises:
        ValueError: the file cannot be read as settings; one line.
        OSError: the file cannot be written.
    """
    import tomlkit  # not at every start, nor numpy, which engine.system.files imports

    from engine.system.files import written_whole

    read_settings(path)
    text = _text_of(path)
    edited = tomlkit.parse(text.replace("\r\n", "\n"))
    edited.update({key_of(name): value for name, value in values.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, is_shared=True) as part:
        part.write_text(tomlkit.dumps(edited), encoding="utf-8", newline="\r\n" if "\r\n" in text else "\n")
