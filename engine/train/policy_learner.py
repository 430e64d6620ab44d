"""A policy network that learns by reinforcement: its weights, its optimizer, one update, and all of it on disk.

Who plays whom and when is :mod:`engine.selfplay.reinforce`'s matter.
"""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.config.declaration import no_branch
from engine.features.encoder import ENCODERS
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.files.checkpoint import save_network
from engine.nets.network import Model, Network, NetworkSpec
from engine.train.policy_gradient import Experience, PolicyGradient
from engine.train.state import State, read_state, write_state

OPTIMIZERS = ("sgd", "adam")
ADAM_BETAS = (0.9, 0.99)


class PolicyLearner:
    """One network that learns. Threads: one caller."""

    def __init__(
        self, model: Model, spec: NetworkSpec, device: torch.device, optimizer: str, rate: float, is_pass_last: bool,
        entropy: float = 0.0, normalise: bool = False, clip: float = 0.0, baseline: Network | None = None,
        start: Model | None = None,
    ):  # fmt: skip
        """Take the network to go on from.

        Args:
            model: with a policy; changed.
            optimizer: one of ``OPTIMIZERS``; SGD has no momentum, as published.
            rate: learning rate.
            clip: longest gradient; 0 = any.
            is_pass_last, entropy, normalise, baseline, start: as for :class:`PolicyGradient`.
        """
        self.model, self.spec, self.device, self.step = model.to(device), spec, device, 0
        self._kind, self._rate, self._clip = optimizer, rate, clip
        self._optimizer = _new_optimizer(self.model, optimizer, rate)
        known = None if baseline is None else (baseline, ENCODERS[baseline.spec.encoder])
        start = None if start is None else start.to(device).eval()
        encoder = ENCODERS[spec.encoder]
        self._gradient = PolicyGradient(self.model, encoder, is_pass_last, entropy, normalise, known, start)

    def learn(self, experience: Experience) -> dict[str, float]:
        """One update by some finished games; returns what was measured on the way, by name.

        Raises:
            ValueError: the gradient is no number any more; the weights stay.
        """
        self._optimizer.zero_grad(set_to_none=True)
        sums = self._gradient.backward(experience)
        length = nn.utils.clip_grad_norm_(self.model.parameters(), self._clip or torch.inf)
        if not length.isfinite():
            raise ValueError(f"the gradient is no number any more at update {self.step}")
        self._optimizer.step()
        self.step += 1
        measured = {"entropy": sums.entropy / max(1, sums.moves), "gradient": float(length)}
        if sums.measured:
            measured["divergence"] = sums.divergence / sums.measured
        return measured

    def network(self, name: str) -> TorchNetwork:
        """The network as it is now, ready to play."""
        spec = self.spec
        named = NetworkSpec(**asdict(spec) | {"name": name})
        return TorchNetwork(self.model, named, self.device)

    def save_network(self, path: Path, record: dict[str, Any]) -> None:
        """Write the network file."""
        save_network(path, self.model, self.spec, record | {"step": self.step})

    def save(self, path: Path) -> None:
        """Write all that going on needs, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        named = dict(self.model.named_parameters())
        moments = {name: dict(held) for name, value in named.items() if (held := self._optimizer.state.get(value))}
        state = State(self.step, {}, -math.inf, 0, {}, self.model.state_dict(), {}, moments)
        write_state(path, state, self.model, self._kind)

    def load(self, path: Path) -> None:
        """Go on from a file of :meth:`save`.

        Raises:
            ValueError: not such a file, or one of another network or optimizer; one line.
        """
        try:
            state = read_state(path, self.model, self.device)
            if state.options["optimizer"] != self._kind:
                raise ValueError(f"begun with optimizer {state.options['optimizer']}, not {self._kind}")
        except ValueError as error:
            raise ValueError(f"{path}: no run can go on from this ({error})") from error
        self.model.load_state_dict(state.model)
        self.step = state.step
        for name, value in self.model.named_parameters():
            if name in state.moments:
                self._optimizer.state[value].update(state.moments[name])


def _new_optimizer(model: nn.Module, kind: str, rate: float) -> torch.optim.Optimizer:
    """The optimizer of a name."""
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate)
    if kind == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate, betas=ADAM_BETAS)
    raise no_branch("optimizer", kind)
