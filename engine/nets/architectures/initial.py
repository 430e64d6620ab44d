"""The weights that training begins with."""

from typing import Literal

from torch import Tensor, nn


def draw_normal(weight: Tensor, nonlinearity: Literal["relu", "linear"] = "relu") -> None:
    """Fill a layer's weight with random numbers that keep the size of what goes through it (He et al., 2015).

    A weight on the device ``meta`` stays as it is: to draw none there, torch would import its compiler, which takes a
    second of every start.

    Args:
        nonlinearity: what follows the layer, as ``torch.nn.init`` calls it.
    """
    if not weight.is_meta:
        nn.init.kaiming_normal_(weight, nonlinearity=nonlinearity)
