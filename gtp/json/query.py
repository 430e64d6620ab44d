"""A query of KataGo's analysis engine: its fields, checked in KataGo's order, and the positions that they mean.

The first field that is wrong answers for the query, so the order of the checks is part of the protocol. Boards here are
square, and the network's: only these two are refused besides what KataGo refuses. Threads: one.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.go.board import play
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, on_board_points, other, point_at, to_vertex
from engine.go.position import Position, hide_course, new_position, with_capacity
from engine.go.rules import KATAGO_KEYS, Rules
from engine.search.move_filter import MoveFilter, Restriction
from gtp.info import Extras
from gtp.json.rules import MOST_KOMI, parse_rules
from gtp.json.settings import Settings, override, unknown
from gtp.json.values import (
    FieldError,
    Vertex,
    boolean,
    integer,
    integers,
    moves,
    number,
    player,
    vertices,
)

LEAST_SIZE, MOST_SIZE = 2, 19
SIZES = f"Must provide an integer from {LEAST_SIZE} to {MOST_SIZE}"
SQUARE = "Must be equal to boardXSize, Keima analyses square boards alone"
MOST_PRIORITY = (1 << 62) - 1
MOST_VISITS = 1 << 50
MOST_HELD = 5_000_000
"""Different turns of a query times its moves: each position is kept with those before it, some 60 MB in all"""
KOMI = "Must be a integer or half-integer from -400.0 to 400.0"
NO_RULES = (
    'Must specify rules string, such as "chinese" or "tromp-taylor", or a JSON object with detailed rules parameters.'
)
SECONDS = "Must be number of seconds from 0.001 to 1000000.0"
RESTRICTIONS = "Must be a list of dicts with subfields 'player', 'moves', 'untilDepth'"
UNUSED = (
    "Unexpected or unused field, do you have a typo? (set warnUnusedFields=false in the config to disable this warning)"
)
COLORS = {"b": BLACK, "w": WHITE}
SWITCHES = {
    "includeMovesOwnership": "moves_ownership",
    "includeMovesOwnershipStdev": "moves_ownership_stdev",
    "includeOwnership": "ownership",
    "includeOwnershipStdev": "ownership_stdev",
    "includePolicy": "policy",
    "includePVVisits": "pv_visits",
    "includeNoResultValue": "no_result",
}
"""Field -> what of :class:`Wanted` it switches on; in the order of the checks"""
_FIELDS = """
id action terminateId turnNumbers boardXSize boardYSize initialStones moves initialPlayer analyzeTurns priorities rules
komi whiteHandicapBonus overrideSettings maxVisits analysisPVLen rootFpuReductionMax rootPolicyTemperature
reportDuringSearchEvery firstReportDuringSearchAfter priority allowMoves avoidMoves
"""
FIELDS = frozenset((*_FIELDS.split(), *SWITCHES))


@dataclass(frozen=True)
class Wanted(Extras):
    """What answers hold besides what all do."""

    perspective: str = ""
    """whose numbers: b, w, or empty for the side to move"""
    pv_length: int = 15
    policy: bool = False


@dataclass(frozen=True)
class Turn:
    """A position of a query."""

    number: int
    """moves played before it"""
    position: Position
    priority: int


@dataclass(frozen=True)
class Query:
    """What a query asks for."""

    id: str
    turns: list[Turn]
    settings: Settings
    wanted: Wanted
    moves: MoveFilter
    every_s: float
    """between reports during the search; 0 = one alone, or none"""
    first_s: float
    """until the first; 0 = none"""


def read_query(values: dict[str, Any], defaults: Settings, warn: Callable[[str, str], None],
               check: Callable[[Settings], object]) -> Query:  # fmt: skip
    """The query of an object that has an id.

    Args:
        warn: given a field and what is odd about it, where the query goes on all the same.
        check: refuses settings that no search can have, by a ``ValueError``.
    Raises:
        FieldError: a field is wrong.
    """
    size = _size(values)
    stones = moves(values, "initialStones", size, False) if "initialStones" in values else []
    if "moves" not in values:
        raise FieldError("moves", "Must specify an array of [player,location] pairs")
    played = moves(values, "moves", size, True)
    first = player(values, "initialPlayer") if "initialPlayer" in values else ""
    numbers = _turns(values, len(played))
    priorities = _priorities(values, numbers)
    rules, komi = _rules(values)
    settings = _settings(values, defaults, warn, check)
    wanted = Wanted(perspective=settings.perspective, pv_length=settings.pv_length)
    if "maxVisits" in values:
        visits = integer(values, "maxVisits", 1, MOST_VISITS, "Must be an integer from 1 to 2^50")
        settings = replace(settings, visits=visits)
    if "analysisPVLen" in values:
        length = integer(values, "analysisPVLen", 1, 1000, "Must be an integer from 1 to 1000")
        wanted = replace(wanted, pv_length=length)
    if "rootFpuReductionMax" in values:
        number(values, "rootFpuReductionMax", 0.0, 2.0, "Must be a number from 0.0 to 2.0")
    if "rootPolicyTemperature" in values:
        number(values, "rootPolicyTemperature", 0.01, 100.0, "Must be a number from 0.01 to 100.0")
    switched: dict[str, Any] = {name: boolean(values, field) for field, name in SWITCHES.items() if field in values}
    every_s, first_s = _report_times(values)
    priority = _priority(values)
    restrictions = _restrictions(values, size)
    game = _first_position(size, rules, komi, stones, first or (played[0][0] if played else ""))
    if defaults.warns:
        for field in sorted(set(values) - FIELDS):
            warn(field, UNUSED)
    positions = _positions(game, played, set(numbers))
    if settings.hides_course:
        for position in positions.values():
            hide_course(position)
    turns = [Turn(n, positions[n], priorities.get(n, priority)) for n in sorted(positions)]
    return Query(values["id"], turns, settings, replace(wanted, **switched), restrictions, every_s, first_s)


def _size(values: dict[str, Any]) -> int:
    """The board's side."""
    for field in ("boardXSize", "boardYSize"):
        if field not in values:
            raise FieldError(field, SIZES)
    across, down = (integer(values, field, LEAST_SIZE, MOST_SIZE, SIZES) for field in ("boardXSize", "boardYSize"))
    if across != down:
        raise FieldError("boardYSize", SQUARE)
    return across


def _turns(values: dict[str, Any], played: int) -> list[int]:
    """The turns to analyse, as they are given."""
    if "analyzeTurns" not in values:
        return [played]
    found = integers(values, "analyzeTurns", "Must specify an array of integers indicating turns to analyze")
    for turn in found:
        if not 0 <= turn <= played:
            raise FieldError("analyzeTurns", f"Invalid turn number: {str(turn)[:20]}")
    if (count := len(set(found))) * played > MOST_HELD:
        most = MOST_HELD // played
        raise FieldError("analyzeTurns", f"{count} turns of a game of {played} moves, at most {most} at once")
    return found


def _priorities(values: dict[str, Any], turns: list[int]) -> dict[int, int]:
    """Priorities of single turns; of one that is named twice, the last."""
    if "priorities" not in values:
        return {}
    found = integers(values, "priorities", "Must specify an array of integers indicating priorities")
    if "analyzeTurns" not in values:
        raise FieldError("priorities", "Can only specify when also specifying analyzeTurns")
    if len(found) != len(turns):
        raise FieldError("priorities", "Must be of matching length to analyzeTurns")
    for priority in found:
        if abs(priority) > MOST_PRIORITY:
            raise FieldError("priorities", f"Invalid priority: {priority}")
    return dict(zip(turns, found, strict=True))


def _priority(values: dict[str, Any]) -> int:
    """The priority of all turns."""
    if "priority" not in values:
        return 0
    if "priorities" in values:
        raise FieldError("priority", "Cannot specify both priority and priorities")
    return integer(values, "priority", -MOST_PRIORITY, MOST_PRIORITY, "Must be a number between -2^62 and 2^62")


def _rules(values: dict[str, Any]) -> tuple[Rules, float]:
    """Rules and komi."""
    given = values.get("rules")
    if not isinstance(given, str | dict):
        raise FieldError("rules", NO_RULES)
    rules, komi = parse_rules(given)
    if "komi" in values:
        komi = number(values, "komi", -MOST_KOMI, MOST_KOMI, KOMI)
        if not (2 * komi).is_integer():
            raise FieldError("komi", KOMI)
    if "whiteHandicapBonus" in values:
        bonus = values["whiteHandicapBonus"]
        if not isinstance(bonus, str):
            raise FieldError("whiteHandicapBonus", "Must be a string")
        name, words = KATAGO_KEYS["whiteHandicapBonus"]
        if bonus not in words:
            message = f"Rules::parseWhiteHandicapBonusRule: Invalid whiteHandicapBonus rule: {bonus}"
            raise FieldError("whiteHandicapBonus", message)
        rules = replace(rules, **{name: words[bonus]})
    return rules, komi


def _settings(values: dict[str, Any], defaults: Settings, warn: Callable[[str, str], None],
              check: Callable[[Settings], object]) -> Settings:  # fmt: skip
    """The settings that hold for the query."""
    if "overrideSettings" not in values:
        return defaults
    given = values["overrideSettings"]
    if not isinstance(given, dict):
        raise FieldError("overrideSettings", "Must be an object")
    texts = {key: value if isinstance(value, str) else _dumped(value) for key, value in given.items()}
    try:
        settings = override(defaults, texts)
        check(settings)
    except ValueError as error:
        raise FieldError("overrideSettings", f"Could not set settings: {error}") from error
    if odd := unknown(texts):
        warn("overrideSettings", f"Unknown config params: {','.join(odd)}")
    return settings


def _dumped(value: Any) -> str:
    """A value as text of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _report_times(values: dict[str, Any]) -> tuple[float, float]:
    """Seconds between reports during the search, and until the first."""
    every_s = first_s = 0.0
    if "reportDuringSearchEvery" in values:
        every_s = first_s = number(values, "reportDuringSearchEvery", 0.001, 1e6, SECONDS)
    if "firstReportDuringSearchAfter" in values:
        first_s = number(values, "firstReportDuringSearchAfter", 0.001, 1e6, SECONDS)
    return every_s, first_s


def _restrictions(values: dict[str, Any], size: int) -> MoveFilter:
    """Which moves the search may choose."""
    if "allowMoves" in values and "avoidMoves" in values:
        raise FieldError("allowMoves", "Cannot specify both allowMoves and avoidMoves")
    field = "allowMoves" if "allowMoves" in values else "avoidMoves"
    if field not in values:
        return MoveFilter()
    given, is_exclusive = values[field], field == "allowMoves"
    if not isinstance(given, list):
        raise FieldError(field, RESTRICTIONS)
    if is_exclusive and len(given) > 2:
        raise FieldError(field, "Currently allowMoves only allows at most one entry per player")
    found: list[Restriction] = []
    for one in given:
        if not isinstance(one, dict) or not {"moves", "untilDepth", "player"} <= one.keys():
            raise FieldError(field, RESTRICTIONS)
        color = COLORS[player(one, "player")]
        points = frozenset(_point(place, size) for place in vertices(one, "moves", size))
        depth = integer(one, "untilDepth", 1, 10**9, "Must be a positive integer")
        if is_exclusive and any(other.color == color for other in found):
            raise FieldError(field, "Cannot specify allowMoves more than once for the same player")
        found.append(Restriction(color, points, depth, is_exclusive))
    return MoveFilter(tuple(found))


def _point(place: Vertex, size: int) -> int:
    """The engine's point of a vertex."""
    return PASS if place is None else int(point_at(place[1], place[0], size))


def _first_position(size: int, rules: Rules, komi: float, stones: list[tuple[str, Vertex]], first: str) -> Game:
    """A game that begins with some stones.

    Args:
        first: who moves first; empty = White where there are handicap stones, else Black.
    """
    game = Game(size, rules, komi)
    board = new_position(size).board
    for who, place in stones:
        color, point = COLORS[who], _point(place, size)
        if board.color[point] == other(color):
            # A stone in the place of another one: the board anew without that.
            left = [(int(one), int(board.color[one])) for one in on_board_points(size) if one != point]
            board = new_position(size).board
            for one, its_color in left:
                if its_color != EMPTY:
                    play(board, one, its_color)
        if board.color[point] == EMPTY:
            play(board, point, color)
    laid = {color: [int(one) for one in on_board_points(size) if board.color[one] == color] for color in (BLACK, WHITE)}
    is_handicap = len(laid[BLACK]) > 1 and not laid[WHITE]
    game.setup_stones(laid[BLACK], laid[WHITE], COLORS.get(first, WHITE if is_handicap else BLACK))
    return game


def _positions(game: Game, played: list[tuple[str, Vertex]], turns: set[int]) -> dict[int, Position]:
    """The positions before some turns; moves are replayed as they are given, whoever's turn it is."""
    found = {}
    for turn in range(len(played) + 1):
        if turn in turns:
            found[turn] = with_capacity(game.position, game.n_moves)
        if turn == len(played):
            break
        who, place = played[turn]
        color, point = COLORS[who], _point(place, game.size)
        try:
            game.play(color, point)
        except ValueError as error:
            raise FieldError("moves", f"Illegal move {turn}: {to_vertex(point, game.size)}") from error
    return found
