"""A player's network with its inference server, and the searches for the current board size."""

import threading
from dataclasses import replace

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, Encoder
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.network import NetworkSpec
from engine.nets.notices import say_once
from engine.play.factory import (
    Loader,
    Parts,
    fitting,
    load_parts,
    new_server,
    ownership_tables,
    parts_with,
    without_network,
)
from engine.rollout.policy import Tables
from engine.search.search import Search
from weights import NetworkPath

SERVER_OPTIONS = ("evaluators", "memory")
"""Options for the threads and the cache of the inference server, fixed once the server is made"""
SHOWN_BY = ("seed", "random_symmetry")
"""Options that select the symmetry in which a position is evaluated; cached results depend on them"""
FALLBACK_MIB = 64
"""Maximum memory of the fallback search's tree"""


class Backend:
    """One network, loaded once, and the searches that use it. Threads: one caller."""

    def __init__(
        self, options: SearchOptions, network: NetworkPath | None, device: str, load: Loader | None = None
    ) -> None:
        """Load the network; arguments and errors as for :func:`engine.play.factory.load_parts`."""
        self._loaded = load_parts(options, network, device, load)
        self._server = new_server(self._loaded)
        self._sizes_seen: set[int] = set()
        self._fallback: Search | None = None
        self._making = threading.Lock()
        self._parts = self._loaded

    @property
    def server(self) -> InferenceServer | None:
        """The inference server; None without a network for the current board size."""
        return self._server if self._parts.networks else None

    @property
    def encoder(self) -> Encoder | None:
        """The network's encoder; None without a network for the current board size."""
        return self._parts.encoder

    @property
    def loaded(self) -> Parts:
        """The loaded parts, whether the network plays the current board size or not."""
        return self._loaded

    def tables(self) -> Tables | None:
        """The rollout policy that estimates ownership; None = uniformly random rollouts."""
        return ownership_tables(self._parts)

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Smallest and largest board size of the loaded network; None without a network, which plays all sizes."""
        return self._loaded.spec.sizes if self._loaded.spec else None

    def fit(self, size: int) -> bool:
        """Set the board size; if the network does not play it, use rollouts alone, and say so on standard error.

        Returns:
            bool: whether a new search is needed.
        """
        before, self._parts = self._parts, fitting(self._loaded, size)
        return bool(self._parts.networks) != bool(before.networks)

    def configure(self, options: SearchOptions) -> bool:
        """Set the options of new searches.

        Returns:
            bool: whether a new search is needed.
        Raises:
            ValueError: one of ``SERVER_OPTIONS`` differs, or the network does not allow the options; nothing changes.
        """
        for name in SERVER_OPTIONS:
            if getattr(options, name) != getattr(self._loaded.options, name):
                raise ValueError(f"{name} cannot change any more, expected {getattr(self._loaded.options, name)}")
        loaded = parts_with(self._loaded, options)
        if loaded is self._loaded:
            return False
        if any(getattr(loaded.options, name) != getattr(self._loaded.options, name) for name in SHOWN_BY):
            self.forget()
        with self._making:
            self._fallback = None
            self._parts = without_network(loaded) if self._loaded.networks and not self._parts.networks else loaded
            self._loaded = loaded
        return True

    def new_search(self) -> Search:
        """A new search for the current board size."""
        parts = self._parts
        return Search(parts.options, self.server, parts.encoder, parts.patterns, self.tables)

    def fallback(self) -> Search:
        """The search by rollouts for moves at which the network does not answer in time. Threads: any.

        It is made once, with a small tree, since most of the memory belongs to the network's search.
        """
        with self._making:
            if self._fallback is None:
                parts = without_network(self._loaded)
                options = replace(parts.options, memory=min(parts.options.memory, FALLBACK_MIB))
                self._fallback = Search(options, None, None, parts.patterns, self.tables)
            return self._fallback

    def warm_up(self, size: int) -> None:
        """Warm the network up for a board size before a clock runs; a failure is printed on standard error."""
        if self.server is not None and size not in self._sizes_seen:
            self._sizes_seen.add(size)
            show_board(self.server, size)

    def warn_of_komi(self, komi: float) -> None:
        """Warn once if the network knows a single komi, and ``komi`` differs from it."""
        if self.server is not None:
            warn_of_komi(self.server.spec, komi)

    def forget(self) -> None:
        """Empty the inference server's result cache."""
        if self.server is not None:
            self.server.forget()

    def close(self) -> None:
        """End the server's threads."""
        if self._server is not None:
            self._server.close()


def show_board(server: InferenceServer, size: int) -> None:
    """Warm a network up for a board size: evaluate empty boards; a failure is printed on standard error."""
    encoder = ENCODERS[server.spec.encoder]
    try:
        server.warm_up(size, encoder.planes, encoder.globals)
    except NetworkFailed as error:
        say_once(str(error))


def warn_of_komi(spec: NetworkSpec, komi: float) -> None:
    """Warn once if a network knows a single komi, and ``komi`` differs from it."""
    known = ENCODERS[spec.encoder].komi
    if known is not None and known != komi:
        say_once(f"network {spec.name} knows komi {known:g} alone: at {komi:g} its win rates are those of another game")
