"""What a player's searches run on: the network as loaded, its server, and what plays boards of the current size."""

import threading
from dataclasses import replace

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.network import NetworkSpec
from engine.nets.notices import say_once
from engine.play.factory import Loader, fitting, load_parts, new_server, owner_tables, parts_with, without_network
from engine.rollout.policy import Tables
from engine.search.search import Search
from weights import NetworkPath

SERVER_OPTIONS = ("evaluators", "memory")
"""What the server's threads and cache are made of"""
SHOWN_BY = ("seed", "random_symmetry")
"""Options that choose the symmetry in which the network evaluates a position; cached results depend on them"""
STAND_IN_MIB = 64
"""Memory of the tree that rollouts grow where the network does not answer"""


class Backend:
    """One network, loaded once, and the searches that use it. Threads: one caller."""

    def __init__(
        self, options: SearchOptions, network: NetworkPath | None, device: str, load: Loader | None = None
    ) -> None:
        """Load the network; arguments and errors as of :func:`engine.play.factory.load_parts`."""
        self._loaded = load_parts(options, network, device, load)
        self._server = new_server(self._loaded)
        self._sizes_seen: set[int] = set()
        self._stand_in: Search | None = None
        self._making = threading.Lock()
        self._parts = self._loaded

    @property
    def server(self) -> InferenceServer | None:
        """What evaluates positions for the network; None while none plays."""
        return self._server if self._parts.networks else None

    def tables(self) -> Tables | None:
        """The rollout policy that estimates owners; None where rollouts are to be uniform."""
        return owner_tables(self._parts)

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Smallest and largest board that the loaded network plays; None = there is none, all are played."""
        return self._loaded.spec.sizes if self._loaded.spec else None

    def fit(self, size: int) -> bool:
        """Play boards of a size from now on; without the network, and with a line that says so, where it does not.

        Returns:
            bool: whether searches have to be made anew.
        """
        before, self._parts = self._parts, fitting(self._loaded, size)
        return bool(self._parts.networks) != bool(before.networks)

    def configure(self, options: SearchOptions) -> bool:
        """Search with other options from now on.

        Returns:
            bool: whether searches have to be made anew.
        Raises:
            ValueError: one of ``SERVER_OPTIONS`` is another, or the network cannot play so; nothing changes.
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
            self._stand_in = None
            self._parts = without_network(loaded) if self._loaded.networks and not self._parts.networks else loaded
            self._loaded = loaded
        return True

    def new_search(self) -> Search:
        """A search without a tree, by what plays now."""
        parts = self._parts
        return Search(parts.options, self.server, parts.encoder, parts.patterns, self.tables)

    def fallback(self) -> Search:
        """A search by rollouts, for moves for which the network does not answer in time. Threads: any.

        It is kept; its tree is small, since the network's has the memory.
        """
        with self._making:
            if self._stand_in is None:
                parts = without_network(self._loaded)
                options = replace(parts.options, memory=min(parts.options.memory, STAND_IN_MIB))
                self._stand_in = Search(options, None, None, parts.patterns, self.tables)
            return self._stand_in

    def warm_up(self, size: int) -> None:
        """Let the network see its first board of a size before a clock runs; if it fails, a line says so."""
        if self.server is not None and size not in self._sizes_seen:
            self._sizes_seen.add(size)
            show_board(self.server, size)

    def warn_of_komi(self, komi: float) -> None:
        """Say, once, that the network's win rates are for another komi than the game's."""
        if self.server is not None:
            warn_of_komi(self.server.spec, komi)

    def forget(self) -> None:
        """Drop the network's cached results."""
        if self.server is not None:
            self.server.forget()

    def close(self) -> None:
        """End the server's threads."""
        if self._server is not None:
            self._server.close()


def show_board(server: InferenceServer, size: int) -> None:
    """Let a network see its first board of a size; if it fails, a line says so."""
    encoder = ENCODERS[server.spec.encoder]
    try:
        server.warm_up(size, encoder.planes, encoder.globals)
    except NetworkFailed as error:
        say_once(str(error))


def warn_of_komi(spec: NetworkSpec, komi: float) -> None:
    """Say, once, that a network's win rates are for another komi than this one."""
    known = ENCODERS[spec.encoder].komi
    if known is not None and known != komi:
        what = f"network {spec.name} knows komi {known:g} alone: at {komi:g} its win rates are those of another game"
        say_once(what)
