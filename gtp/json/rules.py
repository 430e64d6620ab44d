"""Rules as KataGo's clients write them: names, objects, and its own short form ``koPOSITIONALscoreAREAtaxNONEsui1``.

Source: KataGo, cpp/game/rules.cpp.
"""

import json
import re
from typing import Any

from engine.go.rules import SCORING_TERRITORY, Rules, rules_from, rules_named
from gtp.json.values import FieldError

KOMIS = {"new-zealand": 7.0}
"""Komi of named rules that is not the one of their flags"""
MOST_KOMI = 400.0
PARTS = re.compile(
    r"komi(?P<komi>[^a-zA-Z\s]+)|ko(?P<ko>SIMPLE|POSITIONAL|SITUATIONAL)|scor(?:ing|e)(?P<scoring>AREA|TERRITORY)"
    r"|tax(?P<tax>NONE|SEKI|ALL)|sui(?P<suicide>[01])|button(?P<hasButton>[01])"
    r"|whb(?P<whiteHandicapBonus>0|N-1|N)|fpok(?P<friendlyPassOk>[01])|(?P<space>\s+)"
)
"""Of KataGo's short form; the names are the keys of its objects"""
SWITCHED = ("suicide", "hasButton", "friendlyPassOk")


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
        try:
            rules = rules_named(given)
        except ValueError:
            return _from_object(_from_short_form(given))
        return rules, KOMIS.get(rules.name, default_komi(rules))
    except (ValueError, TypeError, RecursionError) as error:
        raise FieldError("rules", f"Could not parse rules: {shown}") from error


def _from_object(given: dict[str, Any]) -> tuple[Rules, float]:
    """Rules of KataGo's keys, ``komi`` among them."""
    found = dict(given)
    komi = found.pop("komi", None)
    if komi is not None and (isinstance(komi, bool) or abs(komi) > MOST_KOMI or not float(2 * komi).is_integer()):
        raise ValueError(f"komi {komi}")
    rules = rules_from(json.dumps(found))
    return rules, default_komi(rules) if komi is None else float(komi)


def _from_short_form(text: str) -> dict[str, Any]:
    """The object of KataGo's short form."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        part = PARTS.match(text, at)
        if part is None:
            raise ValueError(text)
        at = part.end()
        for key, word in part.groupdict().items():
            if word is not None and key != "space":
                found[key] = float(word) if key == "komi" else word == "1" if key in SWITCHED else word
    if not found:
        raise ValueError(text)
    return found


def default_komi(rules: Rules) -> float:
    """The komi that KataGo gives rules where none is given."""
    if rules.button:
        return 7.0
    return 6.5 if rules.scoring == SCORING_TERRITORY else 7.5
