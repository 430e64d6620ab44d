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
from typing import Any, NamedTuple, TypeVar

from engine.go.game import Game
from engine.play.clock import Clock
from engine.play.game_session import GameSession, Purpose
from engine.play.life_and_death import EndEstimate
from engine.play.player import Player
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.search.snapshot import Snapshot
from engine.search.stoppers import SearchLimits
from engine.system import one_line, with_kind

T = TypeVar("T")


class EngineState(NamedTuple):
    """The state of an engine."""

    name: str
    """``loading``, ``ready`` or ``failed``"""
    text: str = ""
    """one line about the state: the progress of loading, which may continue in the background, or why loading failed"""


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
    on_interrupt: Callable[[], None]


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
        self._searched: Game | None = None
        """the position of the player's search; None = it has searched none for a caller"""
        self._searched_lock = threading.Lock()
        """held while the search's position changes and while its tree is copied"""
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

    def submit(
        self, work: Callable[[Player], T], is_open_ended: bool = False, on_interrupt: Callable[[], None] = lambda: None,
        future: "Future[T] | None" = None,
    ) -> "Future[T]":  # fmt: skip
        """Queue a work; an open-ended one that runs or waits ends.

        Args:
            work: called with the player in the engine's thread. It may leave any game on the player's board.
            is_open_ended: the next work interrupts this one.
            on_interrupt: called when the running work is interrupted, after the player; any thread, at once.
            future: gets the result and is returned; None = a new one. A caller that Ctrl-C may interrupt in this call
                can :meth:`cancel` its own.
        Returns:
            Future: cancelled before it runs, the work never runs. It fails with ``RuntimeError`` if the player could
            not be loaded or the engine is closed.
        """
        future = Future() if future is None else future
        with self._changed:
            if self._is_closed or self.state.name == "failed":
                reason = "the engine is closed" if self._is_closed else self.state.text
                future.set_exception(RuntimeError(reason))
                return future
            for one in [one for one in self._waiting if one.is_open_ended]:
                one.future.cancel()
            self._waiting.append(_Work(work, future, is_open_ended, on_interrupt))
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
        moves: MoveFilter = EVERY_MOVE,
        limits: SearchLimits | None = None,
        future: "Future[Chosen] | None" = None,
    ) -> "Future[Chosen]":
        """Choose a move for the side to move.

        Args:
            game: copied at once; it does not change.
            clock: clocks of both colours, only read; None = the limits of the player's options.
            watcher, purpose, moves, limits: as for :meth:`engine.play.player.Player.genmove`.
            prepare: called before the search, to change the player's options.
            future: as for :meth:`submit`.
        """
        session = session_of(game, clock)

        def work(player: Player) -> Chosen:
            self._take_over(player, session, prepare)
            point = player.genmove(session.game.to_move, purpose, watcher, moves, limits=limits)
            return Chosen(point, player.last_genmove_report)

        return self.submit(work, future=future)

    def analyse(
        self,
        game: Game,
        watcher: Watcher,
        moves: MoveFilter = EVERY_MOVE,
        limits: SearchLimits | None = None,
        is_open_ended: bool = True,
        wide_root_noise: float | None = None,
        future: "Future[Report | None] | None" = None,
    ) -> "Future[Report | None]":
        """Analyse a position until a limit is reached, the work is interrupted or, if it is open-ended, another comes.

        Args:
            game: copied at once. The search keeps its tree if the position follows from the one searched before.
            watcher: gets the reports, in the engine's thread.
            moves, limits, wide_root_noise: as for :meth:`engine.play.player.Player.analyze`.
            is_open_ended, future: as for :meth:`submit`.
        Returns:
            Future: the last report; None = interrupted before the search began.
        """
        session = session_of(game)

        def work(player: Player) -> Report | None:
            self._take_over(player, session)
            return player.analyze(session.game.to_move, watcher, moves, limits, wide_root_noise)

        return self.submit(work, is_open_ended, future=future)

    def _take_over(
        self, player: Player, session: GameSession, prepare: Callable[[Player], None] = lambda player: None
    ) -> None:
        """Set the player's game, and the search's position, which :meth:`tree` reads. Threads: the engine's."""
        game = session.game.copy()
        with self._searched_lock:
            prepare(player)
            player.take_over(session)
            player.search.set_position(player.position_for(game.to_move))
            self._searched = game

    def tree(self) -> tuple[Game, Snapshot] | None:
        """The position that was searched last, or is being searched, and a copy of its tree.

        Returns:
            None: nothing was searched yet.
        """
        with self._searched_lock:
            if self._searched is None:
                return None
            return self._searched.copy(), self.player.search.snapshot()

    def on_game(self, game: Game, work: Callable[[Player], T], future: "Future[T] | None" = None) -> "Future[T]":
        """Queue a work on a game's position.

        Args:
            game: copied at once.
            work: called in the engine's thread with the player, whose game and search have the position.
            future: as for :meth:`submit`.
        """
        session = session_of(game)

        def on_position(player: Player) -> T:
            self._take_over(player, session)
            return work(player)

        return self.submit(on_position, future=future)

    def estimate_end(self, game: Game) -> "Future[EndEstimate]":
        """Estimate ownership, dead stones and score if play ended in the game's position."""
        return self.on_game(game, Player.estimate_end)

    def release_tree(self, player: Player) -> None:
        """Free the memory of the player's tree. Threads: the engine's, in a work."""
        with self._searched_lock:
            self._searched = None
            player.search.release()

    def cancel(self, future: "Future[T]") -> None:
        """Cancel the work of a future if it waits, or interrupt it if it runs: it returns what it has."""
        with self._changed:
            if not future.cancel() and self._running is not None and self._running.future is future:
                self._interrupt()

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
        """Interrupt the running work. Threads: the lock is held."""
        if self._player is not None:
            self._player.interrupt()
        if self._running is not None:
            self._running.on_interrupt()

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
            with self._changed:
                self._tell(EngineState("failed", with_kind(error, one_line(error))))
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
                self._interrupt()
            return self._running


def session_of(game: Game, clock: Clock | None = None) -> GameSession:
    """A session with copies of game and clock, for :meth:`engine.play.player.Player.take_over`."""
    session = GameSession(game.size)
    session.game = game.copy()
    if clock is not None:
        session.clock = copy.deepcopy(clock)
    return session
