"""Games of a match as numbered work for a crew: what travels to where they are played, and what comes back.

The process that plays a game starts its engines; they go on to the next game, and one that broke down is started anew.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from bench.match.gtp_client import START_S, EngineError, EngineRefused, GtpClient
from bench.match.play import GameSettings, MatchError, play_game
from bench.match.record import ROLES, GameRecord, record_line
from engine.go.geometry import BLACK, WHITE
from engine.system.crew import Done, Files

POLL_S = 0.2
REFEREE = "referee"


@dataclass(frozen=True)
class Match:
    """Who plays whom, and how."""

    first: str
    second: str
    referee: str | None
    settings: GameSettings
    games: int
    openings: tuple[tuple[int, ...], ...] = ((),)
    names: tuple[str | None, str | None] = (None, None)
    """what to call the engines; None = what they call themselves"""

    def opening(self, game: int) -> tuple[int, ...]:
        """Points of the opening of a game, counted from 1."""
        return self.openings[(game - 1) // 2 % len(self.openings)]


class MatchWorker:
    """Plays games, some at once, each with engines of its own. See :class:`engine.system.crew.Worker`."""

    def __init__(
        self, match: Match, stack: ExitStack, at_once: int,
        on_move: Callable[[int, int], None] = lambda game, moves: None,
    ) -> None:  # fmt: skip
        """Start nothing yet.

        Args:
            stack: ends the engines.
            at_once: games.
            on_move: called with a game's number and how many moves it has had. Threads: any.
        """
        self.threads = at_once
        self._match, self._on_move = match, on_move
        self._free: queue.SimpleQueue[_Engines] = queue.SimpleQueue()
        for _ in range(at_once):
            engines = _Engines(match)
            stack.callback(engines.close)
            self._free.put(engines)

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.crew.Worker.do`: a line of ``games.jsonl`` each; games count from 1.

        Raises:
            MatchError, EngineError: the match cannot go on.
        """
        engines = self._free.get_nowait()
        try:
            with engines.killed_when(stopped):
                for number in numbers:
                    record = self._play(number, engines)
                    if stopped.is_set():
                        return
                    yield [number], record_line(record).encode()
        except (MatchError, EngineError):
            # The end of its engines is not the fault of a game that was stopped.
            if not stopped.is_set():
                raise
        finally:
            self._free.put(engines)

    def _play(self, number: int, engines: "_Engines") -> GameRecord:
        """Play the game of a number."""
        match = self._match
        first, second = (engines.running(role) for role in ROLES)
        referee = engines.running(REFEREE) if match.referee else None
        is_black = number % 2 == 1 and not match.settings.handicap
        patience_s = match.settings.patience_s
        names = {
            role: name or _name_of(engine, patience_s)
            for role, name, engine in zip(ROLES, match.names, (first, second), strict=True)
        }
        if names["first"] == names["second"]:
            names = {role: f"{name} ({role})" for role, name in names.items()}
        record = GameRecord(number, "black" if is_black else "white", names, [])
        players = {BLACK: first, WHITE: second} if is_black else {BLACK: second, WHITE: first}
        opening = match.opening(number)
        play_game(record, players, referee, match.settings, opening, lambda moves: self._on_move(number, moves))
        return record


@dataclass(frozen=True)
class MatchJob:
    """Games of a match, wherever they are played. See :class:`engine.system.crew.Job`."""

    match: Match
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> MatchWorker:
        """A worker of this process; how many processors the engines take is their own options' matter."""
        return MatchWorker(self.match, stack, self.at_once)


class _Engines:
    """The engines of one game after the other."""

    def __init__(self, match: Match) -> None:
        self._commands = {"first": match.first, "second": match.second, REFEREE: match.referee or ""}
        self._patience_s = match.settings.patience_s
        self._started: dict[str, GtpClient] = {}
        self._lock, self._is_killed = threading.Lock(), False

    def running(self, role: str) -> GtpClient:
        """The engine of a role, started anew if it is not running; it has answered a question.

        Raises:
            MatchError: all were killed.
            EngineError: it does not start; this ends the match and loses no game.
        """
        patience_s, engine = self._patience_s, self._started.get(role)
        if engine is not None and engine.is_alive:
            # It may end behind its last answer, which is no fault of the game to come.
            with suppress(EngineError):
                _greet(engine, patience_s)
                return engine
        with self._lock:
            if self._is_killed:
                raise MatchError("stopped")
            if engine is not None:
                engine.kill()
            self._started[role] = engine = GtpClient(self._commands[role])
        _greet(engine, max(START_S, patience_s))
        return engine

    @contextmanager
    def killed_when(self, stopped: threading.Event) -> Iterator[None]:
        """Kill the engines when ``stopped`` is set, which ends a game in the midst of a move."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(POLL_S):
                if stopped.is_set():
                    self._kill()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()

    def _kill(self) -> None:
        with self._lock:
            self._is_killed = True
            for engine in self._started.values():
                engine.kill()

    def close(self) -> None:
        """End the engines."""
        for engine in self._started.values():
            engine.close()


def _greet(engine: GtpClient, limit_s: float) -> None:
    """Wait until an engine answers; errors as of :meth:`GtpClient.ask`, but for a refusal, which is an answer."""
    with suppress(EngineRefused):
        engine.ask("name", limit_s)


def _name_of(engine: GtpClient, limit_s: float) -> str:
    """What an engine calls itself."""
    answers = []
    for question in ("name", "version"):
        with suppress(EngineRefused):
            answers.append(engine.ask(question, limit_s))
    return " ".join(" ".join(answers).split()) or engine.command
