"""What a device can do at most, and the operations that a network needs: what benches compare speeds with."""

import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.nets.compute.precision import prefers_bfloat16, reduced_dtype
from engine.nets.network import Model

WARM_UP = 3


def matrix_rate(device: torch.device, side: int, products: int) -> float:
    """Operations a second of square matrix products on random numbers, a multiplication with its addition as two.

    In 16 bits where networks run in 16 bits, else in float32.

    Args:
        side: rows and columns.
        products: to take the time of together.
    """
    dtype = reduced_dtype(device) if prefers_bfloat16(device) else torch.float32
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(left)

    def multiply(count: int) -> float:
        for _ in range(count):
            torch.mm(left, right, out=out)
        # Reading a number waits for the device, whichever it is.
        float(out[0, 0])
        return time.perf_counter()

    start = multiply(WARM_UP)
    return products * 2.0 * side**3 / (multiply(products) - start)


def forward_flops(model: Model, size: int) -> int:
    """Operations of one position's convolutions and matrix products on a board of ``size`` x ``size``, counted from
    their shapes without computing; the model's weights are lost, as it moves to the device ``meta``."""
    outline = model.to("meta")
    planes = torch.zeros(1, model.shape.planes, size, size, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        outline(planes, torch.zeros(1, model.shape.globals, device="meta"))
    return counter.get_total_flops()
