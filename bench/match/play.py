"""One game between two GTP engines: who moves, who judges, who keeps time, and how it ends.

Start at :func:`play_game`. An engine loses by resigning, by an illegal move, by refusing a legal one, by overstepping
its clock, by not answering and by breaking down; the record says which. Legality is judged by the project's own board
under the match's rules, or by a third engine, the referee, if there is one. After two passes every engine at the table
is asked for the score: the referee's counts, without one both players' must name the same winner.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.match.clocks import Clock, Dialect, kind_of
from bench.match.gtp_client import EngineError, EngineRefused, EngineTimeout, GtpClient
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, other, to_vertex
from engine.go.rules import rules_named
from engine.play.clock import NO_CLOCK, TimeSettings

COLOR_WORDS = {BLACK: "black", WHITE: "white"}
COLOR_LETTERS = {BLACK: "B", WHITE: "W"}
SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?)")
GRACE_S = 1.0
"""How long after its flag fell an engine may still answer, so that it need not be restarted"""
KGS_RULES = {"japanese": "japanese", "chinese": "chinese", "aga": "aga", "new-zealand": "new_zealand"}
"""Rules that the command kgs-rules knows"""


class MatchError(Exception):
    """The match cannot go on: no engine's fault in play, but of the set-up or the referee. One line."""


class GameLost(Exception):
    """A player lost at once."""

    def __init__(self, color: int, letter: str, reason: str, detail: str = "") -> None:
        """``letter`` is what SGF's result has after the plus sign: R, T or F."""
        super().__init__(reason)
        self.color, self.letter, self.reason, self.detail = color, letter, reason, detail


@dataclass(frozen=True)
class GameSettings:
    """What all games of a match have in common."""

    size: int = 19
    komi: float = 7.5
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


@dataclass
class GameRecord:
    """How one game went; what ``games.jsonl`` holds. Dictionaries have the keys "first" and "second"."""

    game: int
    first_color: str
    names: dict[str, str]
    moves: list[str]
    """vertices, oldest first; handicap stones are none"""
    opening: int = 0
    """moves of these that were set, not chosen"""
    result: str = "?"
    """as SGF's property RE"""
    winner: str | None = None
    """"first", "second", "draw", or None for a game without a result"""
    reason: str = ""
    detail: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    """``final_score`` of everyone asked, the referee too; their reason where they refused"""
    slowest_s: dict[str, float] = field(default_factory=lambda: {"first": 0.0, "second": 0.0})
    spent_s: dict[str, float] = field(default_factory=lambda: {"first": 0.0, "second": 0.0})
    overrun_s: dict[str, float] = field(default_factory=lambda: {"first": 0.0, "second": 0.0})
    """the worst overstepping of a clock, forgiven or not"""
    stray_lines: dict[str, int] = field(default_factory=dict)
    """lines on standard output that were no GTP"""


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
        record: names and colours filled in.
        players: engine of each colour.
        opening: points to begin with, Black's first.
        on_move: called with the number of moves so far.
    Returns:
        Game: the moves on a board.
    Raises:
        MatchError: an engine refuses the settings, or the referee failed.
    """
    table = _Table(record, players, referee, settings)
    try:
        table.set_up(opening)
        limit = settings.max_moves or 3 * settings.size**2
        while not table.game.is_over and table.game.n_moves < limit:
            table.play_turn()
            on_move(table.game.n_moves)
        table.score()
    except GameLost as loss:
        winner = other(loss.color)
        record.reason, record.detail = loss.reason, loss.detail
        table.decide(winner, f"{COLOR_LETTERS[winner]}+{loss.letter}")
    for color, client in players.items():
        record.stray_lines[table.role(color)] = client.stray_lines
        client.stray_lines = 0
    return table.game


@contextlib.contextmanager
def _blame(color: int) -> Iterator[None]:
    """Turn the breakdown of an engine into the loss of its game."""
    try:
        yield
    except EngineTimeout as error:
        raise GameLost(color, "F", "no answer", str(error)) from error
    except EngineError as error:
        raise GameLost(color, "F", "breakdown", str(error)) from error


class _Table:
    """The board, the engines and the clocks of one game."""

    def __init__(
        self, record: GameRecord, players: dict[int, GtpClient], referee: GtpClient | None, settings: GameSettings
    ) -> None:
        self.record = record
        self.players = players
        self.referee = referee
        self.settings = settings
        self.game = Game(settings.size, rules_named(settings.rules), settings.komi)
        self.clocks = {color: Clock(settings.time) for color in players}
        self.to_move = BLACK

    def role(self, color: int) -> str:
        """Whether this colour is the match's "first" or "second" engine."""
        return "first" if COLOR_WORDS[color] == self.record.first_color else "second"

    def ask(self, color: int, command: str) -> str:
        """Ask a player; whatever breaks down loses."""
        with _blame(color):
            return self.players[color].ask(command, self.settings.patience_s)

    def lists(self, color: int, command: str) -> bool:
        """Whether a player lists the command."""
        with _blame(color):
            return self.players[color].lists(command, self.settings.patience_s)

    def ask_referee(self, command: str) -> str:
        """Ask the referee, whose breakdown ends the match."""
        try:
            return self.referee.ask(command, self.settings.patience_s)
        except EngineError as error:
            raise MatchError(f"referee: {error}") from error

    def set_up(self, opening: Sequence[int]) -> None:
        """Give everyone the same board, komi, rules, time and first moves."""
        settings = self.settings
        commands = [f"boardsize {settings.size}", "clear_board", f"komi {settings.komi:g}"]
        for color in self.players:
            try:
                for command in commands:
                    self.ask(color, command)
                if settings.time.is_limited:
                    self._tell_time(color)
            except EngineRefused as error:
                name = self.record.names[self.role(color)]
                raise MatchError(f"{name} does not take these settings: {error}") from error
            self._tell_rules(color)
        if self.referee is not None:
            try:
                for command in commands:
                    self.ask_referee(command)
            except EngineRefused as error:
                raise MatchError(f"referee does not take these settings: {error}") from error
        if settings.handicap:
            self._place_handicap()
        for point in opening:
            self._pass_on(self.to_move, point, by=None)
        self.record.opening = len(opening)

    def _place_handicap(self) -> None:
        """Put Black's stones on everyone's board."""
        command = f"fixed_handicap {self.settings.handicap}"
        try:
            for color in self.players:
                self.ask(color, command)
            if self.referee is not None:
                self.ask_referee(command)
        except EngineRefused as error:
            raise MatchError(f"an engine does not place handicap stones: {error}") from error
        self.game.fixed_handicap(self.settings.handicap)
        self.to_move = WHITE

    def _tell_time(self, color: int) -> None:
        """Set an engine's clock, by the best command for this kind of clock that it lists; if none, it has to guess."""
        kind, dialect = kind_of(self.settings.time), Dialect.GTP
        if kind == "byoyomi" and self.lists(color, Dialect.KGS.value):
            dialect = Dialect.KGS
        if self.lists(color, Dialect.KATA.value) and self.lists(color, "kata-list_time_settings"):
            kinds = self.ask(color, "kata-list_time_settings").split()
            dialect = Dialect.KATA if kind in kinds else dialect
        self.clocks[color] = Clock(self.settings.time, dialect)
        if self.lists(color, dialect.value):
            self.ask(color, self.clocks[color].settings_command())

    def _tell_rules(self, color: int) -> None:
        """Name the rules where the engine has a command for it; else they are its own option's matter."""
        name = rules_named(self.settings.rules).name
        with contextlib.suppress(EngineRefused):
            if self.lists(color, "kata-set-rules"):
                self.ask(color, f"kata-set-rules {name}")
            elif name in KGS_RULES and self.lists(color, "kgs-rules"):
                self.ask(color, f"kgs-rules {KGS_RULES[name]}")

    def play_turn(self) -> None:
        """One genmove, timed, judged and passed on."""
        color = self.to_move
        answer = self._genmove(color)
        if answer.lower() == "resign":
            raise GameLost(color, "R", "resignation")
        self._pass_on(color, self._judge(color, answer), by=color)

    def _genmove(self, color: int) -> str:
        """Ask for a move under the clock, if there is one."""
        settings, clock, is_timed = self.settings, self.clocks[color], self.settings.time.is_limited
        limit_s = clock.limit_s() + settings.tolerance_s + GRACE_S if is_timed else settings.patience_s
        if is_timed and self.lists(color, "time_left"):
            with contextlib.suppress(EngineRefused):
                self.ask(color, f"time_left {COLOR_WORDS[color]} {clock.left_words()}")
        try:
            with _blame(color):
                answer = self.players[color].ask(f"genmove {COLOR_WORDS[color]}", limit_s)
        except EngineRefused as error:
            raise GameLost(color, "F", "no move", f"genmove answered: {error}") from error
        except GameLost as loss:
            if is_timed and loss.reason == "no answer":
                self._note_time(color, limit_s)
                raise GameLost(color, "T", "time", loss.detail) from loss
            raise
        used_s = self.players[color].last_answer_s
        self._note_time(color, used_s)
        in_time = not is_timed or clock.spend(used_s, settings.tolerance_s)
        self.record.overrun_s[self.role(color)] = round(clock.overrun_s, 3)
        if not in_time:
            raise GameLost(color, "T", "time", f"move {self.game.n_moves + 1} took {used_s:.2f} s")
        return answer

    def _note_time(self, color: int, seconds: float) -> None:
        role = self.role(color)
        self.record.slowest_s[role] = round(max(self.record.slowest_s[role], seconds), 3)
        self.record.spent_s[role] = round(self.record.spent_s[role] + seconds, 3)

    def _judge(self, color: int, vertex: str) -> int:
        """Point of a legal move; an illegal one loses."""
        try:
            point = from_vertex(vertex, self.settings.size)
        except ValueError as error:
            raise GameLost(color, "F", "illegal move", str(error)) from error
        if self.referee is None and not self.game.is_legal(color, point):
            detail = f"{vertex} as move {self.game.n_moves + 1}, under {self.settings.rules} rules"
            raise GameLost(color, "F", "illegal move", detail)
        if self.referee is not None:
            try:
                self.ask_referee(f"play {COLOR_WORDS[color]} {vertex}")
            except EngineRefused as error:
                raise GameLost(color, "F", "illegal move", f"{vertex}: referee says {error}") from error
        return point

    def _pass_on(self, color: int, point: int, by: int | None) -> None:
        """Enter a move and tell everyone who does not know it; ``by`` made it, None if nobody did (an opening)."""
        vertex = to_vertex(point, self.settings.size)
        command = f"play {COLOR_WORDS[color]} {vertex}"
        try:
            self.game.play(color, point)
        except ValueError as error:
            raise MatchError(f"{vertex} as move {self.game.n_moves + 1}: {error}") from error
        self.record.moves.append(vertex)
        self.to_move = other(color)
        if by is None and self.referee is not None:
            try:
                self.ask_referee(command)
            except EngineRefused as error:
                raise MatchError(f"referee refuses the opening at {vertex}: {error}") from error
        for listener in self.players:
            if listener != by:
                try:
                    self.ask(listener, command)
                except EngineRefused as error:
                    detail = f"{vertex} as move {self.game.n_moves}: {error}"
                    raise GameLost(listener, "F", "refused a legal move", detail) from error

    def score(self) -> None:
        """Ask everyone for the score and settle the result."""
        record = self.record
        record.reason = "score" if self.game.is_over else "move limit"
        leads: dict[str, float | None] = {}
        for color in self.players:
            role = self.role(color)
            try:
                record.scores[role] = self.players[color].ask("final_score", self.settings.patience_s)
                leads[role] = lead_black(record.scores[role])
            except (EngineRefused, EngineError) as error:
                record.scores[role], leads[role] = f"failed: {error}", None
        if self.referee is not None:
            try:
                record.scores["referee"] = self.ask_referee("final_score")
            except EngineRefused as error:
                raise MatchError(f"referee gives no score: {error}") from error
            leads = {"referee": lead_black(record.scores["referee"])}
        if not scores_alike(record):
            record.detail = ", ".join(f"{who} says {text}" for who, text in record.scores.items())
        known = [lead for lead in leads.values() if lead is not None]
        winners = {(lead > 0) - (lead < 0) for lead in known}
        if len(known) < len(leads) or len(winners) != 1:
            record.reason = "no score" if len(known) < len(leads) else "disagreement"
            return
        lead = known[0]
        color = BLACK if lead > 0 else WHITE
        self.decide(color if lead else None, f"{COLOR_LETTERS[color]}+{abs(lead):g}" if lead else "0")

    def decide(self, winner: int | None, result: str) -> None:
        """Enter the result; no winner means a draw."""
        self.record.result = result
        self.record.winner = "draw" if winner is None else self.role(winner)


def lead_black(text: str) -> float | None:
    """Black's lead in an answer to ``final_score``, or None if it tells none."""
    text = text.strip().upper()
    if text in ("0", "DRAW", "JIGO"):
        return 0.0
    found = SCORE.fullmatch(text)
    return None if found is None else float(found[2]) * (1 if found[1] == "B" else -1)


def scores_alike(record: GameRecord) -> bool | None:
    """Whether everyone asked for the score gave the same one; None if fewer than two were asked."""
    if len(record.scores) < 2:
        return None
    leads = {lead_black(text) for text in record.scores.values()}
    return len(leads) == 1 and None not in leads
