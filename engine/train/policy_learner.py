"""A policy network that learns by reinforcement: its weights, one update, and all of it on disk.

Who plays whom and when is :mod:`engine.selfplay.reinforce`'s matter.
"""

import copy
import math
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from engine.features.encoder import ENCODERS
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.files.checkpoint import save_network
from engine.nets.network import Model, Network, NetworkSpec
from engine.train.policy_gradient import Experience, PolicyGradient, Sums
from engine.train.ranks import Ranks
from engine.train.shards import Shards
from engine.train.state import RunState, read_state, write_state

OPTIMIZER = "sgd"
"""Without momentum, as published; what a state says of it"""


class Learning(NamedTuple):
    """How a policy learns from games."""

    rate: float
    """of SGD, without momentum as published"""
    is_pass_last: bool
    """as the games were played"""
    entropy: float
    """how much the entropy of a move's distribution counts beside its reward"""
    clip: float
    """longest gradient; 0 = any"""


class PolicyLearner:
    """One network that learns, alone or as one of several processes with the same weights. Threads: one caller."""

    def __init__(
        self, model: Model, spec: NetworkSpec, device: torch.device, how: Learning, baseline: Network | None,
        ranks: Ranks,
    ):  # fmt: skip
        """Take the network to go on from.

        Args:
            model: with a policy; changed. Divergence is measured from what it is now.
            baseline: its values are taken off the rewards; None = nothing is.
            ranks: the processes that learn together.
        """
        self.model, self.spec, self.device, self.step = model.to(device), spec, device, 0
        # torch's stubs know the memory format of tensors alone.
        self.model.to(memory_format=Shards(self.model, device).memory_format)  # type: ignore[call-overload]
        self._how, self._ranks = how, ranks
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=how.rate)
        known = None if baseline is None else (baseline, ENCODERS[baseline.spec.encoder])
        self._gradient = PolicyGradient(
            self.model, ENCODERS[spec.encoder], how.is_pass_last, how.entropy, known, copy.deepcopy(self.model).eval()
        )

    def learn(self, experience: Experience) -> dict[str, float]:
        """One update by some finished games, each process with its own; returns what was measured on the way, by name.

        Raises:
            ValueError: the gradient is no number any more; the weights stay.
        """
        gradients = []
        for value in self.model.parameters():
            # Of heads that have no part in it too, so that all processes know the same ones.
            value.grad = torch.zeros_like(value)
            gradients.append(value.grad)
        (games,) = self._ranks.total([len(experience.games.size)], self.device)
        sums = self._gradient.backward(experience, int(games))
        self._ranks.add(gradients)
        sums = Sums(*self._ranks.total(astuple(sums), self.device))
        length = nn.utils.clip_grad_norm_(self.model.parameters(), self._how.clip or torch.inf)
        if not length.isfinite():
            raise ValueError(f"the gradient is no number any more at update {self.step}")
        self._optimizer.step()
        self.step += 1
        measured = {"entropy": sums.entropy / max(1, sums.moves), "gradient": float(length)}
        if sums.measured:
            measured["divergence"] = sums.divergence / sums.measured
        return measured

    @property
    def said(self) -> str:
        """How it learns, in words."""
        return self._gradient.shards.said

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
        state = RunState(self.step, {}, -math.inf, 0, {}, self.model.state_dict(), {}, {})
        write_state(path, state, self.model, OPTIMIZER)

    def load(self, path: Path) -> None:
        """Go on from a file of :meth:`save`.

        Raises:
            ValueError: not such a file, or one of another network; one line.
        """
        try:
            state = read_state(path, self.model, self.device)
        except ValueError as error:
            raise ValueError(f"{path}: no run can go on from this ({error})") from error
        self.model.load_state_dict(state.model)
        self.step = state.step
