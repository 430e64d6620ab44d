"""The state of a run on disk, which resuming needs: written whole, and checked before any of it is used."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.nets.files.checkpoint import write_tensors
from engine.nets.network import Model
from engine.train.muon import is_inner

MOMENTS = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")
"""What optimizers keep of a parameter; see :func:`moments_of`"""
SAVE_S = 20.0
"""Seconds of work after which a run saves its state, however few steps these were: what a crash costs at most"""


@dataclass
class RunState:
    """A run after some steps. Tensors are by the names of the model's state."""

    step: int
    metrics: dict[str, float] = field(default_factory=dict)
    """of the latest validation"""
    best: float = -math.inf
    """of the metric that early stopping watches, more being better; -inf before the first validation"""
    worse: int = 0
    """validations since then"""
    options: dict[str, Any] = field(default_factory=dict)
    """the options that it was saved with; older runs kept fewer"""
    model: dict[str, Tensor] = field(default_factory=dict)
    average: dict[str, Tensor] = field(default_factory=dict)
    """empty in runs that keep none"""
    moments: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """by parameter; empty before the first step"""


@contextmanager
def resuming(path: Path) -> Iterator[None]:
    """Name the file in an error about a state that cannot be resumed from.

    Raises:
        ValueError: raised in the block; one line.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: no run can resume here ({error})") from error


def moments_of(optimizer: str, value: Tensor) -> set[str]:
    """What an optimizer, by its option, keeps of a parameter."""
    has_squares = optimizer == "adamw" or (optimizer == "muon" and not is_inner(value))
    return {"step", "exp_avg", "exp_avg_sq"} if has_squares else {"momentum_buffer"}


def write_state(path: Path, state: RunState, model: Model, optimizer: str) -> None:
    """Write a state, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    tensors = {f"average/{name}": value for name, value in state.average.items()}
    tensors |= {f"model/{name}": value for name, value in state.model.items()}
    tensors |= {f"optimizer/{key}/{name}": one for name, held in state.moments.items() for key, one in held.items()}
    facts = {
        "step": state.step, "shape": asdict(model.shape), "figures": state.metrics, "optimizer": optimizer,
        "options": state.options, "best": state.best if math.isfinite(state.best) else None, "worse": state.worse,
    }  # fmt: skip
    write_tensors(path, tensors, facts)


def read_state(path: Path, model: Model, device: torch.device) -> RunState:
    """Read a state for a model; tensors are on the device, but for the optimizer's count of steps.

    Raises:
        ValueError: damaged, of another network, or no state at all; one line.
        OSError: it cannot be read.
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
        found = {key: held.pop(f"optimizer/{key}/{name}") for key in _keys(held, name)}
        for key, one in found.items():
            # AdamW reads its step on the processor; on a GPU that would be a wait for each parameter.
            of = torch.zeros(()) if key == "step" else value
            found[key] = _like(one.cpu() if key == "step" else one, of, f"optimizer/{key}/{name}")
        if found:
            state.moments[name] = found
    if held or len(state.moments) not in (0, len(list(model.parameters()))):
        raise ValueError("damaged: the tensors are not those of a run")
    return state


def _keys(held: dict[str, Tensor], name: str) -> list[str]:
    """What a state holds of the optimizer for a parameter."""
    return [key for key in MOMENTS if f"optimizer/{key}/{name}" in held]


def _like(found: Tensor | None, expected: Tensor, name: str) -> Tensor:
    """A tensor of a state, if it can take the place of another one."""
    if found is None:
        raise ValueError(f"damaged: {name} is missing")
    if found.shape != expected.shape or found.dtype != expected.dtype or not found.isfinite().all():
        shown = f"{found.dtype} of shape {tuple(found.shape)}"
        raise ValueError(f"damaged: {name} is {shown}, expected finite {expected.dtype} of {tuple(expected.shape)}")
    return found


def _facts(text: str, model: Model) -> RunState:
    """A state without its tensors, from the file's header."""
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
        raise ValueError("damaged: a number of steps below 0")
    if not _is_of(shape, model):
        raise ValueError(f"it holds a network of shape {str(shape)[:200]}")
    return state


def _is_of(shape: Any, model: Model) -> bool:
    """Whether a header's shape, which may lack what has been added since with a default, is a model's."""
    try:
        return type(model.shape).read(shape) == model.shape
    except ValueError:
        return False
