"""Requests: blocks of slots that a caller fills, the server evaluates and the caller reads.

A slot is one position's row in the arrays; the slots of a request are evaluated together. Callers own their requests
and reuse them, so nothing is allocated during a search. The states of a request, with the thread that makes each
transition::

    FREE    -> FILLING   caller: writes planes and globals of the first ``count`` slots
    FILLING -> QUEUED    caller: submits
    QUEUED  -> RUNNING   evaluator: takes it into a batch
    QUEUED  -> DONE      any: cancels it before its evaluation; ``cancelled`` is set
    RUNNING -> DONE      evaluator: has written outputs or ``error``
    DONE    -> FREE      caller: has read the outputs

If a running request is cancelled, ``cancelled`` and ``done`` are set at once. It must not be reused, since an evaluator
still reads and writes it.
"""

import enum
import threading

import numpy as np
import torch

from engine.nets.network import HEADS


class State(enum.Enum):
    """The state of a request; see the module's text."""

    FREE = enum.auto()
    FILLING = enum.auto()
    QUEUED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()


class Request:
    """S slots for boards of N x N with C planes and G globals; every array is also seen by torch (``tensors``)."""

    planes: np.ndarray
    """float32[S, C, N, N], written by the caller"""
    globals: np.ndarray
    """float32[S, G], written by the caller"""
    policy: np.ndarray
    """float32[S, N*N+1]: move logits, pass last, under the symmetry of the planes, not masked for legality"""
    value: np.ndarray
    """float32[S]: -1 to 1 for the side to move; all outputs are 0 if the network lacks the head"""
    score: np.ndarray
    """float32[S]: lead in points of the side to move"""
    ownership: np.ndarray
    """float32[S, N, N]: 1 = side to move's, under the symmetry of the planes"""

    def __init__(self, size: int, capacity: int, planes: int, globals_: int, pinned: bool = False):
        """Allocate the slots.

        Args:
            capacity: S.
            pinned: page-locked memory, for asynchronous copies to a GPU.
        """
        shapes = {"planes": (planes, size, size), "globals": (globals_,)}
        shapes |= {name: head.shape(size) for name, head in HEADS.items()}
        self.tensors = {name: torch.zeros((capacity, *shape), pin_memory=pinned) for name, shape in shapes.items()}
        vars(self).update({name: tensor.numpy() for name, tensor in self.tensors.items()})
        self.size = size
        self.count = 0
        self.alone = False
        """evaluated as a batch of its own, so that its outputs do not depend on other requests in the queue"""
        self.state = State.FREE
        self.cancelled = False
        self.error: Exception | None = None
        self.done = threading.Event()

    def hand_back(self, error: Exception | None = None) -> None:
        """Return the request to its caller, who may reuse it. Threads: the server's lock is held."""
        self.error, self.state = error, State.DONE
        self.done.set()
