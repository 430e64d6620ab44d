"""Convolutions whose weights lie as oneDNN wants them, and matrices as MKL does.

torch hands oneDNN the weights of a convolution as they are, and oneDNN puts them into a layout of its own in every
call: some 40 us for 96 channels to 96, nearly as long as the convolution of one 9x9 board takes. Here that happens
once. The layout depends on the board's size, and where torch has more than one thread on the batch as well; one that
does not fit is converted in every call, so slowly that the network takes thirty times as long. So weights are
packed for each board size, for callers with one thread, and only where all batches want the same layout. All this was
found and measured on x86 processors and is done on these alone: on others oneDNN hands convolutions on to libraries
with layouts of their own.

oneDNN also multiplies matrices of 16-bit numbers, and takes 15 to 30 us to begin. The small matrices of a head are
multiplied in float32, which takes 6.
"""

import copy
import functools
import platform
import warnings

import torch
from torch import Tensor, nn

from engine.nets.compute.replacing import replaced

PROCESSORS = ("x86_64", "amd64")
"""Names of ``platform.machine()``, in small letters"""
BATCHES = (1, 2, 8, 64)
"""Batch sizes that must agree on a layout."""
TOLERANCE = 0.01
"""Packed or not, the same numbers are multiplied; bfloat16 has eight bits of them."""
SMALL_MATRIX = 1 << 15
"""Numbers in a matrix that is multiplied in float32; larger ones are faster in 16 bits once a batch is a few boards."""


def _convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int], stride: list[int], dilation: list[int],
    groups: int,
) -> Tensor:  # fmt: skip
    """One call of oneDNN, as :func:`_scripted` reads it."""
    return torch.ops.mkldnn._convolution_pointwise(x, weight, bias, padding, stride, dilation, groups, "none", [], None)


@functools.cache
def _scripted() -> torch.jit.ScriptFunction:
    """:func:`_convolve` as a script: a trace cannot write the empty list of numbers itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(_convolve)


class PackedConvolution(nn.Module):
    """What ``nn.Conv2d`` computes, in the same order of operations, for boards of one size."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, convolution: nn.Conv2d, weight: Tensor):
        """Take the place of a convolution; ``weight`` is what :func:`_packed_weight` made of its own."""
        super().__init__()
        self._how = _how(convolution)
        self.register_buffer("weight", weight)
        self.register_buffer("bias", None if convolution.bias is None else convolution.bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        """[B, K, N, N] of x[B, C, N, N], in the dtype of the weights and channels-last order."""
        return _scripted()(x, self.weight, self.bias, *self._how)


class Float32Linear(nn.Module):
    """What ``nn.Linear`` computes of one row a board, in float32; 16 bits come and go."""

    def __init__(self, linear: nn.Linear):
        """Take the place of a matrix."""
        super().__init__()
        self._few_rows = copy.deepcopy(linear).float()
        self._many_rows = linear

    def forward(self, x: Tensor) -> Tensor:
        """[..., K] of x[..., C], in the dtype of x."""
        if x.dim() > 2:  # A row a point, as attention has them.
            return self._many_rows(x)
        return self._few_rows(x.float()).to(x.dtype)


def with_packed_weights(model: nn.Module, size: int) -> nn.Module:
    """A copy of a model on the CPU with packed convolutions, to be traced; the model itself where torch cannot do so.

    Args:
        model: float32, or bfloat16 on a processor that has it.
        size: N of the boards that it will evaluate.
    """
    if torch.get_num_threads() > 1 or not _can_pack():
        return model
    return replaced(model, lambda layer: _packed(layer, size))


def _packed(layer: nn.Module, size: int) -> nn.Module | None:
    """What computes the same as a layer and sooner; None where there is nothing."""
    if isinstance(layer, nn.Conv2d):
        return _packed_convolution(layer, size)
    if isinstance(layer, nn.Linear) and layer.weight.numel() <= SMALL_MATRIX and layer.weight.dtype != torch.float32:
        return Float32Linear(layer)
    return None


def _packed_convolution(convolution: nn.Conv2d, size: int) -> PackedConvolution | None:
    """The same convolution with packed weights; None where these do not serve every batch, or do not compute it."""
    if convolution.padding_mode != "zeros" or isinstance(convolution.padding, str):
        return None
    try:
        weight = _packed_weight(convolution, size)
    except RuntimeError:  # 16-bit numbers on a processor without instructions for them
        return None
    if weight is None:
        return None
    packed = PackedConvolution(convolution, weight)
    x = torch.linspace(-1.0, 1.0, 2 * convolution.in_channels * size**2).view(2, -1, size, size)
    x = x.to(dtype=convolution.weight.dtype, memory_format=torch.channels_last)
    # torch promises nothing about calls that begin with an underscore.
    return packed if torch.allclose(packed(x), convolution(x), rtol=TOLERANCE, atol=TOLERANCE) else None


def is_meant_for(machine: str) -> bool:
    """Whether weights are packed on processors that ``platform.machine()`` calls so."""
    return machine.lower() in PROCESSORS


def _can_pack() -> bool:
    """Whether this is such a processor, and torch has oneDNN, exposes what is needed of it and compiles scripts."""
    if not is_meant_for(platform.machine()):
        return False
    names = ("_convolution_pointwise", "_reorder_convolution_weight", "_get_mkldnn_serialized_md")
    if not torch.backends.mkldnn.is_available() or not all(hasattr(torch.ops.mkldnn, name) for name in names):
        return False
    try:
        _scripted()
    except Exception:  # Scripts are on their way out of torch; networks are only slower without.
        return False
    return True


def _packed_weight(convolution: nn.Conv2d, size: int) -> Tensor | None:
    """Weights in oneDNN's layout for boards of one size; None if batches do not agree on one."""
    plain = convolution.weight.detach().contiguous(memory_format=torch.channels_last)
    how, channels = _how(convolution), convolution.in_channels
    packed = [
        torch.ops.mkldnn._reorder_convolution_weight(plain, *how, [batch, channels, size, size]) for batch in BATCHES
    ]
    layouts = [torch.ops.mkldnn._get_mkldnn_serialized_md(weight) for weight in packed]
    return packed[0] if all(torch.equal(layout, layouts[0]) for layout in layouts) else None


def _how(convolution: nn.Conv2d) -> tuple[list[int], list[int], list[int], int]:
    """Padding (in numbers), stride, dilation and groups, as oneDNN takes them."""
    assert not isinstance(convolution.padding, str)
    return list(convolution.padding), list(convolution.stride), list(convolution.dilation), convolution.groups
