"""The named rule sets, as sets of flags.

Every rule set is a combination of the flags that KataGo describes
(https://lightvector.github.io/KataGo/rules.html):

* ko: simple, or positional or situational superko;
* scoring: area (stones and territory) or territory (territory and prisoners);
* tax: points that do not count (see :mod:`engine.go.scoring`): none, those in seki, or also two for each living group;
* suicide: whether a move may take off two or more of the player's own stones (a single stone never);
* button: the first pass of the game is worth half a point and does not count towards ending it;
* handicap bonus: White's points for N handicap stones: none, N - 1 or N;
* friendly pass: whether players may agree on dead stones instead of capturing them.

``chinese`` has the simple ko, as in play over the board, ``chinese-ogs`` the positional superko of some servers. Only
the standard library is imported here, so that names can be checked before numpy and Numba are loaded.
"""

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

RULE_KO, RULE_SCORING, RULE_TAX, RULE_SUICIDE, RULE_BUTTON, RULE_HANDICAP_BONUS, RULE_FRIENDLY_PASS, RULE_KOMI_X2 = (
    range(8)
)
"""Indices into ``Position.rules``."""
RULE_FIELDS = 8
KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL = range(3)
SCORING_AREA, SCORING_TERRITORY = range(2)
TAX_NONE, TAX_SEKI, TAX_ALL, TAX_ATARI = range(4)
"""No rule set has TAX_ATARI; :func:`engine.go.position.count_none_beside_atari` sets it"""
BONUS_NONE, BONUS_N_MINUS_ONE, BONUS_N = range(3)
MAX_KOMI = 1000.0
"""Largest accepted komi, positive or negative; more than any board has points"""


KATAGO_KEYS: dict[str, tuple[str, dict[Any, Any]]] = {
    "friendlyPassOk": ("friendly_pass", {False: False, True: True}),
    "hasButton": ("button", {False: False, True: True}),
    "ko": ("ko", {"SIMPLE": KO_SIMPLE, "POSITIONAL": KO_POSITIONAL, "SITUATIONAL": KO_SITUATIONAL}),
    "scoring": ("scoring", {"AREA": SCORING_AREA, "TERRITORY": SCORING_TERRITORY}),
    "suicide": ("suicide", {False: False, True: True}),
    "tax": ("tax", {"NONE": TAX_NONE, "SEKI": TAX_SEKI, "ALL": TAX_ALL}),
    "whiteHandicapBonus": ("handicap_bonus", {"0": BONUS_NONE, "N-1": BONUS_N_MINUS_ONE, "N": BONUS_N}),
}
"""Key of KataGo's JSON of rules -> our field, and KataGo's values -> ours. Source: KataGo, docs/GTP_Extensions.md,
kata-get-rules"""
SHORT_FORM = re.compile(
    r"ko(?P<ko>SIMPLE|POSITIONAL|SITUATIONAL)|scor(?:ing|e)(?P<scoring>AREA|TERRITORY)|tax(?P<tax>NONE|SEKI|ALL)"
    r"|sui(?P<suicide>[01])|button(?P<hasButton>[01])|whb(?P<whiteHandicapBonus>0|N-1|N)|fpok(?P<friendlyPassOk>[01])"
)
"""One flag in KataGo's short form of rules in SGF, ``koPOSITIONALscoreAREAtaxNONEsui1``; each group is named by the
key of KataGo's JSON. Source: KataGo, cpp/game/rules.cpp"""
CUSTOM = "custom"
"""Name of rules that are not one of ``RULE_SETS``"""


@dataclass(frozen=True)
class Rules:
    """One set of rules. Fields after ``name`` hold the constants above, in the order of the indices ``RULE_...``.

    Raises:
        ValueError: a value is not one of the field's constants, or a button without area scoring.
    """

    name: str
    ko: int = KO_SIMPLE
    scoring: int = SCORING_AREA
    tax: int = TAX_NONE
    suicide: bool = False
    button: bool = False
    handicap_bonus: int = BONUS_NONE
    friendly_pass: bool = False

    def __post_init__(self) -> None:
        for field, kinds in KATAGO_KEYS.values():
            if (flag := getattr(self, field)) not in kinds.values():
                raise ValueError(f"rules {self.name}: {field} is {flag!r}, expected one of {list(kinds.values())}")
        if self.button and self.scoring != SCORING_AREA:
            raise ValueError(f"rules {self.name}: the button needs area scoring")


RULE_SETS: dict[str, Rules] = {
    rules.name: rules
    for rules in (
        Rules("tromp-taylor", KO_POSITIONAL, suicide=True),
        Rules("chinese", handicap_bonus=BONUS_N, friendly_pass=True),
        Rules("chinese-ogs", KO_POSITIONAL, handicap_bonus=BONUS_N, friendly_pass=True),
        Rules("japanese", scoring=SCORING_TERRITORY, tax=TAX_SEKI),
        Rules("korean", scoring=SCORING_TERRITORY, tax=TAX_SEKI),
        Rules("aga", KO_SITUATIONAL, handicap_bonus=BONUS_N_MINUS_ONE, friendly_pass=True),
        Rules("aga-button", KO_SITUATIONAL, button=True, handicap_bonus=BONUS_N_MINUS_ONE, friendly_pass=True),
        Rules("new-zealand", KO_SITUATIONAL, suicide=True, friendly_pass=True),
        Rules("goe", KO_POSITIONAL, suicide=True, friendly_pass=True),
        Rules("stone-scoring", tax=TAX_ALL, friendly_pass=True),
        Rules("ancient-territory", scoring=SCORING_TERRITORY, tax=TAX_ALL),
    )
}

ALIASES = {
    "tt": "tromp-taylor",
    "cn": "chinese",
    "chinese-kgs": "chinese-ogs",
    "jp": "japanese",
    "territory": "japanese",
    "kr": "korean",
    "bga": "aga",
    "french": "aga",
    "nz": "new-zealand",
    "ing": "goe",
    "area": "chinese",
    "ancient-area": "stone-scoring",
}
"""Other names, which GTP clients and the RU property of SGF use -> names of rule sets"""


def _word(name: str) -> str:
    """A name in lower case without ``-``, ``_`` and white space."""
    return re.sub(r"[-_\s]", "", name.lower())


BY_WORD = {_word(name): rules for name, rules in RULE_SETS.items()} | {
    _word(alias): RULE_SETS[name] for alias, name in ALIASES.items()
}
"""Name or alias, normalised by :func:`_word` -> rule set"""


def rules_named(name: str) -> Rules:
    """The rule set of a name; case and separators (``-``, ``_``, spaces) are ignored.

    Raises:
        ValueError: there is no such rule set; the message lists them.
    """
    rules = BY_WORD.get(_word(name))
    if rules is None:
        raise ValueError(f"no rules are called {name!r}, expected one of {', '.join(RULE_SETS)}")
    return rules


def rules_from(text: str) -> Rules:
    """Parse rules: a name, KataGo's JSON object or its short form.

    Missing flags are Tromp-Taylor's, except that the tax of territory scoring is "seki".

    Raises:
        ValueError: unknown rules, or an invalid key or value; the message is one line.
    """
    if not text.lstrip().startswith("{"):
        return rules_of_short_form(text) if SHORT_FORM.match(text.lstrip()) else rules_named(text)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"rules are not a JSON object ({error})") from error
    return _of_flags(given)


def _of_flags(given: dict[str, Any]) -> Rules:
    """Rules from KataGo's keys and values, with the defaults of :func:`rules_from`."""
    flags: dict[str, Any] = {}
    for key, value in given.items():
        flags |= _flag(key, value)
    if flags.get("scoring") == SCORING_TERRITORY:
        flags.setdefault("tax", TAX_SEKI)
    return _recognised(asdict(RULE_SETS["tromp-taylor"]) | flags)


def with_flag(rules: Rules, key: str, value: str) -> Rules:
    """A copy of rules with one flag changed; key and value are KataGo's: ``ko``, ``SITUATIONAL``.

    Raises:
        ValueError: no such flag or value; the message is one line.
    """
    return _recognised(asdict(rules) | _flag(key, value))


def rules_of_short_form(text: str) -> Rules:
    """Parse KataGo's short form of rules, with or without spaces; defaults as for :func:`rules_from`.

    Raises:
        ValueError: a part of the text is not a flag of the short form.
    """
    text = "".join(text.split())
    found, at = dict[str, str](), 0
    while at < len(text):
        part = SHORT_FORM.match(text, at)
        if part is None:
            raise ValueError(f"rules {text[:40]!r}: {text[at : at + 20]!r} is not understood")
        at = part.end()
        for key, word in part.groupdict().items():
            if word is not None:
                is_switch = isinstance(next(iter(KATAGO_KEYS[key][1])), bool)
                found[key] = str(word == "1") if is_switch else word
    return _of_flags(found)


def short_form(rules: Rules) -> str:
    """Rules in KataGo's short form, with all flags; :func:`rules_from` reads it."""
    flags = _katago_flags(rules)
    switches = {"sui": "suicide", "button": "hasButton", "fpok": "friendlyPassOk"}
    words = {"ko": "ko", "score": "scoring", "tax": "tax", "whb": "whiteHandicapBonus"}
    parts = [f"{short}{flags[key]}" for short, key in words.items()]
    return "".join(parts + [f"{short}{int(flags[key])}" for short, key in switches.items()])


def rules_json(rules: Rules) -> str:
    """Rules as KataGo's JSON object, in KataGo's order of keys, without spaces."""
    return json.dumps(_katago_flags(rules), separators=(",", ":"))


def _katago_flags(rules: Rules) -> dict[str, Any]:
    """Rules as KataGo's keys and values, in the order of KataGo's JSON."""
    found = {}
    for key, (field, values) in KATAGO_KEYS.items():
        found[key] = next(word for word, flag in values.items() if flag == getattr(rules, field))
    return found


def _flag(key: str, value: Any) -> dict[str, Any]:
    """One of KataGo's flags as {our field: our value}, whatever its case; raises ValueError if it is unknown."""
    known = {name.lower(): name for name in KATAGO_KEYS} | {"score": "scoring"}
    if key.lower() not in known:
        raise ValueError(f"rules have no {key[:40]!r}, expected one of {', '.join(KATAGO_KEYS)}")
    name = known[key.lower()]
    field, values = KATAGO_KEYS[name]
    by_word = {str(word).lower(): flag for word, flag in values.items()}
    word = str(value).lower()
    if word not in by_word:
        raise ValueError(f"rules: {name} is {str(value)[:40]!r}, expected one of {', '.join(by_word)}")
    return {field: by_word[word]}


def _recognised(flags: dict[str, Any]) -> Rules:
    """Rules of given fields: the rule set that has all of them, else rules named ``CUSTOM``."""
    custom = Rules(**flags | {"name": CUSTOM})
    return next((known for known in RULE_SETS.values() if replace(known, name=CUSTOM) == custom), custom)


def twice_komi(komi: float) -> int:
    """Komi in half points, as positions store it.

    Raises:
        ValueError: the komi is not a multiple of 0.5, or beyond ``MAX_KOMI``.
    """
    if not math.isfinite(komi) or abs(komi) > MAX_KOMI or not float(2 * komi).is_integer():
        raise ValueError(f"komi is {komi}, expected whole or half points between -{MAX_KOMI:g} and {MAX_KOMI:g}")
    return int(2 * komi)
