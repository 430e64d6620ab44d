"""The self-play of ``keima zero``: the rows that a turn waits for, and those that are played beside its training.

Where cores or GPUs stand idle in training, games for the next turn are begun meanwhile, with the network that plays.
When training is over no further ones are begun; those in play go on while the new network is measured, and are played
to their ends. Start at :meth:`ZeroPlay.play`.
"""

import threading
from collections.abc import Callable
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
from engine.train.window import WindowBatches
from engine.zero.facts import look_at_empty_board
from engine.zero.options import ZeroConfig
from engine.zero.turn import Turn

COMPILED_SIZE, STAMP = 3, "self-play "
"""Board on which kernels are compiled, and the name of the stamp that says so, before that of the encoder"""
LOOK_S = 0.5
"""How often the caller hears of games that it waits for"""


class ZeroPlay:
    """The rows of a run in the making; close it at the end. Threads: one caller, but for :meth:`stop`."""

    def __init__(self, folder: Path, config: ZeroConfig, executor: Executor | None) -> None:
        """Open the folder of rows, or begin one.

        Args:
            executor: plays; None = this process, by a server of the caller's.
        Raises:
            ValueError: the folder holds something else; one line.
        """
        self.rows = SearchPlay(folder, config.play)
        self._config, self._executor = config, executor
        self._enough = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._held = ExitStack()
        """what the thread needs"""

    def options(self, turn: Turn, is_random: bool) -> SearchPlayOptions:
        """How the games of a turn are played.

        Args:
            is_random: the network that plays has learnt nothing yet.
        """
        play, loop = self._config.play, self._config.loop
        play = replace(play, komi=turn.komi, resign=turn.resign or play.resign)
        if not is_random:
            return play
        visits = max(2, round(loop.first_visits * play.visits))
        fast = min(visits, max(1, round(loop.first_visits * play.fast_visits)))
        # Of so few visits pruning would leave a handful of moves that are no better than the others.
        return replace(play, sensible=loop.first_sensible, visits=visits, fast_visits=fast, forced=0.0)

    def _players(self, turn: Turn, is_random: bool, path: Path, server: InferenceServer) -> Execution:
        """Who plays: the executor, or this process."""
        options, at_once = self.options(turn, is_random), self._config.loop.at_once
        origin = Origin(int(sha256_of(path)[:16], 16), turn.network)
        if self._executor is None:
            return played_here(server, options, origin, at_once)
        return Execution(self._executor, SearchJob(options, origin, at_once), {NETWORK_FILE: path})

    def play(
        self, turn: Turn, is_random: bool, path: Path, server: InferenceServer, report: Callable[[], None]
    ) -> None:  # fmt: skip
        """Play until the turn has the rows that it wants, or :meth:`stop` is called.

        Args:
            path: of the network that plays.
            server: of that network.
            report: called now and then.
        Raises:
            ValueError, RuntimeError, OSError: the network or the disk failed.
        """
        self.end_beside(report)
        self.rows.play_rows(self._players(turn, is_random, path, server), turn.wanted, report)

    def begin_beside(self, turn: Turn, path: Path, server: InferenceServer) -> None:
        """Begin to play rows of the next turn, in a thread of its own; the arguments as of :meth:`play`.

        The server is closed when the thread has ended.
        """
        self._enough.clear()
        self._held.enter_context(server)
        players, wanted = self._players(turn, False, path, server), turn.wanted + self._config.loop.rows

        def work() -> None:
            try:
                self.rows.play_rows(players, wanted, lambda: None, enough=self._enough)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=work, name="self-play", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Say if the thread failed.

        Raises:
            ValueError, RuntimeError, OSError: the network or the disk did.
        """
        if self._error is not None:
            raise self._error

    def enough(self) -> None:
        """Begin no further games in the thread."""
        self._enough.set()

    def end_beside(self, report: Callable[[], None]) -> None:
        """Wait until the thread's games are over; nothing happens without one. Arguments and errors as of `play`."""
        if self._thread is None:
            return
        self.enough()
        while self._thread.is_alive():
            self._thread.join(LOOK_S)
            report()
        self._thread = None
        self._held.close()
        self.check()

    def stop(self) -> None:
        """End play soon, for good; finished games stay. Threads: any."""
        self.rows.stop()

    def close(self) -> None:
        """End the thread and close the files."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._held.close()
        self.rows.close()


def is_compiled(encoder: str) -> bool:
    """Whether an earlier start has compiled the kernels of self-play and training."""
    return jit.is_stamped(STAMP + encoder)


def compile_self_play(encoder: str) -> None:
    """Compile the kernels of games by search and of batches: play and learn once on a tiny board.

    Players need none of these kernels, so :mod:`engine.play.ahead` leaves them out.
    """
    options = SearchPlayOptions(size=COMPILED_SIZE, visits=4, fast_visits=2, komi=2.0, sensible=0.5)
    with InferenceServer(UniformNetwork(encoder), threads=1) as server:
        rows = join(list(SelfPlay(server, options, 2).play(iter(range(4)))))
        look_at_empty_board(server, COMPILED_SIZE, options.rules, options.komi)
    rows = rows._replace(weight=np.ones_like(rows.weight))
    WindowBatches(ENCODERS[encoder], rows, 2, 1).batch_at(0)
    jit.stamp(STAMP + encoder)
