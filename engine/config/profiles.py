"""Names of human profiles, as in KataGo's option ``humanSLProfile``.

- ``rank_5k``: two players of that rank around 2020; ``rank_5k_3k``: Black 5 kyu, White 3 kyu;
- ``preaz_5k``, ``preaz_5k_3k``: in 2016, before AlphaZero changed openings;
- ``proyear_1985``: professionals of that year.

Ranks go from 20k to 9d, years from 1800 to 2023. :mod:`engine.features.profiles` makes a network's inputs of them.
"""

import re
from typing import NamedTuple

RANKS = tuple(f"{dan}d" for dan in range(9, 0, -1)) + tuple(f"{kyu}k" for kyu in range(1, 21))
YEARS = range(1800, 2024)
EXPECTED = "rank_9d to rank_20k, preaz_9d to preaz_20k, both also as rank_BLACK_WHITE, or proyear_1800 to proyear_2023"
NAME = re.compile(r"(rank|preaz)_(\d{1,2}[dk])(?:_(\d{1,2}[dk]))?|proyear_(\d{4})")


class Profile(NamedTuple):
    """What a profile's name says."""

    kind: str
    """``rank``, ``preaz`` or ``proyear``"""
    black: int = 1
    """rank counted down from 9d = 1; professionals are 1"""
    white: int = 1
    year: int = 0
    """of professionals"""


def read_profile(name: str) -> Profile:
    """What a name says.

    Raises:
        ValueError: no such profile; one line.
    """
    if found := NAME.fullmatch(name):
        kind, black, white, year = found.groups()
        if kind and {black, white or black} <= {*RANKS}:
            return Profile(kind, *(RANKS.index(rank) + 1 for rank in (black, white or black)))
        if year and int(year) in YEARS:
            return Profile("proyear", year=int(year))
    raise ValueError(f"unknown human profile {name[:40]!r}, expected {EXPECTED}")


NO_PROFILE = ("", "_", '""')
"""Texts that mean no profile, as in KataGo"""


def checked_profile(name: str) -> str:
    """Return the name of a profile, or the empty text for none; raises the errors of :func:`read_profile`."""
    if name in NO_PROFILE:
        return ""
    read_profile(name)
    return name
