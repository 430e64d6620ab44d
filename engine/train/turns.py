"""Training in turns: a few hundred steps on one window, then a network for self-play, then the next window.

FOLDER/state.safetensors   weights, averaged weights, optimizer and step: what resuming needs
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine.config import TrainOptions
from engine.features.encoder import ENCODERS, KEIMA
from engine.features.keima import OF_RULES, globals_of_rules
from engine.go.rules import Rules
from engine.nets.architectures.registry import ARCHITECTURES, new_model, new_spec
from engine.nets.architectures.resnet import ResNet
from engine.nets.files.checkpoint import load_model, save_network
from engine.nets.network import Model, NetworkSpec
from engine.train.dataset import prepared_ahead
from engine.train.grow import on_newest_inputs
from engine.train.learner import Learner
from engine.train.state import SAVE_S, read_state, resuming, write_state
from engine.train.window import WindowBatches

STATE = "state.safetensors"
NEW = "keima-resnet"
"""Architecture of new networks"""
SINCE = "since"
"""The step that the losses of a state are summed from"""
LOOK_EVERY = 10
"""Steps between looks at the losses, which a GPU has to be waited for"""


def first_network(shape: dict[str, int], size: int, start: Path | None, seed: int) -> tuple[Model, NetworkSpec]:
    """The network that a run begins with: one of random weights, or that of a file.

    Args:
        shape: of a new network: blocks, channels and the like.
        size: of the board that is played.
        start: a file with all four heads.
    Raises:
        ValueError: the file cannot be used, or does not play such boards; one line.
    """
    if start is None:
        torch.manual_seed(seed)
        encoder = ENCODERS[ARCHITECTURES[NEW].encoder]
        model = new_model(NEW, {"planes": encoder.planes, "globals": encoder.globals} | shape)
        return model, new_spec(model, "zero", sizes=(size, size))
    model, spec, _ = load_model(start)
    if not ("policy" in spec.heads and "value" in spec.heads):
        raise ValueError(f"{start}: expected a network with policy and value")
    if not spec.plays(size):
        raise ValueError(f"{start}: {spec.said}, not {size}")
    return on_newest_inputs(model, spec)


class TurnLearner(Learner):
    """A network that learns window after window, under one set of rules. Threads: one caller.

    A network that makes no difference between rules when the run begins, one of random weights for example, makes none
    in its files either: what the inputs of the rules come to is a bias there, since under any other rules these inputs
    would be what the network never saw.
    """

    def __init__(
        self, model: Model, spec: NetworkSpec, options: TrainOptions, device: torch.device, folder: Path, rules: Rules
    ) -> None:
        """Go on from the folder's state, if there is one.

        Args:
            model: what the run began with.
            rules: of all games.
        Raises:
            ValueError: the state cannot be read, or is one of another network or optimizer; one line.
        """
        super().__init__(model, spec, options, device)
        is_alike = isinstance(model, ResNet) and spec.encoder == KEIMA.name and model.ignores_globals(OF_RULES)
        self._folded = globals_of_rules(rules) if is_alike else {}
        self._sums: dict[str, float] = {}
        self._since = 0
        """losses by name, summed since this step: a run that was killed knows those of all its turn"""
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
        """Take the steps up to a last one, or until stopped; the state is saved either way.

        Args:
            steps: where these began, of which some may have been taken by an earlier process, and the last one.
            rate: learning rate, after the warm-up.
            report: told of the step and the latest losses by name.
        Returns:
            the mean losses of all these steps by name.
        Raises:
            ValueError: training diverged: the weights are NaN or infinite; the file keeps the last state.
            OSError: the disk is full or fails.
        """
        self.options = replace(self.options, rate=rate)
        first, last = steps
        if self._since != first:
            self._sums, self._since = {}, self.step
        sums: dict[str, torch.Tensor] = {}
        saved_s = time.monotonic()
        with closing(prepared_ahead(data.batch_at, self.step, self.tensors, self.options.workers)) as stream:
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
        """Add losses to those of the turn; ``sums`` begins anew."""
        self._sums |= {name: self._sums.get(name, 0.0) + float(total) for name, total in sums.items()}
        sums.clear()

    def save(self) -> None:
        """Write the state, whole or not at all.

        Raises:
            ValueError: the weights are NaN or infinite; the file stays as it is.
            OSError: it cannot be written.
        """
        if not all(value.isfinite().all() for value in self.average.values()):
            raise ValueError(
                f"training diverged: weights are NaN or infinite at step {self.step}; {self._path} keeps the last"
            )
        losses = {SINCE: float(self._since), **self._sums}
        write_state(self._path, self.state(metrics=losses), self.model, self.options.optimizer)

    def write_network(self, path: Path, record: dict[str, Any]) -> None:
        """Write the averaged network, ready to play.

        Args:
            record: what its file says of its training; the step is added.
        """
        model = self.averaged()
        if isinstance(model, ResNet):
            model.fold_globals(self._folded)
        save_network(path, model, self.spec, record | {"step": self.step})
