"""Layers of a model exchanged for others that compute the same, sooner."""

import copy
from collections.abc import Callable

from torch import nn


def replaced(model: nn.Module, replace: Callable[[nn.Module], nn.Module | None]) -> nn.Module:
    """A copy of a model with some of its layers exchanged.

    Args:
        replace: what takes a layer's place; None = the layer stays.
    """
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if (found := replace(child)) is not None:
                setattr(parent, name, found)
    return model
