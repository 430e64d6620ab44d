"""The further inputs of KataGo's networks of human play: who plays, when, at what pace.

They follow from the name of a profile, as in KataGo's option ``humanSLProfile``: ``rank_5k`` (two players of that rank
around 2020), ``preaz_5k`` (in 2016, before AlphaZero changed openings), ``proyear_1985`` (professionals of that year).
Names that give the players different ranks are left out: the inputs do not distinguish them.

Source: ``cpp/neuralnet/sgfmetadata.cpp`` of KataGo 1.17.
"""

import datetime
import math
import re

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.katago.layers import MAX_SIZE, LayerReader, linear

VALUES = 192
DEFAULT_PROFILE = "rank_9d"
RANKS = tuple(f"{dan}d" for dan in range(9, 0, -1)) + tuple(f"{kyu}k" for kyu in range(1, 21))
YEARS = range(1800, 2024)
EXPECTED = "rank_9d to rank_20k, preaz_9d to preaz_20k, or proyear_1800 to proyear_2023"

IS_HUMAN, RANK, RANK_LENGTH, RATEDNESS = 0, 6, 34, 74
UNKNOWN_TIME, BYO_YOMI, SECONDS, BOARD, DATE, DATE_WAVES, SOURCE = 75, 79, 82, 86, 87, 32, 151
"""Where things stand among the values"""
KGS, GOGOD, GO4GO = 2, 5, 6
"""Collections that games came from"""
LONGEST_WAVE = 80000.0
"""Last period of the waves that encode the date, in first ones of a week"""


def profile_values(name: str) -> np.ndarray:
    """float64[20, 192]: the values of a profile for every board size.

    Raises:
        ValueError: no such profile; one line.
    """
    found = re.fullmatch(r"(rank|preaz)_(\d+[dk])|proyear_(\d{4})", name)
    if not found or (found[2] or "9d") not in RANKS or int(found[3] or 1800) not in YEARS:
        raise ValueError(f"unknown human profile {name[:40]!r}, expected {EXPECTED}")
    values = np.zeros(VALUES)
    values[IS_HUMAN : IS_HUMAN + 2] = 1.0
    rank = RANKS.index(found[2] or "9d") + 1
    for start in (RANK, RANK + RANK_LENGTH):
        values[start : start + rank] = 1.0
    if found[1]:
        date = datetime.date(2016, 9, 1) if found[1] == "preaz" else datetime.date(2020, 3, 1)
        source, clock, main_s, period_s, periods = KGS, BYO_YOMI, 1200, 30, 5
        values[RATEDNESS] = 0.5
    else:
        date = datetime.date(int(found[3]), 6, 1)
        source = GOGOD if date.year <= 2020 else GO4GO
        clock, main_s, period_s, periods = UNKNOWN_TIME, 0, 0, 0
    values[clock] = values[SOURCE + source] = 1.0
    values[SECONDS : SECONDS + 4] = (
        0.4 * (math.log(main_s + 60.0) - 6.5), 0.3 * (math.log(period_s + 1.0) - 3.0),
        0.5 * (math.log(periods + 2.0) - 1.5), 0.25 * (math.log(2.0) - 1.5),
    )  # fmt: skip
    days = (date - datetime.date(1970, 1, 1)).days
    periods_days = 7.0 * LONGEST_WAVE ** (np.arange(DATE_WAVES) / (DATE_WAVES - 1))
    angles = 2.0 * math.pi * days / periods_days
    values[DATE : DATE + 2 * DATE_WAVES] = np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(-1)
    every_size = np.tile(values, (MAX_SIZE + 1, 1))
    every_size[1:, BOARD] = np.log(np.arange(1, MAX_SIZE + 1) / MAX_SIZE)
    return every_size


class HumanEncoder(nn.Module):
    """From a profile to what is added to the trunk at its beginning."""

    def __init__(self, layers: LayerReader, trunk: int):
        """Read the encoder that comes next in a file; ``trunk`` is the number of the trunk's channels."""
        super().__init__()
        layers.stream.name()
        layers.channels("values", VALUES)
        inputs = VALUES
        steps: list[nn.Module] = []
        for _ in range(2):
            weight = layers.matrix(inputs)
            inputs = len(weight)
            steps += [linear(weight, layers.vector(inputs)), layers.activation()]
        self.steps = nn.Sequential(*steps, linear(layers.matrix(inputs, trunk)))
        self.use(DEFAULT_PROFILE)

    def use(self, name: str) -> None:
        """Play as a profile from now on; see :func:`profile_values`."""
        self.values = nn.Buffer(torch.from_numpy(profile_values(name)).float())

    def forward(self, size: int) -> Tensor:
        """What is added to the trunk, [1, C, 1, 1], for boards of ``size`` x ``size``."""
        return self.steps(self.values[None, size])[..., None, None]
