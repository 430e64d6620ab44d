"""The networks of a run of ``keima zero``: files by the steps they were trained for, servers, and matches of two."""

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
from engine.selfplay.search_match import MatchPlayer, Outcome, SearchMatchJob, match_away, match_here, play_match
from engine.selfplay.search_play import CACHE_MIB
from engine.system.executor import Execution, Executor
from engine.system.files import written_whole

NETWORK, NETWORKS = "network.safetensors", "networks"
HELD = 3


class ZeroNetworks:
    """Those of one folder. Threads: one caller."""

    def __init__(self, out: Path, device: Any, threads: int, executor: Executor | None, at_once: int) -> None:
        """Begin with none loaded.

        Args:
            device: a torch device.
            threads: evaluators on the CPU; 0 = one a core.
            executor: plays matches; None = this process.
            at_once: games of a group, whose positions are a batch.
        """
        self._out, self._device, self._threads, self._executor = out, device, threads, executor
        self._at_once = at_once
        self._loaded: dict[Path, Network] = {}

    def path(self, step: int) -> Path:
        """The network after some steps."""
        return self._out / NETWORKS / f"{step:08}.safetensors"

    def ship(self, step: int) -> None:
        """Make a network the one that the folder shows."""
        with written_whole(self._out / NETWORK) as part:
            shutil.copyfile(self.path(step), part)

    def serve(self, path: Path) -> InferenceServer:
        """A server of a network; close it at the end. The latest networks are kept, since tracing takes its time."""
        if path not in self._loaded:
            self._loaded = dict(list(self._loaded.items())[1 - HELD :])
            self._loaded[path] = load_network(path, self._device, sample_inputs)
        return InferenceServer(self._loaded[path], CACHE_MIB, threads=self._threads, max_batch=self._at_once)

    def match(
        self, paths: tuple[Path, Path | None], job: SearchMatchJob, games: int, is_stopped: Callable[[], bool]
    ) -> Outcome | None:  # fmt: skip
        """Games of two networks, played by the executor if there is one; None where it was stopped before their end.

        Args:
            paths: of the networks; no second one = random moves.
            is_stopped: asked now and then.
        Raises:
            RuntimeError: a network failed.
        """
        stopped = threading.Event()

        def report() -> None:
            if is_stopped():
                stopped.set()

        if self._executor:
            return play_match(Execution(self._executor, job, match_away(paths)), games, stopped, report)
        with ExitStack() as stack:
            servers = [
                stack.enter_context(
                    self.serve(path) if path else InferenceServer(UniformNetwork(job.encoder), CACHE_MIB, threads=1)
                )
                for path in paths
            ]
            players = [
                MatchPlayer(one, visits, path is None)
                for one, visits, path in zip(servers, job.visits, paths, strict=True)
            ]
            return play_match(match_here(players, job.options, games, job.at_once), games, stopped, report)
