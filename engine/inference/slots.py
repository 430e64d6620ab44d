"""Requests: blocks of slots that a caller fills, the server evaluates and the caller reads.

A slot is one position's row in the arrays; the slots of a request travel together. Callers own their requests and
use them again and again, so nothing is allocated while a search runs. A request's life, with the one thread that
takes each step::

    FREE    -> FILLING   caller: it writes planes and globals of the first ``count`` slots
    FILLING -> QUEUED    caller: submit
    QUEUED  -> RUNNING   evaluator: takes it into a batch
    QUEUED  -> DONE      canceller: taken out of the queue unevaluated, ``cancelled`` set
    RUNNING -> DONE      evaluator: outputs (or ``error``) written
    DONE    -> FREE      caller: outputs read

A caller who does not want to wait for a running request abandons it: ``cancelled`` and ``done`` are set at once, and
the request is never used again, since an evaluator still reads and writes it.
"""

import enum
import threading

import numpy as np
import torch

from engine.nets.network import HEADS


class State(enum.Enum):
    """Where a request is in its life."""

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
    """float32[S]: -1 to 1 for the side to move; this and what follows is 0 from a network without such a head"""
    score: np.ndarray
    """float32[S]: lead in points of the side to move"""
    ownership: np.ndarray
    """float32[S, N, N]: 1 = the mover's, under the symmetry of the planes"""

    def __init__(self, size: int, capacity: int, planes: int, globals_: int, pinned: bool = False):
        """Allocate the slots.

        Args:
            capacity: S.
            pinned: page-locked memory, from which a GPU copies without waiting for the processor.
        """
        shapes = {"planes": (planes, size, size), "globals": (globals_,)}
        shapes |= {name: head.shape(size) for name, head in HEADS.items()}
        self.tensors = {name: torch.zeros((capacity, *shape), pin_memory=pinned) for name, shape in shapes.items()}
        vars(self).update({name: tensor.numpy() for name, tensor in self.tensors.items()})
        self.size = size
        self.count = 0
        self.alone = False
        """evaluate as a batch of its own, so that its outputs depend on nothing else in the queue"""
        self.state = State.FREE
        self.cancelled = False
        self.error: Exception | None = None
        self.done = threading.Event()

    def hand_back(self, error: Exception | None = None) -> None:
        """Give the request back to its caller. Threads: the server's lock is held, for a request may be used again."""
        self.error, self.state = error, State.DONE
        self.done.set()
