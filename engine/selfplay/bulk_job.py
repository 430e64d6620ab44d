"""Games in bulk as numbered work for a crew: what travels to where they are played, and what comes back."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.selfplay.game_journal import packed_games
from engine.selfplay.many_games import groups_for
from engine.selfplay.plan import Plan
from engine.system.crew import Done, Files


class BulkWorker:
    """Plays games of a plan with the networks of some servers. See :class:`engine.system.crew.Worker`."""

    def __init__(self, servers: Sequence[InferenceServer], plan: Plan, at_once: int, groups: int = 0) -> None:
        """Take the servers, which the caller closes.

        Args:
            servers: of the networks that play: one against itself, or two.
            at_once: games of a group.
            groups: groups that play at once; 0 = the number that keeps a server busy.
        """
        self.threads = groups or groups_for(servers[0])
        self._servers, self._plan, self._at_once = servers, plan, at_once

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.crew.Worker.do`: the games that the plan keeps, packed.

        Raises:
            RuntimeError: a network failed.
        """
        for games, resigner in self._plan.play(self._servers, self._at_once, numbers, stopped):
            if len(games.size):
                yield games.number.tolist(), packed_games(games, resigner)


@dataclass(frozen=True)
class BulkJob:
    """Games in bulk, wherever they are played. See :class:`engine.system.crew.Job`."""

    plan: Plan
    networks: tuple[tuple[str, ...], ...]
    """of each network that plays its file, or both of its files, as the crew's files are named"""
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> BulkWorker:
        """A worker with networks of its own, on the GPU of this process if it has one."""
        servers = []
        for names in self.networks:
            paths = tuple(files[name] for name in names)
            network = load_network(paths, "auto", sample_inputs)
            servers.append(stack.enter_context(InferenceServer(network, threads=cores, max_batch=self.at_once)))
        return BulkWorker(servers, self.plan, self.at_once)
