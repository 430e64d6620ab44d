"""The runner of CUDA GPUs: a stream, pinned memory and CUDA graphs for each evaluator, so that batches of two overlap.

Launching a small network's hundred kernels one by one takes the CPU longer than the GPU needs to run them. So the
launches are captured in a CUDA graph for each board size and number of rows, and replayed as one. A graph reads and
writes fixed memory; a batch is copied into its first rows, and the other rows are evaluated too, their outputs unused.
Numbers of rows increase by at most a half (``ROWS``), so that few graphs serve all batches. All work of a runner is
ordered on its own stream. The thread sleeps until its batch is done; CUDA's default wait would spin.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.nets.network import Heads, NetArrays
from engine.nets.notices import say_once
from engine.system import one_line

ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""Batch sizes, in positions, for which CUDA graphs are captured: the numbers of rows of their fixed memory"""
_CAPTURING = threading.Lock()
"""Held while a graph is captured. Kernels of other threads may run meanwhile (``thread_local``), but a synchronisation
of the whole device would end the capture."""


def rows_for(count: int) -> int:
    """Rows of the smallest graph that holds ``count`` positions; ``count`` itself if none does."""
    return count if count > ROWS[-1] else ROWS[bisect_left(ROWS, count)]


def release_memory() -> None:
    """Release torch's unused GPU memory."""
    with _CAPTURING:
        torch.cuda.empty_cache()


def pinned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Page-locked zeros, float32, for asynchronous copies to a GPU."""
    return torch.zeros(shape, pin_memory=True).numpy()


def fill(target: Tensor, parts: Sequence[np.ndarray]) -> None:
    """Copy parts [B_i, ...] one after another into the first rows of a tensor [R, ...]; other rows do not change."""
    start = 0
    for part in parts:
        target[start : start + len(part)].copy_(torch.from_numpy(part), non_blocking=True)
        start += len(part)


class _Plan(NamedTuple):
    """Fixed memory for one board size and number of rows, and the call that computes outputs from inputs."""

    planes: Tensor
    globals: Tensor
    call: Callable[[], Heads[Tensor]]
    """replays the graph, or calls the network if there is no graph; outputs on the GPU"""
    staged: Heads[Tensor]
    """pinned memory to which outputs are copied"""


class CudaRunner:
    """The :class:`Runner` for CUDA, with a stream and CUDA graphs of its own, as the module's text describes."""

    def __init__(self, network: Any, use_graphs: bool = True):
        """Make a stream; :meth:`prepare`, or the first batch of a size, allocates memory and captures graphs.

        Args:
            network: a :class:`engine.nets.compute.by_torch.TorchNetwork` on a CUDA device.
            use_graphs: False = call the network kernel by kernel, for comparison.
        """
        self._network = network
        self._use_graphs = use_graphs
        self._plans: dict[tuple[int, ...], _Plan] = {}
        # The network's weights were written on another stream.
        with _CAPTURING:
            torch.cuda.synchronize(network.device)
        self._stream = torch.cuda.Stream(network.device)
        self._done = torch.cuda.Event(blocking=True)
        # Graphs of one runner never run at once, so they may share their working memory.
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, planes: Sequence[np.ndarray], globals_: Sequence[np.ndarray]) -> NetArrays:
        """See :meth:`engine.nets.compute.runner.Runner.run`; inputs in pinned memory are copied asynchronously."""
        count = sum(len(part) for part in planes)
        key = (rows_for(count), *planes[0].shape[1:], globals_[0].shape[1])
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            plan = self._plan(*key)
            fill(plan.planes, planes)
            fill(plan.globals, globals_)
            output, staged = (heads.each(lambda head: head[:count]) for heads in (plan.call(), plan.staged))
            for there, here in zip(output, staged, strict=True):
                if there is not None and here is not None:
                    here.copy_(there, non_blocking=True)
            self._done.record(self._stream)
        self._done.synchronize()
        return staged.each(Tensor.numpy)

    def prepare(self, size: int, planes: int, globals_: int, most: int) -> int:
        """See :meth:`engine.nets.compute.runner.Runner.prepare`: a graph for each number of rows, smallest first.

        The largest graphs, which take the most memory, come last: if memory runs out, the smaller ones remain usable.
        """
        held = 0
        for rows in ROWS[: bisect_left(ROWS, most) + 1]:
            key = (rows, planes, size, size, globals_)
            try:
                with torch.inference_mode(), torch.cuda.stream(self._stream):
                    self._plan(*key)
                    self._done.record(self._stream)
                self._done.synchronize()
            except torch.OutOfMemoryError:
                if not held:
                    raise
                release_memory()
                return min(most, held)
            held = rows
        return most

    def _plan(self, *key: int) -> _Plan:
        """The plan for an input shape, made at the first call: rows, planes, height, width, number of global values."""
        if key not in self._plans:
            self._plans[key] = self._new_plan(*key)
        return self._plans[key]

    def _new_plan(self, rows: int, channels: int, height: int, width: int, n_globals: int) -> _Plan:
        """Allocate memory and capture a graph, if possible. The runner's stream is the current one."""
        planes = torch.zeros(rows, channels, height, width, device=self._network.device)
        globals_ = torch.zeros(rows, n_globals, device=self._network.device)
        call: Callable[[], Heads[Tensor]] = partial(self._network.evaluate_tensors, planes, globals_)
        # The first call chooses algorithms and takes working memory, neither of which a graph may record.
        staged = call().each(_pinned_like)
        if self._use_graphs and rows <= ROWS[-1]:
            call = self._captured(call)
        return _Plan(planes, globals_, call, staged)

    def _captured(self, call: Callable[[], Heads[Tensor]]) -> Callable[[], Heads[Tensor]]:
        """A function that replays the call as a CUDA graph; the call itself, after a notice, if capturing fails."""
        graph = torch.cuda.CUDAGraph()
        try:
            with (
                _CAPTURING,
                torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
            ):
                output = call()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._use_graphs = False
            say_once(f"{self._network.device}: continuing without CUDA graphs ({one_line(error)})")
            return call

        def replay() -> Heads[Tensor]:
            graph.replay()
            return output

        return replay


def _pinned_like(head: Tensor) -> Tensor:
    """Page-locked memory for one head's output."""
    return torch.empty(head.shape, dtype=head.dtype, pin_memory=True)
