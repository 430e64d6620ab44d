"""The engine's part in a game: its moves, the live search that the page shows, and the estimate of the end.

Methods run in the table's thread, results come back to it; reports of a search are sent from the engine's thread.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from engine.config import FULL, PlayOptions, SearchOptions
from engine.go.game import Game
from engine.insight.thinking import PARTS, Thinking
from engine.live.engine import Chosen, Engine
from engine.play.clock import Clock
from engine.play.game_session import Purpose
from engine.play.life_and_death import EndEstimate
from engine.search.report import Report, Watcher
from gtp.web.live_search import OWNERS_S, UPDATES_S, LiveSearch

HELPS = ("hint", "analysis", "thinking")
"""What a tab can ask for: a search of the shown position, and the panels of how the engine thinks"""


@dataclass
class Asked:
    """What the engine is asked for a move with."""

    game: Game
    clock: Clock | None
    level: str
    """a rank, or ``max``"""
    seconds: float
    """time of a move at full strength without a clock; 0 = the command's"""
    purpose: Purpose = Purpose.PLAY


class Opponent:
    """The engine as a table uses it. Threads: the table's."""

    def __init__(
        self,
        engine: Engine,
        play: PlayOptions,
        search: SearchOptions,
        publish: Callable[[bytes], None],
        post: Callable[..., None],
    ) -> None:
        """Make the opponent of a table.

        Args:
            play, search: options of the player, the search's with a seed.
            publish: sends an event of the live search to all tabs; any thread.
            post: runs a function in the table's thread, later; any thread.
        """
        self._engine, self._play, self._search_options = engine, play, search
        self._publish, self._post = publish, post
        self.help = dict.fromkeys(HELPS, False)
        self._parts: tuple[str, ...] = PARTS
        """panels that the page shows"""
        self.is_compiling = False
        """whether kernels are being compiled"""
        self._move: Future[Chosen] | None = None
        self._searched: tuple[int, Future[Any]] | None = None
        """node and future of the live search"""
        self._ending: Future[EndEstimate] | None = None
        self.values: dict[int, tuple[float | None, float | None]] = {}
        """node of this game -> Black's win rate and Black's lead, from searches so far"""

    @property
    def is_thinking(self) -> bool:
        """Whether a move has been asked for."""
        return self._move is not None

    @property
    def is_ready(self) -> bool:
        """Whether the engine is loaded."""
        return self._engine.state.name == "ready"

    def state(self) -> dict[str, str]:
        """The engine's state as the page shows it."""
        name, text = self._engine.state
        if name != "ready":
            return {"state": name, "text": text}
        # Kernels of a game's end are compiled in the background too, where nothing waits for them.
        may_wait = self.is_compiling and (self.is_thinking or any(self.help.values()))
        text = text or ("compiling kernels, once for this machine" if may_wait else "")
        return {"state": "thinking" if self.is_thinking else name, "text": text}

    def begin_game(self) -> None:
        """Forget the moves and searches of the game before."""
        self.cancel()
        self._searched, self.values = None, {}

    def cancel(self) -> None:
        """Stop a move that was asked for, and an estimate; their results are not used."""
        if self._move is not None or self._ending is not None:
            self._move, self._ending, self._searched = None, None, None
            self._engine.stop()

    def ask(self, asked: Asked, node: int, done: Callable[[Chosen | Exception], None]) -> None:
        """Ask for a move of the side to move.

        Args:
            node: id of the position's node.
            done: gets the move or an error, unless the move is cancelled.
        """
        options = replace(self._play, level=asked.level)
        if asked.seconds and asked.level == FULL:
            options = replace(options, seconds=asked.seconds)
        self._searched = None
        watched = self._watched(asked.game, node) if self.help["analysis"] or self.help["thinking"] else None
        move = self._engine.genmove(
            asked.game, asked.clock, watched.watcher() if watched else None, asked.purpose,
            lambda player: player.configure(options, self._search_options),
        )  # fmt: skip
        if watched:
            move.add_done_callback(lambda _: watched.close())
        self._move = move

        def on_move() -> None:
            if move is self._move:
                self._move = None
                if not move.cancelled():
                    done(_result(move))

        move.add_done_callback(lambda _: self._post(on_move))

    def estimate_end(self, game: Game, done: Callable[[EndEstimate | Exception], None]) -> None:
        """Estimate the end of a game; ``done`` gets the estimate or an error, unless it is cancelled."""
        ending = self._ending = self._engine.estimate_end(game)

        def on_ending() -> None:
            if ending is self._ending:
                self._ending = None
                if not ending.cancelled():
                    done(_result(ending))

        ending.add_done_callback(lambda _: self._post(on_ending))

    def drop_estimate(self) -> None:
        """Ignore an estimate that has not come yet."""
        self._ending = None

    def switch(self, name: str, is_on: bool, parts: Collection[str] = PARTS) -> None:
        """Switch a kind of help on or off; the search changes with the next :meth:`follow`.

        Args:
            parts: panels to compute, of :data:`engine.insight.thinking.PARTS`.
        Raises:
            ValueError: an unknown part; one line.
        """
        if unknown := sorted(set(parts) - set(PARTS)):
            raise ValueError(f"unknown part {unknown[0][:40]!r}, expected {', '.join(PARTS)}")
        self.help[name] = is_on
        if name == "thinking":
            self._parts = tuple(parts)
        if self._searched is not None:
            # Begun anew by ``follow``; the tree stays.
            self._searched = None
            self._engine.stop()

    def follow(self, game: Game | None, node: int = 0) -> None:
        """Search a position for the tabs if help is on and no move was asked for; None = no position."""
        if self.is_thinking or self._ending is not None:
            return
        if game is None or not any(self.help.values()):
            if self._searched is not None:
                self._searched = None
                self._engine.stop()
            return
        if self._searched is not None and self._searched[0] == node and not self._searched[1].done():
            return
        watched = self._watched(game, node)
        search = self._engine.analyse(game, watched.watcher())
        search.add_done_callback(lambda _: watched.close())
        search.add_done_callback(lambda done: self._post(self._on_end, done))
        self._searched = node, search

    def _on_end(self, search: "Future[Any]") -> None:
        """Raise a live search's error, which is a bug or a failed network: it is printed."""
        if not search.cancelled() and (error := search.exception()) is not None:
            raise error

    def _watched(self, game: Game, node: int) -> "Watched":
        parts = self._parts if self.help["thinking"] else ()
        return Watched(self._engine, LiveSearch(game, node, self._publish), parts, self.values)


class Watched:
    """A search whose reports are sent to the tabs. Threads: the engine's."""

    def __init__(self, engine: Engine, live: LiveSearch, parts: Collection[str], values: dict[int, Any]) -> None:
        self._engine, self._live, self._parts, self._values = engine, live, parts, values
        self._thinking: Thinking | None = None

    def watcher(self) -> Watcher:
        """The receiver of the reports, at most 20 a second."""
        return Watcher(self._on_report, UPDATES_S, UPDATES_S, ownership=True, ownership_s=OWNERS_S)

    def _on_report(self, report: Report) -> None:
        thoughts = None
        if self._parts:
            if self._thinking is None:
                self._thinking = Thinking(self._engine.player.search, self._parts)
            thoughts = self._thinking.now()
        self._live.on_report(report, thoughts)
        self._values[self._live.node] = self._live.values

    def close(self) -> None:
        """End the evaluations of the panels; before the search's position changes."""
        if self._thinking is not None:
            self._thinking.close()
            self._thinking = None


def _result(future: "Future[Any]") -> Any:
    """A future's result, or its error."""
    return future.exception() or future.result()
