"""A network that is written as a program: its lines, its constants, and how batches go through them.

What a program is and who writes it: :mod:`engine.nets.compute.program`.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.nets.compute import program_kernels as kernels
from engine.nets.compute.memory import MEMORY
from engine.nets.compute.winograd import group_of
from engine.nets.compute.winograd_tiles import padded, tiles_a_line

MOST_BOARDS = 64
"""Boards that go through a program at a time: what memory they take grows no further"""


class Slot(NamedTuple):
    """A place for some numbers of every board, either for each of its points or for the board as a whole."""

    number: int
    is_vector: bool
    channels: int
    parts: int = 1
    """how many times as many numbers there are, each part padded by itself"""

    @property
    def pitch(self) -> int:
        """Numbers from one point, or board, to the next."""
        return self.parts * int(padded(self.channels))


class Constant(NamedTuple):
    """Numbers of a layer as lines read them."""

    start: int
    """where they begin among all constants"""
    length: int
    make: Callable[[], Tensor]
    """works them out"""


class WrittenNetwork:
    """Runs a program on batches. Threads: any number at once, each with memory of its own."""

    def __init__(self, side: int, lines: np.ndarray, constants: Sequence[Constant], slots: Sequence[Slot],
                 outputs: Mapping[str, Slot]):  # fmt: skip
        """Work out the constants.

        Args:
            side: m of Winograd's filtering.
            lines: :data:`engine.nets.compute.program_kernels.LINE`\\ [lines].
            slots: all, by their numbers.
            outputs: those that are returned, by name.
        """
        self._side, self._lines, self._slots, self._outputs = side, lines, tuple(slots), dict(outputs)
        # One large array, and so on large pages.
        self._numbers = np.empty(constants[-1].start + constants[-1].length if constants else 0, np.float32)
        for start, length, make in constants:
            values = make().detach().reshape(-1).numpy()
            assert len(values) == length, (len(values), length)
            self._numbers[start : start + length] = values
        tiled = lines[lines["kind"] == kernels.CONVOLUTION]
        summed = lines[(lines["kind"] == kernels.PRODUCT) & (lines["plus"] >= 0)]
        self._widest = int(max(tiled["inner"].max(initial=1), tiled["pitch"].max(initial=1)))
        self._widest_sum = [int(summed["pitch"][summed["is_vector"] == kind].max(initial=0)) for kind in (0, 1)]
        pitches = np.array([slot.pitch for slot in slots])
        are_vectors = np.array([slot.is_vector for slot in slots])
        self._points, self._vectors = pitches * ~are_vectors, pitches * are_vectors

    def run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """The outputs by name: float32[B, C, N, N] of points, [B, C] of vectors.

        As many threads compute as torch has here, each some of the boards.

        Args:
            planes: [B, C, N, N]; ``globals_`` [B, G]; of any type and memory layout.
        """
        count, threads = len(planes), torch.get_num_threads()
        each = max(1, min(MOST_BOARDS, -(-count // threads)))
        if each >= count:
            return self._run(planes, globals_)
        parts = planes.split(each), globals_.split(each)
        found = list(_pool(threads).map(self._run, *parts) if threads > 1 else map(self._run, *parts))
        return {name: torch.cat([part[name] for part in found]) for name in self._outputs}

    def _run(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """:meth:`run` in this thread."""
        count, channels, size = planes.shape[:3]
        tiles = int(tiles_a_line(size, self._side))
        group = max(1, min(count, group_of(tiles)))
        rows = (self._side + 2) ** 2 * group * tiles**2
        sums = count * max(size**2 * self._widest_sum[0], self._widest_sum[1])
        places, total = self._places(count, size)
        memory = MEMORY.of("program", total)
        # In one layout and type: the kernel would be compiled for any other, in the middle of a game.
        boards = planes.float().reshape(count, channels, size**2).contiguous()
        kernels.run(
            self._lines, self._numbers, places, boards.numpy(), globals_.float().contiguous().numpy(),
            size, self._side, group, memory, MEMORY.of("points", rows * self._widest),
            MEMORY.of("products", max(rows * self._widest, sums)),
            MEMORY.of("sheet", (self._side * tiles + 2) ** 2 * self._widest),
        )  # fmt: skip
        return {
            name: self._output(slot, memory[places[slot.number] :], count, size) for name, slot in self._outputs.items()
        }

    def _places(self, count: int, size: int) -> tuple[np.ndarray, int]:
        """int64[slots]: where each begins in the memory of a batch; and how long that is."""
        lengths = self._points * (count * size**2) + self._vectors * count
        ends = np.cumsum(lengths)
        return ends - lengths, int(ends[-1])

    def _output(self, slot: Slot, memory: np.ndarray, count: int, size: int) -> Tensor:
        """A copy of what a slot holds."""
        shape = (count,) if slot.is_vector else (count, size, size)
        held = memory[: math.prod(shape) * slot.pitch].reshape(*shape, slot.pitch)[..., : slot.channels]
        values = torch.from_numpy(held.copy())
        return values if slot.is_vector else values.permute(0, 3, 1, 2)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads for callers with more than one."""
    return ThreadPoolExecutor(threads, "program")
