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


class State(enum.Enum):
    """Where a request is in its life."""

    FREE = enum.auto()
    FILLING = enum.auto()
    QUEUED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()


class Request:
    """S slots for boards of N x N with C planes and G globals; every array is also seen by torch (``tensors``)."""

    def __init__(self, size: int, capacity: int, planes: int, globals_: int, pinned: bool = False):
        """Allocate the slots.

        Args:
            capacity: S.
            pinned: page-locked memory, from which a GPU copies without waiting for the processor.
        """
        shapes = {
            "planes": (capacity, planes, size, size),
            "globals": (capacity, globals_),
            "policy": (capacity, size * size + 1),
            "value": (capacity,),
            "score": (capacity,),
            "ownership": (capacity, size, size),
        }
        self.tensors = {name: torch.zeros(shape, pin_memory=pinned) for name, shape in shapes.items()}
        self.size = size
        self.planes: np.ndarray = self.tensors["planes"].numpy()
        """float32[S, C, N, N], written by the caller"""
        self.globals: np.ndarray = self.tensors["globals"].numpy()
        """float32[S, G], written by the caller"""
        self.policy: np.ndarray = self.tensors["policy"].numpy()
        """float32[S, N*N+1]: move logits, pass last, under the symmetry of the planes, not masked for legality"""
        self.value: np.ndarray = self.tensors["value"].numpy()
        """float32[S]: -1 to 1 for the side to move; 0 from a network without a value head"""
        self.score: np.ndarray = self.tensors["score"].numpy()
        """float32[S]: lead in points of the side to move; 0 from a network without a score head"""
        self.ownership: np.ndarray = self.tensors["ownership"].numpy()
        """float32[S, N, N]: 1 = the mover's, under the symmetry of the planes; 0 from a network without such a head"""
        self.count = 0
        self.alone = False
        """evaluate as a batch of its own, so that its outputs depend on nothing else in the queue"""
        self.state = State.FREE
        self.cancelled = False
        self.error: Exception | None = None
        self.done = threading.Event()
