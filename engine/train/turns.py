"""Training in ``keima zero``: a few hundred steps on one window of rows, then a network for self-play, and so on.

FOLDER/state.safetensors   weights, averaged weights, optimizer and step, to resume from

The window contains the newest rows of self-play; its size grows by a power law of the number of all rows. A batch is a
pure function of (seed, step) and the rows of the window, so a run that records the shards of its window resumes with
the same batches. Sources: Wu, "Accelerating Self-Play Learning in Go", 2019 (arXiv 1902.10565), appendix C; KataGo's
``python/shuffle.py``.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.config import TrainOptions
from engine.features.encoder import ENCODERS, KEIMA, Encoder
from engine.features.keima import OF_RULES, globals_of_rules
from engine.go.rules import Rules
from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.architectures.resnet import ResNet
from engine.nets.files.checkpoint import save_network
from engine.nets.model import Model, load_model, new_model
from engine.nets.network import NetworkSpec
from engine.records.search_rows import SearchRows
from engine.train.batches import BatchBuilder, TrainingBatch
from engine.train.dataset import draw_by_mass, prepared_ahead
from engine.train.grow import on_newest_inputs
from engine.train.learner import Learner
from engine.train.state import SAVE_S, read_state, resuming, write_state

STATE = "state.safetensors"
NEW = "keima-resnet"
"""Name of the architecture of networks that start from random weights, if the shape names none"""
SINCE = "since"
"""Entry of a state's metrics: the step from which the other entries sum the losses"""
LOOK_EVERY = 10
"""Number of steps between reports of the losses, since reading a loss waits for the GPU"""


def window_rows(rows: int, scale: int, exponent: float, slope: float) -> int:
    """Number of rows in the window when a run has ``rows`` (N) rows: all of them up to c, then a power law.

    Args:
        scale: c: number of rows up to which the window contains all rows.
        exponent: alpha: exponent of the power law.
        slope: beta: growth of the window for each new row, at N = c.
    Source: c * (1 + beta * ((N / c) ** alpha - 1) / alpha), Wu 2019, appendix C.
    """
    if rows <= scale:
        return rows
    return min(rows, round(scale * (1.0 + slope * ((rows / scale) ** exponent - 1.0) / exponent)))


def newest(counts: list[int], wanted: int) -> int:
    """The smallest number of newest shards with at least ``wanted`` rows in total; all shards if there are fewer rows.

    Args:
        counts: number of rows of each shard, oldest shard first.
    """
    total = 0
    for k, count in enumerate(reversed(counts)):
        if total >= wanted:
            return k
        total += count
    return len(counts)


class WindowBatches:
    """Training batches from one window: rows drawn in proportion to their weights, under random symmetries."""

    def __init__(self, encoder: Encoder, rows: SearchRows, batch: int, seed: int) -> None:
        """Prepare drawing batches of ``batch`` positions from ``rows``.

        Raises:
            ValueError: the sum of all weights is 0.
        """
        self._builder, self._rows, self._batch, self._seed = BatchBuilder(encoder), rows, batch, seed
        self._mass = np.cumsum(rows.weight, dtype=np.float64)
        if not len(self._mass) or self._mass[-1] <= 0.0:
            raise ValueError("no rows to train on")

    def batch_at(self, step: int) -> TrainingBatch:
        """The batch of one step. Threads: any."""
        rng = np.random.default_rng([self._seed, step])
        which = draw_by_mass(self._mass, rng, self._batch)
        symmetries = rng.integers(0, 8, self._batch)
        return self._builder.from_search_rows(self._rows, which, symmetries)


def first_network(shape: dict[str, Any], size: int, start: Path | None, seed: int) -> tuple[Model, NetworkSpec]:
    """The initial network of a run, from a file or with random weights.

    Args:
        shape: ``network``, the architecture, and blocks, channels and so on of a network with random weights; what the
            architecture does not have is left out.
        size: board size of the run.
        start: file of a network with policy and value; None = random weights.
        seed: random seed of the weights.
    Raises:
        ValueError: the file cannot be used, or its network does not play this board size; one line.
    """
    if start is None:
        torch.manual_seed(seed)
        name = shape.get("network", NEW)
        architecture = ARCHITECTURES[name]
        encoder = ENCODERS[architecture.encoder]
        wanted = {"planes": encoder.planes, "globals": encoder.globals, "size": size} | shape
        has = {item.name for item in fields(architecture.shape)}
        model = new_model(name, {key: value for key, value in wanted.items() if key in has})
        return model, new_spec(model, "zero", sizes=(size, size))
    model, spec, _ = load_model(start)
    if not ("policy" in spec.heads and "value" in spec.heads):
        raise ValueError(f"{start}: expected a network with policy and value")
    if not spec.plays(size):
        raise ValueError(f"{start}: {spec.said}, not {size}")
    return on_newest_inputs(model, spec)


class TurnLearner(Learner):
    """Trains the network of ``keima zero`` on one window after another, under one set of rules. Threads: one caller.

    If the initial network ignores the input features of the rules, as one with random weights does, these features,
    constant in training, are folded into a bias in the files written: under other rules the network would otherwise get
    inputs on which it was never trained.
    """

    def __init__(
        self, model: Model, spec: NetworkSpec, options: TrainOptions, device: torch.device, folder: Path, rules: Rules
    ) -> None:
        """Resume from the folder's state, if there is one.

        Args:
            model: the initial network of the run.
            rules: the rules of all games of the run.
        Raises:
            ValueError: the state cannot be read, or is of another network or optimizer; one line.
        """
        super().__init__(model, spec, options, device)
        is_alike = isinstance(model, ResNet) and spec.encoder == KEIMA.name and model.ignores_globals(OF_RULES)
        self._folded = globals_of_rules(rules) if is_alike else {}
        self._sums: dict[str, float] = {}
        self._since = 0
        """step from which ``_sums`` adds up losses by name; both survive a kill in the middle of a window"""
        self._path = folder / STATE
        if self._path.exists():
            with resuming(self._path):
                state = read_state(self._path, self.model, device)
                self.resume(state)
                self._since = int(state.metrics.pop(SINCE, state.step))
                self._sums = state.metrics

    def learn(
        self, data: WindowBatches, steps: tuple[int, int], rate: float, is_stopped: Callable[[], bool],
        report: Callable[[int, dict[str, float]], None],
    ) -> dict[str, float]:  # fmt: skip
        """Train to the last step, or until stopped; the state is saved in either case.

        Args:
            steps: first and last step of the window; an earlier process may have done some of these steps.
            rate: learning rate, after the warm-up.
            report: called every ``LOOK_EVERY`` steps with the step and the latest losses by name.
        Returns:
            by name, the mean losses of the window's steps so far.
        Raises:
            ValueError: training diverged: the weights are NaN or infinite; the file keeps the last good state.
            OSError: the disk is full or fails.
        """
        self.options = replace(self.options, rate=rate)
        first, last = steps
        if self._since != first:
            self._sums, self._since = {}, self.step
        sums: dict[str, torch.Tensor] = {}
        saved_s = time.monotonic()
        with closing(
            prepared_ahead(lambda step: self.tensors(data.batch_at(step)), self.step, self.options.workers)
        ) as stream:
            while self.step < last and not is_stopped():
                parts = self.one_step(next(stream))
                self.step += 1
                sums |= {name: sums[name] + part if name in sums else part for name, part in parts.items()}
                if self.step % LOOK_EVERY == 0:
                    report(self.step, {name: float(part) for name, part in parts.items()})
                if time.monotonic() - saved_s > SAVE_S:
                    self._add(sums)
                    self.save()
                    saved_s = time.monotonic()
        self._add(sums)
        self.save()
        return {name: total / (self.step - self._since) for name, total in self._sums.items()}

    def _add(self, sums: dict[str, torch.Tensor]) -> None:
        """Add sums of losses (by name, on the device) to those of the window, and clear ``sums``."""
        self._sums |= {name: self._sums.get(name, 0.0) + float(total) for name, total in sums.items()}
        sums.clear()

    def save(self) -> None:
        """Write the state to resume from, atomically.

        Raises:
            ValueError: the averaged weights are NaN or infinite; the file is not changed.
            OSError: the file cannot be written.
        """
        if not all(value.isfinite().all() for value in self.average.values()):
            raise ValueError(
                f"training diverged: weights are NaN or infinite at step {self.step}; {self._path} keeps the last state"
            )
        losses = {SINCE: float(self._since), **self._sums}
        write_state(self._path, self.state(metrics=losses), self.model, self.options.optimizer)

    def write_network(self, path: Path, record: dict[str, Any]) -> None:
        """Write the averaged network, ready to play.

        Args:
            record: metadata of the training for the file; the step is added.
        """
        model = self.averaged()
        if isinstance(model, ResNet):
            with torch.no_grad():
                model.fold_globals(self._folded)
        save_network(path, model, self.spec, record | {"step": self.step})
