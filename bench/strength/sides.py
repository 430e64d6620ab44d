"""Players with different options that search concurrently in one process; for the arena and the regret bench.

A search of few visits leaves most of a processor idle, since it waits for small batches. Therefore many searches run
concurrently and share an inference server, which merges their leaves into batches. They are limited by visits, not by
time.
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
"""Options that a side must not set: the benches set the first two, and the third is for analysis alone"""


@dataclass(frozen=True)
class Side:
    """One player: its name, network, visits a move and search options."""

    name: str
    weights: str
    visits: int
    options: SearchOptions


def side_from(text: str, weights: str, visits: int) -> Side:
    """Parse a side from words such as ``batch=1 move-choice=visits``; ``visits``, ``weights`` and ``name`` may be set.

    Args:
        weights, visits: defaults.
    Raises:
        ValueError: an unknown word or an invalid value.
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
    """The networks of sides, each loaded once, and their inference servers; a context manager."""

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
        """A search with an empty tree on the side's network; ``options`` replace the side's if given."""
        loaded, server = self._loaded[self._key(side)]
        parts = parts_with(loaded, replace(options or side.options, seed=seed))
        return Search(parts.options, server, parts.encoder, parts.patterns, partial(ownership_tables, parts))

    def _key(self, side: Side) -> tuple:
        """Key of a network and its result cache. Sides with different options for symmetries must not share a cache."""
        return side.weights, side.options.random_symmetry


def drawn_moves(networks: Networks, side: Side, game: Game, count: int, rng: np.random.Generator) -> list[int]:
    """Play ``count`` moves sampled from the raw policy, without passes; returns their points."""
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
