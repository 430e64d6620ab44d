"""Networks on processors in float32: programs behind the Network interface."""

import threading

import numpy as np

from engine.nets.compute.program import CompiledNetwork, Program
from engine.nets.compute.simd import FEATURES
from engine.nets.compute.winograd import tile_side
from engine.nets.layers import folded
from engine.nets.network import NetArrays, NetworkSpec, PlainNetwork, activated, check_inputs

HAS_BFLOAT16 = "+avx512bf16" in FEATURES.split(",")
"""Whether the processor has instructions for bfloat16"""
HAS_MATRIX_UNIT = HAS_BFLOAT16 and "+amx-tile" in FEATURES.split(",")
"""Whether it has a unit for products of bfloat16 matrices (AMX), many times as fast as float32"""
_BUILDING = threading.Lock()
"""Held while a program is written: threads that need the same one should make it once."""


class ProgramNetwork:
    """A network on the processor as programs (:mod:`engine.nets.compute.program`), one for each Winograd tile size.

    Nearly always this is faster than torch in 16 bits, except on processors with a matrix unit.
    """

    device, batches_requests, dtype = "cpu", False, "float32"

    def __init__(self, network: PlainNetwork, spec: NetworkSpec):
        """Write the program for the largest board; programs are compiled when they are first needed.

        Raises:
            Unwritable: the network has layers that only torch computes.
        """
        self.spec, self.shape = spec, network.shape
        self._network: PlainNetwork = folded(network)
        self._written = {tile_side(spec.max_size): self._new_program(tile_side(spec.max_size))}
        self._programs: dict[int, CompiledNetwork] = {}

    def lines(self) -> np.ndarray:
        """The lines of the program for the largest board: the network's layers without their numbers."""
        return self._written[tile_side(self.spec.max_size)].lines()

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        check_inputs(self.spec, self.shape, planes, globals_)
        size = planes.shape[2]
        outputs = self._program(tile_side(size)).run(planes, globals_)
        # A network that has diverged has infinite outputs or NaN: its caller finds them, numpy need not warn.
        with np.errstate(all="ignore"):
            return activated(self._network.heads_of(outputs, planes, globals_))

    def _program(self, side: int) -> CompiledNetwork:
        """The compiled program for boards with Winograd tile size ``side``."""
        if side not in self._programs:
            with _BUILDING:
                if side not in self._programs:
                    program = self._written.get(side) or self._new_program(side)
                    self._programs[side] = program.compiled()
        return self._programs[side]

    def _new_program(self, side: int) -> Program:
        """The network's program for boards with Winograd tile size ``side``."""
        program = Program(self.shape.planes, self.shape.globals, side)
        self._network.describe(program)
        return program
