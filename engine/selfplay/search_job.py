"""Self-play by search as numbered work for a crew: what travels to where it is played, and what comes back."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.records.search_rows import packed
from engine.selfplay.many_games import groups_for
from engine.selfplay.search_games import Origin, SearchGroup, fitted
from engine.selfplay.search_options import SearchPlayOptions
from engine.system.crew import Away, Done, Files, Here, Opened

CACHE_MIB = 64
NETWORK_FILE = "network.safetensors"
"""What the crew calls the file of the network that plays"""


class SearchWorker:
    """Plays games by search with the network of a server. See :class:`engine.system.crew.Worker`."""

    def __init__(self, server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> None:
        """Take the server, which the caller closes.

        Args:
            origin: what rows say of the network.
            at_once: games of a group.
        """
        self.threads = groups_for(server)
        self._server, self._options, self._origin, self._at_once = server, options, origin, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.crew.Worker.do`: rows, packed.

        Raises:
            RuntimeError: the network failed.
        """
        for rows in SearchGroup(self._server, self._options, self._at_once, self._origin, stopped).play(numbers):
            yield rows.games.number.tolist(), packed(rows)


@dataclass(frozen=True)
class SearchJob:
    """Self-play by search, wherever it is played. See :class:`engine.system.crew.Job`."""

    options: SearchPlayOptions
    origin: Origin
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> SearchWorker:
        """A worker with a network of its own, on the GPU of this process if it has one."""
        network = load_network(files[NETWORK_FILE], "auto", sample_inputs)
        server = stack.enter_context(InferenceServer(network, CACHE_MIB, threads=cores, max_batch=self.at_once))
        return SearchWorker(server, self.options, self.origin, self.at_once)


def played_here(server: InferenceServer, options: SearchPlayOptions, origin: Origin, at_once: int) -> Away:
    """Self-play by threads of this process, which does not go away at all.

    Raises:
        ValueError: the network cannot play so; one line.
    """
    fitted(server, options)
    return Away(Here(), Opened(SearchWorker(server, options, origin, at_once)), {})
