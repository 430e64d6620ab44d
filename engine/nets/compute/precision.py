"""Fewer bits where they are faster: which, and a check that they play the same game.

bfloat16 keeps the range of float32 and 8 bits of each number; float16, for GPUs too old for that, 11 bits and a
smaller range. A network that suffers from what it gets is told apart on a few positions when it is loaded.
"""

import torch

from engine.nets.network import NetOutput

MAX_WIN_RATE_ERROR = 0.02
MAX_POLICY_ERROR = 0.05
"""On any move's probability"""


def likes_bfloat16(device: torch.device) -> bool:
    """Whether a device is faster in bfloat16: CUDA, and processors with instructions for it."""
    return device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())


def reduced_dtype(device: torch.device, likes_float16: bool = False) -> torch.dtype:
    """The 16-bit numbers of a device: bfloat16, but on GPUs that only emulate it float16.

    Args:
        likes_float16: a network for which 8 bits of each number are few, and which stays in float16's range; CUDA
            computes as fast in it.
    """
    if device.type == "cuda" and (likes_float16 or not torch.cuda.is_bf16_supported(including_emulation=False)):
        return torch.float16
    return torch.bfloat16


def errors(exact: NetOutput, rough: NetOutput) -> tuple[float, float]:
    """Largest differences of win rate and of a move's probability; NaN counts as infinite.

    Args:
        exact: outputs for some positions; ``rough`` for the same, with the same heads.
    """
    win_rate = policy = torch.zeros(1)
    if exact.value is not None:
        win_rate = (exact.value - rough.value).abs() / 2.0
    if exact.policy is not None:
        policy = (exact.policy.softmax(1) - rough.policy.softmax(1)).abs()
    return tuple(float(error.nan_to_num(nan=torch.inf).max()) for error in (win_rate, policy))


def strays(exact: NetOutput, rough: NetOutput) -> str:
    """What is wrong with the rough outputs, in words; empty where they are close enough."""
    win_rate, policy = errors(exact, rough)
    if win_rate <= MAX_WIN_RATE_ERROR and policy <= MAX_POLICY_ERROR:
        return ""
    return f"win rates move by {win_rate:.3f}, move probabilities by {policy:.3f}"
