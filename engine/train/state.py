"""Checkpoints: the state of a training run on disk, written atomically and checked completely before use."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.nets.files.checkpoint import write_arrays
from engine.nets.model import Model
from engine.train.muon import is_inner

MOMENTS = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")
"""Names of the tensors that any of the optimizers keeps for a parameter; see :func:`moments_of`"""
SAVE_S = 20.0
"""Seconds after which a run saves its state again, which bounds the work that a crash loses"""


@dataclass
class RunState:
    """State of a training run after ``step`` steps. Tensors have the names of the model's ``state_dict``."""

    step: int
    metrics: dict[str, float] = field(default_factory=dict)
    """metrics by name of the latest validation"""
    best: float = -math.inf
    """best value so far of the metric for early stopping, negated if less is better; -inf = no validation yet"""
    worse: int = 0
    """number of validations since the one with the best value"""
    options: dict[str, Any] = field(default_factory=dict)
    """options at the time of saving; states of older versions have fewer"""
    model: dict[str, Tensor] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)
    """averaged weights; empty in runs that keep none"""
    moments: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """by parameter, the tensors of the optimizer by name; empty before the first step"""


@contextmanager
def resuming(path: Path) -> Iterator[None]:
    """Context manager that adds the path of a run's state to a ValueError raised in its block.

    Raises:
        ValueError: the block raised a ValueError; one line.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: cannot resume this run ({error})") from error


def moments_of(optimizer: str, value: Tensor) -> set[str]:
    """Names of the tensors that an optimizer (named as in the option) keeps for the parameter ``value``."""
    has_squares = optimizer == "adamw" or (optimizer == "muon" and not is_inner(value))
    return {"step", "exp_avg", "exp_avg_sq"} if has_squares else {"momentum_buffer"}


def write_state(path: Path, state: RunState, model: Model, optimizer: str) -> None:
    """Write a state to a file atomically.

    Raises:
        OSError: the file cannot be written.
    """
    tensors = {f"average/{name}": value for name, value in state.average.items()}
    tensors |= {f"model/{name}": value for name, value in state.model.items()}
    tensors |= {f"optimizer/{key}/{name}": one for name, held in state.moments.items() for key, one in held.items()}
    facts = {
        "step": state.step, "shape": asdict(model.shape), "figures": state.metrics, "optimizer": optimizer,
        "options": state.options, "best": state.best if math.isfinite(state.best) else None, "worse": state.worse,
    }  # fmt: skip
    write_arrays(path, {name: one.detach().cpu().numpy() for name, one in tensors.items()}, facts)


def read_state(path: Path, model: Model, device: torch.device) -> RunState:
    """Read the state of a run of ``model``; its tensors are on the device, except the optimizer's step counts.

    Raises:
        ValueError: the file is damaged, of a network of another shape, or not a state; one line.
        OSError: the file cannot be read.
    """
    try:
        with safe_open(path, "pt", device=str(device)) as file:
            state = _facts((file.metadata() or {}).get("keima", ""), model)
            held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise ValueError(f"damaged: {' '.join(str(error).split())[:160]}") from error
    kinds = {"model": state.model}
    if any(name.startswith("average/") for name in held):
        kinds["average"] = state.average
    for name, value in model.state_dict().items():
        for kind, tensors in kinds.items():
            tensors[name] = _like(held.pop(f"{kind}/{name}", None), value, f"{kind}/{name}")
    for name, value in model.named_parameters():
        for key in MOMENTS:
            if (one := held.pop(at := f"optimizer/{key}/{name}", None)) is not None:
                # AdamW reads its step on the CPU; on a GPU each parameter would synchronise.
                found = _like(one.cpu(), torch.zeros(()), at) if key == "step" else _like(one, value, at)
                state.moments.setdefault(name, {})[key] = found
    if held or len(state.moments) not in (0, len(list(model.parameters()))):
        raise ValueError("damaged: the tensors are not those of a run")
    return state


def _like(found: Tensor | None, expected: Tensor, name: str) -> Tensor:
    """Check that a tensor of a state is finite and has the shape and dtype of ``expected``; returns the tensor.

    Raises:
        ValueError: the tensor ``name`` is missing (None), or does not fit.
    """
    if found is None:
        raise ValueError(f"damaged: {name} is missing")
    if found.shape != expected.shape or found.dtype != expected.dtype or not found.isfinite().all():
        shown = f"{found.dtype} of shape {tuple(found.shape)}"
        raise ValueError(f"damaged: {name} is {shown}, expected finite {expected.dtype} of {tuple(expected.shape)}")
    return found


def _facts(text: str, model: Model) -> RunState:
    """Read a state without its tensors from the JSON in the file's header.

    Raises:
        ValueError: the header is damaged, or of a network of another shape than ``model``.
    """
    try:
        facts = json.loads(text)
        shape, best = facts["shape"], facts.get("best")
        options = {**({"optimizer": facts["optimizer"]} if "optimizer" in facts else {}), **facts.get("options", {})}
        state = RunState(
            int(facts["step"]), {str(name): float(value) for name, value in facts["figures"].items()},
            -math.inf if best is None else float(best), int(facts.get("worse", 0)), options,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("damaged, or not the state of a run") from error
    if state.step < 0 or state.worse < 0:
        raise ValueError("damaged: a negative number of steps")
    with suppress(ValueError):
        # Shapes of older versions lack fields that have a default.
        if type(model.shape).read(shape) == model.shape:
            return state
    raise ValueError(f"it is of a network of shape {str(shape)[:200]}")
