"""The one training loop: batches in, checkpoints and curves out; can be interrupted and resumed at any step.

A run lives in one folder: ``state.safetensors`` (weights, averaged weights, optimizer, step: what resuming needs),
``network.safetensors`` (the averaged weights, ready to play), ``best.safetensors`` (the same at the validation that was
best by the run's goal), ``curves.csv`` and ``curves.png``.

Start at :meth:`Trainer.run`. What differs between networks comes from outside: the module, its data, its metrics.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from engine.config import TrainOptions
from engine.config.declaration import key_of, resolve
from engine.nets.files.checkpoint import save_network
from engine.nets.files.header import read_header
from engine.nets.network import Model, NetworkSpec
from engine.system import one_line
from engine.system.executor import StopOnSignal
from engine.train.curves import Curves
from engine.train.dataset import Mixture
from engine.train.learner import Learner
from engine.train.state import SAVE_S, read_state, resuming, write_state

AGREE_EVERY, AGREE_S = 20, 4.0
"""The most steps, and about the most seconds, between looks of several processes at whether any was asked to stop, has
lost its loss or is to save; one process alone looks at its loss every 20 steps, at the rest after each."""
SAVE, STOP, LOST = 1, 2, 3
"""What processes tell each other: it is time to save, one was asked to stop, the loss of one is NaN; the largest
counts"""
FREE = frozenset({"minutes", "patience", "validate_every", "save_every", "workers"})
"""Options that say how long and with what effort a run continues, not what it does; they may differ. The number
of steps is one only where the rate does not fall with them."""
DATA = {
    "games": "games", "labels": "labels", "boards": "shares of boards", "teacher": "teacher",
    "shown": "rules and komi for the teacher", "processes": "number of processes",
    "validation": "held-out games", "label_validation": "held-out labels",
}  # fmt: skip
"""What a network file's record says of what the run learns from, and what that is called"""
STEADY = ("constant", "halving")
"""Schedules that do not look at the number of steps"""


class Goal(NamedTuple):
    """The metric that early stopping watches."""

    metric: str
    sign: int
    """1 = more is better, -1 = less is"""


Validate = Callable[[Model], dict[str, float]]
"""Metrics of a network by name"""


class Measure(NamedTuple):
    """How a network is measured in training."""

    validate: Validate
    """called with the averaged network"""
    goal: Goal
    """which of the metrics ``patience`` watches"""


class Observer:
    """Receives the progress of a run, in the first of its processes alone; this one ignores it."""

    def at_step(self, step: int, losses: str) -> None:
        """``step`` steps are done; ``losses`` are the latest means in words."""

    def say(self, line: str) -> None:
        """Something worth a line: metrics of a validation, the end."""


def changed_options(begun: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that differ from those a run was saved with, each as "--name new (was old)", but for :data:`FREE`.

    Options that only one of the two knows are not compared: older runs kept fewer.

    Raises:
        ValueError: the optimizer, whose state is resumed, or what is minimised differs; one line.
    """
    changed = []
    for name in now:
        is_free = name in FREE or (name == "steps" and now.get("schedule") in STEADY)
        if is_free or name not in begun or now[name] == begun[name]:
            continue
        if name in ("optimizer", "value_loss") or (name.endswith("_weight") and name != "decided_weight"):
            raise ValueError(
                f"the run was begun with --{key_of(name)} {begun[name]}, not {now[name]}; "
                "another loss or optimizer needs a run of its own, --start may be this one's network"
            )
        changed.append(f"--{key_of(name)} {now[name]} (was {begun[name]})")
    return changed


class Trainer(Learner):
    """Trains one network in one run folder."""

    def __init__(
        self, model: Model, spec: NetworkSpec, data: Mixture, measure: Measure, options: TrainOptions, folder: Path,
        device: torch.device, record: dict[str, Any],
    ):  # fmt: skip
        """Prepare the run, resuming from the folder's ``state.safetensors`` if there is one.

        Args:
            model: of a registered architecture.
            data: also knows the processes that train together.
            record: the network file's record of its training (data, licence); step and metrics are added.
        Raises:
            ValueError: the folder's state cannot be read, belongs to another network, optimizer or loss, or is not the
                same in all processes.
        """
        super().__init__(model, spec, options, device, data.ranks)
        self.data, (self.validate, self.goal) = data, measure
        self.folder, self.record = folder, record
        self.metrics: dict[str, float] = {}
        self.best, self.worse = -math.inf, 0
        self._looked_after = 1
        """steps from the last look of several processes to the next; the first step tells how long steps take"""
        self._changed: list[str] = []
        self._other_data: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._state_path.exists():
                self._load()
        except OSError as error:
            raise ValueError(f"{folder}: no run can resume here ({error})") from error
        if self.ranks.most(self.step != self.ranks.of_first(self.step, device), device):
            raise ValueError(f"{folder}: not the same in all processes; every machine must see one folder")
        self.curves = Curves(folder / "curves.csv", self.step) if self.ranks.is_first else None

    @property
    def _state_path(self) -> Path:
        return self.folder / "state.safetensors"

    def run(self, observer: Observer | None = None) -> dict[str, float]:
        """Train to the last step, to Ctrl-C or until patience or time ends; returns the latest validation metrics.

        The state is saved in all these cases. If a run resumes, the observer hears which options and data have changed.

        Raises:
            ValueError: the loss is NaN or infinite, or another process has failed; in all processes at once.
            OSError: the disk is full or fails.
        """
        try:
            return self._run(observer if observer and self.ranks.is_first else Observer())
        except RuntimeError as error:
            if self.ranks.count == 1:
                raise
            # One that has failed alone breaks the connections of the others.
            raise ValueError(
                f"process {self.ranks.rank} of {self.ranks.count} cannot continue ({one_line(error)})"
            ) from error

    def _run(self, observer: Observer) -> dict[str, float]:
        """:meth:`run`, errors as they come."""
        stream = self.data.stream(self.step, self.tensors)
        began, waited, first_step = time.perf_counter(), 0.0, self.step
        saved, looked, look_at = began, began, self.step + 1
        with StopOnSignal() as stop, ExitStack() as stack:
            stack.callback(stream.close)
            observer.at_step(self.step, "training")
            if self._changed:
                observer.say(f"resuming with other options than before: {', '.join(self._changed)}")
            if self._other_data:
                observer.say(f"resuming with other {', '.join(self._other_data)} than before")
            if self.curves and self.curves.dropped:
                observer.say(f"{self.folder / 'curves.csv'}: {self.curves.dropped} damaged lines left out")
            # A run whose patience has ended does nothing more when its command is given again.
            last_step = self.step if self.ranks.most(self._is_impatient(), self.device) else self.options.steps
            while self.step < last_step:
                asked = time.perf_counter()
                tensors = next(stream)
                waited += time.perf_counter() - asked
                parts = self.one_step(tensors, self.data.echo_symmetry(self.step))
                self.step += 1
                if self.curves:
                    self.curves.add(parts)
                if self.step % self.options.validate_every == 0 or self.step == self.options.steps:
                    self._validate(observer)
                agreed = 0
                if self.step == look_at:
                    observer.at_step(self.step, self.curves.summary() if self.curves else "")
                    now = time.perf_counter()
                    late = 0.0 < 60.0 * self.options.minutes <= now - began
                    agreed = self._agree(parts, stop.asked or late or self._is_impatient(), now - saved > SAVE_S)
                    if agreed == STOP:
                        break
                    look_at += self._steps_to_look(now - looked)
                    looked = now
                if self.step % self.options.save_every == 0 or agreed == SAVE:
                    self.save()
                    saved = time.perf_counter()
        self.save()
        if self.curves and self.step > first_step:
            self.curves.write_means()
            share = waited / (time.perf_counter() - began)
            observer.say(f"step {self.step}; {share:.1%} of the time was spent waiting for data")
            self.curves.plot(self.folder / "curves.png")
        return self.metrics

    def _agree(self, parts: Mapping[str, torch.Tensor], is_over: bool, is_long: bool) -> int:
        """What the processes do next: ``SAVE``, ``STOP`` or 0, nothing.

        Raises:
            ValueError: the loss of one of them is NaN or infinite.
        """
        looks_at_loss = self.ranks.count > 1 or self.step % AGREE_EVERY == 0
        lost = looks_at_loss and not all(part.isfinite() for part in parts.values())
        agreed = self.ranks.most(LOST if lost else STOP if is_over else SAVE if is_long else 0, self.device)
        if agreed == LOST:
            raise self._diverged()
        return agreed

    def _steps_to_look(self, seconds: float) -> int:
        """Steps to the next look, the same in all processes.

        Args:
            seconds: since the last one, in this process.
        """
        if self.ranks.count == 1:
            return 1
        slowest = self.ranks.most(round(1000.0 * seconds / self._looked_after), self.device) / 1000.0
        self._looked_after = max(1, min(AGREE_EVERY, int(AGREE_S / slowest) if slowest else AGREE_EVERY))
        return self._looked_after

    def _is_impatient(self) -> bool:
        """Whether nothing has become better for as long as is waited for; known to the first process alone."""
        return 0 < self.options.patience <= self.worse

    def _validate(self, observer: Observer) -> None:
        """Measure the averaged network; the first process does, the others continue until they wait for it."""
        if not self.curves:
            return
        self.metrics = self.validate(self.averaged())
        self.curves.validated(self.step, self.metrics)
        reached = self.goal.sign * self.metrics[self.goal.metric]
        self.best, self.worse = max(self.best, reached), 0 if reached > self.best else self.worse + 1
        if not self.worse:
            self._write_network("best.safetensors")
        shown = {name: value for name, value in self.metrics.items() if "/" not in name and name != "positions"}
        observer.say(f"step {self.step}: " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items()))

    def _diverged(self) -> ValueError:
        """The error of a run that has come to nothing."""
        return ValueError(
            f"training diverged: weights are NaN or infinite at step {self.step}; {self.folder} keeps the last state"
        )

    def save(self) -> None:
        """Write state and network, each atomically; all processes must call.

        Raises:
            ValueError: the weights are NaN or infinite, or the first process could not write.
            OSError: in the first process, it could not.
        """
        if self.ranks.most(not all(value.isfinite().all() for value in self.average.values()), self.device):
            raise self._diverged()
        failed: OSError | None = None
        if self.ranks.is_first:
            try:
                self._write()
            except OSError as error:
                failed = error
        if self.ranks.most(failed is not None, self.device):
            raise failed or ValueError(f"{self.folder}: the first process could not save the run")

    def _write(self) -> None:
        """:meth:`save` in the process that writes."""
        facts = {"metrics": self.metrics, "best": self.best, "worse": self.worse, "options": self._decided_options()}
        state = self.state(**facts)
        write_state(self._state_path, state, self.model, self.options.optimizer)
        self._write_network("network.safetensors")

    def _write_network(self, name: str) -> None:
        """Write the averaged network, ready to play."""
        record = self.record | {"step": self.step, "options": asdict(self.options), "figures": self.metrics}
        save_network(self.folder / name, self.averaged(), self.spec, record)

    def _decided_options(self) -> dict[str, Any]:
        """The options by name, with everything decided that was left to the engine."""
        return asdict(resolve(self.options, self.options.optimizer))

    def _load(self) -> None:
        """Resume from the folder's state."""
        with resuming(self._state_path):
            state = read_state(self._state_path, self.model, self.device)
            # A network file that is gone or damaged says nothing; the state is resumed without it.
            with suppress(ValueError, KeyError):
                known = read_header(self.folder / "network.safetensors")["training"]
                self._other_data = [said for name, said in DATA.items() if known.get(name) != self.record.get(name)]
            begun = {"optimizer": self.options.optimizer} | state.options
            self._changed = changed_options(begun, self._decided_options())
            self.resume(state)
        self.metrics = state.metrics
        # By another goal, or on other positions, the best says nothing of what is measured from now on.
        is_same = not {DATA["validation"], DATA["label_validation"]} & set(self._other_data)
        if is_same and (not self.metrics or self.goal.metric in self.metrics):
            self.best, self.worse = state.best, state.worse
