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

import threading
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute.replacing import replaced
from engine.nets.compute.winograd_tiles import transform_input, transform_output

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
        self.bias = torch.zeros(convolution.out_channels) if bias is None else bias.detach().clone()

    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        """float32[B, K, N, N] of x[B, C, N, N], in channels-last order."""
        boards = x.permute(0, 2, 3, 1).contiguous()
        count, size, _, channels = boards.shape
        outputs = torch.empty(count, size, size, len(self.bias))
        tiles = (-(-size // 4)) ** 2
        group = max(1, TILES // tiles)
        for start in range(0, count, group):
            stop = min(count, start + group)
            rows = (stop - start) * tiles
            points = _MEMORY.take("input", 36 * rows * channels).view(36, rows, channels)
            products = _MEMORY.take("output", 36 * rows * len(self.bias)).view(36, rows, -1)
            transform_input(boards[start:stop].numpy(), points.numpy(), *_scratch(channels))
            torch.bmm(points, self.filters, out=products)
            boards_out = outputs[start:stop].numpy()
            transform_output(products.numpy(), boards_out, self.bias.numpy(), *_scratch(len(self.bias)))
        return outputs.permute(0, 3, 1, 2)


class _Memory(threading.local):
    """Working memory of a thread, by name; it grows to what was asked for and stays."""

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def take(self, name: str, count: int) -> Tensor:
        """float32[count], holding anything."""
        held = self._held.get(name)
        if held is None or len(held) < count:
            held = self._held[name] = torch.empty(count)
        return held[:count]


_MEMORY = _Memory()


def _scratch(channels: int) -> np.ndarray:
    """float32[2, 6, 6, channels]: the kernels' working memory."""
    return _MEMORY.take("scratch", 72 * channels).view(2, 6, 6, channels).numpy()


def with_winograd(model: nn.Module) -> nn.Module | None:
    """A copy of a float32 model on the CPU that does its large 3x3 convolutions this way; None if they hold less than
    a sixteenth of its weights, as in networks of attention: tracing, which this rules out, does more for the rest."""
    weights = sum(layer.weight.numel() for layer in model.modules() if _is_eligible(layer))
    if 16 * weights < sum(values.numel() for values in model.parameters()):
        return None
    return replaced(model, lambda layer: WinogradConvolution(layer) if _is_eligible(layer) else None)


def _is_eligible(convolution: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether a layer is a convolution that this module does, and does faster."""
    if not isinstance(convolution, nn.Conv2d):
        return False
    is_plain = convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    is_padded = convolution.padding == (1, 1) and convolution.padding_mode == "zeros"
    channels = min(convolution.in_channels, convolution.out_channels)
    return is_plain and is_padded and convolution.kernel_size == (3, 3) and channels >= MIN_CHANNELS
