"""Where a komi lies between the margins that can occur: whole points of one parity under area scoring."""

import numpy as np

from engine.go.rules import RULE_SCORING, SCORING_AREA
from engine.system.jit import kernel


@kernel
def komi_wave(rules, area, komi):
    """How a komi lies to the nearest margin that a game without seki can end with.

    Such margins have the parity of the board's points, so komi 7.5, 8 and 8.5 are one on odd boards, and with this
    added each becomes 8. Source: KataGo's input features of version 7.

    Args:
        rules: ``Position.rules``.
        area: points of the board.
        komi: points for the side to move, negative if it gives them; whole or half ones.
    Returns:
        0.5 half a point above such a margin (the draw), -0.5 half a point below, 0 on it and in the middle between two;
        0 under territory scoring, where margins have any parity.
    """
    if rules[RULE_SCORING] != SCORING_AREA:
        return 0.0
    quarter = (np.int64(2.0 * komi) - 2 * (area & 1)) & 3
    return 0.5 if quarter == 1 else (-0.5 if quarter == 3 else 0.0)
