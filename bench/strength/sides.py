"""Players that differ in their options and search side by side in one process; for the arena and for regrets.

A search of few visits leaves most of a processor idle: its batches are small, and it waits for each. Therefore many
searches run at once and share an inference server that merges their leaves. Visits are their limit, not time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from engine.config import PlayOptions, SearchOptions
from engine.config.declaration import find_option, parse
from engine.go.game import Game
from engine.go.geometry import PASS
from engine.inference.server import InferenceServer
from engine.play.factory import Parts, load_parts, new_server, ownership_tables, parts_with
from engine.search.choosing import choose
from engine.search.move_filter import without
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from weights import find_network

WITHOUT_EFFECT = ("seed", "evaluators", "wide_root_noise")
"""Options that a match sets itself, or that no player plays with"""


@dataclass(frozen=True)
class Side:
    """One player: what it is called and what it plays with."""

    name: str
    weights: str
    visits: int
    options: SearchOptions


def side_from(text: str, weights: str, visits: int) -> Side:
    """A side from words such as ``batch=1 move-choice=visits``: search options, ``visits``, ``weights`` and ``name``.

    Raises:
        ValueError: a word that is none of them, or a value that is not allowed.
    """
    values: dict[str, Any] = {"threads": 1, "visits": visits}
    own = {"name": text or "default", "weights": weights}
    for word in text.split():
        key, _, value = word.partition("=")
        item = find_option(key, PlayOptions if key == "visits" else SearchOptions)
        if key in own:
            own[key] = value
        elif item and item.name in WITHOUT_EFFECT:
            raise ValueError(f"{word!r}: has no effect here")
        elif item:
            values[item.name] = parse(item, value, key)
        else:
            raise ValueError(f"{word!r}: expected OPTION=VALUE, an option of keima gtp without its dashes")
    if not values["visits"]:
        raise ValueError("visits=0: expected at least 1 visit a move")
    find_network(own["weights"])
    return Side(own["name"], own["weights"], values.pop("visits"), SearchOptions(**values))


class Networks:
    """What sides search with: a network and a server for each that differs; use as a context manager."""

    def __init__(self, sides: Sequence[Side]):
        """Load the networks and start one evaluator for each.

        Raises:
            ValueError: a network cannot be used; one line.
        """
        self._loaded: dict[tuple, tuple[Parts, InferenceServer | None]] = {}
        for side in sides:
            if (key := self._key(side)) not in self._loaded:
                parts = load_parts(replace(side.options, evaluators=1), find_network(side.weights), "auto")
                self._loaded[key] = parts, new_server(parts, shared=True)

    def __enter__(self) -> "Networks":
        return self

    def __exit__(self, *_: object) -> None:
        for _, server in self._loaded.values():
            if server:
                server.close()

    def search(self, side: Side, seed: int, options: SearchOptions | None = None) -> Search:
        """A search with an empty tree, with the side's network and, if no others are given, its options."""
        loaded, server = self._loaded[self._key(side)]
        parts = parts_with(loaded, replace(options or side.options, seed=seed))
        return Search(parts.options, server, parts.encoder, parts.patterns, partial(ownership_tables, parts))

    def _key(self, side: Side) -> tuple:
        """Sides of the same key share a network, and a cache of evaluations, whose symmetries must not differ."""
        return side.weights, side.options.random_symmetry


def drawn_moves(networks: Networks, side: Side, game: Game, count: int, rng: np.random.Generator) -> list[int]:
    """Play ``count`` moves drawn from the raw policy, none of them a pass; the points."""
    search = networks.search(side, int(rng.integers(1 << 32)), SearchOptions(threads=1))
    points = []
    for _ in range(count):
        search.set_position(game.position)
        report = search.run(SearchLimits(visits=1), without(game.to_move, [PASS]))
        if not report.moves:
            break
        points.append(choose(report, 1.0, rng))
        game.play(game.to_move, points[-1])
    return points
