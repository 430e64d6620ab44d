"""The game at the board: who plays, its phases, the engine's turn, and its record on disk.

All methods run in one thread, the table's, which reads and changes the game; a future of the engine comes back to it.
Every change makes a new revision of the state (:func:`gtp.web.shown.state_of`), which goes to all tabs.
"""

import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from engine.config import PlayOptions, SearchOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, to_sgf
from engine.go.handicap import free_handicap_points
from engine.go.points import color_letter, color_word, other
from engine.go.rules import RULE_SETS, rules_named
from engine.live.engine import Chosen, Engine, EngineState
from engine.live.record import Node, Record
from engine.live.words import move_said, why_illegal
from engine.play.game_session import RESIGN, Purpose
from engine.play.life_and_death import EndEstimate
from engine.play.player import Player
from engine.play.score import is_strict
from engine.search.report import Watcher
from engine.system import one_line
from gtp.web.clocks import GameClock
from gtp.web.ending import Count, count, toggled, winner_text
from gtp.web.games import PROPERTY, Games, Listed, packed, unpacked
from gtp.web.settings import GameSettings, settings_from, switch, whole, word
from gtp.web.shown import UPDATES_S, LiveSearch, encoded, point_from, state_of, values_of

HELPS = ("hint", "analysis", "thinking")
NEEDS_REV = ("play", "undo", "resign", "dead", "accept", "continue")
"""Actions that depend on the position, and carry the revision of the state that their tab shows"""


class StaleError(Exception):
    """An action belongs to an earlier state of the game than the present one."""


@dataclass
class Setup:
    """What a table needs from the command."""

    games: Games
    engine: Engine
    base: GameSettings
    """settings of the first game"""
    play: PlayOptions
    search: SearchOptions
    publish: Callable[[str, bytes], None]
    """sends an event to all tabs; any thread"""
    post: Callable[..., None]
    """runs a function in the table's thread, later"""


class Table:
    """One game at a time. Threads: one, but for :meth:`engine_changed`, which ``post`` brings there."""

    def __init__(self, setup: Setup) -> None:
        """Continue the latest unfinished game, or begin one."""
        self._setup, self._engine, self._games = setup, setup.engine, setup.games
        self.rev, self._changed_at = 0, 0
        self.network: str | None = None
        self.levels = ["max"]
        self.sizes: list[Any] = [2, 25]
        self.help = dict.fromkeys(HELPS, False)
        self.said, self.warning = "", ""
        self._turn: Future[Chosen] | None = None
        """the engine's choice of a move; None = the engine is not to move"""
        self._searched: tuple[int, Future[Any]] | None = None
        """node and future of the live search"""
        self._ending: Future[EndEstimate] | None = None
        self._flag: threading.Timer | None = None
        self._begin(Record.of_game(_new_game(setup.base)), setup.base)
        self._resume()

    # --- state

    def _begin(self, record: Record, settings: GameSettings, name: str = "") -> None:
        """Put a record on the table, its main line shown to the end.

        Args:
            name: the game's id; empty = a new one.
        """
        self._cancel_turn()
        self.record, self.settings = record, settings
        self.id = name or self._games.new_id()
        self.phase, self.result = "play", ""
        self.placing = 0
        """number of handicap stones that Black is still to place"""
        self.dead: set[int] = set()
        self.count: Count | None = None
        self.end: Node | None = None
        """node whose position is counted"""
        self.values: dict[int, tuple[float | None, float | None]] = {}
        """node -> Black's win rate and Black's lead"""
        self._is_disputed = False
        self.clock = GameClock(settings.clock) if settings.clock else None
        self.line = [record.root, *record.root.main_continuation()]
        self._show(self.line[-1])

    def _show(self, node: Node) -> None:
        """Show the position of a node; the current line is kept if it contains the node."""
        if node not in self.line:
            self.line = [*node.line(), *node.main_continuation()]
        self.node, self.game = node, self.record.game_at(node)

    def state(self) -> bytes:
        """The state as JSON."""
        return encoded(state_of(self))

    def _publish(self, is_position: bool = True) -> None:
        """Send a new revision of the state to all tabs.

        Args:
            is_position: whether actions of tabs that show an earlier revision are refused from now on.
        """
        self.rev += 1
        if is_position:
            self._changed_at = self.rev
        self._setup.publish("state", self.state())

    def names(self) -> dict[int, str]:
        """Colour -> name of the player."""
        if self.settings.color == "both":
            names = {color: self.record.text(f"P{color_letter(color)}") for color in (BLACK, WHITE)}
            return {color: name or color_word(color).title() for color, name in names.items()}
        level = "" if self.settings.level == "max" else f" {self.settings.level}"
        return {color: f"Keima{level}" if self.is_engine(color) else "You" for color in (BLACK, WHITE)}

    def player_about(self, color: int) -> dict[str, Any]:
        """What the page shows of a player beside the name."""
        if not self.is_engine(color):
            return {"engine": False}
        return {"engine": True, "level": self.settings.level, "about": ""}

    def engine_state(self) -> dict[str, str]:
        """The engine's state as the page shows it."""
        state = self._engine.state
        if state.name == "ready" and self._turn is not None:
            return {"state": "thinking", "text": ""}
        return {"state": state.name, "text": state.text}

    def review_state(self) -> dict[str, Any]:
        """The state of the game's review."""
        return {"state": "none", "text": "", "url": None}

    def is_engine(self, color: int) -> bool:
        """Whether the engine plays a colour."""
        return self.settings.engines[color - BLACK]

    def engine_changed(self, state: EngineState) -> None:
        """Tell the tabs a new state of the engine."""
        if state.name == "ready":
            self._engine.submit(self._learn)
            if self._turn is not None and self.clock:
                self._start_clock()
        self._publish(is_position=False)

    def _learn(self, player: Player) -> None:
        """Read what the page shows of the network; in the engine's thread."""
        spec = player.server.spec if player.server is not None else None
        sizes = spec.sizes if spec is not None else None
        self._setup.post(self._set_network, spec.name if spec is not None else None, sizes)

    def _set_network(self, name: str | None, sizes: tuple[int, int] | None) -> None:
        self.network = name
        self.sizes = [2, 25, *([{"network": list(sizes)}] if sizes else [])]
        self._publish(is_position=False)

    # --- actions

    def act(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Do an action of the page; returns more keys of the reply.

        Raises:
            ValueError: the action is wrong or impossible now; one line.
            StaleError: the tab shows an earlier position.
        """
        action = ACTIONS.get(name)
        if action is None:
            raise ValueError(f"no action {name[:40]!r}, expected one of {', '.join(ACTIONS)}")
        if name in NEEDS_REV or "rev" in body:
            rev = whole(body, "rev", None, 0, 2**53)
            if rev < self._changed_at:
                raise StaleError("the game has changed in another tab")
        self.warning = ""
        return action(self, body) or {}

    def _new(self, body: Mapping[str, Any]) -> None:
        settings = settings_from(body, self.settings, self.levels)
        if settings.color == "random":
            settings = replace(settings, color=random.choice(("black", "white")))  # noqa: S311 - no secret
        game, placing = _new_game(settings), 0
        if settings.handicap and settings.handicap_stones == "placed":
            if settings.engines[0]:
                game.place_free_handicap(settings.handicap)
            else:
                placing = len(free_handicap_points(settings.size, settings.handicap))
        elif settings.handicap:
            game.fixed_handicap(settings.handicap)
        self._games.remove_if_empty(self.id)
        self._begin(Record.of_game(game), settings)
        self.placing = placing
        self.said = f"New game on {settings.size}x{settings.size}, you play {settings.color}"
        if placing:
            self.said = f"Black places stone 1 of {settings.handicap}"
        self._after_change()

    def _play(self, body: Mapping[str, Any]) -> None:
        point = point_from(whole(body, "point", None, -1, 10**4), self.game.size)
        if self.placing:
            self._place(point)
            return
        if self._turn is not None:
            raise ValueError("it is Keima's turn")
        color = self.game.to_move
        if self.phase == "scoring" and self.node is self.end:
            raise ValueError("the game has ended: mark dead stones, accept the count or continue")
        if reason := why_illegal(self.game, color, point):
            raise ValueError(reason)
        if self.phase == "scoring":
            self.phase, self.end, self.count = "play", None, None
        if self.clock and self.phase == "play" and not self.clock.move(color):
            self._lose_on_time(color)
            return
        self._add(color, point)
        self._after_change()

    def _add(self, color: int, point: int) -> None:
        """Play a legal move on the board and into the record."""
        taken = self.game.captures(color)
        self.game.play(color, point)
        is_main = self.settings.color != "both" and self.phase == "play"
        node = self.record.play(self.node, color, point, is_main)
        if node not in self.line:
            self.line = [*node.line(), *node.main_continuation()]
        self.node = node
        number = sum(one.move is not None for one in node.line())
        self.said = move_said(number, color, point, self.game.size, self.game.captures(color) - taken)
        if self.phase == "play" and self.game.is_over and node is self.line[-1]:
            self._score()

    def _place(self, point: int) -> None:
        """Place a handicap stone of Black's choice."""
        if point == PASS or self.game.stones().get(point):
            raise ValueError("place a handicap stone on an empty point")
        stones = self.record.root.properties.setdefault("AB", [])
        stones.append(to_sgf(point, self.game.size).encode())
        self.placing -= 1
        self.record.root.properties["HA"] = [str(len(stones)).encode()]
        self._show(self.record.root)
        total = self.settings.handicap
        self.said = f"Black places stone {total - self.placing + 1} of {total}" if self.placing else "White to move"
        self._after_change()

    def _undo(self, body: Mapping[str, Any]) -> None:
        if self.placing and (stones := self.record.root.properties.get("AB")):
            stones.pop()
            self.placing += 1
            if not stones:
                del self.record.root.properties["AB"]
            self._show(self.record.root)
            self._after_change()
            return
        node: Node | None = self.node
        while node is not None and node.parent is not None:
            move, node = node.move, node.parent
            if move is not None and (self.settings.color in ("both", "none") or not self.is_engine(move[0])):
                break
        else:
            raise ValueError("there is no move to take back")
        self._cancel_turn()
        self._reopen()
        self._show(node)
        number = sum(one.move is not None for one in node.line())
        self.said = f"Taken back to move {number}: {color_word(self.game.to_move)} to play"
        self._after_change(is_engine_due=False)

    def _resign(self, body: Mapping[str, Any]) -> None:
        if self.phase == "over":
            raise ValueError("the game is over")
        color = self.game.to_move
        if self.settings.color in ("black", "white"):
            color = BLACK if self.settings.color == "black" else WHITE
        self._cancel_turn()
        self._finish(f"{color_letter(other(color))}+R")
        self._after_change()

    def _goto(self, body: Mapping[str, Any]) -> None:
        at = whole(body, "node", None, 0, len(self.record.nodes) - 1)
        self._cancel_turn()
        self._show(self.record.nodes[at])
        self._after_change(is_engine_due=False)

    def _switch_help(self, name: str, body: Mapping[str, Any]) -> None:
        self.help[name] = switch(body, "on")
        self._searched = None
        if not any(self.help.values()) and self._turn is None:
            self._engine.stop()
        self._search_if_wanted()
        self._publish(is_position=False)

    def _toggle_dead(self, body: Mapping[str, Any]) -> None:
        if self.phase != "scoring" or self.end is not self.node:
            raise ValueError("dead stones are marked at the end of the game")
        self.dead = toggled(self.game, self.dead, point_from(whole(body, "point", None, 0, 10**4), self.game.size))
        self._ending = None
        self._count()
        self._after_change()

    def _accept(self, body: Mapping[str, Any]) -> None:
        if self.phase != "scoring" or self.end is None:
            raise ValueError("there is no count to accept before both players have passed")
        if self.count is None:
            raise ValueError("the end is still being estimated")
        self._show(self.end)
        self._finish(self.count.result)
        self._after_change()

    def _continue(self, body: Mapping[str, Any]) -> None:
        """Back to play: before the passes that ended the game, or where a finished game stands."""
        if self.phase == "scoring" and self.end is not None:
            node = self.end
            while node.parent is not None and node.move is not None and node.move[1] == PASS:
                node = node.parent
            self._reopen()
            self._show(node)
            # Now the engine captures what it takes for dead before it passes again.
            self._is_disputed = True
        else:
            self._reopen()
        self.said = "Play continues"
        self._after_change()

    def _open(self, body: Mapping[str, Any]) -> None:
        text = word(body, "sgf", "")
        record = Record(text.encode("utf-8", "surrogatepass"), rules_named(self.settings.rules), self.settings.komi)
        record.root.properties.pop(PROPERTY, None)
        game = record.game_at(record.root)
        rules = game.rules.name if game.rules.name in RULE_SETS else self.settings.rules
        base = GameSettings(game.size, rules, game.komi, color="both", level=self.settings.level)
        self._games.remove_if_empty(self.id)
        self._begin(record, base)
        self.result = record.text("RE")
        self.phase = "over" if self.result else "play"
        self.said = f"Opened a game of {len(self.line) - 1} moves"
        self._after_change()

    def _load(self, body: Mapping[str, Any]) -> None:
        name = word(body, "id", "")
        data = self._games.read(name)
        self._games.remove_if_empty(self.id)
        self._restore(name if self._games.is_alone else "", data)
        self.said = "Game loaded"
        self._after_change(is_saved=False)

    def _level(self, body: Mapping[str, Any]) -> None:
        self.settings = replace(self.settings, level=word(body, "level", "", self.levels))
        self._after_change()

    # --- the engine's part

    def _after_change(self, is_engine_due: bool = True, is_saved: bool = True) -> None:
        """After every change of the game: save it, let the engine move or search, and tell the tabs."""
        if is_saved:
            self._save()
        if self.phase == "play" and not self.placing:
            if is_engine_due and self.node is self.line[-1] and self.is_engine(self.game.to_move):
                self._take_turn()
            self._start_clock()
        elif self.clock:
            self.clock.pause()
        self._search_if_wanted()
        self._publish()

    def _take_turn(self) -> None:
        if self._turn is not None:
            return
        clock = self.clock.for_engine() if self.clock else None
        purpose = Purpose.CLEAN_UP if self._is_disputed else Purpose.PLAY
        watcher = self._watcher() if self.help["analysis"] or self.help["thinking"] else None
        seconds, play, search = self.settings.seconds, self._setup.play, self._setup.search

        def prepare(player: Player) -> None:
            player.configure(replace(play, seconds=seconds) if seconds else play, search)

        self._searched = None
        self._turn = turn = self._engine.genmove(self.game, clock, watcher, purpose, prepare)
        turn.add_done_callback(lambda done: self._setup.post(self._on_turn, done))

    def _on_turn(self, turn: "Future[Chosen]") -> None:
        """Play the engine's move, unless the game has changed since it was asked."""
        if turn is not self._turn:
            return
        self._turn = None
        if turn.cancelled():
            return
        if error := turn.exception():
            self.warning = f"Keima cannot move: {one_line(error)}"
            self._after_change(is_engine_due=False)
            return
        chosen, color = turn.result(), self.game.to_move
        if chosen.report is not None:
            self.values[self.node.id] = values_of(chosen.report, color)
        if self.clock and not self.clock.move(color):
            self._lose_on_time(color)
            return
        if chosen.point == RESIGN:
            self._finish(f"{color_letter(other(color))}+R")
        else:
            self._add(color, chosen.point)
        self._after_change()

    def _cancel_turn(self) -> None:
        """Stop the engine's move, whose result is not played."""
        if self._turn is not None:
            self._turn = None
            self._engine.stop()

    def _search_if_wanted(self) -> None:
        """Search the shown position for the tabs if help is on and the engine is not to move."""
        is_wanted = any(self.help.values()) and self.phase != "scoring" and not self.placing
        if self._turn is not None:
            return
        if not is_wanted:
            if self._searched is not None:
                self._searched = None
                self._engine.stop()
            return
        if self._searched is not None and self._searched[0] == self.node.id and not self._searched[1].done():
            return
        self._searched = self.node.id, self._engine.analyse(self.game, self._watcher())

    def _watcher(self) -> Watcher:
        """A receiver of reports that sends them to the tabs."""
        node, values = self.node.id, self.values
        live = LiveSearch(self.game, node, lambda data: self._setup.publish("search", data), {"rev": self.rev + 1})

        def on_report(report: Any) -> None:
            live.on_report(report)
            values[node] = live.values

        return Watcher(on_report, UPDATES_S, UPDATES_S, ownership=True)

    # --- the end

    def _score(self) -> None:
        """Begin the count: dead stones are proposed by the engine, unless the rules have none."""
        self.phase, self.end, self.dead, self.count = "scoring", self.node, set(), None
        if is_strict(self.game.position):
            self._count()
            return
        self._ending = ending = self._engine.estimate_end(self.game)
        ending.add_done_callback(lambda done: self._setup.post(self._on_ending, done))

    def _on_ending(self, ending: "Future[EndEstimate]") -> None:
        if ending is not self._ending:
            return
        self._ending = None
        if ending.cancelled():
            return
        if error := ending.exception():
            self.warning = f"dead stones are not proposed: {one_line(error)}"
        else:
            self.dead = set(ending.result().dead)
        self._count()
        if self.settings.color == "none" and self.count is not None:
            self._finish(self.count.result)
        self._after_change()

    def _count(self) -> None:
        """Count the final position with the dead stones removed."""
        self.count = count(self.record.game_at(self.end or self.node), self.dead)
        self.said = self.count.text

    def _finish(self, result: str) -> None:
        """End the game with a result."""
        self.phase, self.result = "over", result
        self.end = self.end or self.node
        self.said = f"The game is over: {winner_text(result)}"
        self.record.set_text("RE", result)

    def _reopen(self) -> None:
        """Take the result and the count back."""
        self.phase, self.result, self.end, self.count, self.dead = "play", "", None, None, set()
        self._ending = None
        self.record.set_text("RE", "")

    # --- the clock

    def _start_clock(self) -> None:
        """Let the clock of the side to move run: the engine's once it is loaded."""
        if self._flag is not None:
            self._flag.cancel()
        if self.clock is None or self.phase != "play":
            return
        color = self.game.to_move
        if self.is_engine(color) and (self._turn is None or self._engine.state.name != "ready"):
            self.clock.pause()
            return
        if self.clock.running != color:
            self.clock.start(color)
        self._flag = threading.Timer(self.clock.seconds_to_flag() + 0.01, self._setup.post, (self._on_flag, color))
        self._flag.daemon = True
        self._flag.start()

    def _on_flag(self, color: int) -> None:
        if self.phase == "play" and self.clock and self.clock.running == color and self.clock.seconds_to_flag() <= 0:
            self._lose_on_time(color)

    def _lose_on_time(self, color: int) -> None:
        self._cancel_turn()
        self._finish(f"{color_letter(other(color))}+T")
        self._after_change()

    # --- the record

    def _save(self) -> None:
        """Write the record, with the settings that a restart needs."""
        names = self.names()
        for color in (BLACK, WHITE):
            self.record.set_text(f"P{color_letter(color)}", names[color])
        way = [one.parent.children.index(one) for one in self.node.line() if one.parent is not None]
        self.record.root.properties[PROPERTY] = [
            packed(
                {
                    "settings": self.settings.to_json(),
                    "phase": self.phase,
                    "placing": self.placing,
                    "way": way,
                    "clock": self.clock.to_json() if self.clock else None,
                }
            )
        ]
        try:
            self._games.write(self.id, self.record.to_bytes())
        except OSError as error:
            self.warning = f"the game is not saved: {one_line(error)}"

    def _resume(self) -> None:
        """Continue the latest game of the folder if it is not over."""
        name = self._games.latest() if self._games.is_alone else None
        if name is None:
            return
        own = self.id
        try:
            self._restore(name, self._games.read(name))
        except ValueError as error:
            self.warning = f"game {name} cannot be continued: {error}"
            return
        if self.phase == "over" or len(self.record.nodes) == 1:
            self._begin(Record.of_game(_new_game(self._setup.base)), self._setup.base, own)
            return
        self._games.remove_if_empty(own)
        self.said = "The last game continues"
        self._after_change(is_saved=False)

    def _restore(self, name: str, data: bytes) -> None:
        """Put a saved game on the table as it stood.

        Raises:
            ValueError: the file cannot be used; the table stays unchanged.
        """
        record = Record(data)
        saved = unpacked(record.root.properties)
        base = GameSettings(record.size, color="both")
        body = saved.get("settings")
        if isinstance(body, dict) and body.get("level") not in self.levels:
            body = {**body, "level": self.levels[0]}
        settings = settings_from(body, base, self.levels) if isinstance(body, dict) else base
        self._begin(record, replace(settings, size=record.size), name)
        node, way = record.root, saved.get("way")
        for at in way if isinstance(way, list) else []:
            if not isinstance(at, int) or not 0 <= at < len(node.children):
                break
            node = node.children[at]
        self._show(node if isinstance(way, list) else self.line[-1])
        if self.clock:
            self.clock.restore(saved.get("clock"))
        placing = saved.get("placing")
        self.placing = placing if isinstance(placing, int) and len(record.nodes) == 1 else 0
        self.result = record.text("RE")
        if self.result:
            self.phase, self.end = "over", self.node
        elif self.game.is_over and self.node is self.line[-1]:
            self._score()

    def sgf(self) -> bytes:
        """The game as an SGF file for others, without our own property."""
        own = self.record.root.properties.pop(PROPERTY, None)
        data = self.record.to_bytes()
        if own is not None:
            self.record.root.properties[PROPERTY] = own
        return data

    def games(self) -> list[Listed]:
        """The user's games, the latest first."""
        return self._games.list()

    def close(self) -> None:
        """Leave the table; a game without a move leaves no file."""
        if self._flag is not None:
            self._flag.cancel()
        self._games.remove_if_empty(self.id)
        self._games.close()


def _new_game(settings: GameSettings) -> Game:
    """An empty board under a game's settings; raises ``ValueError`` for a wrong komi."""
    return Game(settings.size, rules_named(settings.rules), settings.komi)


ACTIONS: dict[str, Callable[[Table, Mapping[str, Any]], dict[str, Any] | None]] = {
    "new": Table._new,
    "play": Table._play,
    "undo": Table._undo,
    "resign": Table._resign,
    "goto": Table._goto,
    "dead": Table._toggle_dead,
    "accept": Table._accept,
    "continue": Table._continue,
    "open": Table._open,
    "load": Table._load,
    "level": Table._level,
    **{name: (lambda table, body, name=name: table._switch_help(name, body)) for name in HELPS},
}
"""Action of the page -> what it does"""
