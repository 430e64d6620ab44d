"""The game at the board: who plays, its phases and its record on disk.

All methods run in one thread, the table's; results of the engine come back to it. Every change makes a new revision of
the state, which :mod:`gtp.web.shown` makes of the table's attributes for all tabs.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from engine.config import ADAPTIVE, FULL, RANKS
from engine.go.game import Game
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, PASS, WHITE, to_sgf
from engine.go.points import color_letter, color_word, other
from engine.go.rules import RULE_SETS, rules_named
from engine.insight.thinking import PARTS
from engine.live.engine import Chosen, EngineState
from engine.live.record import Node, Record
from engine.live.words import move_said, why_illegal
from engine.play.game_session import RESIGN, Purpose
from engine.play.life_and_death import EndEstimate
from engine.play.score import is_strict
from engine.system import one_line
from gtp.web.clocks import GameClock
from gtp.web.ending import Count, count, toggled, winner_text
from gtp.web.games import Games
from gtp.web.live_search import point_from, values_of
from gtp.web.opponent import HELPS, Asked, Opponent
from gtp.web.ranks import Ranks
from gtp.web.saved import PROPERTY, Saved, found_in, node_at, path_to, put
from gtp.web.settings import COLORS, GameSettings, settings_from, switch, whole, word, words

NEEDS_REV = ("play", "undo", "resign", "dead", "accept", "continue")
"""Actions that depend on the position, and carry the revision of the state that their tab shows"""


class StaleError(Exception):
    """An action belongs to an earlier state of the game than the present one."""


class Table:
    """One game at a time. Threads: one."""

    def __init__(
        self,
        games: Games,
        opponent: Opponent,
        ranks: Ranks,
        first: GameSettings,
        publish: Callable[["Table"], None],
        post: Callable[..., None],
    ) -> None:
        """Continue the latest unfinished game, or begin one.

        Args:
            first: settings of the first game.
            publish: sends the state to all tabs.
            post: runs a function in this thread, later; any thread.
        """
        self._games, self.opponent, self._ranks, self._first = games, opponent, ranks, first
        self._send, self._post = publish, post
        self.rev, self._changed_at = 0, 0
        self.network: str | None = None
        self.sizes: list[Any] = [MIN_SIZE, MAX_SIZE]
        self.said, self.warning = "", ""
        self._has_tabs = False
        self.reviews: dict[str, dict[str, Any]] = {}
        """id of a game -> state of its review"""
        self._begin(Record.of_game(_new_game(first)), first)
        self._resume()

    # --- state

    def _begin(self, record: Record, settings: GameSettings, name: str = "") -> None:
        """Put a record on the table, its main line shown to the end.

        Args:
            name: the game's id; empty = a new one.
        """
        self.opponent.begin_game()
        self.record, self.settings = record, settings
        self.id = name or self._games.new_id()
        self.phase, self.result = "play", ""
        self.placing = 0
        """number of handicap stones that Black is still to place"""
        self.dead: set[int] = set()
        self.count: Count | None = None
        self.end: Node | None = None
        """node whose position is counted, or where the game ended"""
        self._is_disputed = self._is_noted = False
        self.clock = GameClock(settings.clock, self._flag_may_fall) if settings.clock else None
        self.line = [record.root, *record.root.main_continuation()]
        """the current line, beyond the shown node too"""
        self._show(self.line[-1])

    def _show(self, node: Node) -> None:
        """Show the position of a node; the current line is kept if it contains the node. A hint ends."""
        if node not in self.line:
            self.line = [*node.line(), *node.main_continuation()]
        self.node, self.game = node, self.record.game_at(node)
        self.opponent.help["hint"] = False

    def _publish(self, is_position: bool = True) -> None:
        """Send a new revision of the state to all tabs.

        Args:
            is_position: whether actions of tabs that show an earlier revision are refused from now on.
        """
        self.rev += 1
        if is_position:
            self._changed_at = self.rev
        self._send(self)

    @property
    def levels(self) -> list[str]:
        """Names of the levels on this board size."""
        return self._ranks.names(self.settings.size)

    def player(self, color: int) -> dict[str, Any]:
        """A player as the page shows it."""
        if self.is_engine(color):
            level, size = self.settings.level, self.settings.size
            name = "Keima" if level == FULL else f"Keima {level}"
            return {"name": name, "engine": True, "level": level, "about": self._ranks.about(level, size)}
        if self.settings.color == "both":
            return {"name": self.record.text(f"P{color_letter(color)}") or color_word(color).title(), "engine": False}
        return {"name": "You", "engine": False}

    def is_engine(self, color: int) -> bool:
        """Whether the engine plays a colour."""
        return self.settings.engines[color - BLACK]

    def engine_changed(self, state: EngineState) -> None:
        """Tell the tabs a new state of the engine."""
        if state.name == "ready":
            self._run_clock()
        self._publish(is_position=False)

    def set_compiling(self, is_compiling: bool) -> None:
        """Tell the tabs whether kernels are being compiled, for which a search may wait."""
        self.opponent.is_compiling = is_compiling
        if self.opponent.is_ready:
            self._publish(is_position=False)

    def set_network(self, name: str | None, sizes: tuple[int, int] | None) -> None:
        """Show the network's name and board sizes; None = no network."""
        self.network = name
        self.sizes = [MIN_SIZE, MAX_SIZE, *([{"network": list(sizes)}] if sizes else [])]
        self._publish(is_position=False)

    def set_review(self, name: str, state: dict[str, Any]) -> None:
        """Show the state of a game's review."""
        self.reviews[name] = state
        self._publish(is_position=False)

    def set_tabs(self, has_tabs: bool) -> None:
        """Search only while a tab is open."""
        self._has_tabs = has_tabs
        self.follow()

    # --- actions

    def act(self, name: str, body: Mapping[str, Any]) -> None:
        """Do an action of the page.

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
                raise StaleError("the game has changed since, perhaps in another tab")
        self.warning = ""
        action(self, body)

    def _new(self, body: Mapping[str, Any]) -> None:
        size = whole(body, "size", self.settings.size, MIN_SIZE, MAX_SIZE)
        level = word(body, "level", self.settings.level, (*RANKS, FULL, ADAPTIVE))
        fitting = self._ranks.fitting(level, size)
        settings = settings_from({**body, "level": fitting}, self.settings, self._ranks.names(size))
        if settings.color == "random":
            settings = replace(settings, color=random.choice(("black", "white")))
        game, placing = _new_game(settings), 0
        if settings.handicap and settings.handicap_stones == "placed":
            stones = game.place_free_handicap(settings.handicap)
            if not settings.engines[0]:
                game, placing = _new_game(settings), len(stones)
        elif settings.handicap:
            game.fixed_handicap(settings.handicap)
        self._games.remove_if_empty(self.id)
        self._begin(Record.of_game(game), settings)
        self.placing = placing
        you = {"both": "both colours", "none": "no colour"}.get(settings.color, settings.color)
        self.said = f"Place stone 1 of {placing}" if placing else f"New game on {size}x{size}, you play {you}"
        if fitting != level:
            self.warning = f"there is no level {level} on this board: Keima plays {self._ranks.about(fitting, size)}"
        self._after_change()

    def _players(self, body: Mapping[str, Any]) -> None:
        """Let others play on from the shown position."""
        color = word(body, "color", self.settings.color, COLORS)
        if color == "random":
            color = random.choice(("black", "white"))
        self.opponent.cancel()
        self.settings = replace(self.settings, color=color, level=word(body, "level", self.settings.level, self.levels))
        self._after_change()

    def _play(self, body: Mapping[str, Any]) -> None:
        point = point_from(whole(body, "point", None, -1, 10**4), self.game.size)
        if self.placing:
            self._place(point)
            return
        if self.opponent.is_thinking:
            raise ValueError("it is Keima's turn")
        if self.phase == "scoring" and self.node is self.end:
            raise ValueError("both players have passed: mark dead stones, accept the count or continue")
        color = self.game.to_move
        if reason := why_illegal(self.game, color, point):
            raise ValueError(reason)
        if self.phase == "scoring":
            self._reopen()
        if self.clock and self.phase == "play" and not self.clock.move(color):
            self._finish(f"{color_letter(other(color))}+T")
        else:
            self._add(color, point)
        self._after_change()

    def _add(self, color: int, point: int) -> None:
        """Play a legal move on the board and into the record."""
        before = self.game.captures(color)
        self.game.play(color, point)
        is_main = self.settings.color != "both" and self.phase == "play"
        self.node = self.record.play(self.node, color, point, is_main)
        if self.node not in self.line:
            self.line = [*self.node.line(), *self.node.main_continuation()]
        self.opponent.help["hint"] = False
        taken = self.game.captures(color) - before
        self.said = move_said(_number(self.node), color, point, self.game.size, taken)
        if self.phase == "play" and self.game.is_over and self.node is self.line[-1]:
            self._score()

    def _place(self, point: int) -> None:
        """Place a handicap stone of Black's choice."""
        if point == PASS or point in self.game.stones():
            raise ValueError("handicap stones are placed on empty points")
        properties, total = self.record.root.properties, self.settings.handicap
        stones = properties.setdefault("AB", [])
        stones.append(to_sgf(point, self.game.size).encode())
        properties["HA"] = [b"%d" % len(stones)]
        self.placing -= 1
        self._show(self.record.root)
        self.said = f"Place stone {total - self.placing + 1} of {total}" if self.placing else "White to move"
        self._after_change()

    def _undo(self, body: Mapping[str, Any]) -> None:
        """Take back the player's last move, and the engine's answer; the moves stay in the record."""
        if self._places_stones:
            self._take_stone_back()
            return
        node = self._before_last()
        if node is None:
            raise ValueError("there is no move to take back")
        self.opponent.cancel()
        self._reopen()
        self._show(node)
        self.said = f"Taken back to move {_number(node)}: {color_word(self.game.to_move)} to play"
        self._after_change(is_engine_due=False)

    @property
    def can_undo(self) -> bool:
        """Whether there is a move of the player, or a handicap stone that Black placed, to take back."""
        if self._places_stones:
            return bool(self.record.root.properties.get("AB"))
        return self._before_last() is not None

    @property
    def _places_stones(self) -> bool:
        """Whether the player places the handicap stones, and no move has been played."""
        settings, is_begun = self.settings, len(self.record.nodes) > 1
        is_placed = bool(settings.handicap) and settings.handicap_stones == "placed"
        return is_placed and not is_begun and not self.is_engine(BLACK)

    def _before_last(self) -> Node | None:
        """The position before the player's last move; None = the player has not moved."""
        node = self.node
        while node.parent is not None:
            move, node = node.move, node.parent
            if move is not None and (self.settings.color in ("both", "none") or not self.is_engine(move[0])):
                return node
        return None

    def _take_stone_back(self) -> None:
        """Take back a placed handicap stone."""
        properties = self.record.root.properties
        if not properties.get("AB"):
            raise ValueError("there is no move to take back")
        self.opponent.cancel()
        properties["AB"].pop()
        if not properties["AB"]:
            del properties["AB"]
        self.placing += 1
        self._show(self.record.root)
        self.said = f"Place stone {self.settings.handicap - self.placing + 1} of {self.settings.handicap}"
        self._after_change()

    def _resign(self, body: Mapping[str, Any]) -> None:
        if self.phase == "over":
            raise ValueError("the game is over")
        color = {"black": BLACK, "white": WHITE}.get(self.settings.color, self.game.to_move)
        self.opponent.cancel()
        self._finish(f"{color_letter(other(color))}+R")
        self._after_change()

    def _goto(self, body: Mapping[str, Any]) -> None:
        node = self.record.nodes[whole(body, "node", None, 0, len(self.record.nodes) - 1)]
        self.record.game_at(node)
        self.opponent.cancel()
        self._show(node)
        if self.phase == "scoring" and self.count is None:
            self._score()
        self._after_change(is_engine_due=False)

    def _switch(self, name: str, body: Mapping[str, Any]) -> None:
        """Switch a kind of help on or off."""
        self.opponent.switch(name, switch(body, "on"), words(body, "parts", PARTS))
        self.follow()
        self._publish(is_position=False)

    def _toggle_dead(self, body: Mapping[str, Any]) -> None:
        if self.phase != "scoring" or self.end is not self.node:
            raise ValueError("dead stones are marked once both players have passed")
        point = point_from(whole(body, "point", None, 0, 10**4), self.game.size)
        self.dead = toggled(self.game, self.dead, point)
        self.opponent.drop_estimate()
        self._count()
        self._after_change()

    def _accept(self, body: Mapping[str, Any]) -> None:
        if self.phase != "scoring" or self.end is None or self.count is None:
            raise ValueError("there is no count to accept" if self.phase != "scoring" else "the end is being estimated")
        self._show(self.end)
        self._finish(self.count.result)
        self._after_change()

    def _continue(self, body: Mapping[str, Any]) -> None:
        """Back to play: before the passes that ended the game, or where a finished game stands."""
        self.opponent.cancel()
        # After a dispute the engine captures what it takes for dead before it passes again.
        self._is_disputed = self.phase == "scoring"
        node = self.end if self.phase == "scoring" and self.end else self.node
        while self.record.game_at(node).is_over and node.parent is not None:
            node = node.parent
        while node.parent is not None and node.move is not None and node.move[1] == PASS:
            node = node.parent
        self._reopen()
        self._show(node)
        self.said = f"Play continues: {color_word(self.game.to_move)} to move"
        self._after_change(is_engine_due=True)

    def _open(self, body: Mapping[str, Any]) -> None:
        """Put a file's first game on the table, without an engine."""
        data = word(body, "sgf", "").encode("utf-8", "surrogatepass")
        record = Record(data, rules_named(self.settings.rules), self.settings.komi)
        record.root.properties.pop(PROPERTY, None)
        game = record.game_at(record.root)
        rules = game.rules.name if game.rules.name in RULE_SETS else self.settings.rules
        level = self.settings.level if self.settings.level in self._ranks.names(game.size) else FULL
        self._games.remove_if_empty(self.id)
        self._begin(record, GameSettings(game.size, rules, game.komi, color="both", level=level))
        self.result = record.text("RE")
        if self.result:
            self.phase, self.end = "over", self.node
        self.said = f"Opened a game of {_number(self.node)} moves"
        self._after_change()

    def _load(self, body: Mapping[str, Any]) -> None:
        """Put a game of the list on the table as it stood."""
        name = word(body, "id", "")
        data, own = self._games.read(name), self.id
        self._restore(name if self._games.is_alone else "", data)
        if own != self.id:
            self._games.remove_if_empty(own)
        self.said = f"Game loaded, {_number(self.node)} moves"
        self._after_change()

    def _level(self, body: Mapping[str, Any]) -> None:
        self.settings = replace(self.settings, level=word(body, "level", "", self.levels))
        self._after_change(is_engine_due=False)

    # --- the engine's part

    def _after_change(self, is_engine_due: bool = True) -> None:
        """After every change of the game: save it, let the engine move or search, and tell the tabs.

        Args:
            is_engine_due: whether the engine moves now if it is its turn.
        """
        self._save()
        is_at_end = self.phase == "play" and not self.placing and self.node is self.line[-1]
        if is_engine_due and is_at_end and self.is_engine(self.game.to_move) and not self.opponent.is_thinking:
            clock = self.clock.for_engine() if self.clock else None
            purpose = Purpose.CLEAN_UP if self._is_disputed else Purpose.PLAY
            level = self._ranks.played(self.settings.level, self.settings.size)
            asked = Asked(self.game, clock, level, self.settings.seconds, purpose)
            self.opponent.ask(asked, self.node.id, self._on_move)
        self._run_clock()
        self.follow()
        self._publish()

    def _on_move(self, chosen: Chosen | Exception) -> None:
        """Play the engine's move."""
        color = self.game.to_move
        if isinstance(chosen, Exception):
            self.warning = f"Keima cannot move: {one_line(chosen)}"
            self._after_change(is_engine_due=False)
            return
        if chosen.report is not None:
            self.opponent.values[self.node.id] = values_of(chosen.report, color)
        if self.clock and not self.clock.move(color):
            self._finish(f"{color_letter(other(color))}+T")
        elif chosen.point == RESIGN:
            self._finish(f"{color_letter(other(color))}+R")
        else:
            self._add(color, chosen.point)
        self._after_change()

    def follow(self) -> None:
        """Search the shown position for the tabs if they want it."""
        is_shown = self._has_tabs and self.phase != "scoring" and not self.placing
        self.opponent.follow(self.game if is_shown else None, self.node.id)

    # --- the end

    def _score(self) -> None:
        """Begin the count: dead stones are proposed by the engine, unless the rules have none."""
        self.phase, self.end, self.dead, self.count = "scoring", self.end or self.node, set(), None
        game = self.record.game_at(self.end)
        if is_strict(game.position):
            self._count()
        else:
            self.opponent.estimate_end(game, self._on_estimate)

    def _on_estimate(self, estimate: EndEstimate | Exception) -> None:
        """Propose dead stones."""
        if isinstance(estimate, Exception):
            self.warning = f"dead stones are not proposed: {one_line(estimate)}"
        else:
            self.dead = set(estimate.dead)
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
        self.phase, self.result, self.end = "over", result, self.end or self.node
        self.said = f"The game is over: {winner_text(result)}"
        self.record.set_text("RE", result)
        is_rated = self.settings.level == ADAPTIVE and self.settings.color in ("black", "white") and not self._is_noted
        if is_rated and result[1:2] == "+":
            self._is_noted = True
            engine_won = (result[0] == "B") == self.is_engine(BLACK)
            try:
                self.said += f". {self._ranks.note(engine_won, self.settings.size)}"
            except OSError as error:
                self.warning = f"the level is not saved: {one_line(error)}"

    def _reopen(self) -> None:
        """Take the result and the count back."""
        self.phase, self.result, self.end, self.count, self.dead = "play", "", None, None, set()
        self.opponent.drop_estimate()
        self.record.set_text("RE", "")

    # --- the clock

    def _run_clock(self) -> None:
        """Let the clock of the side to move run; the engine's only while it chooses a move."""
        if self.clock is None:
            return
        color = self.game.to_move
        is_waiting = self.is_engine(color) and not (self.opponent.is_thinking and self.opponent.is_ready)
        if self.phase != "play" or self.placing or is_waiting:
            self.clock.pause()
        elif self.clock.running != color:
            self.clock.start(color)

    def _flag_may_fall(self, color: int) -> None:
        """Called by a timer's thread."""
        self._post(self._on_flag, color)

    def _on_flag(self, color: int) -> None:
        """The flag of a running clock may have fallen."""
        if self.phase == "play" and self.clock and self.clock.running == color and self.clock.seconds_to_flag() <= 0:
            self.opponent.cancel()
            self._finish(f"{color_letter(other(color))}+T")
            self._after_change()

    # --- the record

    def _save(self) -> None:
        """Write the record, with what a restart needs, unless there is nothing in it yet."""
        if len(self.record.nodes) == 1 and not self.record.root.properties.get("AB"):
            return
        for color in (BLACK, WHITE):
            self.record.set_text(f"P{color_letter(color)}", self.player(color)["name"])
        clock = self.clock.to_json() if self.clock else None
        put(self.record, Saved(self.settings, path_to(self.node), self.placing, clock))
        try:
            self._games.write(self.id, self.record.to_bytes())
        except OSError as error:
            self.warning = f"the game is not saved: {one_line(error)}"

    def _resume(self) -> None:
        """Continue the latest game of the folder if it is not over."""
        name, own = self._games.latest() if self._games.is_alone else None, self.id
        if name is None:
            return
        try:
            self._restore(name, self._games.read(name))
        except ValueError as error:
            self.warning = f"game {name} cannot be continued: {error}"
            return
        if self.phase == "over":
            self._begin(Record.of_game(_new_game(self._first)), self._first, own)
            return
        self._games.remove_if_empty(own)
        self.said = f"The last game continues at move {_number(self.node)}"
        self._after_change()

    def _restore(self, name: str, data: bytes) -> None:
        """Put a saved game on the table as it stood.

        Raises:
            ValueError: the file cannot be used; the table stays unchanged.
        """
        record = Record(data)
        saved = found_in(record, self._ranks.names(record.size))
        self._begin(record, saved.settings or GameSettings(record.size, color="both"), name)
        if saved.settings is not None:
            self._show(node_at(record, saved.path))
        if self.clock:
            self.clock.restore(saved.clock)
        self.placing = saved.placing if len(record.nodes) == 1 else 0
        self.result = record.text("RE")
        if self.result:
            self.phase, self.end = "over", self.node
        elif self.game.is_over and self.node is self.line[-1]:
            self._score()

    def close(self) -> None:
        """Leave the table; a game without a move leaves no file."""
        if self.clock:
            self.clock.pause()
        self._save()
        self._games.remove_if_empty(self.id)
        self._games.close()


def _new_game(settings: GameSettings) -> Game:
    """An empty board under a game's settings."""
    return Game(settings.size, rules_named(settings.rules), settings.komi)


def _number(node: Node) -> int:
    """Number of moves up to a node."""
    return sum(one.move is not None for one in node.line())


Action = Callable[[Table, Mapping[str, Any]], None]


def _switching(name: str) -> Action:
    """The action that switches a kind of help."""
    return lambda table, body: table._switch(name, body)


ACTIONS: dict[str, Action] = {
    "new": Table._new,
    "players": Table._players,
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
    **{name: _switching(name) for name in HELPS},
}
"""Action of the page -> what it does"""
