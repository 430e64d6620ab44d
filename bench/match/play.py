"""Games between two GTP engines: moves, legality, clocks, results; and the job of an executor that plays many of them.

Start at :func:`play_game` for one game and at :class:`Match` for the job. A process that plays games starts its own
engines, keeps them from game to game, and restarts one that crashed. An engine loses by resigning, by an illegal move,
by refusing a legal move, by overstepping its clock, by not answering and by crashing; the record names the reason.
Legality is decided by the project's own board under the match's rules or, if the match has a referee (a third engine),
by the referee. After two passes players and referee are asked for ``final_score``. The referee's answer is the result;
without a referee both players must name the same winner, and a player that crashes at this question loses.
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
from engine.go.points import color_letter, color_word
from engine.go.rules import rules_named
from engine.go.scoring import result_text
from engine.play.clock import NO_CLOCK, TimeSettings
from engine.system.executor import Done, Files

REFEREE = 0
"""Key of the referee among the engines of a game; the players' keys are their colours"""
SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?)")
GRACE_S = 1.0
"""Seconds to wait for an answer after a flag fell and the tolerance passed: an engine that answers is not restarted"""
KGS_RULES = {"japanese": "japanese", "chinese": "chinese", "aga": "aga", "new-zealand": "new_zealand"}
"""Keima's name of a rule set -> its name in the command ``kgs-rules``"""
Refused = Callable[[str], Exception]
"""Function that makes the exception to raise for an engine's answer ``?`` from the text after the ``?``"""


class MatchError(Exception):
    """The match stops, since its settings or the referee are at fault, not a player. The message is one line."""


class GameLost(Exception):
    """A player lost the game without a score."""

    def __init__(self, color: int, letter: str, reason: str, *details: str) -> None:
        """Describe how a game was lost.

        Args:
            color: the loser's colour.
            letter: R, T or F, which SGF's property RE has after the plus sign.
            details: joined to one text.
        """
        super().__init__(reason)
        self.color, self.letter, self.reason, self.detail = color, letter, reason, shortened("".join(details))


@dataclass(frozen=True)
class GameSettings:
    """Settings that are the same for all games of a match."""

    size: int = 19
    komi: float = SetupOptions.komi
    rules: str = "chinese"
    time: TimeSettings = NO_CLOCK
    tolerance_s: float = 0.5
    """seconds by which a player may overstep its clock without losing; pipes and schedulers cause delays"""
    patience_s: float = 300.0
    """longest wait for an answer that no clock limits"""
    max_moves: int = 0
    """moves after which the board is scored as it stands; 0 = three times the number of points"""
    handicap: int = 0
    """Black's handicap stones on the points of ``fixed_handicap``; White moves first"""


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
        record: has number, names and colours; the other fields are filled in here.
        players: colour -> engine.
        opening: points of the first moves, Black's first.
        on_move: called with the number of moves so far.
    Returns:
        Game: after the last move.
    Raises:
        MatchError: an engine refused the settings, or the referee failed.
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


def tell_rules(rules: str, lists: Callable[[str], bool], ask: Callable[[str], str]) -> None:
    """Set an engine's rules by ``kata-set-rules`` or else ``kgs-rules``; an engine that takes neither keeps its rules.

    Args:
        lists: whether the engine lists a command.
        ask: sends a command to the engine; raises EngineRefused.
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

    def ask(self, who: int, command: str, limit_s: float = 0.0, refused: Refused | None = None) -> str:
        """Send an engine a command and wait for its answer.

        Args:
            who: colour of a player, or ``REFEREE``.
            limit_s: longest wait; 0 = the match's patience.
            refused: makes the error to raise if the engine answers ``?``; None = EngineRefused.
        Raises:
            GameLost: a player failed.
            MatchError: the referee failed.
        """
        with self._breakdown_raises(who):
            try:
                return self.engines[who].ask(command, limit_s or self.settings.patience_s)
            except EngineRefused as refusal:
                if refused is None:
                    raise
                raise refused(str(refusal)) from refusal

    def lists(self, who: int, command: str) -> bool:
        """Whether an engine lists the command; raises as :meth:`ask` does."""
        with self._breakdown_raises(who):
            return self.engines[who].lists(command, self.settings.patience_s)

    @contextmanager
    def _breakdown_raises(self, who: int) -> Iterator[None]:
        """Convert an EngineError into GameLost for a player, into MatchError for the referee."""
        try:
            yield
        except EngineError as error:
            if who == REFEREE:
                raise MatchError(f"referee: {error}") from error
            reason = "no answer" if isinstance(error, EngineTimeout) else "breakdown"
            raise GameLost(who, "F", reason, str(error)) from error

    def _role(self, who: int) -> str:
        return "referee" if who == REFEREE else self.record.role(who)

    def _ending_match(self, who: int, words: str) -> Refused:
        """Make a :data:`Refused` of an error that stops the match: the engine's name, ``words`` and its refusal."""
        role = self._role(who)
        name = self.record.names.get(role, role)
        return lambda refusal: MatchError(f"{name} {words}: {refusal}")

    def set_up(self, opening: Sequence[int]) -> None:
        """Send players and referee board size, komi, rules, handicap and opening, and the players their clocks."""
        settings = self.settings
        for who in self.engines:
            refused = self._ending_match(who, "does not take these settings")
            for command in (f"boardsize {settings.size}", "clear_board", f"komi {settings.komi:g}"):
                self.ask(who, command, refused=refused)
            if who in self.clocks and settings.time.is_limited:
                self._tell_time(who, refused)
            tell_rules(settings.rules, partial(self.lists, who), partial(self.ask, who))
            if settings.handicap:
                refused = self._ending_match(who, "does not place handicap stones")
                self.ask(who, f"fixed_handicap {settings.handicap}", refused=refused)
        if settings.handicap:
            self.game.fixed_handicap(settings.handicap)
        for point in opening:
            self._enter_move(self.game.to_move, point, sorted(self.engines))
        self.record.opening = len(opening)

    def _tell_time(self, color: int, refused: Refused) -> None:
        """Set an engine's clock by the most exact command that it lists for this kind of clock."""
        kind, dialect = kind_of(self.settings.time), Dialect.GTP
        if kind == "byoyomi" and self.lists(color, Dialect.KGS.value):
            dialect = Dialect.KGS
        if self.lists(color, Dialect.KATA.value) and self.lists(color, "kata-list_time_settings"):
            kinds = self.ask(color, "kata-list_time_settings", refused=refused).split()
            dialect = Dialect.KATA if kind in kinds else dialect
        self.clocks[color] = PlayerClock(self.settings.time, dialect)
        if self.lists(color, dialect.value):
            try:
                command = self.clocks[color].settings_command()
            except ValueError as error:
                raise MatchError(f"{self.record.names[self._role(color)]}: {error}") from error
            self.ask(color, command, refused=refused)

    def play_turn(self) -> None:
        """Ask for one move, time it, check it and send it to the opponent."""
        color = self.game.to_move
        answer = self._genmove(color)
        if answer.lower() == "resign":
            raise GameLost(color, "R", "resignation")
        self._enter_move(color, self._legal_point(color, answer), (other(color),))

    def _genmove(self, color: int) -> str:
        """Send ``genmove`` and subtract its time from the player's clock; returns the answer."""
        settings, clock, is_timed = self.settings, self.clocks[color], self.settings.time.is_limited
        limit_s = clock.limit_s() + settings.tolerance_s + GRACE_S if is_timed else settings.patience_s
        if is_timed and self.lists(color, "time_left"):
            with suppress(EngineRefused):
                self.ask(color, f"time_left {color_word(color)} {clock.left_words()}")
        late, answer = None, ""
        try:
            refused = partial(GameLost, color, "F", "no move", "genmove answered: ")
            answer = self.ask(color, f"genmove {color_word(color)}", limit_s, refused)
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
        """Point of a player's move.

        Raises:
            GameLost: the move is illegal.
        """
        try:
            point = from_vertex(vertex, self.settings.size)
        except ValueError as error:
            raise GameLost(color, "F", "illegal move", str(error)) from error
        if REFEREE in self.engines:
            refused = partial(GameLost, color, "F", "illegal move", f"{vertex}: referee says ")
            self.ask(REFEREE, f"play {color_word(color)} {vertex}", refused=refused)
        elif not self.game.is_legal(color, point):
            detail = f"{vertex} as move {self.game.n_moves + 1}, under {self.settings.rules} rules"
            raise GameLost(color, "F", "illegal move", detail)
        return point

    def _enter_move(self, color: int, point: int, listeners: Iterable[int]) -> None:
        """Play a move on the board and send it to ``listeners``, engines by their keys.

        The referee is a listener in the opening only; :meth:`_legal_point` sends it the later moves.
        """
        vertex = to_vertex(point, self.settings.size)
        try:
            self.game.play(color, point)
        except ValueError as error:
            raise MatchError(f"{vertex} as move {self.game.n_moves + 1}: {error}") from error
        self.record.moves.append(vertex)
        for who in listeners:
            refused = self._ending_match(who, f"refuses the opening at {vertex}")
            if who != REFEREE:
                detail = f"{vertex} as move {self.game.n_moves}: "
                refused = partial(GameLost, who, "F", "refused a legal move", detail)
            self.ask(who, f"play {color_word(color)} {vertex}", refused=refused)

    def score(self) -> None:
        """Ask players and referee for the score and set the record's result."""
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
    """Black's lead in points from an answer to ``final_score``; None if the answer has another form."""
    text = text.strip().upper()
    if text in ("0", "DRAW", "JIGO"):
        return 0.0
    found = SCORE.fullmatch(text)
    return None if found is None else float(found[2]) * (1 if found[1] == "B" else -1)


def scores_alike(record: GameRecord) -> bool | None:
    """Whether players and referee gave the same score; None if fewer than two of them were asked."""
    if len(record.scores) < 2:
        return None
    leads = {lead_black(text) for text in record.scores.values()}
    return len(leads) == 1 and None not in leads


def ignore_move(game: int, moves: int) -> None:
    """Default of ``Match.on_move``: does nothing. A named function, since a lambda cannot be pickled."""


@dataclass(frozen=True)
class Match:
    """The engines, settings and openings of a match. See :class:`engine.system.executor.Job`."""

    first: str
    second: str
    referee: str | None
    settings: GameSettings
    games: int
    openings: tuple[tuple[int, ...], ...] = ((),)
    names: tuple[str | None, str | None] = (None, None)
    """names of the engines in records; None = their answers to ``name`` and ``version``"""
    at_once: int = 1
    """concurrent games of each process, each with its own engines"""
    on_move: Callable[[int, int], None] = ignore_move
    """called with a game's number and its number of moves so far. Threads: any."""

    def opening(self, game: int) -> tuple[int, ...]:
        """Points of a game's opening; games, numbered from 1, take the openings in turn, two games each."""
        return self.openings[(game - 1) // 2 % len(self.openings)]

    def open(self, stack: ExitStack, files: Files, cores: int) -> "MatchWorker":
        """Make a worker in this process. ``cores`` is not used: the engines' own options set their threads."""
        return MatchWorker(self, stack)


class MatchWorker:
    """Plays ``at_once`` games concurrently. See :class:`engine.system.executor.Worker`."""

    def __init__(self, match: Match, stack: ExitStack) -> None:
        """Prepare engines for ``at_once`` games; they start with their first game, and ``stack`` ends them."""
        self.threads = match.at_once
        self._match = match
        self._free: queue.SimpleQueue[_Engines] = queue.SimpleQueue()
        for _ in range(match.at_once):
            engines = _Engines(match)
            stack.callback(engines.close)
            self._free.put(engines)

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """Play games by their numbers, from 1. See :meth:`engine.system.executor.Worker.do`.

        Yields:
            A game's number and its line of ``games.jsonl``.
        Raises:
            MatchError: an engine refused the settings, or the referee failed.
            EngineError: an engine does not start.
        """
        engines = self._free.get_nowait()
        try:
            for number in numbers:
                record = self._play(number, engines, stopped)
                if stopped.is_set():
                    return
                yield [number], record_line(record).encode()
        except (MatchError, EngineError):
            # A stopped game's engines are killed, which raises here too.
            if not stopped.is_set():
                raise
        finally:
            self._free.put(engines)

    def _play(self, number: int, engines: "_Engines", stopped: threading.Event) -> GameRecord:
        """Play one game; the first engine is Black if the number is odd, but White in all handicap games."""
        match = self._match
        first, second = (engines.running(role, stopped) for role in ROLES)
        referee = engines.running("referee", stopped) if match.referee else None
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
    """The engines of one game at a time: kept from game to game, and restarted after a crash."""

    def __init__(self, match: Match) -> None:
        self._commands = {"first": match.first, "second": match.second, "referee": match.referee or ""}
        self._patience_s = match.settings.patience_s
        self._started: dict[str, GtpClient] = {}

    def running(self, role: str, stopped: threading.Event) -> GtpClient:
        """The engine of a role, started if it is not running. It has answered a command, so it is ready.

        Args:
            stopped: kills the engine when it is set while the engine is asked, also in the middle of a move.
        Raises:
            EngineError: the engine does not start. This stops the match; no player loses the game.
        """
        patience_s, engine = self._patience_s, self._started.get(role)
        if engine is not None and engine.is_alive:
            engine.stopped = stopped
            # An engine that exited after the last game is restarted, and loses nothing.
            with suppress(EngineError):
                _greet(engine, patience_s)
                return engine
        if engine is not None:
            engine.kill()
        self._started[role] = engine = GtpClient(self._commands[role])
        engine.stopped = stopped
        _greet(engine, max(START_S, patience_s))
        return engine

    def close(self) -> None:
        """End the engines."""
        for engine in self._started.values():
            engine.close()


def _greet(engine: GtpClient, limit_s: float) -> None:
    """Wait until an engine answers; raises as :meth:`GtpClient.ask` does, except that ``?`` counts as an answer."""
    with suppress(EngineRefused):
        engine.ask("name", limit_s)


def _name_of(engine: GtpClient, limit_s: float) -> str:
    """The engine's answers to ``name`` and ``version``; its command line if it refuses both."""
    answers = []
    for question in ("name", "version"):
        with suppress(EngineRefused):
            answers.append(engine.ask(question, limit_s))
    return " ".join(" ".join(answers).split()) or engine.command
