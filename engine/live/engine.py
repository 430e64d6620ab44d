"""A live engine: a :class:`engine.play.player.Player` in a thread of its own, which callers in any thread use.

Works run one after another. An open-ended analysis ends when another work is submitted. Results are
:class:`concurrent.futures.Future` objects; ``asyncio.wrap_future`` makes them awaitable.

Values end in ``_black`` or ``_stm`` (side to move), as in :class:`engine.search.report.Report`.
"""

import copy
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from engine.go.game import Game
from engine.go.position import with_capacity
from engine.play.clock import Clock
from engine.play.game_session import GameSession, Purpose
from engine.play.life_and_death import EndEstimate
from engine.play.player import Player
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.system import one_line

T = TypeVar("T")


class EngineState(NamedTuple):
    """The state of an engine."""

    name: str
    """``loading``, ``ready``, ``failed`` or ``closed``"""
    text: str = ""
    """one line about the state: the progress of loading, which may go on in the background, or why loading failed"""


class Chosen(NamedTuple):
    """A move that the engine chose."""

    point: int
    """the point played, ``PASS`` or ``RESIGN``"""
    report: Report | None
    """the report of the move's search; None = the move needed no search"""


class _Work(NamedTuple):
    """A submitted work."""

    run: Callable[[Player], Any]
    future: "Future[Any]"
    is_open_ended: bool


class Engine:
    """A player that one thread owns. Threads: any."""

    def __init__(
        self,
        load: Callable[[Callable[[str], None]], Player],
        on_state: Callable[[EngineState], None] = lambda state: None,
    ) -> None:
        """Start the thread, which loads the player at once.

        Args:
            load: makes the player; its argument takes lines of progress, after the player is ready too, "" = none. A
                ``ValueError`` names a wrong setting.
            on_state: called with each new state, in the engine's thread.
        """
        self.state = EngineState("loading", "loading")
        self._load, self._on_state = load, on_state
        self._changed = threading.Condition()
        """guards all that follows"""
        self._waiting: deque[_Work] = deque()
        self._running: _Work | None = None
        self._player: Player | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name="engine", daemon=True)
        self._thread.start()

    @property
    def player(self) -> Player:
        """The player. Threads: the engine's, in works and their watchers; once it is ready, others may read constants.

        Raises:
            RuntimeError: it is not loaded.
        """
        if self._player is None:
            raise RuntimeError("the player is not loaded")
        return self._player

    def submit(self, work: Callable[[Player], T], is_open_ended: bool = False) -> "Future[T]":
        """Queue a work; an open-ended one that runs or waits ends.

        Args:
            work: called with the player in the engine's thread. It may leave any game on the player's board.
            is_open_ended: the work ends only if it is interrupted.
        Returns:
            Future: cancelled before it runs, the work never runs. It fails with ``RuntimeError`` if the player could
            not be loaded or the engine is closed.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._is_closed or self.state.name == "failed":
                future.set_exception(RuntimeError(self.state.text or "the engine is closed"))
                return future
            for one in [one for one in self._waiting if one.is_open_ended]:
                one.future.cancel()
            self._waiting.append(_Work(work, future, is_open_ended))
            if self._running is not None and self._running.is_open_ended:
                self._interrupt()
            self._changed.notify()
        return future

    def genmove(
        self,
        game: Game,
        clock: Clock | None = None,
        watcher: Watcher | None = None,
        purpose: Purpose = Purpose.PLAY,
        prepare: Callable[[Player], None] = lambda player: None,
    ) -> "Future[Chosen]":
        """Choose a move for the side to move.

        Args:
            game: copied at once; it does not change.
            clock: clocks of both colours, only read; None = the limits of the player's options.
            watcher, purpose: as for :meth:`engine.play.player.Player.genmove`.
            prepare: called before the search, to change the player's options.
        """
        session = session_of(game, clock)

        def work(player: Player) -> Chosen:
            prepare(player)
            player.take_over(session)
            point = player.genmove(session.game.to_move, purpose, watcher)
            return Chosen(point, player.last_genmove_report)

        return self.submit(work)

    def analyse(self, game: Game, watcher: Watcher, moves: MoveFilter = EVERY_MOVE) -> "Future[Report | None]":
        """Analyse a position until :meth:`stop` or the next work.

        Args:
            game: copied at once. The search keeps its tree if the position follows from the one searched before.
            watcher: gets the reports, in the engine's thread.
        Returns:
            Future: the last report; None = none was made.
        """
        session, last = session_of(game), list[Report]()

        def on_report(report: Report) -> None:
            last[:] = [report]
            watcher.on_report(report)

        def work(player: Player) -> Report | None:
            player.take_over(session)
            player.analyze(session.game.to_move, copy_of(watcher, on_report), moves)
            return last[0] if last else None

        return self.submit(work, is_open_ended=True)

    def estimate_end(self, game: Game) -> "Future[EndEstimate]":
        """Estimate ownership, dead stones and score if play ended in the game's position."""
        session = session_of(game)

        def work(player: Player) -> EndEstimate:
            player.take_over(session)
            return player.estimate_end()

        return self.submit(work)

    def stop(self) -> None:
        """Interrupt the running work, which returns what it has, and cancel those that wait."""
        with self._changed:
            while self._waiting:
                self._waiting.popleft().future.cancel()
            if self._running is not None:
                self._interrupt()

    def close(self) -> None:
        """Stop all works and end the player's threads; returns when they have ended, unless the player still loads."""
        with self._changed:
            self._is_closed = True
            is_loading = self._player is None
            self._changed.notify()
        self.stop()
        if not is_loading and threading.current_thread() is not self._thread:
            self._thread.join()

    def _interrupt(self) -> None:
        if self._player is not None:
            self._player.interrupt()

    def _say(self, text: str) -> None:
        """Tell a line of progress. Threads: any."""
        with self._changed:
            self._tell(EngineState("loading" if self._player is None else "ready", text))

    def _tell(self, state: EngineState) -> None:
        self.state = state
        self._on_state(state)

    def _serve(self) -> None:
        """Load the player, then run works until the engine is closed."""
        try:
            player = self._load(self._say)
        except Exception as error:
            # A ValueError names a wrong setting; any other exception is a bug or a problem of the machine.
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            with self._changed:
                self._tell(EngineState("failed", kind + one_line(error)))
                while self._waiting:
                    self._waiting.popleft().future.set_exception(RuntimeError(self.state.text))
            return
        with self._changed:
            self._player = player
        self._tell(EngineState("ready"))
        while (work := self._next(player)) is not None:
            if not work.future.set_running_or_notify_cancel():
                continue
            try:
                result = work.run(player)
            except Exception as error:
                work.future.set_exception(error)
            else:
                work.future.set_result(result)
        with suppress(Exception):
            player.close()

    def _next(self, player: Player) -> _Work | None:
        """Wait for the next work; None = the engine is closed."""
        with self._changed:
            self._running = None
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return None
            self._running = self._waiting.popleft()
            # Under the lock: an interruption belongs to the work that runs now.
            player.resume()
            if self._running.is_open_ended and self._waiting:
                player.interrupt()
            return self._running


def session_of(game: Game, clock: Clock | None = None) -> GameSession:
    """A session with copies of game and clock, for :meth:`engine.play.player.Player.take_over`."""
    session = GameSession(game.size)
    session.game = copied(game)
    if clock is not None:
        session.clock = copy.deepcopy(clock)
    return session


def copied(game: Game) -> Game:
    """A copy of a game whose moves can be played and undone without changing the original."""
    twin = copy.copy(game)
    twin.position = with_capacity(game.position, len(game.position.moves))
    return twin


def copy_of(watcher: Watcher, on_report: Callable[[Report], None]) -> Watcher:
    """A watcher with another receiver of its reports."""
    return replace(watcher, on_report=on_report)
