"""The checks of JSON values in KataGo's analysis engine: type, range, and the text of the error.

Source of the rules: KataGo, cpp/game/rules.cpp.
"""

import json
import math
import re
from typing import Any, NamedTuple, NoReturn

from engine.go.geometry import BLACK, COLUMNS, PASS, WHITE, point_at
from engine.go.rules import SCORING_TERRITORY, Rules, rules_from, rules_of_short_form
from gtp.protocol import BYTE_ORDER_MARK, COLORS

SHOWN_DIGITS = 9
MOST_VISITS = 1 << 50
MOST_PRIORITY = (1 << 62) - 1
MOST_KOMI = 400.0
LEAST_SIZE, MOST_SIZE = 2, 19
SIZES = f"Must provide an integer from {LEAST_SIZE} to {MOST_SIZE}"
KOMI = "Must be a integer or half-integer from -400.0 to 400.0"
SECONDS = "Must be number of seconds from 0.001 to 1000000.0"
PLAYER = 'Must be "b" or "w"'
VERTEX_PAIRS = 'Must be an array of pairs of the form: ["b" or "w", GTP board vertex]'
VERTICES = "Must be an array of GTP board vertices"
NAMED_KOMI = {"new-zealand": 7.0}
"""Rule set -> its default komi, if another than the rules' flags give"""
KOMI_SUFFIX = re.compile(r"komi([^a-zA-Z\s]+)")
"""The komi in KataGo's short form of rules: ``koPOSITIONALscoreAREAtaxNONEsui1komi7.5``"""
BRACKETED = re.compile(r"\(\s*+([0-9]{1,4}+)\s*+,\s*+([0-9]{1,4}+)\s*+\)")
"""A vertex as ``(column,row)``, counted from 0 at the top left"""
LETTERED = re.compile(r"([A-HJ-Z])([0-9]{1,4})")


class Scalar(NamedTuple):
    """A field whose value is a number: type, range, and KataGo's error for other values."""

    kind: type[int] | type[float]
    low: float
    high: float
    refusal: str


SCALARS = {
    "boardXSize": Scalar(int, LEAST_SIZE, MOST_SIZE, SIZES),
    "boardYSize": Scalar(int, LEAST_SIZE, MOST_SIZE, SIZES),
    "komi": Scalar(float, -MOST_KOMI, MOST_KOMI, KOMI),
    "maxVisits": Scalar(int, 1, MOST_VISITS, "Must be an integer from 1 to 2^50"),
    "analysisPVLen": Scalar(int, 1, 1000, "Must be an integer from 1 to 1000"),
    "rootFpuReductionMax": Scalar(float, 0.0, 2.0, "Must be a number from 0.0 to 2.0"),
    "rootPolicyTemperature": Scalar(float, 0.01, 100.0, "Must be a number from 0.01 to 100.0"),
    "reportDuringSearchEvery": Scalar(float, 0.001, 1e6, SECONDS),
    "firstReportDuringSearchAfter": Scalar(float, 0.001, 1e6, SECONDS),
    "priority": Scalar(int, -MOST_PRIORITY, MOST_PRIORITY, "Must be a number between -2^62 and 2^62"),
    "untilDepth": Scalar(int, 1, 10**9, "Must be a positive integer"),
}


class FieldError(ValueError):
    """A field of a request has a value that is not allowed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_line(line: str) -> Any:
    """Parse a line of JSON; a byte order mark at its beginning is ignored, as by KataGo.

    Raises:
        ValueError: the line is not JSON.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    def finite(word: str) -> float:
        number = float(word)
        return number if math.isfinite(number) else refuse(word)

    try:
        return json.loads(line.removeprefix(BYTE_ORDER_MARK), parse_constant=refuse, parse_float=finite)
    except RecursionError as error:
        raise ValueError("brackets are nested too deeply") from error


def to_text(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_line(value: dict[str, Any]) -> str:
    """An object as one line of compact JSON, its keys in alphabetical order.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def rounded(number: float) -> float:
    """A number rounded to ``SHOWN_DIGITS`` significant digits, as in answers; 0 for NaN and infinity."""
    return float(f"{number:.{SHOWN_DIGITS}g}") if math.isfinite(number) else 0.0


def scalar(values: dict[str, Any], field: str, default: float = 0) -> Any:
    """The number of a field of :data:`SCALARS`, or the default if the field is absent.

    Raises:
        FieldError: wrong type or out of range.
    """
    kind, low, high, refusal = SCALARS[field]
    value = values.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        raise FieldError(field, refusal)
    if field in values and not low <= value <= high:
        raise FieldError(field, refusal)
    return kind(value)


def switch(values: dict[str, Any], field: str) -> bool:
    """The value of a boolean field; False if the field is absent.

    Raises:
        FieldError: not a boolean.
    """
    value = values.get(field, False)
    if not isinstance(value, bool):
        raise FieldError(field, "Must be a boolean")
    return value


def integers(values: dict[str, Any], field: str, message: str) -> list[int]:
    """The integers of a field that is an array of numbers; fractions are truncated, as KataGo does.

    Raises:
        FieldError: with ``message``: not an array of finite numbers.
    """
    value = values[field]
    if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, int | float) for one in value):
        raise FieldError(field, message)
    # JSON's integers may be too large for math.isfinite.
    if any(isinstance(one, float) and not math.isfinite(one) for one in value):
        raise FieldError(field, message)
    return [int(one) for one in value]


def color(field: str, value: Any, refusal: str = PLAYER) -> int:
    """BLACK or WHITE for ``b``, ``black``, ``w`` or ``white`` in upper or lower case.

    Raises:
        FieldError: with ``refusal``: another value.
    """
    word = COLORS.get(value.lower()) if isinstance(value, str) else None
    if word is None:
        raise FieldError(field, refusal)
    return BLACK if word == "b" else WHITE


def moves(values: dict[str, Any], field: str, size: int, allow_pass: bool) -> list[tuple[int, int]]:
    """The moves (color, point) of a field that is an array of pairs.

    Raises:
        FieldError: not such an array, or a wrong color or vertex.
    """
    pairs = values[field]
    if not isinstance(pairs, list):
        raise FieldError(field, VERTEX_PAIRS)
    found = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(word, str) for word in pair):
            raise FieldError(field, VERTEX_PAIRS)
        side = color(field, pair[0], f"Could not parse player: {pair[0]}")
        found.append((side, vertex(field, pair[1], size, allow_pass)))
    return found


def vertices(values: dict[str, Any], field: str, size: int) -> list[int]:
    """The points of a field that is an array of vertices, the pass included.

    Raises:
        FieldError: not such an array, or a wrong vertex.
    """
    texts = values[field]
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise FieldError(field, VERTICES)
    return [vertex(field, text, size, True) for text in texts]


def vertex(field: str, text: str, size: int, allow_pass: bool) -> int:
    """The point of a vertex: ``D4`` in upper or lower case, ``(3,15)`` for column and row, or ``pass`` if allowed.

    Raises:
        FieldError: not a vertex of this board.
    """
    word = text.strip().upper()
    if word in ("PASS", "PSS") and allow_pass:
        return PASS
    column, row = -1, -1
    if match := BRACKETED.fullmatch(word):
        column, row = int(match[1]), int(match[2])
    elif match := LETTERED.fullmatch(word):
        column, row = COLUMNS.index(match[1]), size - int(match[2])
    if not (0 <= column < size and 0 <= row < size):
        raise FieldError(field, f"Could not parse board location: {text}")
    return int(point_at(row, column, size))


def parse_rules(given: str | dict[str, Any]) -> tuple[Rules, float]:
    """The rules and komi of a name, an object of KataGo's keys, or KataGo's short form.

    Raises:
        FieldError: unknown rules.
    """
    try:
        if not isinstance(given, str) or given.lstrip().startswith("{"):
            flags = dict(json.loads(given) if isinstance(given, str) else given)
            komi = flags.pop("komi", None)
            rules = rules_from(json.dumps(flags))
        else:
            komis, left = KOMI_SUFFIX.findall(given), KOMI_SUFFIX.sub("", given)
            rules = rules_of_short_form(left) if komis else rules_from(left)
            komi = float(komis[-1]) if komis else NAMED_KOMI.get(rules.name)
        if komi is None:
            return rules, default_komi(rules)
        if isinstance(komi, bool) or abs(komi) > MOST_KOMI or not float(2 * komi).is_integer():
            raise ValueError(f"komi {komi}")
        return rules, float(komi)
    except (ValueError, TypeError, RecursionError) as error:
        shown = given if isinstance(given, str) else to_text(given)
        raise FieldError("rules", f"Could not parse rules: {shown}") from error


def default_komi(rules: Rules) -> float:
    """The default komi that KataGo gives to rules: 7 with a button, 6.5 by territory, else 7.5."""
    if rules.button:
        return 7.0
    return 6.5 if rules.scoring == SCORING_TERRITORY else 7.5
