"""3x3 convolutions by Winograd's filtering in training: outputs, and the gradients of inputs and filters.

All three are products at the points of :mod:`engine.nets.compute.winograd`; the gradient of a transformation is its
transpose. A step takes 2,700 products for each pair of channels on a 19x19 board, where direct convolutions take 9,747.
Inputs are transformed again in the backward pass, which is cheaper than storing the points.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute.precision import prefers_bfloat16
from engine.nets.compute.winograd import (
    MEMORY,
    Tiling,
    boards_of,
    convolve,
    filter_points,
    group_of,
    in_panels,
    padded,
    points_of,
    tile_side,
    tiles_a_line,
)

TILES_LEARNT = 100
"""Maximum number of tiles multiplied at a time in training, for which the filters' gradient is read and written once"""
MIN_CHANNELS = 16
"""Minimum number of input and of output channels; with fewer, the transformations cost more than they save"""
FILTER_POINTS = {side: torch.from_numpy(filter_points(side)).float() for side in (3, 4)}
"""By tile size, :func:`engine.nets.compute.winograd.filter_points` in float32, which is precise enough for training"""


class _Convolve(torch.autograd.Function):
    """The padded convolution of x[B, C, N, N] with weight[K, C, 3, 3] and bias[K]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """float32[B, K, N, N], channels last."""
        ctx.save_for_backward(x, weight)
        boards, tiling = _as_lines(x), _tiling(x, weight)
        filters = in_panels(_at_points(weight, tiling.side).numpy())
        outputs = np.empty((*boards.shape[:3], tiling.outputs), np.float32)
        flat = outputs.reshape(-1)
        convolve(
            tiling, boards.reshape(-1), *_unchanged(tiling), False, filters.reshape(-1), filters.shape[3],
            bias.detach().numpy(), False, flat, False, False, *_memory(tiling), flat,
        )  # fmt: skip
        return _as_tensor(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """The gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        boards, outputs, tiling = _as_lines(x), _as_lines(gradients[0]), _tiling(x, weight)
        filters = _at_points(weight, tiling.side)
        back, ones_zeros = in_panels(filters.mT.numpy()), _unchanged(tiling)
        of_filters = filters.new_zeros(len(filters), tiling.inner, tiling.outer)
        of_boards = np.empty_like(boards) if ctx.needs_input_grad[0] else None
        points, products, sheet = _memory(tiling)
        for start in range(0, tiling.boards, tiling.group):
            part = slice(start, min(start + tiling.group, tiling.boards))
            some = tiling._replace(group=part.stop - start)
            points_of(some, boards[part].reshape(-1), outputs[part].reshape(-1), *ones_zeros, sheet, points, products)
            rows = some.group * int(tiles_a_line(tiling.size, tiling.side)) ** 2
            of_filters.baddbmm_(_matrices(points, rows, tiling.inner, filters).mT,
                                _matrices(products, rows, tiling.outer, filters))  # fmt: skip
            if of_boards is not None:
                boards_of(
                    some, products, back.reshape(-1), back.shape[3], ones_zeros[1], sheet, points,
                    of_boards[part].reshape(-1),
                )  # fmt: skip
        lines = of_filters[:, : tiling.inputs, : tiling.outputs].reshape(len(filters), -1)
        of_weight = (FILTER_POINTS[tiling.side].T @ lines).view(3, 3, tiling.inputs, -1).permute(3, 2, 0, 1)
        of_bias = torch.from_numpy(outputs.sum(axis=(0, 1, 2)))
        return None if of_boards is None else _as_tensor(of_boards), of_weight, of_bias


def _as_lines(x: Tensor) -> np.ndarray:
    """float32[B, N, N, C] of a tensor [B, C, N, N]; the same memory if it is channels last."""
    return x.detach().permute(0, 2, 3, 1).contiguous().numpy()


def _as_tensor(boards: np.ndarray) -> Tensor:
    """The inverse of :func:`_as_lines`: a tensor [B, C, N, N], channels last, of boards[B, N, N, C]."""
    return torch.from_numpy(boards).permute(0, 3, 1, 2)


def _tiling(x: Tensor, weight: Tensor) -> Tiling:
    """The dimensions of a convolution of x[B, C, N, N] with filters[K, C, 3, 3]."""
    (boards, inputs, size, _), outputs, side = x.shape, len(weight), tile_side(x.shape[2])
    group = min(boards, group_of(int(tiles_a_line(size, side)), TILES_LEARNT))
    return Tiling(size, side, group, boards, inputs, int(padded(inputs)), outputs, int(padded(outputs)))


def _memory(tiling: Tiling) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The thread's working memory for points, products and a sheet."""
    tiles, widest = int(tiles_a_line(tiling.size, tiling.side)), max(tiling.inner, tiling.outer)
    count = (tiling.side + 2) ** 2 * tiling.group * tiles**2
    sheet = MEMORY.of("sheet", (tiling.side * tiles + 2) ** 2 * widest)
    return MEMORY.of("points", count * tiling.inner), MEMORY.of("products", count * tiling.outer), sheet


def _unchanged(tiling: Tiling) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift for inputs without a transformation: ones and zeros."""
    widest = max(tiling.inputs, tiling.outputs)
    return np.ones(widest, np.float32), np.zeros(widest, np.float32)


def _matrices(points: np.ndarray, rows: int, channels: int, filters: Tensor) -> Tensor:
    """float32[P, rows, channels]: a view of the first numbers of working memory; P is the number of ``filters``."""
    return torch.from_numpy(points[: len(filters) * rows * channels]).view(len(filters), rows, channels)


def _at_points(weight: Tensor, side: int) -> Tensor:
    """float32[P, C, K]: a convolution's weights[K, C, 3, 3] at all points."""
    lines = weight.detach().permute(2, 3, 1, 0).reshape(9, -1)
    return (FILTER_POINTS[side] @ lines).view(-1, weight.shape[1], weight.shape[0])


class LearningConvolution(nn.Module):
    """Computes a padded 3x3 convolution by Winograd's filtering; shares the parameters of the layer it replaces."""

    def __init__(self, convolution: nn.Conv2d):
        super().__init__()
        self.convolution = convolution

    def forward(self, x: Tensor) -> Tensor:
        """See :class:`_Convolve`."""
        bias = self.convolution.bias
        weight = self.convolution.weight
        return _Convolve.apply(x, weight, weight.new_zeros(len(weight)) if bias is None else bias)


def learns_by_winograd(device: torch.device, model: nn.Module) -> bool:
    """Whether a network trains faster by Winograd's filtering: on CPUs without bfloat16, if a layer is eligible.

    One thread calls the kernels; direct convolutions with two torch threads took six times as long (6x64, Zen 3). See
    :func:`one_torch_thread`.
    """
    is_meant = device.type == "cpu" and not prefers_bfloat16(device)
    return is_meant and any(map(is_eligible, model.modules()))


@contextmanager
def one_torch_thread(is_wanted: bool = True) -> Iterator[None]:
    """Limit torch to the calling thread; no effect without ``is_wanted``. Threads: any; each limits its own."""
    threads = torch.get_num_threads()
    if not is_wanted or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def with_learning_winograd(model: nn.Module) -> nn.Module:
    """A copy of a model on the CPU, its eligible layers replaced, that shares the model's parameters and buffers."""
    shared = [*model.parameters(), *model.buffers()]
    model = copy.deepcopy(model, {id(values): values for values in shared})
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if is_eligible(child):
                setattr(parent, name, LearningConvolution(child))
    return model


def is_eligible(convolution: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether a layer is a 3x3 convolution that this module supports and speeds up."""
    if not isinstance(convolution, nn.Conv2d):
        return False
    is_plain = convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    is_padded = convolution.padding == (1, 1) and convolution.padding_mode == "zeros"
    channels = min(convolution.in_channels, convolution.out_channels)
    return is_plain and is_padded and convolution.kernel_size == (3, 3) and channels >= MIN_CHANNELS
