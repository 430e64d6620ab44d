"""3x3 convolutions by Winograd's filtering while a network learns: outputs, and the gradients of inputs and filters.

All three are products at the 36 points of :mod:`engine.nets.compute.winograd`, and a gradient goes back through a
transformation by its transpose, so a step takes 2,700 products for each pair of channels of a 19x19 board, where direct
convolutions take 9,747. Inputs are transformed a second time on the way back: that costs less than to keep the points.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.nets.compute.precision import prefers_bfloat16
from engine.nets.compute.replacing import replaced
from engine.nets.compute.winograd import (
    FILTER_TRANSFORM,
    MEMORY,
    as_lines,
    as_tensor,
    convolved,
    groups,
    is_eligible,
    scratch,
)
from engine.nets.compute.winograd_tiles import best_side, input_gradient, output_gradient, transform_input

_G = torch.tensor(FILTER_TRANSFORM)
FILTER_POINTS = torch.einsum("ia,jb->ijab", _G, _G).reshape(36, 9)
"""What a filter's nine weights count for at each point, G x G; float32 is enough while weights change at every step"""


class _Convolve(torch.autograd.Function):
    """The convolution with padding of x[B, C, N, N] with weight[K, C, 3, 3], bias[K] added."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """float32[B, K, N, N], channels last."""
        ctx.save_for_backward(x, weight)
        return as_tensor(convolved(as_lines(x), _at_points(weight), bias.detach().numpy(), best_side(x.shape[2])))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """The gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        boards, outputs = as_lines(x), as_lines(gradients[0])
        filters = _at_points(weight)
        back = filters.mT.contiguous()
        channels, count, side = boards.shape[3], outputs.shape[3], best_side(x.shape[2])
        of_filters = torch.zeros_like(filters)
        of_boards = np.empty_like(boards) if ctx.needs_input_grad[0] else None
        for part, rows in groups(boards, side):
            points = MEMORY.of("input", (36, rows, channels))
            products = MEMORY.of("output", (36, rows, count))
            transform_input(boards[part], side, points.array, *scratch(channels))
            output_gradient(outputs[part], side, products.array, *scratch(count))
            of_filters.baddbmm_(points.tensor.mT, products.tensor)
            if of_boards is not None:
                torch.bmm(products.tensor, back, out=points.tensor)
                input_gradient(points.array, of_boards[part], side, *scratch(channels))
        of_weight = (FILTER_POINTS.T @ of_filters.view(36, -1)).view(3, 3, channels, count).permute(3, 2, 0, 1)
        of_bias = torch.from_numpy(outputs.sum(axis=(0, 1, 2)))
        return None if of_boards is None else as_tensor(of_boards), of_weight, of_bias


def _at_points(weight: Tensor) -> Tensor:
    """float32[36, C, K]: a convolution's weights[K, C, 3, 3] at the 36 points."""
    lines = weight.detach().permute(2, 3, 1, 0).reshape(9, -1)
    return (FILTER_POINTS @ lines).view(36, weight.shape[1], weight.shape[0])


class LearningConvolution(nn.Module):
    """Stands for a 3x3 convolution with padding, whose parameters it shares."""

    def __init__(self, convolution: nn.Conv2d):
        super().__init__()
        self.convolution = convolution

    def forward(self, x: Tensor) -> Tensor:
        """See :class:`_Convolve`."""
        bias = self.convolution.bias
        weight = self.convolution.weight
        return _Convolve.apply(x, weight, weight.new_zeros(len(weight)) if bias is None else bias)


def learns_by_winograd(device: torch.device) -> bool:
    """Whether networks learn faster this way: on processors without bfloat16, by one thread, which the kernels take."""
    return device.type == "cpu" and not prefers_bfloat16(device) and torch.get_num_threads() == 1


def with_learning_winograd(model: nn.Module) -> nn.Module:
    """The model with its large 3x3 convolutions done this way, on the same parameters and buffers; on the CPU."""
    return replaced(model, lambda layer: LearningConvolution(layer) if is_eligible(layer) else None, shares_values=True)
