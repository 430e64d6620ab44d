"""A batch on one device: cut to what its memory holds, evaluated, its outputs handed to the requests."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.inference.slots import Request
from engine.nets.compute.cuda import release_memory
from engine.nets.compute.runner import Runner, is_out_of_memory
from engine.nets.network import NetOutput


class NotFinite(RuntimeError):
    """A network's outputs are no finite numbers."""


class Piece(NamedTuple):
    """Slots of a request that travel in the same batch: rows ``start`` to ``stop``."""

    request: Request
    start: int
    stop: int


def positions_of(pieces: Sequence[Piece]) -> int:
    """Positions in some pieces together."""
    return sum(piece.stop - piece.start for piece in pieces)


def cut(pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
    """The same positions in the same order, in batches of ``limit``; only the last may be smaller."""
    batches: list[list[Piece]] = []
    room = 0
    for request, begin, end in pieces:
        start = begin
        while start < end:
            if room == 0:
                batches.append([])
                room = limit
            stop = min(end, start + room)
            batches[-1].append(Piece(request, start, stop))
            room -= stop - start
            start = stop
    return batches


def evaluate(runner: Runner, requests: Sequence[Request], limit: int, idle: Callable[[], None]) -> int:
    """Evaluate requests, in smaller batches where the device's memory refuses larger ones.

    Args:
        runner: the calling thread's own.
        limit: most positions in a batch.
        idle: called once, as soon as the device has nothing more to do for these requests.
    Returns:
        the limit, lowered to what the memory held.
    Raises:
        Exception: the network refused or failed; outputs may have been written in part.
    """
    waiting = cut([Piece(request, 0, request.count) for request in requests], limit)
    while waiting:
        batch = waiting.pop(0)
        output = _try(runner, batch)
        if output is None:
            limit = positions_of(batch) // 2
            waiting[:0] = cut(batch, limit)
            continue
        if not waiting:
            idle()
        spread(output, batch)
    return limit


def _try(runner: Runner, batch: Sequence[Piece]) -> NetOutput | None:
    """One call of the network; None if the device lacks the memory for this number of positions."""
    try:
        planes, globals_ = (
            [piece.request.tensors[name][piece.start : piece.stop] for piece in batch] for name in ("planes", "globals")
        )
        return runner.run(planes, globals_)
    except RuntimeError as error:
        if positions_of(batch) == 1 or not is_out_of_memory(error):
            raise
    release_memory()
    return None


def spread(output: NetOutput, batch: Sequence[Piece]) -> None:
    """Copy outputs, on the CPU and in the order of the batch, into the requests they belong to.

    Raises:
        NotFinite: they are no finite numbers.
    """
    for name, head in output._asdict().items():
        start = 0
        for request, begin, end in batch:
            if head is not None:
                request.tensors[name][begin:end].copy_(head[start : start + end - begin])
            start += end - begin
            # A sum is finite only if all its terms are; one pass without a temporary array.
            if head is not None and not abs(float(request.tensors[name][begin:end].sum())) < float("inf"):
                raise NotFinite(f"its outputs ({name}) are no numbers")
