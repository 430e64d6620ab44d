"""The named rule sets, as sets of flags.

Every rule set is a point in one space of flags, as KataGo describes them
(https://lightvector.github.io/KataGo/rules.html), so a rule that two sets share is written once:

* ko: simple, or positional or situational superko;
* scoring: area (stones and territory) or territory (territory and prisoners);
* tax: which points do not count (see :mod:`engine.go.scoring`): none, those in seki, or two for every living group;
* suicide: whether a move may take off two or more of its own stones (one alone never may);
* button: the first pass of the game is worth half a point, and does not count towards ending it;
* handicap bonus: points that White gets back for N handicap stones: none, N - 1 or N;
* friendly pass: whether dead stones may be left on the board and agreed upon, rather than captured.

Chinese rules carry the simple ko here, as they are played over the board; ``chinese-ogs`` is the positional superko
that some servers play. Nothing but the standard library is imported here, so a name can be checked before anything is
loaded.
"""

import math
from dataclasses import dataclass

KO, SCORING, TAX, SUICIDE, BUTTON, HANDICAP_BONUS, FRIENDLY_PASS, KOMI_X2 = range(8)
"""Indices into ``Position.rules``."""
RULE_FIELDS = 8
KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL = range(3)
SCORING_AREA, SCORING_TERRITORY = range(2)
TAX_NONE, TAX_SEKI, TAX_ALL = range(3)
BONUS_NONE, BONUS_N_MINUS_ONE, BONUS_N = range(3)
MAX_KOMI = 1000.0
"""More than any board has points."""


@dataclass(frozen=True)
class Rules:
    """One set of rules; the values are the constants above."""

    name: str
    ko: int = KO_SIMPLE
    scoring: int = SCORING_AREA
    tax: int = TAX_NONE
    suicide: bool = False
    button: bool = False
    handicap_bonus: int = BONUS_NONE
    friendly_pass: bool = False

    def __post_init__(self) -> None:
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
        Rules("stone-scoring", tax=TAX_ALL, friendly_pass=True),
        Rules("ancient-territory", scoring=SCORING_TERRITORY, tax=TAX_ALL),
    )
}

ALIASES = {
    "tromptaylor": "tromp-taylor",
    "tt": "tromp-taylor",
    "cn": "chinese",
    "chinese-kgs": "chinese-ogs",
    "jp": "japanese",
    "territory": "japanese",
    "kr": "korean",
    "bga": "aga",
    "french": "aga",
    "nz": "new-zealand",
    "newzealand": "new-zealand",
    "area": "chinese",
    "ancient-area": "stone-scoring",
}
"""Other names in use, by GTP clients and in the RU property of SGF."""


def rules_named(name: str) -> Rules:
    """The rule set of a name, in any case, words joined by ``-``, ``_`` or a space.

    Raises:
        ValueError: there is no such rule set; the message lists them.
    """
    word = "-".join(name.strip().lower().replace("_", " ").replace("-", " ").split())
    rules = RULE_SETS.get(ALIASES.get(word, word))
    if rules is None:
        raise ValueError(f"no rules are called {name!r}, expected one of {', '.join(RULE_SETS)}")
    return rules


def twice_komi(komi: float) -> int:
    """Komi in half points, as positions keep it.

    Raises:
        ValueError: komi is not a whole number of half points, or beyond ``MAX_KOMI``.
    """
    if not math.isfinite(komi) or abs(komi) > MAX_KOMI or not float(2 * komi).is_integer():
        raise ValueError(f"komi is {komi}, expected whole or half points between -{MAX_KOMI:g} and {MAX_KOMI:g}")
    return int(2 * komi)
