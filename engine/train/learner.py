"""Gradient steps of a network, the moving average of its weights, and the state to resume from."""

import copy
import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from engine.config import TrainOptions
from engine.config.declaration import no_branch, resolve
from engine.nets.compute.precision import autocast
from engine.nets.compute.winograd_learning import one_torch_thread
from engine.nets.model import Model
from engine.nets.network import NetworkSpec
from engine.train.batches import TrainingBatch, under_symmetry
from engine.train.losses import combined_loss
from engine.train.muon import BETAS, Muon
from engine.train.ranks import Ranks
from engine.train.shards import Shards
from engine.train.state import RunState, moments_of


def learning_rate(step: int, options: TrainOptions) -> float:
    """Learning rate of a step (from 0): linear warm-up times the schedule; linear and cosine schedules end at zero."""
    rate = options.rate * min(1.0, (step + 1) / max(1, options.warmup))
    left = max(0.0, (options.steps - step) / options.steps)
    if options.schedule == "linear":
        return rate * min(1.0, left / options.decay_share) if options.decay_share > 0.0 else rate
    if options.schedule == "cosine":
        return rate * 0.5 * (1.0 - math.cos(math.pi * left))
    if options.schedule == "step":
        drops = sum(step >= at for at in options.drop_at) if options.drop_at else step // options.drop_every
        return rate * options.drop_factor**drops
    if options.schedule == "constant":
        return rate
    raise no_branch("schedule", options.schedule)


def new_optimizer(model: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    """New AdamW, Muon or SGD with momentum, by the options; vectors (biases, norms) get no weight decay."""
    decayed = [value for value in model.parameters() if value.ndim > 1]
    plain = [value for value in model.parameters() if value.ndim <= 1]
    decay = resolve(options, options.optimizer).weight_decay
    groups = [{"params": decayed, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]
    if options.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=options.rate, momentum=options.momentum)
    # On CPUs torch's default is a loop over the parameters.
    fused = next(model.parameters()).device.type == "cpu" or None
    if options.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=options.rate, betas=BETAS, fused=fused)
    if options.optimizer == "muon":
        return Muon(groups, options.rate, fused)
    raise no_branch("optimizer", options.optimizer)


class Learner:
    """Trains a network by gradient steps; holds its averaged weights and optimizer. Threads: one caller."""

    def __init__(
        self, model: Model, spec: NetworkSpec, options: TrainOptions, device: torch.device, ranks: Ranks | None = None
    ):
        """Prepare training.

        Args:
            model: of a registered architecture; modified in place.
            ranks: the processes that train together; None = this one alone.
        """
        self.model, self.ranks = model.to(device), ranks or Ranks()
        self.shards = Shards(self.model, device, self.ranks.count > 1)
        self.memory_format = self.shards.memory_format
        # torch's stubs know the memory format of tensors alone.
        self.model.to(memory_format=self.memory_format)  # type: ignore[call-overload]
        self.spec, self.options, self.device = spec, options, device
        self.average = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.optimizer = new_optimizer(self.model, options)
        self.step = 0
        self._call = self.ranks.wrap(self.shards.model)

    def one_step(self, batch: dict[str, Tensor], symmetry: int = 0) -> dict[str, Tensor]:
        """Take one gradient step on a batch; returns its losses (scalars) by name.

        Args:
            batch: the result of :meth:`tensors`.
            symmetry: further symmetry of the whole batch, 0 to 7; 0 = identity.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.options)
        tensors = {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}
        tensors = under_symmetry(tensors, symmetry)
        tensors["planes"] = tensors["planes"].contiguous(memory_format=self.memory_format)
        self._call.train()
        self.optimizer.zero_grad(set_to_none=True)
        count = len(tensors["planes"])
        found = self.shards.backward([partial(self._loss, tensors, part, count) for part in self.shards.parts(count)])
        parts = {name: sum((one[name] for one in found[1:]), found[0][name]) for name in found[0]}
        with one_torch_thread(self.shards.is_apart):
            self._step()
        return parts

    def _loss(self, batch: dict[str, Tensor], part: slice, count: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Contribution of a slice of a batch of ``count`` positions to the batch's loss and to its losses by name."""
        tensors = {name: tensor[part] for name, tensor in batch.items()}
        with autocast(self.device):
            outputs = self._call(tensors["planes"], tensors["globals"])
        loss, parts = combined_loss(outputs, tensors, self.options)
        share = (part.stop - part.start) / count
        return (loss, parts) if share == 1.0 else (loss * share, {name: one * share for name, one in parts.items()})

    def _step(self) -> None:
        """Clip the gradients, update the weights, and update their moving averages."""
        if self.options.clip > 0.0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        # The average starts as a plain mean of the first steps, so that early averages are useful too.
        keep = min(self.options.ema, (1 + self.step) / (10 + self.step))
        moving: list[tuple[Tensor, Tensor]] = []
        others: list[tuple[Tensor, Tensor]] = []
        for name, value in self.model.state_dict().items():
            (moving if value.is_floating_point() else others).append((self.average[name], value))
        with torch.no_grad():
            # All at once, as torch's own averages: one by one a GPU waits for the CPU.
            torch._foreach_lerp_([mean for mean, _ in moving], [value for _, value in moving], 1 - keep)
            for kept, value in others:
                kept.copy_(value)

    def tensors(self, batch: TrainingBatch) -> dict[str, Tensor]:
        """A batch as CPU tensors by field; in page-locked memory for a GPU, so that copies to it are asynchronous."""
        tensors = {name: torch.from_numpy(array) for name, array in batch._asdict().items()}
        return {name: one.pin_memory() for name, one in tensors.items()} if self.device.type == "cuda" else tensors

    def averaged(self) -> Model:
        """A copy of the network with the averaged weights in place of its own, in evaluation mode."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.average)
        return model.eval()

    def state(self, **facts: Any) -> RunState:
        """The state from which :meth:`resume` continues; ``facts`` are further fields of :class:`RunState`."""
        held = self.optimizer.state
        moments = {name: dict(held[value]) for name, value in self.model.named_parameters() if value in held}
        return RunState(self.step, model=self.model.state_dict(), average=self.average, moments=moments, **facts)

    def resume(self, state: RunState) -> None:
        """Restore weights, averaged weights, optimizer and step from a state.

        Raises:
            ValueError: the state is of another optimizer, or incomplete; one line.
        """
        optimizer = self.options.optimizer
        begun = state.options.get("optimizer", optimizer)
        if begun != optimizer:
            raise ValueError(f"begun with optimizer {begun}, not {optimizer}")
        if not state.average:
            raise ValueError("damaged: no averaged weights")
        values = dict(self.model.named_parameters())
        if any(found.keys() != moments_of(optimizer, values[name]) for name, found in state.moments.items()):
            raise ValueError(f"damaged: no state of {optimizer} for some parameters")
        self.model.load_state_dict(state.model)
        self.average = {
            name: _laid_out_as(value, state.average[name]) for name, value in self.model.state_dict().items()
        }
        self.step = state.step
        for name, value in self.model.named_parameters():
            moments = {kind: _laid_out_as(value, one) for kind, one in state.moments.get(name, {}).items()}
            self.optimizer.state[value].update(moments)


def _laid_out_as(value: Tensor, found: Tensor) -> Tensor:
    """``found`` in the memory format of ``value`` if shapes are equal, else unchanged.

    Files do not store memory formats, and fused optimizers need equal strides.
    """
    return torch.empty_like(value).copy_(found) if found.shape == value.shape else found
