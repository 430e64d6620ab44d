"""REINFORCE: from finished games to the gradient of a policy network.

Of each game only the learner's moves count. The gradient is that of the mean over games of

    sum over the learner's moves of  (z - v) log p(move)

with z = 1 for a game won, -1 for one lost and 0 for one drawn, seen from the learner, p the probability that the move
was drawn with (over the moves that might be played, at the game's temperature, under the symmetry that the network was
shown) and v a baseline. Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search",
2016, Methods, "Reinforcement learning of policy networks"; Williams, "Simple statistical gradient-following
algorithms for connectionist reinforcement learning", 1992.
"""

import copy
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from engine.features.encoder import ENCODERS, Encoder
from engine.go.geometry import BLACK
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.precision import autocast
from engine.nets.compute.winograd_learning import with_learning_winograd
from engine.nets.files.checkpoint import save_network
from engine.nets.network import Model, Network, NetworkSpec, with_pass
from engine.records.games import Games
from engine.train.batches import BatchBuilder, moves_under_symmetries
from engine.train.ranks import Ranks
from engine.train.shards import Shards
from engine.train.state import RunState, read_state, resuming, write_state

CHUNK = 512
"""Positions whose activations are in memory at once"""


class Experience(NamedTuple):
    """G finished games, and who learns from them."""

    games: Games
    """that began on the empty board with Black"""
    symmetries: np.ndarray
    """uint8[M]: what the position before each move was shown under"""
    rules: np.ndarray
    """int64[G, RULE_FIELDS]: played under"""
    temperatures: np.ndarray
    """float64[G]"""
    learner: np.ndarray
    """uint8[G]: the learner's colour"""


class Moves(NamedTuple):
    """The learner's B moves, game after game; passes are left out where they were no choice."""

    rows: np.ndarray
    """int64[B]: the game"""
    plies: np.ndarray
    """int64[B]: moves before it"""
    outcomes: np.ndarray
    """float32[B]: 1 won, -1 lost, 0 drawn, by the learner"""


def learners_moves(experience: Experience, is_pass_last: bool) -> Moves:
    """The moves that the learner chose.

    Args:
        is_pass_last: passes were no choice (``sensible_moves`` of :class:`engine.selfplay.table.GameConfig`).
    """
    games = experience.games
    lengths = np.diff(games.offsets)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    plies = np.arange(len(games.moves)) - games.offsets[rows]
    is_learners = (plies % 2 == 0) == (experience.learner[rows] == BLACK)
    if is_pass_last:
        is_learners &= games.moves != games.size[rows] ** 2
    rows, plies = rows[is_learners], plies[is_learners]
    sign = np.where(experience.learner == BLACK, 1, -1)
    return Moves(rows, plies, (sign * games.result)[rows].astype(np.float32))


@dataclass
class Sums:
    """What was measured over a number of moves."""

    moves: float = 0.0
    entropy: float = 0.0
    divergence: float = 0.0
    measured: float = 0.0
    """moves that ``divergence`` is of"""


class PolicyGradient:
    """Computes gradients for one network. Threads: one caller."""

    def __init__(
        self, model: Model, encoder: Encoder, is_pass_last: bool, entropy: float = 0.0,
        baseline: Network | None = None, start: Model | None = None,
    ):  # fmt: skip
        """Take the network that learns.

        Args:
            is_pass_last: as the games were played.
            entropy: how much the entropy of a move's distribution counts beside its reward.
            baseline: a value network; None = 0.
            start: what the divergence is measured from; None = it is not.
        """
        self._model, self._builder, self._is_pass_last = model, BatchBuilder(encoder), is_pass_last
        self._entropy, self._start = entropy, start
        self.shards = Shards(model, next(model.parameters()).device)
        self._start_call = with_learning_winograd(start) if start is not None and self.shards.by_winograd else start
        self._baseline = baseline

    def advantages(self, experience: Experience, moves: Moves) -> np.ndarray:
        """float32[B]: what each move's log-probability is multiplied by."""
        if self._baseline is None:
            return moves.outcomes
        builder = BatchBuilder(ENCODERS[self._baseline.spec.encoder])
        parts = _chunks(len(moves.outcomes))
        values = [self._values(self._baseline, builder, experience, moves, part) for part in parts]
        return (moves.outcomes - np.concatenate(values)).astype(np.float32)

    def _values(
        self, network: Network, builder: BatchBuilder, experience: Experience, moves: Moves, part: slice
    ) -> np.ndarray:
        """The baseline's values of the positions before some moves, for the learner."""
        planes, globals_ = self._inputs(builder, experience, moves, part)[:2]
        value = network.evaluate(planes.to(network.device), globals_.to(network.device)).value
        if value is None:
            raise ValueError(f"network {network.spec.name} has no value to be a baseline")
        return value.cpu().numpy()

    def backward(self, experience: Experience, games: int = 0) -> Sums:
        """Add the gradient of minus the mean over games to the network's; returns what was measured on the way.

        Args:
            games: those that the mean is over, of which other processes have the rest; 0 = these alone.
        """
        moves, sums = learners_moves(experience, self._is_pass_last), Sums()
        advantages = self.advantages(experience, moves)
        games = games or len(experience.games.size)
        device = next(self._model.parameters()).device
        self._model.eval()  # Normalisation stays what it was when the games were played.
        for part in _chunks(len(advantages)):
            planes, globals_, legal, played = self._inputs(self._builder, experience, moves, part)
            temperatures = torch.from_numpy(experience.temperatures[moves.rows[part]]).float()[:, None].to(device)
            shown = _Shown(
                planes.to(device, memory_format=self.shards.memory_format), globals_.to(device), legal.to(device),
                temperatures, played.to(device), torch.from_numpy(advantages[part]).to(device),
            )  # fmt: skip
            is_measured = self._start is not None and sums.measured == 0
            parts = self.shards.parts(len(planes))
            found = self.shards.backward([partial(self._loss, shown.part(one), games, is_measured) for one in parts])
            sums.moves += len(planes)
            sums.entropy += sum(entropy for entropy, _ in found)
            if is_measured:
                sums.divergence, sums.measured = sum(divergence for _, divergence in found), len(planes)
        return sums

    def _loss(self, shown: "_Shown", games: int, is_measured: bool) -> tuple[Tensor, tuple[float, float]]:
        """What some moves add to the loss, to the sum of the entropies and, where it is measured, to the divergence."""
        inputs = shown.planes, shown.globals, shown.mask, shown.temperatures
        logs = _log_probabilities(self.shards.model, *inputs)
        chosen = logs.gather(1, shown.played[:, None])[:, 0]
        entropy = -(logs.exp() * logs.masked_fill(~shown.mask, 0.0)).sum(dim=1)
        wanted = shown.advantages * chosen + self._entropy * entropy
        divergence = 0.0
        if is_measured:
            with torch.no_grad():
                before = _log_probabilities(self._start_call, *inputs)
                gap = (logs - before).masked_fill(~shown.mask, 0.0)
                divergence = float((logs.exp() * gap).sum())
        return -wanted.sum() / games, (float(entropy.detach().sum()), divergence)

    def _inputs(
        self, builder: BatchBuilder, experience: Experience, moves: Moves, part: slice
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Planes, globals, moves that might be played (bool[B, N*N+1]) and those that were (int64[B]), as shown."""
        games, rows, plies = experience.games, moves.rows[part], moves.plies[part]
        size, at = int(games.size[0]), games.offsets[rows] + plies
        shown = experience.symmetries[at].astype(np.int64)
        legal = np.empty((len(rows), size * size + 1), bool)
        planes, globals_, _ = builder.encode(
            games, rows, plies, experience.rules[rows], shown, legal, self._is_pass_last
        )
        played = moves_under_symmetries(size)[shown, games.moves[at]]
        return tuple(map(torch.from_numpy, (planes, globals_, legal, played)))  # type: ignore[return-value]


class _Shown(NamedTuple):
    """B moves as the network is shown them, on its device."""

    planes: Tensor
    globals: Tensor
    mask: Tensor
    """bool[B, N*N+1]: moves that might be played"""
    temperatures: Tensor
    played: Tensor
    """int64[B]: under the symmetry"""
    advantages: Tensor

    def part(self, rows: slice) -> "_Shown":
        """Some of them."""
        return _Shown(*(one[rows] for one in self))


def _log_probabilities(model: Any, planes: Tensor, globals_: Tensor, mask: Tensor, temperatures: Tensor) -> Tensor:
    """Logs of the probabilities that moves are drawn with, [B, N*N+1]; minus infinity where none may be played."""
    with autocast(planes.device):
        logits = model(planes, globals_).policy
    logits = with_pass(logits.float()).masked_fill(~mask, -torch.inf)
    return torch.log_softmax(logits / temperatures, dim=1)


def _chunks(count: int) -> list[slice]:
    """Parts of a number of moves."""
    return [slice(begin, min(begin + CHUNK, count)) for begin in range(0, count, CHUNK)]


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
        """Take the network to continue from.

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
        start = copy.deepcopy(self.model).eval()
        self._gradient = PolicyGradient(
            self.model, ENCODERS[spec.encoder], how.is_pass_last, how.entropy, baseline, start
        )

    def learn(self, experience: Experience) -> dict[str, float]:
        """One update by some finished games, each process with its own; returns what was measured on the way, by name.

        Raises:
            ValueError: training diverged: the gradient is NaN or infinite; the weights stay.
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
            raise ValueError(f"training diverged: the gradient is NaN or infinite at update {self.step}")
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
        return TorchNetwork(self.model, replace(self.spec, name=name), self.device)

    def save_network(self, path: Path, record: dict[str, Any]) -> None:
        """Write the network file."""
        save_network(path, self.model, self.spec, record | {"step": self.step})

    def save(self, path: Path) -> None:
        """Write all that resuming needs, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        write_state(path, RunState(self.step, model=self.model.state_dict()), self.model, OPTIMIZER)

    def load(self, path: Path) -> None:
        """Go on from a file of :meth:`save`.

        Raises:
            ValueError: not such a file, or one of another network; one line.
        """
        with resuming(path):
            state = read_state(path, self.model, self.device)
        self.model.load_state_dict(state.model)
        self.step = state.step
