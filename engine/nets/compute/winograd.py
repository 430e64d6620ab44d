"""3x3 convolutions by Winograd's minimal filtering, F(4x4, 3x3), for processors in float32.

A tile of 4x4 outputs depends on 6x6 inputs. Transformed (B^T d B), tile and filter need only be multiplied point by
point: 36 products instead of 144 for each pair of channels. Summed over the input channels that is, for each of the
36 points, a product of a matrix of all tiles with a matrix of all filters, which is what processors do best; another
transformation (A^T m A) makes outputs of it. 5 x 5 tiles cover a 19x19 board: 900 products where a direct convolution
takes 3,249.

The transformations are kernels (:mod:`engine.nets.compute.winograd_tiles`). Tiles go through in groups small enough for
the second-level cache (``TILES``).

Source: Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4; the interpolation points
are 0, 1, -1, 2, -2 and infinity.
"""

import math
import threading
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute.replacing import replaced
from engine.nets.compute.winograd_tiles import tiles_of, transform_input, transform_output

TILES = 100
"""Tiles that are multiplied at a time: four 19x19 boards"""
MIN_CHANNELS = 16
"""With fewer channels, in or out, transforming costs more than is saved."""
MIN_BOARD = 11
"""Tiles hang over the edge of smaller boards so far that little is saved: 9x9 was measured to be no faster."""
FILTER_TRANSFORM = (
    (1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6), (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)  # fmt: skip
"""G, 6 x 3"""


def transform_filters(weight: Tensor) -> Tensor:
    """float32[36, C, K]: a convolution's weights[K, C, 3, 3] at the 36 points, G g G^T, summed in float64."""
    g = torch.tensor(FILTER_TRANSFORM, dtype=torch.float64)
    points = torch.einsum("ia,kcab,jb->ijck", g, weight.double(), g)
    return points.reshape(36, weight.shape[1], weight.shape[0]).float().contiguous()


class WinogradConvolution(nn.Module):
    """Stands for a 3x3 convolution with padding. Threads: any number at once, each with working memory of its own."""

    def __init__(self, convolution: nn.Conv2d):
        super().__init__()
        self.filters = transform_filters(convolution.weight.detach())
        bias = convolution.bias
        self.bias = np.zeros(convolution.out_channels, np.float32) if bias is None else bias.detach().numpy().copy()

    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        """float32[B, K, N, N] of x[B, C, N, N], in channels-last order."""
        return as_tensor(convolved(as_lines(x), self.filters, self.bias, 1))


def as_lines(x: Tensor) -> np.ndarray:
    """float32[B, N, N, C] of a tensor [B, C, N, N], the same memory where channels lie innermost."""
    return x.detach().permute(0, 2, 3, 1).contiguous().numpy()


def as_tensor(boards: np.ndarray) -> Tensor:
    """Back from :func:`as_lines`."""
    return torch.from_numpy(boards).permute(0, 3, 1, 2)


def convolved(boards: np.ndarray, filters: Tensor, bias: np.ndarray, side: int) -> np.ndarray:
    """float32[B, N, N, K]: the convolution of boards[B, N, N, C] with transformed filters[36, C, K], bias[K] added.

    Args:
        side: boards a side of a sheet; on sheets of more than one, outputs may differ in the last bits by where in the
            batch a board is.
    """
    outputs = np.empty((*boards.shape[:3], len(bias)), np.float32)
    # Between the kernels and the product no torch function is called: each gives up the interpreter's lock, and where
    # many searches run gets it back late.
    for part, rows in groups(boards, side):
        points = MEMORY.of("input", (36, rows, boards.shape[3]))
        products = MEMORY.of("output", (36, rows, len(bias)))
        transform_input(boards[part], side, points.array, *scratch(boards.shape[3]))
        torch.bmm(points.tensor, filters, out=products.tensor)
        transform_output(products.array, outputs[part], side, bias, *scratch(len(bias)))
    return outputs


def groups(boards: np.ndarray, side: int) -> Iterator[tuple[slice, int]]:
    """Which boards[B, N, N, C] are multiplied at a time, and how many tiles these have."""
    count, size = boards.shape[:2]
    each = side**2 * max(1, TILES // tiles_of(1, size, side))
    for start in range(0, count, each):
        stop = min(count, start + each)
        yield slice(start, stop), tiles_of(stop - start, size, side)


class _Block(NamedTuple):
    """Working memory, for torch and for kernels."""

    tensor: Tensor
    array: np.ndarray


class _Memory(threading.local):
    """Working memory of a thread, by name; it grows to what was asked for and stays."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}
        self._blocks: dict[tuple[str, tuple[int, ...]], _Block] = {}

    # What came into being by inference could not be written to by the same thread while it learns.
    @torch.inference_mode(False)
    def of(self, name: str, shape: tuple[int, ...]) -> _Block:
        """float32 of a shape, holding anything; all of one name lie in the same place."""
        block = self._blocks.get((name, shape))
        if block is None:
            count = math.prod(shape)
            if name not in self._held or len(self._held[name]) < count:
                self._held[name] = torch.empty(count)
                self._blocks = {key: one for key, one in self._blocks.items() if key[0] != name}
            tensor = self._held[name][:count].view(shape)
            block = self._blocks[name, shape] = _Block(tensor, tensor.numpy())
        return block


MEMORY = _Memory()


def scratch(channels: int) -> np.ndarray:
    """float32[2, 6, 6, channels]: the kernels' working memory."""
    return MEMORY.of("scratch", (2, 6, 6, channels)).array


def with_winograd(model: nn.Module) -> nn.Module | None:
    """A copy of a float32 model on the CPU that does its large 3x3 convolutions this way; None if they hold less than
    a sixteenth of its weights, as in networks of attention: tracing, which this rules out, does more for the rest."""
    weights = sum(layer.weight.numel() for layer in model.modules() if is_eligible(layer))
    if 16 * weights < sum(values.numel() for values in model.parameters()):
        return None
    return replaced(model, lambda layer: WinogradConvolution(layer) if is_eligible(layer) else None)


def is_eligible(convolution: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether a layer is a convolution that this module does, and does faster."""
    if not isinstance(convolution, nn.Conv2d):
        return False
    is_plain = convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    is_padded = convolution.padding == (1, 1) and convolution.padding_mode == "zeros"
    channels = min(convolution.in_channels, convolution.out_channels)
    return is_plain and is_padded and convolution.kernel_size == (3, 3) and channels >= MIN_CHANNELS
