"""What a game's file keeps beside the moves, so that a restart continues the game as it stood."""

import json
from dataclasses import dataclass, field
from typing import Any

from engine.live.record import Node, Record
from gtp.web.settings import GameSettings, settings_from

PROPERTY = "KEIMA"
"""Property of the root, in the files of the user's folder alone, that holds all this as JSON"""


@dataclass
class Saved:
    """A game's settings and place. Fields that a file lacks have their defaults."""

    settings: GameSettings | None = None
    """None = the file was not written by ``keima play``"""
    path: list[int] = field(default_factory=list)
    """index of the child taken at each node from the root to the shown node"""
    placing: int = 0
    """number of handicap stones that Black is still to place"""
    clock: Any = None
    """times left, as :meth:`gtp.web.clocks.GameClock.to_json` writes them"""


def put(record: Record, saved: Saved) -> None:
    """Write to a record's root."""
    settings = saved.settings.to_json() if saved.settings else None
    value = {"settings": settings, "way": saved.path, "placing": saved.placing, "clock": saved.clock}
    record.set_text(PROPERTY, json.dumps(value, separators=(",", ":")))


def found_in(record: Record, levels: list[str]) -> Saved:
    """Read from a record's root; what is damaged counts as missing.

    Args:
        levels: names of the levels; another one in the file becomes the last.
    """
    try:
        value = json.loads(record.text(PROPERTY))
    except (ValueError, RecursionError):
        return Saved()
    if not isinstance(value, dict) or not isinstance(value.get("settings"), dict):
        return Saved()
    body = dict(value["settings"])
    if body.get("level") not in levels:
        body["level"] = levels[-1]
    try:
        settings = settings_from({**body, "size": record.size}, GameSettings(), levels)
    except ValueError:
        return Saved()
    path, placing = value.get("way"), value.get("placing")
    return Saved(
        settings,
        [one for one in path if isinstance(one, int)] if isinstance(path, list) else [],
        placing if isinstance(placing, int) and 0 <= placing <= settings.handicap else 0,
        value.get("clock"),
    )


def path_to(node: Node) -> list[int]:
    """Index of the child taken at each node from the root to a node."""
    return [one.parent.children.index(one) for one in node.line() if one.parent is not None]


def node_at(record: Record, path: list[int]) -> Node:
    """The node at the end of a path, or the last node before the path leaves the record."""
    node = record.root
    for at in path:
        if not 0 <= at < len(node.children):
            break
        node = node.children[at]
    return node


def without(record: Record) -> bytes:
    """A record as an SGF file for others, without :data:`PROPERTY`."""
    own = record.root.properties.pop(PROPERTY, None)
    data = record.to_bytes()
    if own is not None:
        record.root.properties[PROPERTY] = own
    return data
