"""Games between two GTP engines: who moves, what is legal, the clocks, how they end, and the engines of many in a row.

Start at :func:`play_game` for one game and at :class:`Match` for the job of an executor, which may be other processes:
the process that plays a game starts its engines, keeps them for the next game, and restarts one that crashed. An engine
loses by resigning, by an illegal move, by refusing a legal one, by overstepping
its clock, by not answering and by breaking down; the record says which. The project's own board decides under the
match's rules what is legal, or a third engine, the referee, if there is one. After two passes both players and the
referee are asked for the score: the referee's counts, without one both players must name the same winner, and one that
breaks down instead loses.
"""

import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from bench.match.clocks import Dialect, PlayerClock, kind_of
from bench.match.folder import ROLES, GameRecord, record_line
from bench.match.gtp_client import START_S, EngineError, EngineRefused, EngineTimeout, GtpClient, shortened
from engine.config import SetupOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, other, to_vertex
from engine.go.notation import color_letter, color_word
from engine.go.rules import rules_named
from engine.go.scoring import result_text
from engine.play.clock import NO_CLOCK, TimeSettings
from engine.system.executor import Done, Files

POLL_S = 0.2
REFEREE = 0
"""Its place among the engines of a game, which go by colours; its role is ``referee``"""
SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?)")
GRACE_S = 1.0
"""How long after its flag fell an engine may still answer, so that it need not be restarted"""
KGS_RULES = {"japanese": "japanese", "chinese": "chinese", "aga": "aga", "new-zealand": "new_zealand"}
"""Rules that the command kgs-rules knows"""


class MatchError(Exception):
    """The match cannot go on, through a fault of the set-up or the referee, not of a player. One line."""


class GameLost(Exception):
    """A player lost at once."""

    def __init__(self, color: int, letter: str, reason: str, *details: str) -> None:
        """``letter`` is what SGF's result has after the plus sign: R, T or F; ``details`` follow each other."""
        super().__init__(reason)
        self.color, self.letter, self.reason, self.detail = color, letter, reason, shortened("".join(details))


@dataclass(frozen=True)
class GameSettings:
    """What all games of a match have in common."""

    size: int = 19
    komi: float = SetupOptions.komi
    rules: str = "chinese"
    time: TimeSettings = NO_CLOCK
    tolerance_s: float = 0.5
    """overstepping a clock by less is forgiven: pipes and schedulers take their time"""
    patience_s: float = 300.0
    """most seconds to wait for any answer that no clock limits"""
    max_moves: int = 0
    """moves after which a game is scored as it stands; 0 = three boards full"""
    handicap: int = 0
    """stones on their traditional points that Black has before the game; White begins"""


def play_game(
    record: GameRecord,
    players: dict[int, GtpClient],
    referee: GtpClient | None,
    settings: GameSettings,
    opening: Sequence[int] = (),
    on_move: Callable[[int], None] = lambda moves: None,
) -> Game:
    """Play one game to its end and complete its record.

    Args:
        record: number, names and colours filled in.
        players: engine of each colour.
        opening: points to begin with, Black's first.
        on_move: called with the number of moves so far.
    Returns:
        Game: the moves on a board.
    Raises:
        MatchError: an engine refuses the settings, or the referee failed.
    """
    running = _RunningGame(record, players, referee, settings)
    record.begin_timing()
    try:
        running.set_up(opening)
        limit = settings.max_moves or 3 * settings.size**2
        while not running.game.is_over and running.game.n_moves < limit:
            running.play_turn()
            on_move(running.game.n_moves)
        running.score()
    except GameLost as loss:
        winner = other(loss.color)
        record.reason, record.detail = loss.reason, loss.detail
        record.decide(winner, f"{color_letter(winner)}+{loss.letter}")
    for color, client in players.items():
        record.stray_lines[record.role(color)] = client.stray_lines
        client.stray_lines = 0
    return running.game


@contextmanager
def _refusal_raises(error: Callable[[str], Exception]) -> Iterator[None]:
    """Raise another error, made of the engine's words, in place of its refusal."""
    try:
        yield
    except EngineRefused as refusal:
        raise error(str(refusal)) from refusal


def tell_rules(rules: str, lists: Callable[[str], bool], ask: Callable[[str], str]) -> None:
    """Name the rules by the first command for it that the engine has and takes; else its own options must.

    Args:
        lists: whether the engine lists a command.
        ask: gives it one.
    """
    name = rules_named(rules).name
    for command, word in (("kata-set-rules", name), ("kgs-rules", KGS_RULES.get(name))):
        if word is not None and lists(command):
            with suppress(EngineRefused):
                ask(f"{command} {word}")
                return


class _RunningGame:
    """The board, the engines and the clocks of one game."""

    def __init__(
        self, record: GameRecord, players: dict[int, GtpClient], referee: GtpClient | None, settings: GameSettings
    ) -> None:
        self.record = record
        self.engines = players | ({REFEREE: referee} if referee else {})
        self.settings = settings
        self.game = Game(settings.size, rules_named(settings.rules), settings.komi)
        self.clocks = {color: PlayerClock(settings.time) for color in players}

    def ask(self, who: int, command: str, limit_s: float = 0.0) -> str:
        """Ask an engine: a player's breakdown loses the game, the referee's ends the match."""
        with self._breakdown_raises(who):
            return self.engines[who].ask(command, limit_s or self.settings.patience_s)

    def lists(self, who: int, command: str) -> bool:
        """Whether an engine lists the command; errors as of :meth:`ask`."""
        with self._breakdown_raises(who):
            return self.engines[who].lists(command, self.settings.patience_s)

    @contextmanager
    def _breakdown_raises(self, who: int) -> Iterator[None]:
        """Raise the loss of the game, or the end of the match, in place of the breakdown of an engine."""
        try:
            yield
        except EngineError as error:
            if who == REFEREE:
                raise MatchError(f"referee: {error}") from error
            reason = "no answer" if isinstance(error, EngineTimeout) else "breakdown"
            raise GameLost(who, "F", reason, str(error)) from error

    def _role(self, who: int) -> str:
        return "referee" if who == REFEREE else self.record.role(who)

    def _ending_match(self, who: int, words: str) -> Callable[[str], MatchError]:
        """The error that ends the match for an engine's refusal."""
        role = self._role(who)
        name = self.record.names.get(role, role)
        return lambda refusal: MatchError(f"{name} {words}: {refusal}")

    def set_up(self, opening: Sequence[int]) -> None:
        """Give players and referee one board, komi, rules, handicap and first moves, and the players their time."""
        settings, refuses = self.settings, "does not take these settings"
        self._tell_all(refuses, f"boardsize {settings.size}", "clear_board", f"komi {settings.komi:g}")
        for who in self.engines:
            if who in self.clocks and settings.time.is_limited:
                with _refusal_raises(self._ending_match(who, refuses)):
                    self._tell_time(who)
            tell_rules(settings.rules, partial(self.lists, who), partial(self.ask, who))
        if settings.handicap:
            self._tell_all("does not place handicap stones", f"fixed_handicap {settings.handicap}")
            self.game.fixed_handicap(settings.handicap)
        for point in opening:
            self._pass_on(self.game.to_move, point, sorted(self.engines))
        self.record.opening = len(opening)

    def _tell_all(self, refuses: str, *commands: str) -> None:
        """Give commands to players and referee; who refuses one ends the match."""
        for who in self.engines:
            with _refusal_raises(self._ending_match(who, refuses)):
                for command in commands:
                    self.ask(who, command)

    def _tell_time(self, color: int) -> None:
        """Set an engine's clock by the best command for its kind that the engine lists."""
        kind, dialect = kind_of(self.settings.time), Dialect.GTP
        if kind == "byoyomi" and self.lists(color, Dialect.KGS.value):
            dialect = Dialect.KGS
        if self.lists(color, Dialect.KATA.value) and self.lists(color, "kata-list_time_settings"):
            kinds = self.ask(color, "kata-list_time_settings").split()
            dialect = Dialect.KATA if kind in kinds else dialect
        self.clocks[color] = PlayerClock(self.settings.time, dialect)
        if self.lists(color, dialect.value):
            try:
                command = self.clocks[color].settings_command()
            except ValueError as error:
                raise MatchError(f"{self.record.names[self._role(color)]}: {error}") from error
            self.ask(color, command)

    def play_turn(self) -> None:
        """One genmove, timed, checked and passed on."""
        color = self.game.to_move
        answer = self._genmove(color)
        if answer.lower() == "resign":
            raise GameLost(color, "R", "resignation")
        self._pass_on(color, self._legal_point(color, answer), (other(color),))

    def _genmove(self, color: int) -> str:
        """Ask for a move under the clock, if there is one."""
        settings, clock, is_timed = self.settings, self.clocks[color], self.settings.time.is_limited
        limit_s = clock.limit_s() + settings.tolerance_s + GRACE_S if is_timed else settings.patience_s
        if is_timed and self.lists(color, "time_left"):
            with suppress(EngineRefused):
                self.ask(color, f"time_left {color_word(color)} {clock.left_words()}")
        late, answer = None, ""
        try:
            with _refusal_raises(partial(GameLost, color, "F", "no move", "genmove answered: ")):
                answer = self.ask(color, f"genmove {color_word(color)}", limit_s)
        except GameLost as loss:
            if not is_timed or loss.reason != "no answer":
                raise
            late = loss
        used_s = limit_s if late else self.engines[color].last_answer_s
        record, role = self.record, self._role(color)
        record.slowest_s[role] = round(max(record.slowest_s[role], used_s), 3)
        record.spent_s[role] = round(record.spent_s[role] + used_s, 3)
        in_time = not is_timed or clock.spend(used_s, settings.tolerance_s)
        record.overrun_s[role] = round(clock.overrun_s, 3)
        if not in_time:
            detail = late.detail if late else f"move {self.game.n_moves + 1} took {used_s:.2f} s"
            raise GameLost(color, "T", "time", detail) from late
        return answer

    def _legal_point(self, color: int, vertex: str) -> int:
        """Point of a legal move; an illegal one loses."""
        try:
            point = from_vertex(vertex, self.settings.size)
        except ValueError as error:
            raise GameLost(color, "F", "illegal move", str(error)) from error
        if REFEREE in self.engines:
            with _refusal_raises(partial(GameLost, color, "F", "illegal move", f"{vertex}: referee says ")):
                self.ask(REFEREE, f"play {color_word(color)} {vertex}")
        elif not self.game.is_legal(color, point):
            detail = f"{vertex} as move {self.game.n_moves + 1}, under {self.settings.rules} rules"
            raise GameLost(color, "F", "illegal move", detail)
        return point

    def _pass_on(self, color: int, point: int, listeners: Iterable[int]) -> None:
        """Enter a move and tell it to some players, or one of an opening to the referee too."""
        vertex = to_vertex(point, self.settings.size)
        try:
            self.game.play(color, point)
        except ValueError as error:
            raise MatchError(f"{vertex} as move {self.game.n_moves + 1}: {error}") from error
        self.record.moves.append(vertex)
        for who in listeners:
            fault: Callable[[str], Exception] = self._ending_match(who, f"refuses the opening at {vertex}")
            if who != REFEREE:
                detail = f"{vertex} as move {self.game.n_moves}: "
                fault = partial(GameLost, who, "F", "refused a legal move", detail)
            with _refusal_raises(fault):
                self.ask(who, f"play {color_word(color)} {vertex}")

    def score(self) -> None:
        """Ask players and referee for the score and enter the result."""
        record = self.record
        record.reason = "score" if self.game.is_over else "move limit"
        breakdowns: list[GameLost] = []
        for who in self.engines:
            try:
                text = self.ask(who, "final_score")
            except EngineRefused as error:
                if who == REFEREE:
                    raise MatchError(f"referee gives no score: {error}") from error
                text = f"failed: {error}"
            except GameLost as loss:
                breakdowns.append(loss)
                text = f"failed: {loss.detail}"
            record.scores[self._role(who)] = shortened(text)
        deciding = ["referee"] if REFEREE in self.engines else list(record.scores)
        if len(deciding) > 1 and len(breakdowns) == 1:
            raise breakdowns[0]
        if not scores_alike(record):
            record.detail = ", ".join(f"{who} says {text}" for who, text in record.scores.items())
        leads = [lead for who in deciding if (lead := lead_black(record.scores[who])) is not None]
        if len(leads) < len(deciding):
            record.reason = "no score"
        elif len({(lead > 0) - (lead < 0) for lead in leads}) != 1:
            record.reason = "disagreement"
        else:
            lead = leads[0]
            record.decide((BLACK if lead > 0 else WHITE) if lead else None, result_text(lead))


def lead_black(text: str) -> float | None:
    """Points of Black's lead in an answer to ``final_score``; None if the answer has another form."""
    text = text.strip().upper()
    if text in ("0", "DRAW", "JIGO"):
        return 0.0
    found = SCORE.fullmatch(text)
    return None if found is None else float(found[2]) * (1 if found[1] == "B" else -1)


def scores_alike(record: GameRecord) -> bool | None:
    """Whether all engines asked gave the same score; None if fewer than two were asked."""
    if len(record.scores) < 2:
        return None
    leads = {lead_black(text) for text in record.scores.values()}
    return len(leads) == 1 and None not in leads


def untold(game: int, moves: int) -> None:
    """Tells of no move; a function with a name, which can be pickled."""


@dataclass(frozen=True)
class Match:
    """Who plays whom, and how; the job of an executor, see :class:`engine.system.executor.Job`."""

    first: str
    second: str
    referee: str | None
    settings: GameSettings
    games: int
    openings: tuple[tuple[int, ...], ...] = ((),)
    names: tuple[str | None, str | None] = (None, None)
    """what to call the engines; None = what they call themselves"""
    at_once: int = 1
    """games of each process, each with engines of its own"""
    on_move: Callable[[int, int], None] = untold
    """called with a game's number and how many moves it has had. Threads: any."""

    def opening(self, game: int) -> tuple[int, ...]:
        """Points of the opening of a game, counted from 1."""
        return self.openings[(game - 1) // 2 % len(self.openings)]

    def open(self, stack: ExitStack, files: Files, cores: int) -> "MatchWorker":
        """A worker of this process; how many processors the engines take is their own options' matter."""
        return MatchWorker(self, stack)


class MatchWorker:
    """Plays games, some at once. See :class:`engine.system.executor.Worker`."""

    def __init__(self, match: Match, stack: ExitStack) -> None:
        """Start nothing yet; ``stack`` ends the engines."""
        self.threads = match.at_once
        self._match = match
        self._free: queue.SimpleQueue[_Engines] = queue.SimpleQueue()
        for _ in range(match.at_once):
            engines = _Engines(match)
            stack.callback(engines.close)
            self._free.put(engines)

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """See :meth:`engine.system.executor.Worker.do`: a line of ``games.jsonl`` each; games count from 1.

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
        referee = engines.running("referee") if match.referee else None
        is_black = number % 2 == 1 and not match.settings.handicap
        names = {
            role: name or _name_of(engine, match.settings.patience_s)
            for role, name, engine in zip(ROLES, match.names, (first, second), strict=True)
        }
        if names["first"] == names["second"]:
            names = {role: f"{name} ({role})" for role, name in names.items()}
        record = GameRecord(number, "black" if is_black else "white", names, [])
        players = {BLACK: first, WHITE: second} if is_black else {BLACK: second, WHITE: first}
        on_move = partial(match.on_move, number)
        play_game(record, players, referee, match.settings, match.opening(number), on_move)
        return record


class _Engines:
    """The engines of one game after the other."""

    def __init__(self, match: Match) -> None:
        self._commands = {"first": match.first, "second": match.second, "referee": match.referee or ""}
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
