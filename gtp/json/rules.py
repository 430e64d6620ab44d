"""Rules as KataGo's clients write them: names, objects, and its own short form ``koPOSITIONALscoreAREAtaxNONEsui1``.

Source: KataGo, cpp/game/rules.cpp.
"""

import json
import re
from typing import Any

from engine.go.rules import SCORING_TERRITORY, Rules, rules_from, rules_of_short_form
from gtp.json.values import FieldError

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
