"""One game between two GTP engines: who moves, what is legal, the clocks, and how it ends.

Start at :func:`play_game`. An engine loses by resigning, by an illegal move, by refusing a legal one, by overstepping
its clock, by not answering and by breaking down; the record says which. The project's own board decides under the
match's rules what is legal, or a third engine, the referee, if there is one. After two passes both players and the
referee are asked for the score: the referee's counts, without one both players must name the same winner, and one that
breaks down instead loses.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.match.clocks import Dialect, PlayerClock, kind_of
from bench.match.gtp_client import EngineError, EngineRefused, EngineTimeout, GtpClient, shortened
from bench.match.record import GameRecord
from engine.config import SetupOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, other, to_vertex
from engine.go.notation import color_letter, color_word
from engine.go.rules import rules_named
from engine.go.scoring import result_text
from engine.play.clock import NO_CLOCK, TimeSettings

SCORE = re.compile(r"([BW])\+(\d+(?:\.\d+)?)")
GRACE_S = 1.0
"""How long after its flag fell an engine may still answer, so that it need not be restarted"""
KGS_RULES = {"japanese": "japanese", "chinese": "chinese", "aga": "aga", "new-zealand": "new_zealand"}
"""Rules that the command kgs-rules knows"""


class MatchError(Exception):
    """The match cannot go on, through a fault of the set-up or the referee, not of a player. One line."""


class GameLost(Exception):
    """A player lost at once."""

    def __init__(self, color: int, letter: str, reason: str, detail: str = "") -> None:
        """``letter`` is what SGF's result has after the plus sign: R, T or F."""
        super().__init__(reason)
        self.color, self.letter, self.reason, self.detail = color, letter, reason, shortened(detail)


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


@contextlib.contextmanager
def _breakdown_loses(color: int) -> Iterator[None]:
    """Turn the breakdown of an engine into the loss of its game."""
    try:
        yield
    except EngineTimeout as error:
        raise GameLost(color, "F", "no answer", str(error)) from error
    except EngineError as error:
        raise GameLost(color, "F", "breakdown", str(error)) from error


@contextlib.contextmanager
def _refusal_loses(color: int, reason: str, words: str) -> Iterator[None]:
    """Turn an engine's refusal into the loss of a game."""
    try:
        yield
    except EngineRefused as error:
        raise GameLost(color, "F", reason, f"{words}{error}") from error


@contextlib.contextmanager
def _refusal_ends_match(words: str) -> Iterator[None]:
    """Turn an engine's refusal into the end of the match."""
    try:
        yield
    except EngineRefused as error:
        raise MatchError(f"{words}: {error}") from error


def tell_rules(rules: str, lists: Callable[[str], bool], ask: Callable[[str], str]) -> None:
    """Name the rules by the first command for it that the engine has and takes; else its own options must.

    Args:
        lists: whether the engine lists a command.
        ask: gives it one.
    """
    name = rules_named(rules).name
    for command, word in (("kata-set-rules", name), ("kgs-rules", KGS_RULES.get(name))):
        if word is not None and lists(command):
            with contextlib.suppress(EngineRefused):
                ask(f"{command} {word}")
                return


class _RunningGame:
    """The board, the engines and the clocks of one game."""

    def __init__(
        self, record: GameRecord, players: dict[int, GtpClient], referee: GtpClient | None, settings: GameSettings
    ) -> None:
        self.record = record
        self.players = players
        self.referee = referee
        self.settings = settings
        self.game = Game(settings.size, rules_named(settings.rules), settings.komi)
        self.clocks = {color: PlayerClock(settings.time) for color in players}

    def ask(self, color: int, command: str) -> str:
        """Ask a player; a breakdown loses the game."""
        with _breakdown_loses(color):
            return self.players[color].ask(command, self.settings.patience_s)

    def lists(self, color: int, command: str) -> bool:
        """Whether a player lists the command."""
        with _breakdown_loses(color):
            return self.players[color].lists(command, self.settings.patience_s)

    def ask_referee(self, command: str) -> str:
        """Ask the referee, whose breakdown ends the match; empty without one."""
        if self.referee is None:
            return ""
        try:
            return self.referee.ask(command, self.settings.patience_s)
        except EngineError as error:
            raise MatchError(f"referee: {error}") from error

    def referee_lists(self, command: str) -> bool:
        """Whether the referee lists the command."""
        assert self.referee is not None
        try:
            return self.referee.lists(command, self.settings.patience_s)
        except EngineError as error:
            raise MatchError(f"referee: {error}") from error

    def set_up(self, opening: Sequence[int]) -> None:
        """Give players and referee one board, komi, rules, handicap and first moves, and the players their time."""
        settings, refuses = self.settings, "does not take these settings"
        self._tell_all(refuses, f"boardsize {settings.size}", "clear_board", f"komi {settings.komi:g}")
        for color in self.players:
            with _refusal_ends_match(f"{self._name(color)} {refuses}"):
                self._tell_time(color)
            tell_rules(self.settings.rules, partial(self.lists, color), partial(self.ask, color))
        if self.referee is not None:
            tell_rules(self.settings.rules, self.referee_lists, self.ask_referee)
        if settings.handicap:
            self._tell_all("does not place handicap stones", f"fixed_handicap {settings.handicap}")
            self.game.fixed_handicap(settings.handicap)
        for point in opening:
            self._pass_on(self.game.to_move, point, by=None)
        self.record.opening = len(opening)

    def _tell_all(self, refuses: str, *commands: str) -> None:
        """Give commands to players and referee; who refuses one ends the match."""
        for color in self.players:
            with _refusal_ends_match(f"{self._name(color)} {refuses}"):
                for command in commands:
                    self.ask(color, command)
        with _refusal_ends_match(f"referee {refuses}"):
            for command in commands:
                self.ask_referee(command)

    def _name(self, color: int) -> str:
        """What a player is called."""
        return self.record.names[self.record.role(color)]

    def _tell_time(self, color: int) -> None:
        """Set an engine's clock, if there is one, by the best command for its kind that the engine lists."""
        if not self.settings.time.is_limited:
            return
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
                raise MatchError(f"{self._name(color)}: {error}") from error
            self.ask(color, command)

    def play_turn(self) -> None:
        """One genmove, timed, checked and passed on."""
        color = self.game.to_move
        answer = self._genmove(color)
        if answer.lower() == "resign":
            raise GameLost(color, "R", "resignation")
        self._pass_on(color, self._legal_point(color, answer), by=color)

    def _genmove(self, color: int) -> str:
        """Ask for a move under the clock, if there is one."""
        settings, clock, is_timed = self.settings, self.clocks[color], self.settings.time.is_limited
        limit_s = clock.limit_s() + settings.tolerance_s + GRACE_S if is_timed else settings.patience_s
        if is_timed and self.lists(color, "time_left"):
            with contextlib.suppress(EngineRefused):
                self.ask(color, f"time_left {color_word(color)} {clock.left_words()}")
        try:
            with _breakdown_loses(color), _refusal_loses(color, "no move", "genmove answered: "):
                answer = self.players[color].ask(f"genmove {color_word(color)}", limit_s)
        except GameLost as loss:
            if is_timed and loss.reason == "no answer":
                self._note_time(color, limit_s)
                clock.spend(limit_s, settings.tolerance_s)
                self._note_overrun(color)
                raise GameLost(color, "T", "time", loss.detail) from loss
            raise
        used_s = self.players[color].last_answer_s
        self._note_time(color, used_s)
        in_time = not is_timed or clock.spend(used_s, settings.tolerance_s)
        self._note_overrun(color)
        if not in_time:
            raise GameLost(color, "T", "time", f"move {self.game.n_moves + 1} took {used_s:.2f} s")
        return answer

    def _note_time(self, color: int, seconds: float) -> None:
        record, role = self.record, self.record.role(color)
        record.slowest_s[role] = round(max(record.slowest_s[role], seconds), 3)
        record.spent_s[role] = round(record.spent_s[role] + seconds, 3)

    def _note_overrun(self, color: int) -> None:
        self.record.overrun_s[self.record.role(color)] = round(self.clocks[color].overrun_s, 3)

    def _legal_point(self, color: int, vertex: str) -> int:
        """Point of a legal move; an illegal one loses."""
        try:
            point = from_vertex(vertex, self.settings.size)
        except ValueError as error:
            raise GameLost(color, "F", "illegal move", str(error)) from error
        if self.referee is None and not self.game.is_legal(color, point):
            detail = f"{vertex} as move {self.game.n_moves + 1}, under {self.settings.rules} rules"
            raise GameLost(color, "F", "illegal move", detail)
        with _refusal_loses(color, "illegal move", f"{vertex}: referee says "):
            self.ask_referee(f"play {color_word(color)} {vertex}")
        return point

    def _pass_on(self, color: int, point: int, by: int | None) -> None:
        """Enter a move and tell it to players and referee, except ``by``, who made it; None for an opening's move."""
        vertex = to_vertex(point, self.settings.size)
        command = f"play {color_word(color)} {vertex}"
        try:
            self.game.play(color, point)
        except ValueError as error:
            raise MatchError(f"{vertex} as move {self.game.n_moves + 1}: {error}") from error
        self.record.moves.append(vertex)
        if by is None:
            with _refusal_ends_match(f"referee refuses the opening at {vertex}"):
                self.ask_referee(command)
        for listener in self.players:
            if listener != by:
                detail = f"{vertex} as move {self.game.n_moves}: "
                with _refusal_loses(listener, "refused a legal move", detail):
                    self.ask(listener, command)

    def score(self) -> None:
        """Ask players and referee for the score and enter the result."""
        record = self.record
        record.reason = "score" if self.game.is_over else "move limit"
        breakdowns: list[GameLost] = []
        for color in self.players:
            try:
                text = self.ask(color, "final_score")
            except EngineRefused as error:
                text = f"failed: {error}"
            except GameLost as loss:
                breakdowns.append(loss)
                text = f"failed: {loss.detail}"
            record.scores[record.role(color)] = shortened(text)
        deciding = list(record.scores)
        if self.referee is not None:
            with _refusal_ends_match("referee gives no score"):
                record.scores["referee"] = shortened(self.ask_referee("final_score"))
            deciding = ["referee"]
        elif len(breakdowns) == 1:
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
