"""What the network says of one position before any search: the raw numbers of an analysis.

They are asked for once a position, under the board's own orientation, while its search begins: one evaluation more.
"""

import math
import threading
import time
from typing import NamedTuple

import numpy as np

from engine.features.encoder import Encoder
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK
from engine.go.position import META_TO_MOVE, Position
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.insight.raw_policy import inputs, move_probabilities

SPREAD = 1.75
"""The standard deviation of a score, in terms of what it would be if points changed hands each by itself: they do so
in groups. KataGo's networks say 10 to 14 points on 7x7 and 30 on 19x19, both 1.6 to 1.9 times that."""
POLL_S = 0.05
"""How often it is asked whether outputs are still wanted"""
OWNER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+"
"""A point's owner as one character: the first is -1, the last 1, in equal steps. Source: CGOS's analysis format"""


class Glance(NamedTuple):
    """A network's outputs for a position; None = it has no such head."""

    value_stm: float | None
    """-1 to 1 for the side to move"""
    score_stm: float | None
    """lead in points, likewise"""
    policy: np.ndarray | None
    """float64[N*N+1] in policy order, pass last: probabilities of the legal moves; nan = illegal"""
    ownership_black: np.ndarray | None
    """float32[N*N] in policy order, 1 = Black's, -1 = White's"""


NOTHING = Glance(None, None, None, None)


class Glancing:
    """A position on its way through the network. Threads: one."""

    def __init__(self, server: InferenceServer, encoder: Encoder, position: Position, symmetry: int = 0) -> None:
        """Ask; returns at once.

        Args:
            symmetry: under which the network sees the position.
        Raises:
            NetworkFailed: the server is closed.
        """
        self._server, self._position, self._symmetry = server, position, symmetry
        planes, globals_ = inputs(encoder.name, position, symmetry)
        self._request: Request = server.new_request(planes.shape[2], 1, planes.shape[1], globals_.shape[1])
        self._request.state = State.FILLING
        self._request.planes[:], self._request.globals[:], self._request.count = planes, globals_, 1
        server.submit(self._request)
        self._found: Glance | None = None

    def outputs(self, deadline_s: float = math.inf) -> Glance:
        """Wait for the outputs; :data:`NOTHING` if they have not come by then.

        Args:
            deadline_s: ``time.perf_counter`` from when on they are not waited for.
        Raises:
            NetworkFailed: the evaluation failed.
        """
        if self._found is None:
            self._server.wait(self._request, deadline_s)
            self._found = NOTHING if self._request.cancelled else self._read()
        return self._found

    def outputs_unless(self, interrupted: threading.Event, deadline_s: float, grace_s: float = 0.0) -> Glance:
        """:meth:`outputs`, which are waited for no longer than ``grace_s`` once ``interrupted`` is set."""
        while time.perf_counter() < deadline_s and not interrupted.is_set():
            if self._request.done.wait(POLL_S):
                break
        return self.outputs(time.perf_counter() + grace_s)

    def outputs_within(self, patience_s: float) -> Glance:
        """The outputs if they come in this time: else :data:`NOTHING`, and where they never will; they may be asked for
        again."""
        if not self._request.done.wait(patience_s) or self._request.error is not None:
            return NOTHING
        return self.outputs()

    def _read(self) -> Glance:
        """The request's outputs, which are there."""
        spec, request, position = self._server.spec, self._request, self._position
        home = symmetry_table(request.size)[self._symmetry][:-1]
        owners = request.ownership[0].reshape(-1)[home] * (1.0 if position.meta[META_TO_MOVE] == BLACK else -1.0)
        return Glance(
            float(request.value[0]) if "value" in spec.heads else None,
            float(request.score[0]) if "score" in spec.heads else None,
            move_probabilities(request.policy[0], position, self._symmetry) if "policy" in spec.heads else None,
            owners.astype(np.float32) if "ownership" in spec.heads else None,
        )

    def abandon(self) -> None:
        """The outputs are not wanted any more."""
        self._server.abandon(self._request)


def score_stdev(ownership: np.ndarray | None) -> float | None:
    """How far the final score may lie from the expected one, as far as who owns what is open; None = not known.

    Args:
        ownership: float[N*N], -1 to 1, of either side.
    """
    if ownership is None:
        return None
    return SPREAD * math.sqrt(max(0.0, float(np.sum(1.0 - np.square(ownership.astype(np.float64))))))


def owner_letters(ownership: np.ndarray) -> str:
    """Who owns each point, a character of :data:`OWNER_LETTERS` each.

    Args:
        ownership: float[N*N], -1 to 1.
    """
    steps = (np.clip(ownership.astype(np.float64), -1.0, 1.0) + 1.0) / 2.0 * (len(OWNER_LETTERS) - 1)
    return "".join(OWNER_LETTERS[step] for step in steps.round().astype(int).tolist())
