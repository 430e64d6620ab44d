"""The self-play of ``keima zero``: rows that a turn waits for, and rows of the next turn in parallel with training.

If cores or GPUs are idle during training, games of the next turn are begun with the current network. After training no
further games are begun; those in play continue while the new network is measured, and are finished. Start at
:meth:`ZeroPlay.play`.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.records.schema import join
from engine.selfplay.search_games import Origin, SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import NETWORK_FILE, SearchJob, SearchPlay, played_here
from engine.system import jit
from engine.system.executor import Execution, Executor
from engine.system.files import sha256_of
from engine.train.turns import WindowBatches
from engine.zero.facts import look_at_empty_board
from engine.zero.options import ZeroConfig
from engine.zero.turn import Turn

COMPILED_SIZE, STAMP = 3, "self-play "
"""Board size on which kernels are compiled; prefix of the compilation stamp's name, before the encoder's name"""
LOOK_S = 0.5
"""Seconds between reports while waiting for games"""


class ZeroPlay:
    """The self-play of a run; must be closed. Threads: one caller, except for :meth:`stop`."""

    def __init__(self, folder: Path, config: ZeroConfig, executor: Executor | None) -> None:
        """Begin self-play in a folder, or resume the folder's.

        Args:
            executor: plays the games; None = threads of this process, with the server that the caller gives.
        Raises:
            ValueError: the folder contains something else; one line.
        """
        self.rows = SearchPlay(folder, config.play)
        self._config, self._executor = config, executor
        self._enough = threading.Event()
        self._beside: Future[None] | None = None
        """self-play in parallel with training; None = there is none"""
        self._held = ExitStack()
        """the thread and server of ``_beside``"""

    def options(self, turn: Turn, is_random: bool) -> SearchPlayOptions:
        """Options of the games of a turn.

        Args:
            is_random: whether the playing network is untrained.
        """
        play, loop = self._config.play, self._config.loop
        play = replace(play, komi=turn.komi, resign=turn.resign or play.resign)
        if not is_random:
            return play
        visits = max(2, round(loop.first_visits * play.visits))
        fast = min(visits, max(1, round(loop.first_visits * play.fast_visits)))
        # With so few visits, pruning would leave a few moves that are no better than the others.
        return replace(play, sensible=loop.first_sensible, visits=visits, fast_visits=fast, forced=0.0)

    def _players(self, turn: Turn, is_random: bool, path: Path, server: InferenceServer) -> Execution:
        """The execution of self-play: by the executor, or by threads of this process with ``server``."""
        options, at_once = self.options(turn, is_random), self._config.loop.at_once
        origin = Origin(int(sha256_of(path)[:16], 16), turn.network)
        if self._executor is None:
            return played_here(server, options, origin, at_once)
        return Execution(self._executor, SearchJob(options, origin, at_once), {NETWORK_FILE: path})

    def play(
        self, turn: Turn, is_random: bool, path: Path, server: InferenceServer, report: Callable[[], None]
    ) -> None:  # fmt: skip
        """Play until the turn has its wanted rows, or :meth:`stop` is called.

        Args:
            path: file of the playing network.
            server: server of this network.
            report: called about every second.
        Raises:
            ValueError, RuntimeError, OSError: the network or the disk failed.
        """
        self.end_beside(report)
        self.rows.play_rows(self._players(turn, is_random, path, server), turn.wanted, report)

    def begin_beside(self, turn: Turn, path: Path, server: InferenceServer) -> None:
        """Begin self-play of the next turn in a thread; :meth:`end_beside` ends it and closes the server.

        Arguments as for :meth:`play`.
        """
        self._enough.clear()
        self._held.enter_context(server)
        pool = self._held.enter_context(ThreadPoolExecutor(1, "self-play"))
        players, wanted = self._players(turn, False, path, server), turn.wanted + self._config.loop.rows
        self._beside = pool.submit(self.rows.play_rows, players, wanted, lambda: None, enough=self._enough)

    def check(self) -> None:
        """Raise the error of the self-play in parallel with training, if it failed.

        Raises:
            ValueError, RuntimeError, OSError: the network or the disk failed.
        """
        if self._beside is not None and self._beside.done():
            self._beside.result()

    def enough(self) -> None:
        """Let the self-play in parallel with training begin no further games."""
        self._enough.set()

    def end_beside(self, report: Callable[[], None]) -> None:
        """Wait until the self-play in parallel with training, if any, has finished the games it began.

        Arguments and errors as for :meth:`play`.
        """
        if self._beside is None:
            return
        self.enough()
        while not self._beside.done():
            wait([self._beside], LOOK_S)
            report()
        self._held.close()
        ended, self._beside = self._beside, None
        ended.result()

    def stop(self) -> None:
        """Stop all play soon; it cannot begin again. Finished games are kept. Threads: any."""
        self.rows.stop()

    def close(self) -> None:
        """Stop play, wait for its threads and close the files."""
        self.stop()
        self._held.close()
        self.rows.close()


def is_compiled(encoder: str) -> bool:
    """Whether the kernels of self-play and training have been compiled on this machine."""
    return jit.is_stamped(STAMP + encoder)


def compile_self_play(encoder: str) -> None:
    """Compile the kernels of self-play by search and of training batches, by using each once on a tiny board.

    :mod:`engine.play.ahead` does not compile them, since play does not need them.
    """
    options = SearchPlayOptions(size=COMPILED_SIZE, visits=4, fast_visits=2, komi=2.0, sensible=0.5)
    with InferenceServer(UniformNetwork(encoder), threads=1) as server:
        rows = join(list(SelfPlay(server, options, 2).play(iter(range(4)))))
        look_at_empty_board(server, COMPILED_SIZE, options.rules, options.komi)
    rows = rows._replace(weight=np.ones_like(rows.weight))
    WindowBatches(ENCODERS[encoder], rows, 2, 1).batch_at(0)
    jit.stamp(STAMP + encoder)
