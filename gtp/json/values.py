"""JSON values as KataGo's analysis engine checks them: the type, the range, and the words of the refusal."""

import json
import math
import re
from typing import Any, NoReturn

from engine.go.geometry import COLUMNS
from engine.go.rules import SCORING_TERRITORY, Rules, rules_from, rules_of_short_form
from gtp.protocol import BYTE_ORDER_MARK, COLORS

SHOWN_DIGITS = 9
MAX_INT = 1 << 63
VERTEX_PAIRS = 'Must be an array of pairs of the form: ["b" or "w", GTP board vertex]'
Vertex = tuple[int, int] | None
"""Column and row from the top left, both from 0; None = a pass"""


class FieldError(ValueError):
    """A field of a request holds what it may not."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_line(line: str) -> Any:
    """The value that a line holds; a byte order mark before it is passed over, as KataGo does.

    Raises:
        ValueError: it is no JSON.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no JSON")

    def finite(word: str) -> float:
        number = float(word)
        return number if math.isfinite(number) else refuse(word)

    try:
        return json.loads(line.removeprefix(BYTE_ORDER_MARK), parse_constant=refuse, parse_float=finite)
    except RecursionError as error:
        raise ValueError("too many brackets within brackets") from error


def to_line(value: dict[str, Any]) -> str:
    """An object as one line: compact, its keys in alphabetical order. Numbers are finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def rounded(number: float) -> float:
    """A number as answers hold it; what is no number, or infinite, becomes 0."""
    return float(f"{number:.{SHOWN_DIGITS}g}") if math.isfinite(number) else 0.0


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number that 64 bits hold, written as one."""
    return isinstance(value, int) and not isinstance(value, bool) and -MAX_INT <= value < 2 * MAX_INT


def integer(values: dict[str, Any], field: str, low: int, high: int, message: str) -> int:
    """A whole number within a range."""
    value = values[field]
    if not is_integer(value) or not low <= value <= high:
        raise FieldError(field, message)
    return int(value)


def number(values: dict[str, Any], field: str, low: float, high: float, message: str) -> float:
    """A number within a range."""
    value = values[field]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise FieldError(field, message)
    return float(value)


def boolean(values: dict[str, Any], field: str) -> bool:
    """True or false."""
    value = values[field]
    if not isinstance(value, bool):
        raise FieldError(field, "Must be a boolean")
    return value


def integers(values: dict[str, Any], field: str, message: str) -> list[int]:
    """An array of whole numbers; fractions are cut off, as KataGo does."""
    value = values[field]
    if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, int | float) for one in value):
        raise FieldError(field, message)
    # Integers of JSON may be too large for a float.
    if any(isinstance(one, float) and not math.isfinite(one) for one in value):
        raise FieldError(field, message)
    return [int(one) for one in value]


def player(values: dict[str, Any], field: str) -> str:
    """``b`` or ``w``."""
    value = values[field]
    found = COLORS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise FieldError(field, 'Must be "b" or "w"')
    return found


def moves(values: dict[str, Any], field: str, size: int, allow_pass: bool) -> list[tuple[str, Vertex]]:
    """An array of player and vertex."""
    pairs = values[field]
    if not isinstance(pairs, list):
        raise FieldError(field, VERTEX_PAIRS)
    found = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
            raise FieldError(field, VERTEX_PAIRS)
        who = COLORS.get(pair[0].lower())
        if who is None:
            raise FieldError(field, f"Could not parse player: {pair[0]}")
        found.append((who, vertex(field, pair[1], size, allow_pass)))
    return found


def vertices(values: dict[str, Any], field: str, size: int) -> list[Vertex]:
    """An array of vertices, passes among them."""
    texts = values[field]
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise FieldError(field, "Must be an array of GTP board vertices")
    return [vertex(field, text, size, True) for text in texts]


def vertex(field: str, text: str, size: int, allow_pass: bool) -> Vertex:
    """A vertex: ``D4`` in either case, ``(3,15)`` from the top left, or ``pass``."""
    word = text.strip().upper()
    if word in ("PASS", "PSS"):
        place = None
    else:
        place = _bracketed(word) if word.startswith("(") else _lettered(word, size)
        if place is None or not (0 <= place[0] < size and 0 <= place[1] < size):
            raise FieldError(field, f"Could not parse board location: {text}")
    if place is None and not allow_pass:
        raise FieldError(field, f"Could not parse board location: {text}")
    return place


def _bracketed(word: str) -> Vertex:
    """Column and row of ``(3,15)``."""
    parts = word[1:-1].split(",") if word.endswith(")") else []
    if len(parts) != 2 or not all(_is_whole(part.strip()) for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _lettered(word: str, size: int) -> Vertex:
    """Column and row of ``D4``."""
    if word[:1] not in tuple(COLUMNS) or not _is_whole(word[1:]):
        return None
    return COLUMNS.index(word[0]), size - int(word[1:])


def _is_whole(word: str) -> bool:
    """Whether a word is a whole number of a length that boards have."""
    return word.isascii() and word.isdigit() and len(word) <= 4


KOMIS = {"new-zealand": 7.0}
"""Komi of named rules that is not the one of their flags"""
MOST_KOMI = 400.0
KOMI = re.compile(r"komi([^a-zA-Z\s]+)")
"""Of KataGo's short form, which names it beside the rules"""


def parse_rules(given: str | dict[str, Any]) -> tuple[Rules, float]:
    """Rules, and the komi that they bring.

    Raises:
        FieldError: they are not understood.
    """
    shown = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    try:
        if not isinstance(given, str):
            return _from_object(given)
        if given.lstrip().startswith("{"):
            return _from_object(json.loads(given))
        komis, left = KOMI.findall(given), KOMI.sub("", given)
        rules = rules_of_short_form(left) if komis else rules_from(left)
        return rules, _komi(float(komis[-1])) if komis else KOMIS.get(rules.name, default_komi(rules))
    except (ValueError, TypeError, RecursionError) as error:
        raise FieldError("rules", f"Could not parse rules: {shown}") from error


def _from_object(given: dict[str, Any]) -> tuple[Rules, float]:
    """Rules of KataGo's keys, ``komi`` among them."""
    found = dict(given)
    komi = found.pop("komi", None)
    rules = rules_from(json.dumps(found))
    return rules, default_komi(rules) if komi is None else _komi(komi)


def _komi(komi: float) -> float:
    """A komi that is one."""
    if isinstance(komi, bool) or abs(komi) > MOST_KOMI or not float(2 * komi).is_integer():
        raise ValueError(f"komi {komi}")
    return float(komi)


def default_komi(rules: Rules) -> float:
    """The komi that KataGo gives rules where none is given."""
    if rules.button:
        return 7.0
    return 6.5 if rules.scoring == SCORING_TERRITORY else 7.5
