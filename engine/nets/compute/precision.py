"""16-bit dtypes for inference and training, and the accepted differences of outputs.

bfloat16 has the range of float32 and 8 significant bits; float16, for older GPUs, 11 bits and a smaller range.
When a network is loaded, its outputs in 16 bits are compared with those in float32 on some positions, which detects
networks that differ too much.
"""

from math import isfinite

import torch
from torch import Tensor

from engine.nets.network import HEADS, NetOutput


def prefers_bfloat16(device: torch.device) -> bool:
    """Whether torch computes faster in :func:`reduced_dtype` on a device: CUDA, and processors with bfloat16."""
    return device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())


def has_matrix_unit() -> bool:
    """Whether the processor has a unit for products of bfloat16 matrices (AMX), many times as fast as float32."""
    return bool(torch.cpu._is_amx_tile_supported())


def reduced_dtype(device: torch.device, prefers_float16: bool = False) -> torch.dtype:
    """The 16-bit dtype of a device: bfloat16, or float16 on GPUs that only emulate bfloat16.

    Args:
        prefers_float16: the network needs more than bfloat16's 8 bits, and its activations fit float16, which is as
            fast on CUDA.
    """
    if device.type == "cuda" and (prefers_float16 or not torch.cuda.is_bf16_supported(including_emulation=False)):
        return torch.float16
    return torch.bfloat16


def learns_in_bfloat16(device: torch.device) -> bool:
    """Whether networks are trained in bfloat16; GPUs that only emulate it train in float32."""
    return prefers_bfloat16(device) and reduced_dtype(device) == torch.bfloat16


def autocast(device: torch.device) -> torch.autocast:
    """The autocast context for training and metrics of a float32 network: bfloat16 if the device prefers it."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=learns_in_bfloat16(device))


def training_format(device: torch.device) -> torch.memory_format:
    """The memory format of weights and planes in training.

    cuDNN and oneDNN in bfloat16 are faster with channels last (a 6x96 network on two cores 1,035 positions/s against
    858), oneDNN in float32 on processors without bfloat16 with contiguous arrays (252 against 197). With one thread
    such processors use :mod:`engine.nets.compute.winograd_learning`.
    """
    return torch.channels_last if learns_in_bfloat16(device) else torch.contiguous_format


def in_units(output: NetOutput) -> dict[str, Tensor]:
    """The heads that are not None, in the units of :data:`engine.nets.network.HEADS`, by unit.

    Returns:
        dict: ``policy`` [B, N*N+1], probabilities; ``win rate`` [B], 0 to 1; ``score`` [B], points; ``ownership``
        [B, N, N], -1 to 1; all from the view of the side to move.
    """
    found = output._asdict().items()
    return {HEADS[name].unit: HEADS[name].in_unit(values) for name, values in found if values is not None}


def differences(exact: NetOutput, rough: NetOutput) -> dict[str, float]:
    """Largest difference of each head, in the units of :func:`in_units`; NaN counts as infinite.

    Args:
        exact, rough: outputs with the same heads for the same positions.
    """
    other = in_units(rough)
    return {
        unit: float((one - other[unit]).abs().nan_to_num(nan=torch.inf, posinf=torch.inf).max())
        for unit, one in in_units(exact).items()
    }


def excess(exact: NetOutput, rough: NetOutput) -> str:
    """Text for differences that are too large for play; empty if the outputs are finite and close enough."""
    found = differences(exact, rough)
    if lost := [unit for unit, difference in found.items() if not isfinite(difference)]:
        return f"outputs are NaN or infinite ({', '.join(lost)})"
    deciding = {head.unit: head.limit_16 for head in HEADS.values() if head.decides and head.unit in found}
    if all(found[unit] <= limit for unit, limit in deciding.items()):
        return ""
    return " and ".join(f"{unit} moves by {found[unit]:.3f}" for unit in deciding)
