"""Requests: blocks of slots that a caller fills, the server evaluates and the caller reads.

A slot is one position's row in the arrays; the slots of a request are queued together. Callers own their requests and
reuse them, so nothing is allocated during a search. The states of a request, with the thread that makes each
transition::

    FREE    -> FILLING   caller: writes planes and globals of the first ``count`` slots
    FILLING -> QUEUED    caller: submits the request
    FILLING -> FREE      caller: needs no evaluation, since the result cache had every position
    QUEUED  -> RUNNING   evaluator: takes the request into a batch
    QUEUED  -> DONE      any: cancels the request (``cancelled``) or closes the server (``error``)
    RUNNING -> DONE      evaluator: has written the outputs or ``error``
    RUNNING -> QUEUED    evaluator: its device failed; the request is evaluated again
    DONE    -> FREE      caller: has read the outputs
    DONE    -> FILLING   caller: after a cancellation or an error, without outputs

If a running request is cancelled, ``cancelled`` and ``done`` are set at once, and the state stays RUNNING until the
evaluator has finished. Until then the request must not be reused, since the evaluator still reads and writes its slots.
"""

import enum
import threading
from collections.abc import Callable
from functools import partial

import numpy as np

from engine.nets.network import HEADS


class State(enum.Enum):
    """The state of a request; the module's docstring has the transitions."""

    FREE = enum.auto()
    FILLING = enum.auto()
    QUEUED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()


class Request:
    """S slots for boards of N x N with C planes and G globals; ``arrays`` holds the arrays by name."""

    planes: np.ndarray
    """float32[S, C, N, N], written by the caller"""
    globals: np.ndarray
    """float32[S, G], written by the caller"""
    policy: np.ndarray
    """float32[S, N*N+1]: move logits, pass last, under the symmetry of the planes, not masked for legality"""
    value: np.ndarray
    """float32[S]: -1 to 1 for the side to move; this and every other output stays 0 if the network lacks the head"""
    score: np.ndarray
    """float32[S]: lead in points of the side to move"""
    ownership: np.ndarray
    """float32[S, N, N]: 1 = the side to move's, -1 = the opponent's, under the symmetry of the planes"""

    def __init__(self, size: int, capacity: int, planes: int, globals_: int, pinned: bool = False):
        """Allocate the slots.

        Args:
            size: board size N.
            capacity: number of slots S.
            planes, globals_: number of planes C and of global inputs G.
            pinned: page-locked memory, for asynchronous copies to a GPU.
        """
        shapes = {"planes": (planes, size, size), "globals": (globals_,)}
        shapes |= {name: head.shape(size) for name, head in HEADS.items()}
        new: Callable[[tuple[int, ...]], np.ndarray] = partial(np.zeros, dtype=np.float32)
        if pinned:
            from engine.nets.compute.cuda import pinned_zeros as new
        self.arrays = {name: new((capacity, *shape)) for name, shape in shapes.items()}
        vars(self).update(self.arrays)
        self.size = size
        self.count = 0
        self.alone = False
        """evaluate the request as a batch of its own, so that its outputs do not depend on other requests in the queue;
        a server with ``shared`` set ignores this"""
        self.state = State.FREE
        self.cancelled = False
        self.error: Exception | None = None
        self.done = threading.Event()

    def hand_back(self, error: Exception | None = None) -> None:
        """End the evaluation, with an error or without: the caller's wait ends, and the caller may reuse the request.

        Threads: the server's lock is held.
        """
        self.error, self.state = error, State.DONE
        self.done.set()
