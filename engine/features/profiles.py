"""Human profiles as inputs of KataGo's networks of human play: who plays when, where, and with how much time.

:mod:`engine.config.profiles` has the names. Source: KataGo 1.17, ``cpp/neuralnet/sgfmetadata.cpp``.
"""

import datetime
import hashlib
import math

import numpy as np

from engine.config.profiles import read_profile
from engine.nets.files.header import PROFILE_VALUES

DEFAULT_PROFILE = "rank_9d"

IS_HUMAN, RANK, RANK_LENGTH, RATEDNESS = 0, 6, 34, 74
UNKNOWN_TIME, BYO_YOMI, SECONDS, BOARD, DATE, DATE_WAVES, SOURCE = 75, 79, 82, 86, 87, 32, 151
"""Offsets among a profile's values, except ``DATE_WAVES``: the number of waves that encode the date"""
KGS, GOGOD, GO4GO = 2, 5, 6
"""Codes of game collections among a profile's sources"""
LONGEST_WAVE = 80000.0
"""Longest period of the waves that encode the date, in weeks"""


def profile_values(name: str, size: int) -> np.ndarray:
    """float64[2, PROFILE_VALUES]: the input values of a profile on a board size, with Black and with White to move.

    Raises:
        ValueError: no such profile; one line.
    """
    profile, values = read_profile(name), np.zeros((2, PROFILE_VALUES))
    values[:, IS_HUMAN : IS_HUMAN + 2] = 1.0
    ranks = profile.black, profile.white
    for row, (own, other) in zip(values, (ranks, ranks[::-1]), strict=True):
        row[RANK : RANK + own] = 1.0
        row[RANK + RANK_LENGTH : RANK + RANK_LENGTH + other] = 1.0
    if profile.kind == "proyear":
        date = datetime.date(profile.year, 6, 1)
        source = GOGOD if date.year <= 2020 else GO4GO
        clock, main_s, period_s, periods = UNKNOWN_TIME, 0, 0, 0
    else:
        date = datetime.date(2016, 9, 1) if profile.kind == "preaz" else datetime.date(2020, 3, 1)
        source, clock, main_s, period_s, periods = KGS, BYO_YOMI, 1200, 30, 5
        values[:, RATEDNESS] = 0.5
    values[:, clock] = values[:, SOURCE + source] = 1.0
    values[:, SECONDS : SECONDS + 4] = (
        0.4 * (math.log(main_s + 60.0) - 6.5), 0.3 * (math.log(period_s + 1.0) - 3.0),
        0.5 * (math.log(periods + 2.0) - 1.5), 0.25 * (math.log(2.0) - 1.5),
    )  # fmt: skip
    values[:, BOARD] = math.log(size / 19.0)
    days = (date - datetime.date(1970, 1, 1)).days
    periods_days = 7.0 * LONGEST_WAVE ** (np.arange(DATE_WAVES) / (DATE_WAVES - 1))
    angles = 2.0 * math.pi * days / periods_days
    values[:, DATE : DATE + 2 * DATE_WAVES] = np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1)
    return values


def profile_keys(values: np.ndarray) -> np.ndarray:
    """int64[2]: hashes, above 0, of the values with Black and with White to move, for cache keys."""
    return np.array([1 + int.from_bytes(hashlib.sha256(row.tobytes()).digest()[:7], "little") for row in values])
