"""KaTrain's property KT: what an analysis found, so that KaTrain shows a game without analysing it again.

Three values, each packed by gzip and written in base64: who owns each point and the network's probabilities as half
floats, then JSON. All numbers are Black's. Source: KaTrain, ``katrain/core/game_node.py`` (its version 1.0).
"""

import base64
import gzip
import json
from typing import Any

import numpy as np

from engine.go.geometry import to_vertex
from engine.insight.review.turns import Turn

VERSION = b"1.0"
"""Of the form, as the root's KTV says it"""


def kt_values(turn: Turn, size: int) -> list[bytes]:
    """A position's KT; empty where something is not known that it must hold."""
    if turn.ownership_black is None or turn.policy is None or turn.lead_black is None:
        return []
    moves = {}
    for order, move in enumerate(turn.moves):
        vertex = to_vertex(move.point, size)
        moves[vertex] = {
            "move": vertex, "order": order, "prior": move.prior, "pv": [to_vertex(at, size) for at in move.line],
            **_numbers(move.visits, move.winrate_black, move.lead_black),
        }  # fmt: skip
    root = _numbers(turn.visits, turn.winrate_black, turn.lead_black)
    text = json.dumps({"moves": moves, "root": root, "completed": True}, separators=(",", ":"))
    return [_packed(_halves(turn.ownership_black)), _packed(_halves(turn.policy)), _packed(text.encode())]


def _numbers(visits: int, winrate: float, lead: float | None) -> dict[str, Any]:
    return {"visits": visits, "winrate": winrate, "scoreLead": lead or 0.0}


def _halves(values: np.ndarray) -> bytes:
    return values.astype("<f2").tobytes()


def _packed(data: bytes) -> bytes:
    # Without a time, so that the same analysis gives the same file.
    return base64.b64encode(gzip.compress(data, mtime=0))
