"""16-bit dtypes of torch, for inference and training.

bfloat16 has the range of float32 and 8 significant bits; float16, for older GPUs, 11 bits and a smaller range.
When a network is loaded, its outputs in 16 bits are compared with those in float32 on some positions, which detects
networks that differ too much.
"""

import torch

from engine.nets.compute.by_program import HAS_BFLOAT16


def prefers_bfloat16(device: torch.device) -> bool:
    """Whether torch computes faster in :func:`reduced_dtype` on a device: CUDA, and processors with bfloat16."""
    return device.type == "cuda" or (device.type == "cpu" and HAS_BFLOAT16)


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
