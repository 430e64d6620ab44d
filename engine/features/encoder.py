"""The encoder contract and the registry of encoders.

An encoder turns a :class:`engine.go.position.Position` into planes and global values for the side to move. It
writes into the caller's arrays, in the caller's thread. Kernels cannot take functions as arguments and stay
cached on disk, so a kernel that encodes takes the encoder's ``id`` and calls :func:`encode` or :func:`key`.
"""

from typing import NamedTuple

from engine.features import keima
from engine.jit import kernel


class Encoder(NamedTuple):
    """What a network must know of its input."""

    name: str
    id: int
    planes: int
    """C: planes of size N x N"""
    globals: int
    """G: values that are not about points"""


KEIMA = Encoder("keima-1", 0, keima.PLANES, keima.GLOBALS)
ENCODERS = {encoder.name: encoder for encoder in (KEIMA,)}


def new_scratch(size: int) -> keima.Scratch:
    """Working memory for :func:`encode` on boards of one size; one per thread."""
    return keima.new_scratch(size)


@kernel
def encode(encoder_id, position, symmetry, scratch, planes, globals_):
    """Write a position's input for the side to move.

    Args:
        encoder_id: ``Encoder.id``.
        symmetry: 0 to 7 as in engine/features/symmetry.py; the planes show the board turned that way.
        scratch: working memory from :func:`new_scratch`, the caller's own.
        planes: float32[C, N, N], overwritten.
        globals_: float32[G], overwritten.
    """
    keima.encode(position, symmetry, scratch, planes, globals_)


@kernel
def key(encoder_id, position):
    """uint64 that covers everything the encoder reads of a position: the key of the result cache."""
    return keima.key(position)
