"""A network's outputs for one position, without a search.

A :class:`PositionQuery` gets the outputs from the inference server, concurrently with the search of an analysis.
:func:`raw_evaluation` computes all outputs in float32 on the CPU, from White's view, for comparison with KataGo's.
"""

import functools
import math
import threading
import time
from typing import NamedTuple

import numpy as np

from engine.features.encoder import ENCODERS, Encoder, inputs
from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, WHITE
from engine.go.position import META_TO_MOVE, Position, legal_moves
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.nets.network import softmax
from engine.nets.raw import RawNetwork, RawOutput
from engine.play.player import Player
from weights import NetworkPath

SPREAD = 1.75
"""Standard deviation of the final score, as a multiple of what it would be if points changed hands independently of
each other; it is larger, since groups change hands as a whole. Source: KataGo's networks, which give 10 to 14 points on
7x7 and 30 on 19x19, both 1.6 to 1.9 times the value for independent points"""
POLL_S = 0.05
"""Interval between checks for an interruption while waiting for outputs"""
OWNER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+"
"""Characters for a point's ownership, from -1 (``A``) to 1 (``+``) in equal steps. Source: CGOS's analysis format"""


class PositionOutput(NamedTuple):
    """A network's outputs for a position; None = the network has no such head."""

    value_stm: float | None
    """-1 to 1 for the side to move"""
    score_stm: float | None
    """lead in points of the side to move"""
    policy: np.ndarray | None
    """float64[N*N+1] in policy order, pass last: probabilities of the legal moves; nan = illegal"""
    ownership_black: np.ndarray | None
    """float32[N*N] in policy order, 1 = Black's, -1 = White's"""


NOTHING = PositionOutput(None, None, None, None)


class PositionQuery:
    """A request to the inference server for one position. Threads: one."""

    def __init__(self, server: InferenceServer, encoder: Encoder, position: Position, symmetry: int = 0) -> None:
        """Submit the request; returns at once.

        Args:
            symmetry: symmetry under which the position is encoded.
        Raises:
            NetworkFailed: the server is closed.
        """
        self._server, self._position, self._symmetry = server, position, symmetry
        planes, globals_ = inputs(encoder, [position], symmetry)
        self._request: Request = server.new_request(planes.shape[2], 1, planes.shape[1], globals_.shape[1])
        self._request.state = State.FILLING
        self._request.planes[:], self._request.globals[:], self._request.count = planes, globals_, 1
        server.submit(self._request)
        self._found: PositionOutput | None = None

    def outputs(self, deadline_s: float = math.inf) -> PositionOutput:
        """Wait for the outputs; returns :data:`NOTHING` at the deadline.

        Args:
            deadline_s: as a value of ``time.perf_counter``.
        Raises:
            NetworkFailed: the evaluation failed.
        """
        if self._found is None:
            self._server.wait(self._request, deadline_s)
            self._found = NOTHING if self._request.cancelled else self._read()
        return self._found

    def outputs_unless(self, interrupted: threading.Event, deadline_s: float, grace_s: float = 0.0) -> PositionOutput:
        """As :meth:`outputs`, but wait at most ``grace_s`` once the deadline passes or ``interrupted`` is set."""
        while time.perf_counter() < deadline_s and not interrupted.is_set():
            if self._request.done.wait(POLL_S):
                break
        return self.outputs(time.perf_counter() + grace_s)

    def outputs_within(self, patience_s: float) -> PositionOutput:
        """The outputs if they come within ``patience_s``; :data:`NOTHING` if they do not, or the evaluation failed.

        The request is not cancelled, so a later call can read the outputs.
        """
        if not self._request.done.wait(patience_s) or self._request.error is not None:
            return NOTHING
        return self.outputs()

    def _read(self) -> PositionOutput:
        """The outputs of the finished request."""
        spec, request, position = self._server.spec, self._request, self._position
        owners = ownership_of(BLACK, request.ownership[0], position, self._symmetry)
        return PositionOutput(
            float(request.value[0]) if "value" in spec.heads else None,
            float(request.score[0]) if "score" in spec.heads else None,
            move_probabilities(request.policy[0], position, self._symmetry) if "policy" in spec.heads else None,
            owners.astype(np.float32) if "ownership" in spec.heads else None,
        )

    def cancel(self) -> None:
        """Cancel the request, even during its evaluation; its outputs cannot be read any more."""
        self._server.cancel(self._request, running=True)


def score_stdev(ownership: np.ndarray | None) -> float | None:
    """Standard deviation of the final score, estimated from the uncertainty of the ownership; None = unknown.

    Args:
        ownership: float[N*N], -1 to 1, from either side's view.
    """
    if ownership is None:
        return None
    return SPREAD * math.sqrt(max(0.0, float(np.sum(1.0 - np.square(ownership.astype(np.float64))))))


def owner_letters(ownership: np.ndarray) -> str:
    """Ownership as text: for each point one character of :data:`OWNER_LETTERS`.

    Args:
        ownership: float[N*N], -1 to 1.
    """
    steps = (np.clip(ownership.astype(np.float64), -1.0, 1.0) + 1.0) / 2.0 * (len(OWNER_LETTERS) - 1)
    return "".join(OWNER_LETTERS[step] for step in steps.round().astype(int).tolist())


def move_probabilities(logits: np.ndarray, position: Position, symmetry: int) -> np.ndarray:
    """Probabilities of the legal moves: the softmax of a network's policy logits over these moves.

    Args:
        logits: float32[N*N+1] of the network for the position under ``symmetry``; pass last.
    Returns:
        float64[N*N+1] in policy order; nan = illegal.
    """
    legal, found = np.zeros(len(logits), np.uint8), np.full(len(logits), np.nan)
    legal_moves(position, position.meta[META_TO_MOVE], legal)
    home = logits[symmetry_table(int(position.board.meta[META_SIZE]))[symmetry]]
    found[legal == 1] = softmax(home[None, legal == 1])[0]
    return found


def ownership_of(color: int, ownership: np.ndarray, position: Position, symmetry: int) -> np.ndarray:
    """Ownership from a colour's view, float[N*N] in policy order, 1 = the colour's.

    Args:
        ownership: float[N, N] of the network for the position under ``symmetry``, from the side to move's view.
    """
    home = symmetry_table(int(position.board.meta[META_SIZE]))[symmetry][:-1]
    return ownership.reshape(-1)[home] * (1.0 if position.meta[META_TO_MOVE] == color else -1.0)


class RawEvaluation(NamedTuple):
    """A network's raw outputs for a position, from White's view; nan = the network has no such head."""

    output: RawOutput
    """win, loss, lead and score are White's"""
    policy: np.ndarray
    """float64[N*N+1] in policy order, pass last: probabilities of the legal moves; nan = illegal"""
    ownership_white: np.ndarray
    """float64[N*N] in policy order, 1 = White's"""


def raw_evaluation(
    network: RawNetwork, position: Position, symmetry: int, optimism: float, encoder: Encoder | None = None
) -> RawEvaluation:
    """A network's outputs for a position under one symmetry (engine/features/symmetry.py).

    Args:
        encoder: the network's, with a human profile; None = with the default profile.
        optimism: see :meth:`engine.nets.raw.RawNetwork.ask`.
    Raises:
        ValueError: the network does not play this board size; one line.
    """
    size = int(position.board.meta[META_SIZE])
    output = network.ask(*inputs(encoder or ENCODERS[network.spec.encoder], [position], symmetry), optimism)
    policy, ownership = np.full(size * size + 1, np.nan), np.full(size * size, np.nan)
    if output.policy is not None:
        policy = move_probabilities(output.policy, position, symmetry)
    if output.ownership is not None:
        ownership = ownership_of(WHITE, output.ownership.astype(np.float64), position, symmetry)
    if position.meta[META_TO_MOVE] != WHITE:
        output = output._replace(win=output.loss, loss=output.win, lead=-output.lead, score=-output.score)
    return RawEvaluation(output, policy, ownership)


def evaluation_for(player: Player, color: int, symmetry: int, optimism: float) -> RawEvaluation:
    """:func:`raw_evaluation` by a player's network, of the player's position with ``color`` to move.

    Raises:
        ValueError: the player has no network, or the network does not play this board size; one line.
    """
    if player.network_path is None:
        raise ValueError("there is no network to ask")
    position = player.position_for(color)
    return raw_evaluation(raw_network(player.network_path), position, symmetry, optimism, player.encoder)


@functools.lru_cache(maxsize=1)
def raw_network(path: NetworkPath) -> RawNetwork:
    """The network of a file; the one used last stays loaded. Threads: any.

    Raises:
        ValueError: as for :class:`engine.nets.raw.RawNetwork`.
    """
    return RawNetwork(path)
