"""Networks by torch behind the Network interface: on GPUs, and on processors for layers that programs lack."""

import threading
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute.precision import prefers_bfloat16, reduced_dtype
from engine.nets.layers import folded
from engine.nets.model import Model, model_of
from engine.nets.network import Heads, NetArrays, NetworkSpec, PlainNetwork, RawHeads, activated, check_inputs

_BUILDING = threading.Lock()
"""Held while a network is traced: tracing changes the process's warning filters, and threads that need the same
function should make it once."""


class TorchNetwork:
    """A network by torch behind the Network interface, frozen for one device; batch normalisation is folded.

    CUDA runs the network in 16 bits (about twice as fast; win rates change by less than 0.01); outputs are always
    float32. Processors run it traced and frozen, once for each board size, in 16 bits if they have instructions for
    them.
    """

    def __init__(self, network: PlainNetwork, spec: NetworkSpec, device: str, reduced: bool | None = None):
        """Copy the network onto the device.

        Args:
            reduced: 16 bits (:func:`engine.nets.compute.precision.reduced_dtype`); None = if they are faster on the
                device.
        """
        self.spec, self.device, self.batches_requests, self.shape = spec, device, device != "cpu", network.shape
        place = torch.device(device)
        if reduced is None:
            reduced = prefers_bfloat16(place)
        self._torch_dtype = reduced_dtype(place, network.prefers_float16) if reduced else torch.float32
        self.dtype = str(self._torch_dtype).removeprefix("torch.")
        self._model = _PresentHeads(model_of(folded(network))).to(place, self._torch_dtype)
        # Module.to takes a memory format too, but torch's stubs omit it.
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._ready: dict[int, Callable[[Tensor, Tensor], RawHeads]] = {}

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        inputs = (torch.from_numpy(np.ascontiguousarray(one)).to(self.device) for one in (planes, globals_))
        return self.evaluate_tensors(*inputs).each(lambda head: head.cpu().numpy())

    def evaluate_tensors(self, planes: Tensor, globals_: Tensor) -> Heads[Tensor]:
        """As :meth:`evaluate`, for tensors on the device. Threads: on CUDA each on its own stream."""
        check_inputs(self.spec, self.shape, planes, globals_)
        with torch.inference_mode():
            return activated(self._for_size(planes.shape[2])(planes, globals_))

    def _for_size(self, size: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The forward pass for one board size, made when it is first needed; a GPU's serves all board sizes."""
        key = size if self.device == "cpu" else 0
        if key not in self._ready:
            with _BUILDING:
                if key not in self._ready:
                    self._ready[key] = self._made(key)
        return self._ready[key]

    def _made(self, size: int) -> Callable[[Tensor, Tensor], RawHeads]:
        """The forward pass, traced and frozen for one board size; ``size`` 0 = any size, not traced."""
        model: nn.Module = self._model
        if size:
            planes = torch.zeros(2, self.shape.planes, size, size, dtype=self._torch_dtype)
            globals_ = torch.zeros(2, self.shape.globals, dtype=self._torch_dtype)
            example = planes.to(memory_format=torch.channels_last), globals_
            with warnings.catch_warnings(), torch.inference_mode():
                warnings.simplefilter("ignore")
                model = torch.jit.freeze(torch.jit.trace(self._model, example, check_trace=False))

        def call(planes: Tensor, globals_: Tensor) -> RawHeads:
            x = planes.to(dtype=self._torch_dtype, memory_format=torch.channels_last)
            return RawHeads(**dict(zip(self.spec.heads, model(x, globals_.to(self._torch_dtype)), strict=True)))

        return call


class _PresentHeads(nn.Module):
    """A model that returns only its existing heads: a trace cannot return None."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model
        self.eval()

    def forward(self, planes: Tensor, globals_: Tensor) -> tuple[Tensor, ...]:
        """The heads of :meth:`engine.nets.model.Model.forward` that are not None, in their order."""
        return tuple(head for head in self.model(planes, globals_) if head is not None)
