"""REINFORCE: from finished games to the gradient of a policy network.

Only the learner's moves of each game count. The objective is the mean over games of

    sum over the learner's moves of  (z - v) log p(move)

with z = 1 if the learner won the game, -1 if it lost, 0 for a draw; p the probability with which the move was sampled
(among the playable moves, at the game's temperature, under the symmetry of the network's input); and v a baseline.
Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", 2016, Methods,
"Reinforcement learning of policy networks"; Williams, "Simple statistical gradient-following algorithms for
connectionist reinforcement learning", 1992.
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
from engine.nets.compute.precision import autocast
from engine.nets.compute.winograd_learning import with_learning_winograd
from engine.nets.files.checkpoint import save_network
from engine.nets.model import Model, plain_of
from engine.nets.network import Network, NetworkSpec, with_pass
from engine.nets.on_device import network_on
from engine.records.games import Games
from engine.train.batches import BatchBuilder, moves_under_symmetries
from engine.train.ranks import Ranks
from engine.train.shards import Shards
from engine.train.state import RunState, read_state, resuming, write_state

CHUNK = 512
"""Maximum number of positions in one forward and backward pass, which bounds memory"""


class Experience(NamedTuple):
    """G finished games, M moves, in each of which the learner played one colour."""

    games: Games
    """games of one board size, from the empty board, Black first"""
    symmetries: np.ndarray
    """uint8[M]: symmetry of the network's input from which each move was sampled"""
    rules: np.ndarray
    """int64[G, RULE_FIELDS]: rules and komi of each game"""
    temperatures: np.ndarray
    """float64[G]: temperature at which the learner's moves were sampled in each game"""
    learner: np.ndarray
    """uint8[G]: the learner's colour"""


class Moves(NamedTuple):
    """The learner's B moves in G games, game after game, without forced passes."""

    rows: np.ndarray
    """int64[B]: index of the move's game"""
    plies: np.ndarray
    """int64[B]: number of moves of the game before the move"""
    outcomes: np.ndarray
    """float32[B]: result of the move's game, 1 = won by the learner, -1 = lost, 0 = drawn"""


def learners_moves(experience: Experience, is_pass_last: bool) -> Moves:
    """The moves that the learner chose.

    Args:
        is_pass_last: the learner passed only for lack of a sensible move (``sensible_moves`` of
            :class:`engine.selfplay.table.GameConfig`): passes were not chosen, and are left out.
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
    """Statistics of the learner's moves, as sums over moves: number, entropy, divergence."""

    moves: float = 0.0
    entropy: float = 0.0
    divergence: float = 0.0
    measured: float = 0.0
    """number of moves over which ``divergence`` is summed"""


class PolicyGradient:
    """Computes REINFORCE's gradients for one policy network. Threads: one caller."""

    def __init__(
        self, model: Model, encoder: Encoder, is_pass_last: bool, entropy: float = 0.0,
        baseline: Network | None = None, start: Model | None = None,
    ):  # fmt: skip
        """Prepare gradients of a network.

        Args:
            is_pass_last: as in :func:`learners_moves`.
            entropy: coefficient of the entropy bonus.
            baseline: value network that gives the baseline v; None = 0.
            start: policy from which to measure the network's divergence; None = do not measure it.
        """
        self._model, self._builder, self._is_pass_last = model, BatchBuilder(encoder), is_pass_last
        self._entropy, self._start = entropy, start
        self.shards = Shards(model, next(model.parameters()).device)
        self._start_call = with_learning_winograd(start) if start is not None and self.shards.by_winograd else start
        self._baseline = baseline

    def advantages(self, experience: Experience, moves: Moves) -> np.ndarray:
        """float32[B]: the advantage z - v of each move.

        Raises:
            ValueError: the baseline network has no value head.
        """
        network = self._baseline
        if network is None:
            return moves.outcomes
        builder, values = BatchBuilder(ENCODERS[network.spec.encoder]), []
        for part in _chunks(len(moves.outcomes)):
            planes, globals_ = self._inputs(builder, experience, moves, part)[:2]
            value = network.evaluate(planes.cpu().numpy(), globals_.cpu().numpy()).value
            if value is None:
                raise ValueError(f"network {network.spec.name} has no value head for a baseline")
            values.append(value)
        return (moves.outcomes - np.concatenate(values)).astype(np.float32)

    def backward(self, experience: Experience, games: int = 0) -> Sums:
        """Add the gradient of minus the objective (see the module) to the network's gradients; returns statistics.

        Args:
            games: number of games of all processes together; 0 = the number in ``experience``.
        """
        moves, sums = learners_moves(experience, self._is_pass_last), Sums()
        advantages = self.advantages(experience, moves)
        games = games or len(experience.games.size)
        device = next(self._model.parameters()).device
        self._model.eval()  # Batch normalisation as when the games were played.
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
        """Contributions of moves to the loss, and to the sums of entropy and divergence (0 unless ``is_measured``).

        Args:
            games: number of games of all processes, by which the loss is divided.
        """
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
        """Planes, globals, playable moves (bool[B, N*N+1]) and move played (int64[B]) of each of the learner's moves in
        ``part``, under the symmetry of its sampling.
        """
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
    """Network input and targets of B of the learner's moves, on the network's device."""

    planes: Tensor
    globals: Tensor
    mask: Tensor
    """bool[B, N*N+1]: playable moves, under the symmetry of the input"""
    temperatures: Tensor
    played: Tensor
    """int64[B]: policy index of the move played, under the symmetry of the input"""
    advantages: Tensor

    def part(self, rows: slice) -> "_Shown":
        """A slice of the moves."""
        return _Shown(*(one[rows] for one in self))


def _log_probabilities(model: Any, planes: Tensor, globals_: Tensor, mask: Tensor, temperatures: Tensor) -> Tensor:
    """Log-probability of sampling each move, [B, N*N+1]; minus infinity for moves that are not playable.

    Args:
        mask: bool[B, N*N+1]: playable moves.
        temperatures: float32[B, 1].
    """
    with autocast(planes.device):
        logits = model(planes, globals_).policy
    logits = with_pass(logits.float()).masked_fill(~mask, -torch.inf)
    return torch.log_softmax(logits / temperatures, dim=1)


def _chunks(count: int) -> list[slice]:
    """Consecutive slices of ``count`` moves, of at most ``CHUNK`` moves each."""
    return [slice(begin, min(begin + CHUNK, count)) for begin in range(0, count, CHUNK)]


OPTIMIZER = "sgd"
"""Name of the optimizer in saved states: SGD, here without momentum, as in AlphaGo"""


class Learning(NamedTuple):
    """Hyperparameters of REINFORCE."""

    rate: float
    """learning rate of SGD without momentum"""
    is_pass_last: bool
    """as in :func:`learners_moves`"""
    entropy: float
    """coefficient of the entropy bonus"""
    clip: float
    """norm to which larger gradients are clipped; 0 = no clipping"""


class PolicyLearner:
    """Trains one policy network by REINFORCE, in one process or data-parallel in several. Threads: one caller."""

    def __init__(
        self, model: Model, spec: NetworkSpec, device: torch.device, how: Learning, baseline: Network | None,
        ranks: Ranks,
    ):  # fmt: skip
        """Prepare training.

        Args:
            model: with a policy head; modified in place. The divergence is measured from its initial weights.
            baseline: value network that gives the baseline v; None = 0.
            ranks: the processes that train together.
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
        self.shards = self._gradient.shards

    def learn(self, experience: Experience) -> dict[str, float]:
        """Update the weights once from finished games, other games in each process; returns metrics by name.

        Raises:
            ValueError: training diverged: the gradient is NaN or infinite; the weights are not changed.
        """
        gradients = []
        for value in self.model.parameters():
            # For unused heads too, so that all processes reduce the same tensors.
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

    def network(self, name: str) -> Network:
        """The current network, ready to play."""
        made: Network = network_on(plain_of(self.model), replace(self.spec, name=name), str(self.device))
        return made

    def save_network(self, path: Path, record: dict[str, Any]) -> None:
        """Write the current network to a file, ready to play.

        Args:
            record: metadata of the network's training, stored in the file; the step is added.
        """
        save_network(path, self.model, self.spec, record | {"step": self.step})

    def save(self, path: Path) -> None:
        """Write the state to resume from, atomically.

        Raises:
            OSError: the file cannot be written.
        """
        write_state(path, RunState(self.step, model=self.model.state_dict()), self.model, OPTIMIZER)

    def load(self, path: Path) -> None:
        """Resume from a file of :meth:`save`.

        Raises:
            ValueError: the file is no such state, or of another network; one line.
        """
        with resuming(path):
            state = read_state(path, self.model, self.device)
        self.model.load_state_dict(state.model)
        self.step = state.step
