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

Tests verify the checksums, not every start: hashing 40 MB would delay the first answer, and a damaged file is refused
by its reader.
"""

import hashlib
import tomllib
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

NetworkPath = Path | tuple[Path, ...]
"""A network's file, or the files of AlphaGo's policy network and value network"""
FOLDER = Path(__file__).resolve().parent
MANIFEST = FOLDER / "MANIFEST.toml"
LEVELS = FOLDER / "levels.toml"
"""The table of levels (:mod:`engine.play.levels`)"""
DEFAULT = "default"
"""Name of the default network"""
NO_NETWORK = "none"
"""Value of ``--weights`` that means: play without a network"""
PATTERNS = {"rollout": FOLDER / "rollout.npz", "tree": FOLDER / "tree.npz"}
"""Name -> file of the shipped pattern policies (:mod:`engine.rollout.model`), which ``patterns.md`` describes"""
SHIPPED_PATTERNS = "shipped"
"""Value of ``--patterns`` that means the two shipped pattern policies"""


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
    expected = {item.name for item in fields(Entry)}
    try:
        tables = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{MANIFEST}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{MANIFEST}: not valid TOML ({error})") from error
    for name, table in tables.items():
        if not isinstance(table, dict) or set(table) != expected:
            raise ValueError(f"{MANIFEST}: network {name!r} needs exactly the keys {', '.join(sorted(expected))}")
    return {name: Entry(**table) for name, table in tables.items()}


def players() -> dict[str, Path]:
    """Settings files of all shipped players, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml")) if path not in (MANIFEST, LEVELS)}


def find(name_or_path: str) -> Path:
    """Find a network file by the name of a shipped network or by path.

    A shipped name takes precedence over a file of this name in the working directory; ``./name`` means the file.

    Raises:
        ValueError: neither a name nor an existing file, or the shipped file is missing; one line.
    """
    shipped = entries()
    if name_or_path in shipped:
        path = FOLDER / shipped[name_or_path].file
        if not path.is_file():
            raise ValueError(f"network {name_or_path!r} is listed in {MANIFEST} but its file {path} is missing")
        return path
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
        parts = ", ".join(name for name, entry in shipped.items() if entry.card == f"{name_or_path}.md")
        raise ValueError(f"{name_or_path!r} is several networks that play together, expected one network: {parts}")
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
        text = anchored(tomllib.loads(players()[text].read_text(encoding="utf-8"))["weights"], FOLDER)
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
    if text in ("", NO_NETWORK, SHIPPED_PATTERNS, *PATTERNS, *entries(), *players()):
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
    """Find the file of a pattern policy: ``rollout`` or ``tree`` for the shipped policies, or a path.

    Raises:
        ValueError: no such file; one line.
    """
    path = PATTERNS.get(name_or_path) or Path(name_or_path).expanduser()
    if not path.is_file():
        raise ValueError(f"unknown pattern policy {name_or_path!r}: no such file, expected rollout, tree or a file")
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
