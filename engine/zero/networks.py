"""The networks of a run of ``keima zero``: files by training steps, servers, and matches of two networks."""

import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.selfplay.search_match import FIRST, SECOND, MatchPlayer, Outcome, SearchMatchJob, match_here, play_match
from engine.selfplay.search_play import CACHE_MIB
from engine.system.executor import Execution, Executor
from engine.system.files import written_whole

NETWORK, NETWORKS = "network.safetensors", "networks"
HELD = 3
"""Maximum number of networks kept in memory"""


class ZeroNetworks:
    """The networks in the folder of a run: loads and serves them, and plays matches. Threads: one caller."""

    def __init__(self, out: Path, device: Any, threads: int, executor: Executor | None, at_once: int) -> None:
        """Prepare; no network is loaded yet.

        Args:
            device: a torch device.
            threads: number of evaluators on the CPU; 0 = one per core.
            executor: plays matches; None = threads of this process.
            at_once: maximum batch size of a server, in positions.
        """
        self._out, self._device, self._threads, self._executor = out, device, threads, executor
        self._at_once = at_once
        self._loaded: dict[Path, Network] = {}

    def path(self, step: int) -> Path:
        """The file of the network after ``step`` training steps."""
        return self._out / NETWORKS / f"{step:08}.safetensors"

    def ship(self, step: int) -> None:
        """Copy the network after ``step`` training steps to the folder's ``network.safetensors``, ready to play."""
        with written_whole(self._out / NETWORK) as part:
            shutil.copyfile(self.path(step), part)

    def serve(self, path: Path) -> InferenceServer:
        """A server of the network in a file; the caller closes it. Recent networks stay in memory, since
        loading is slow."""
        if path not in self._loaded:
            self._loaded = dict(list(self._loaded.items())[1 - HELD :])
            self._loaded[path] = load_network(path, str(self._device), sample_inputs)
        return InferenceServer(self._loaded[path], CACHE_MIB, threads=self._threads, max_batch=self._at_once)

    def match(
        self, paths: tuple[Path, Path | None], job: SearchMatchJob, games: int, is_stopped: Callable[[], bool]
    ) -> Outcome | None:  # fmt: skip
        """Play a match of two networks, by the executor if there is one; None = stopped before the end.

        Args:
            paths: files of the two networks; None for the second = the random player.
            is_stopped: called about twice a second.
        Raises:
            RuntimeError: a network failed.
        """
        stopped = threading.Event()

        def report(finished: int) -> None:
            if is_stopped():
                stopped.set()

        if self._executor:
            files = {name: path for name, path in zip((FIRST, SECOND), paths, strict=True) if path}
            return play_match(Execution(self._executor, job, files), games, stopped, report)
        with ExitStack() as stack:
            players = []
            for path, visits in zip(paths, job.visits, strict=True):
                uniform = UniformNetwork(job.encoder)
                server = self.serve(path) if path else InferenceServer(uniform, CACHE_MIB, threads=1)
                players.append(MatchPlayer(stack.enter_context(server), visits, path is None))
            return play_match(match_here(players, job.options, games, job.at_once), games, stopped, report)
