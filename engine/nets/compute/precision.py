"""16-bit numbers where they are faster: which kind, and how far outputs may differ for it.

bfloat16 keeps the range of float32 and 8 bits of each number; float16, for GPUs too old for that, 11 bits and a
smaller range. A network that suffers from it is found out on a few positions when it is loaded.
"""

from math import isfinite

import torch
from torch import Tensor

from engine.nets.network import NetOutput

MAX_WIN_RATE_ERROR = 0.02
MAX_POLICY_ERROR = 0.05
"""On any move's probability"""


def prefers_bfloat16(device: torch.device) -> bool:
    """Whether torch computes faster in :func:`reduced_dtype` on a device: CUDA, and processors with bfloat16."""
    return device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())


def has_matrix_unit() -> bool:
    """Whether the processor has a unit for products of bfloat16 matrices (AMX), many times as fast as float32."""
    return bool(torch.cpu._is_amx_tile_supported())


def reduced_dtype(device: torch.device, prefers_float16: bool = False) -> torch.dtype:
    """The 16-bit numbers of a device: bfloat16, but on GPUs that only emulate it float16.

    Args:
        prefers_float16: the network needs more than bfloat16's 8-bit mantissa, and its activations fit float16; CUDA
            computes as fast in it.
    """
    if device.type == "cuda" and (prefers_float16 or not torch.cuda.is_bf16_supported(including_emulation=False)):
        return torch.float16
    return torch.bfloat16


def learns_in_bfloat16(device: torch.device) -> bool:
    """Whether networks are trained in bfloat16; GPUs that only emulate it train in float32."""
    return prefers_bfloat16(device) and reduced_dtype(device) == torch.bfloat16


def autocast(device: torch.device) -> torch.autocast:
    """The context in which a network in float32 learns and is measured: bfloat16 where the device prefers it."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=learns_in_bfloat16(device))


def training_format(device: torch.device) -> torch.memory_format:
    """How weights and planes lie in memory while a network learns.

    cuDNN and oneDNN's bfloat16 learn faster from channels last (a 6x96 network on two cores 1,035 positions/s against
    858), oneDNN's float32 on processors without bfloat16 from plain arrays (252 against 197). With one thread these
    learn otherwise: :mod:`engine.nets.compute.winograd_learning`.
    """
    return torch.channels_last if learns_in_bfloat16(device) else torch.contiguous_format


def in_units(output: NetOutput) -> dict[str, Tensor]:
    """The heads that are there, as numbers that people compare.

    Returns:
        dict: ``win rate`` [B], 0 to 1; ``policy`` [B, N*N+1], probabilities; ``score`` [B], points; ``ownership``
        [B, N, N], -1 to 1; all from the view of the side to move.
    """
    heads = {
        "win rate": None if output.value is None else (1 + output.value) / 2,
        "policy": None if output.policy is None else output.policy.softmax(1),
        "score": output.score,
        "ownership": output.ownership,
    }
    return {head: values for head, values in heads.items() if values is not None}


def differences(exact: NetOutput, rough: NetOutput) -> dict[str, float]:
    """Largest difference of each head, in the units of :func:`in_units`; NaN counts as infinite.

    Args:
        exact: outputs for some positions; ``rough`` for the same, with the same heads.
    """
    other = in_units(rough)
    return {
        head: float((one - other[head]).abs().nan_to_num(nan=torch.inf, posinf=torch.inf).max())
        for head, one in in_units(exact).items()
    }


def excess(exact: NetOutput, rough: NetOutput) -> str:
    """What is wrong with the rough outputs, in words; empty where they are close enough, and all are numbers."""
    found = differences(exact, rough)
    lost = [head for head, difference in found.items() if not isfinite(difference)]
    if lost:
        return f"outputs are no numbers ({', '.join(lost)})"
    win_rate, policy = found.get("win rate", 0.0), found.get("policy", 0.0)
    if win_rate <= MAX_WIN_RATE_ERROR and policy <= MAX_POLICY_ERROR:
        return ""
    return f"win rates move by {win_rate:.3f}, move probabilities by {policy:.3f}"
