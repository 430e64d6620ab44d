"""Layers of a model exchanged for others that compute the same, sooner."""

import copy
from collections.abc import Callable

from torch import nn


def replaced(
    model: nn.Module, replace: Callable[[nn.Module], nn.Module | None], shares_values: bool = False
) -> nn.Module:
    """A copy of a model with some of its layers exchanged.

    Args:
        replace: what takes a layer's place; None = the layer stays.
        shares_values: parameters and buffers are those of the model, not copies.
    """
    values = [*model.parameters(), *model.buffers()] if shares_values else []
    model = copy.deepcopy(model, {id(value): value for value in values})
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if (found := replace(child)) is not None:
                setattr(parent, name, found)
    return model
