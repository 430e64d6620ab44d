"""A query of KataGo's analysis engine: its fields, checked in KataGo's order, and its positions.

The error names the first wrong field, so the order of the checks is part of the protocol. Beside KataGo's own refusals,
two are added: boards that are not square, and boards that the network does not play.

Threads: the one that takes lines.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.go.board import play
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, WHITE, on_board_points, other, to_vertex
from engine.go.position import Position, hide_course, new_position, with_capacity
from engine.go.rules import KATAGO_KEYS, Rules
from engine.search.move_filter import MoveFilter, Restriction
from gtp.info import Extras
from gtp.json.settings import Settings, override, unknown
from gtp.json.values import (
    KOMI,
    MOST_PRIORITY,
    SIZES,
    FieldError,
    color,
    integers,
    moves,
    parse_rules,
    scalar,
    switch,
    to_text,
    vertices,
)

SQUARE = "Must be equal to boardXSize, Keima analyses square boards alone"
MOST_HELD = 5_000_000
"""Maximum of distinct turns times moves in a query: each turn's position holds the moves before it, 60 MB at most"""
NO_RULES = (
    'Must specify rules string, such as "chinese" or "tromp-taylor", or a JSON object with detailed rules parameters.'
)
RESTRICTIONS = "Must be a list of dicts with subfields 'player', 'moves', 'untilDepth'"
UNUSED = (
    "Unexpected or unused field, do you have a typo? (set warnUnusedFields=false in the config to disable this warning)"
)
SWITCHES = {
    "includeMovesOwnership": "moves_ownership",
    "includeMovesOwnershipStdev": "moves_ownership_stdev",
    "includeOwnership": "ownership",
    "includeOwnershipStdev": "ownership_stdev",
    "includePolicy": "policy",
    "includePVVisits": "pv_visits",
    "includeNoResultValue": "no_result",
}
"""Boolean field -> the attribute of :class:`Wanted` that it sets, in the order in which the fields are checked"""
_FIELDS = """
id action terminateId turnNumbers boardXSize boardYSize initialStones moves initialPlayer analyzeTurns priorities rules
komi whiteHandicapBonus overrideSettings maxVisits analysisPVLen rootFpuReductionMax rootPolicyTemperature
reportDuringSearchEvery firstReportDuringSearchAfter priority allowMoves avoidMoves
"""
FIELDS = frozenset((*_FIELDS.split(), *SWITCHES))


@dataclass(frozen=True)
class Wanted(Extras):
    """Optional parts of an answer, and its perspective."""

    perspective: str = ""
    """b, w, or empty for the side to move"""
    pv_length: int = 15
    policy: bool = False


@dataclass(frozen=True)
class Turn:
    """A position of a query."""

    number: int
    """number of moves played before the position"""
    position: Position
    priority: int


@dataclass(frozen=True)
class Query:
    """A query whose fields have been checked."""

    id: str
    turns: list[Turn]
    settings: Settings
    wanted: Wanted
    moves: MoveFilter
    every_s: float
    """seconds between reports during the search; 0 = at most one report"""
    first_s: float
    """seconds until the first report during the search; 0 = no such report"""


def read_query(values: dict[str, Any], defaults: Settings, warn: Callable[[str, str], None],
               check: Callable[[Settings], object]) -> Query:  # fmt: skip
    """Check a request that has an id, and make its query.

    Args:
        warn: called with a field and its problem, if the problem does not prevent an answer.
        check: raises ``ValueError`` for settings that the search refuses.
    Raises:
        FieldError: a field is wrong.
    """
    size = _size(values)
    stones = moves(values, "initialStones", size, False) if "initialStones" in values else []
    if "moves" not in values:
        raise FieldError("moves", "Must specify an array of [player,location] pairs")
    played = moves(values, "moves", size, True)
    first = color("initialPlayer", values["initialPlayer"]) if "initialPlayer" in values else EMPTY
    numbers = _turns(values, len(played))
    priorities = _priorities(values, numbers)
    rules, komi = _rules(values)
    settings = _settings(values, defaults, warn, check)
    settings = replace(settings, visits=scalar(values, "maxVisits", settings.visits))
    pv_length = scalar(values, "analysisPVLen", settings.pv_length)
    # The search uses one reduction and one temperature at the root and below: these fields have no effect.
    scalar(values, "rootFpuReductionMax")
    scalar(values, "rootPolicyTemperature")
    switched: dict[str, Any] = {name: switch(values, field) for field, name in SWITCHES.items()}
    every_s = scalar(values, "reportDuringSearchEvery")
    first_s = scalar(values, "firstReportDuringSearchAfter", every_s)
    if "priority" in values and "priorities" in values:
        raise FieldError("priority", "Cannot specify both priority and priorities")
    priority = scalar(values, "priority")
    restrictions = _restrictions(values, size)
    game = _first_position(size, rules, komi, stones, first or (played[0][0] if played else EMPTY))
    if defaults.warns:
        for field in sorted(set(values) - FIELDS):
            warn(field, UNUSED)
    positions = _positions(game, played, set(numbers))
    if settings.hides_course:
        for position in positions.values():
            hide_course(position)
    turns = [Turn(n, positions[n], priorities.get(n, priority)) for n in sorted(positions)]
    wanted = Wanted(perspective=settings.perspective, pv_length=pv_length, **switched)
    return Query(values["id"], turns, settings, wanted, restrictions, every_s, first_s)


def _size(values: dict[str, Any]) -> int:
    """The board size."""
    for field in ("boardXSize", "boardYSize"):
        if field not in values:
            raise FieldError(field, SIZES)
    across, down = int(scalar(values, "boardXSize")), int(scalar(values, "boardYSize"))
    if across != down:
        raise FieldError("boardYSize", SQUARE)
    return across


def _turns(values: dict[str, Any], played: int) -> list[int]:
    """The numbers of the turns to analyse, in the order of the query; by default the last turn."""
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
    """Turn -> its priority, if the query has ``priorities``; a turn that is given twice has the last one."""
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


def _rules(values: dict[str, Any]) -> tuple[Rules, float]:
    """The rules and komi of a query."""
    given = values.get("rules")
    if not isinstance(given, str | dict):
        raise FieldError("rules", NO_RULES)
    rules, komi = parse_rules(given)
    komi = scalar(values, "komi", komi)
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
    """The default settings, changed by the query's ``overrideSettings``."""
    if "overrideSettings" not in values:
        return defaults
    given = values["overrideSettings"]
    if not isinstance(given, dict):
        raise FieldError("overrideSettings", "Must be an object")
    texts = {key: value if isinstance(value, str) else to_text(value) for key, value in given.items()}
    try:
        settings = override(defaults, texts)
        check(settings)
    except ValueError as error:
        raise FieldError("overrideSettings", f"Could not set settings: {error}") from error
    if odd := unknown(texts):
        warn("overrideSettings", f"Unknown config params: {','.join(odd)}")
    return settings


def _restrictions(values: dict[str, Any], size: int) -> MoveFilter:
    """The filter of a query's ``allowMoves`` or ``avoidMoves``."""
    if "allowMoves" in values and "avoidMoves" in values:
        raise FieldError("allowMoves", "Cannot specify both allowMoves and avoidMoves")
    field = "allowMoves" if "allowMoves" in values else "avoidMoves"
    given, is_exclusive = values.get(field, []), field == "allowMoves"
    if not isinstance(given, list):
        raise FieldError(field, RESTRICTIONS)
    if is_exclusive and len(given) > 2:
        raise FieldError(field, "Currently allowMoves only allows at most one entry per player")
    found: list[Restriction] = []
    for one in given:
        if not isinstance(one, dict) or not {"moves", "untilDepth", "player"} <= one.keys():
            raise FieldError(field, RESTRICTIONS)
        side = color("player", one["player"])
        points = frozenset(vertices(one, "moves", size))
        depth = int(scalar(one, "untilDepth"))
        if is_exclusive and any(other.color == side for other in found):
            raise FieldError(field, "Cannot specify allowMoves more than once for the same player")
        found.append(Restriction(side, points, depth, is_exclusive))
    return MoveFilter(tuple(found))


def _first_position(size: int, rules: Rules, komi: float, stones: list[tuple[int, int]], first: int) -> Game:
    """A game that begins with stones (color, point) on the board.

    Args:
        first: color to move; EMPTY = White after handicap stones, else Black.
    """
    game = Game(size, rules, komi)
    board = new_position(size).board
    for side, point in stones:
        if board.color[point] == other(side):
            # A stone on an opponent's stone replaces it: build the board again without that one.
            left = [(int(one), int(board.color[one])) for one in on_board_points(size) if one != point]
            board = new_position(size).board
            for one, its_color in left:
                if its_color != EMPTY:
                    play(board, one, its_color)
        if board.color[point] == EMPTY:
            play(board, point, side)
    laid = {side: [int(one) for one in on_board_points(size) if board.color[one] == side] for side in (BLACK, WHITE)}
    is_handicap = len(laid[BLACK]) > 1 and not laid[WHITE]
    game.setup_stones(laid[BLACK], laid[WHITE], first or (WHITE if is_handicap else BLACK))
    return game


def _positions(game: Game, played: list[tuple[int, int]], turns: set[int]) -> dict[int, Position]:
    """Turn -> position after that number of moves; the moves are replayed as given, even several of one color in a row.

    Raises:
        FieldError: a move is illegal.
    """
    found = {0: with_capacity(game.position, 0)} if 0 in turns else {}
    for turn, (side, point) in enumerate(played):
        try:
            game.play(side, point)
        except ValueError as error:
            raise FieldError("moves", f"Illegal move {turn}: {to_vertex(point, game.size)}") from error
        if turn + 1 in turns:
            found[turn + 1] = with_capacity(game.position, game.n_moves)
    return found
