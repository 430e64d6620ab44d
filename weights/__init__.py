"""The shipped networks, and the functions that find a network's file by name or path.

``MANIFEST.toml`` beside this module lists the networks, one table each::

    [default]
    file = "default.safetensors"
    sha256 = "..."
    encoder = "keima-2"
    description = "one line for people: boards, and what it is good for"
    card = "default.md"

A *player* is a settings file of ``keima gtp`` in this folder, such as ``alphago-9.toml``: networks of the manifest that
play together, their pattern policies and options. Paths in it are relative to this folder; its first line is a comment
that describes the player.

``DOWNLOADS.toml`` lists networks that ``keima weights get`` downloads into the folder :func:`user_networks`
(:mod:`weights.downloads`); a downloaded network is found by its name as a shipped one is.

Tests verify the checksums, not every start: hashing 40 MB would delay the first answer, and a damaged file is refused
by its reader.
"""

import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

Listed = TypeVar("Listed")
NetworkPath = Path | tuple[Path, ...]
"""A network's file, or the files of AlphaGo's policy network and value network"""
FOLDER = Path(__file__).resolve().parent
MANIFEST = FOLDER / "MANIFEST.toml"
DOWNLOADS = FOLDER / "DOWNLOADS.toml"
LEVELS = FOLDER / "levels.toml"
"""The table of levels (:mod:`engine.play.levels`)"""
DEFAULT = "default"
"""Name of the default network"""
NO_NETWORK = "none"
"""Value of ``--weights`` that means: play without a network"""
PATTERNS = {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}
"""Name -> file of the shipped pattern policies (:mod:`engine.rollout.model`), which ``patterns.md`` describes"""
SHIPPED_PATTERNS = "shipped"
"""Value of ``--patterns`` that means the two shipped pattern policies"""
ENDINGS = (".bin.gz", ".txt.gz", ".safetensors", ".gz", ".bin", ".txt")
"""Endings of the names of downloaded network files"""
NETWORK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of downloaded networks"""


@dataclass(frozen=True)
class Entry:
    """A shipped network in the manifest; its files are named relative to the folder of the manifest."""

    file: str
    sha256: str
    encoder: str
    description: str
    card: str


def entries() -> dict[str, Entry]:
    """All shipped networks by name, in the manifest's order.

    Raises:
        ValueError: the manifest is missing or damaged; one line.
    """
    return read_list(MANIFEST, Entry)


def read_list(path: Path, kind: Callable[..., Listed]) -> dict[str, Listed]:
    """Read a list of networks, a TOML file with a table for each.

    Args:
        kind: dataclass of a table, whose keys are its fields.
    Returns:
        dict[str, Listed]: by name, in the file's order.
    Raises:
        ValueError: the file is missing or damaged; one line.
    """
    expected = {item.name for item in fields(kind)}  # type: ignore[arg-type]  # no type for "a dataclass"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not valid TOML ({error})") from error
    for name, table in tables.items():
        if not isinstance(table, dict) or set(table) != expected:
            raise ValueError(f"{path}: network {name!r} needs exactly the keys {', '.join(sorted(expected))}")
    return {name: kind(**table) for name, table in tables.items()}


def players() -> dict[str, Path]:
    """Settings files of all shipped players, by name, in the order of names."""
    found = {path.stem: path for path in FOLDER.glob("*.toml") if path not in (MANIFEST, LEVELS, DOWNLOADS)}
    return dict(sorted(found.items()))


def _weights_of(player: str) -> str:
    """The setting ``weights`` of a shipped player, names joined by ``+``."""
    return tomllib.loads(players()[player].read_text(encoding="utf-8"))["weights"]


def user_networks() -> Path:
    """The user's folder of downloaded networks; it may not exist.

    ``networks`` in the user's data folder, the one that platformdirs finds; the environment variable ``KEIMA_NETWORKS``
    names another folder.

    Raises:
        RuntimeError: the user has no home folder.
    """
    if chosen := os.environ.get("KEIMA_NETWORKS"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    return Path(base).expanduser() / "keima" / "networks"


def downloaded(name: str) -> Path | None:
    """The file of a downloaded network by its name; None if there is none."""
    if NETWORK_NAME.fullmatch(name):
        with suppress(OSError, RuntimeError):
            folder = user_networks()
            return next((path for path in (folder / f"{name}{ending}" for ending in ENDINGS) if path.is_file()), None)
    return None


def find(name_or_path: str) -> Path:
    """Find a network file by the name of a shipped or downloaded network, or by path.

    A name takes precedence over a file of this name in the working directory; ``./name`` means the file.

    Raises:
        ValueError: neither a name nor an existing file, or the shipped file is missing; one line.
    """
    shipped = entries()
    if name_or_path in shipped:
        path = FOLDER / shipped[name_or_path].file
        if not path.is_file():
            raise ValueError(f"network {name_or_path!r} is listed in {MANIFEST} but its file {path} is missing")
        return path
    if found := downloaded(name_or_path):
        return found
    path = Path(name_or_path)
    try:
        path = path.expanduser()
        if path.is_file():
            return path
        if name_or_path and path.is_dir():
            raise ValueError(f"{name_or_path}: is a folder, expected a network file")
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{name_or_path!r} cannot be looked up ({error})") from error
    if name_or_path in players():
        parts = ", ".join(_weights_of(name_or_path).split("+"))
        raise ValueError(f"{name_or_path!r} is several networks that play together, expected one network: {parts}")
    if f"\n[{name_or_path}]\n" in DOWNLOADS.read_text(encoding="utf-8"):
        raise ValueError(f"network {name_or_path!r} is not on this machine: keima weights get {name_or_path}")
    known, several = ", ".join(shipped) or "none", ", ".join(players())
    together = f"; several that play together: {several}" if several else ""
    raise ValueError(f"unknown network {name_or_path!r}: no such file, and the shipped networks are: {known}{together}")


def find_network(text: str) -> NetworkPath:
    """Find the network that an option such as ``--weights`` names: as for :func:`find`, or two joined by ``+``.

    ``POLICY+VALUE`` is a policy network and a value network that play together, as AlphaGo's did. A path that contains
    ``+`` and exists is one file. The name of a shipped player means its networks.

    Raises:
        ValueError: as for :func:`find`.
    """
    if text in players():
        text = anchored(_weights_of(text), FOLDER)
    policy, plus, value = text.partition("+")
    if plus:
        with suppress(ValueError):
            return find(text)
        return find(policy), find(value)
    return find(text)


def files_of(network: NetworkPath | None) -> tuple[Path, ...]:
    """The files of a network; empty for None."""
    if network is None:
        return ()
    return network if isinstance(network, tuple) else (network,)


def anchored(text: str, folder: Path) -> str:
    """Make the paths absolute in an argument of :func:`find_network` or :func:`find_pattern_pair`; names stay.

    Args:
        folder: base of relative paths.
    Raises:
        ValueError: a path cannot be looked up; one line.
    """
    if text in ("", NO_NETWORK, SHIPPED_PATTERNS, *PATTERNS, *entries(), *players()) or downloaded(text):
        return text
    try:
        path = folder / Path(text).expanduser()
        policy, plus, value = text.partition("+")
        if plus and not path.is_file():
            return f"{anchored(policy, folder)}+{anchored(value, folder)}"
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{text!r} cannot be looked up ({error})") from error
    return str(path)


def find_patterns(name_or_path: str) -> Path:
    """Find the file of a pattern policy by the name of a shipped one, with or without ``.npz``, or by path.

    Raises:
        ValueError: no such file; one line.
    """
    path = PATTERNS.get(name_or_path) or Path(name_or_path).expanduser()
    if not path.is_file():
        path = PATTERNS.get(name_or_path.removesuffix(".npz"), path)
    if not path.is_file():
        known = ", ".join(PATTERNS)
        raise ValueError(f"unknown pattern policy {name_or_path!r}: no such file, and the shipped ones are: {known}")
    return path


def find_pattern_pair(text: str) -> tuple[Path, Path]:
    """Find the pattern policies that an option such as ``--patterns`` names: ``shipped``, or two files as ROLLOUT+TREE.

    Raises:
        ValueError: no such file, or not two files; one line.
    """
    if text == SHIPPED_PATTERNS:
        text = "rollout+tree"
    rollout, plus, tree = text.partition("+")
    if not plus:
        raise ValueError(f"patterns {text!r}: expected {SHIPPED_PATTERNS}, or two files as ROLLOUT+TREE")
    return find_patterns(rollout), find_patterns(tree)


def identity(path: NetworkPath, name: str) -> dict[str, str]:
    """The record of a network beside data that it made: its name, and the SHA-256 of its file or files joined."""
    digest = hashlib.sha256()
    for file in files_of(path):
        digest.update(file.read_bytes())
    return {"name": name, "sha256": digest.hexdigest()}
