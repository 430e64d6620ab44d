"""The training loop for all architectures; a run can be interrupted and resumed at any step.

A run has one folder: ``state.safetensors`` (weights, averaged weights, optimizer and step, to resume from),
``network.safetensors`` (the averaged weights, ready to play), ``best.safetensors`` (the same at the best validation),
``curves.csv`` and ``curves.png``.

Start at :meth:`Trainer.run`. The caller supplies the module, its data and its metrics.
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
from engine.nets.model import Model
from engine.nets.network import NetworkSpec
from engine.system import one_line
from engine.system.executor import StopOnSignal
from engine.train.curves import Curves
from engine.train.dataset import Mixture
from engine.train.learner import Learner
from engine.train.state import SAVE_S, read_state, resuming, write_state

AGREE_EVERY, AGREE_S = 20, 4.0
"""Maximum number of steps, and approximately the maximum number of seconds, between synchronisations of several
processes (:meth:`Trainer._agree`). A single process checks its loss every ``AGREE_EVERY`` steps, and whether to stop or
save after each step."""
SAVE, STOP, LOST = 1, 2, 3
"""Signals between processes: time to save, a request to stop, a loss that is NaN or infinite; the largest wins"""
FREE = frozenset({"minutes", "patience", "validate_every", "save_every", "workers"})
"""Options that may change without a message when a run resumes, since they do not affect what a step does. So may the
number of steps if the schedule is one of ``STEADY``."""
DATA = {
    "games": "games", "labels": "labels", "boards": "shares of boards", "mover_rank": "lowest rank",
    "teacher": "teacher", "shown": "rules and komi for the teacher", "processes": "number of processes",
    "validation": "held-out games", "label_validation": "held-out labels",
}  # fmt: skip
"""Entries about the training data in the record of a network file, and their names in messages"""
STEADY = ("constant", "step")
"""Learning rate schedules that do not depend on the number of steps of the run"""


class Goal(NamedTuple):
    """The validation metric by which the best network is chosen and early stopping decided."""

    metric: str
    sign: int
    """1 = larger values are better, -1 = smaller values"""


Validate = Callable[[Model], dict[str, float]]
"""Computes validation metrics of a network, by name"""


class Measure(NamedTuple):
    """How to validate a network in training."""

    validate: Validate
    """computes the metrics of the averaged network"""
    goal: Goal
    """the metric by which the best network is chosen and ``patience`` counted"""


class Observer:
    """Base class of a run's observers; its methods do nothing. The first process calls them with the run's progress."""

    def at_step(self, step: int, losses: str) -> None:
        """Called at the start and after steps, with the number of steps done and the latest mean losses in words."""

    def say(self, line: str) -> None:
        """Called with a line for the log."""


def changed_options(begun: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The options that changed since a run was saved, each as "--name new (was old)", except those of :data:`FREE`.

    Args:
        begun: options saved by the run; older runs saved fewer.
        now: options with which the run resumes; those missing on one side are not compared.
    Raises:
        ValueError: the optimizer or the loss changed, with which a run cannot resume; one line.
    """
    changed = []
    for name, value in now.items():
        is_free = name in FREE or (name == "steps" and now.get("schedule") in STEADY)
        # A file holds tuples as lists.
        if is_free or name not in begun or begun[name] in (value, [*value] if isinstance(value, tuple) else value):
            continue
        if name in ("optimizer", "value_loss") or (name.endswith("_weight") and name != "decided_weight"):
            raise ValueError(
                f"the run was begun with --{key_of(name)} {begun[name]}, not {value}; "
                "another loss or optimizer needs a new run, which may --start from this run's network"
            )
        changed.append(f"--{key_of(name)} {value} (was {begun[name]})")
    return changed


def _differ(before: Mapping[str, Any], now: Mapping[str, Any], name: str) -> bool:
    """Whether an entry of :data:`DATA` differs between the records of two runs, or the contents of its files do."""
    sums = [record.get("sha256", {}) for record in (before, now)]
    return before.get(name) != now.get(name) or (all(sums) and sums[0].get(name) != sums[1].get(name))


class Trainer(Learner):
    """Trains one network, with validation, checkpoints and curves in a run folder."""

    def __init__(
        self, model: Model, spec: NetworkSpec, data: Mixture, measure: Measure, options: TrainOptions, folder: Path,
        device: torch.device, record: dict[str, Any],
    ):  # fmt: skip
        """Prepare the run, resuming from the folder's ``state.safetensors`` if there is one.

        Args:
            model: of a registered architecture.
            data: its ``ranks`` are the processes that train together.
            record: metadata of the training for network files (data, licence); step, options and metrics are added.
        Raises:
            ValueError: the folder's state cannot be read, belongs to another network, optimizer or loss, or differs
                between processes.
        """
        super().__init__(model, spec, options, device, data.ranks)
        self.data, (self.validate, self.goal) = data, measure
        self.folder, self.record = folder, record
        self.metrics: dict[str, float] = {}
        self.best, self.worse = -math.inf, 0
        self._looked_after = 1
        """steps between the last two synchronisations of several processes; 1 at first, to time a step"""
        self._changed: list[str] = []
        self._other_data: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self._state_path.exists():
                self._load()
        except OSError as error:
            raise ValueError(f"{folder}: cannot resume this run ({error})") from error
        if self.ranks.most(self.step != self.ranks.of_first(self.step, device), device):
            raise ValueError(f"{folder}: differs between processes; all machines must share one folder")
        self.curves = Curves(folder / "curves.csv", self.step) if self.ranks.is_first else None

    @property
    def _state_path(self) -> Path:
        return self.folder / "state.safetensors"

    def run(self, observer: Observer | None = None) -> dict[str, float]:
        """Train until the last step, Ctrl-C, or the limit of patience or time; returns the latest validation metrics.

        The state is saved in all these cases. If options or data changed since the last save, the observer gets a line.

        Raises:
            ValueError: the loss is NaN or infinite, or another process has failed; raised in all processes.
            OSError: the disk is full or fails.
        """
        try:
            return self._run(observer if observer and self.ranks.is_first else Observer())
        except RuntimeError as error:
            if self.ranks.count == 1:
                raise
            # A process that fails breaks the connections of the others.
            raise ValueError(
                f"process {self.ranks.rank} of {self.ranks.count} cannot continue ({one_line(error)})"
            ) from error

    def _run(self, observer: Observer) -> dict[str, float]:
        """Do :meth:`run`, but let a RuntimeError pass."""
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
            # A run that has run out of patience does nothing when its command is repeated.
            last_step = self.step if self.ranks.most(self._is_impatient(), self.device) else self.options.steps
            if self.step == 0 and "start" in self.record:
                # The first validation of the curve: whatever training makes of the network is compared with it.
                self._validate(observer)
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
        """Agree with all processes on the next action: ``SAVE``, ``STOP``, or 0 = none.

        Args:
            parts: the latest losses of this process, by name.
            is_over: this process asks to stop.
            is_long: this process asks to save, since the last save was long ago.
        Raises:
            ValueError: a loss of any process is NaN or infinite.
        """
        looks_at_loss = self.ranks.count > 1 or self.step % AGREE_EVERY == 0
        lost = looks_at_loss and not all(part.isfinite() for part in parts.values())
        agreed = self.ranks.most(LOST if lost else STOP if is_over else SAVE if is_long else 0, self.device)
        if agreed == LOST:
            raise self._diverged()
        return agreed

    def _steps_to_look(self, seconds: float) -> int:
        """Number of steps to the next synchronisation, equal in all processes.

        Args:
            seconds: time since the last synchronisation, in this process.
        """
        if self.ranks.count == 1:
            return 1
        slowest = self.ranks.most(round(1000.0 * seconds / self._looked_after), self.device) / 1000.0
        self._looked_after = max(1, min(AGREE_EVERY, int(AGREE_S / slowest) if slowest else AGREE_EVERY))
        return self._looked_after

    def _is_impatient(self) -> bool:
        """Whether ``patience`` validations passed without improvement; only the first process counts these."""
        return 0 < self.options.patience <= self.worse

    def _validate(self, observer: Observer) -> None:
        """Validate the averaged network in the first process; all others continue to the next synchronisation."""
        if not self.curves:
            return
        self.metrics = self.validate(self.averaged())
        self.curves.enter(self.step, {f"validation/{name}": value for name, value in self.metrics.items()})
        reached = self.goal.sign * self.metrics[self.goal.metric]
        self.best, self.worse = max(self.best, reached), 0 if reached > self.best else self.worse + 1
        if not self.worse:
            self._write_network("best.safetensors")
        shown = {name: value for name, value in self.metrics.items() if "/" not in name and name != "positions"}
        observer.say(f"step {self.step}: " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items()))

    def _diverged(self) -> ValueError:
        """The error to raise if losses or weights are NaN or infinite."""
        return ValueError(
            f"training diverged: weights are NaN or infinite at step {self.step}; {self.folder} keeps the last state"
        )

    def save(self) -> None:
        """Write state and network, each atomically; all processes must call this.

        Raises:
            ValueError: the weights are NaN or infinite, or (in all but the first process) the first could not write.
            OSError: the disk is full or fails; raised in the first process.
        """
        if self.ranks.most(not all(value.isfinite().all() for value in self.average.values()), self.device):
            raise self._diverged()
        self.ranks.by_first(self._write, self.device, f"{self.folder}: the first process could not save the run")

    def _write(self) -> None:
        """Write state and network; called by :meth:`save` in the first process."""
        facts = {"metrics": self.metrics, "best": self.best, "worse": self.worse, "options": self._decided_options()}
        state = self.state(**facts)
        write_state(self._state_path, state, self.model, self.options.optimizer)
        self._write_network("network.safetensors")

    def _write_network(self, name: str) -> None:
        """Write the averaged network, ready to play, to file ``name`` of the run folder."""
        record = self.record | {"step": self.step, "options": asdict(self.options), "figures": self.metrics}
        save_network(self.folder / name, self.averaged(), self.spec, record)

    def _decided_options(self) -> dict[str, Any]:
        """The options by name, with the values of defaults that depend on the optimizer."""
        return asdict(resolve(self.options, self.options.optimizer))

    def _load(self) -> None:
        """Resume from the folder's state, and note which options and data differ from those before."""
        with resuming(self._state_path):
            state = read_state(self._state_path, self.model, self.device)
            # Without a readable network file only this comparison is skipped.
            with suppress(ValueError, KeyError):
                known = read_header(self.folder / "network.safetensors")["training"]
                self._other_data = [said for name, said in DATA.items() if _differ(known, self.record, name)]
            begun = {"optimizer": self.options.optimizer} | state.options
            self._changed = changed_options(begun, self._decided_options())
            self.resume(state)
        self.metrics = state.metrics
        # With another goal or validation set, the old best value is not comparable.
        is_same = not {DATA["validation"], DATA["label_validation"]} & set(self._other_data)
        if is_same and (not self.metrics or self.goal.metric in self.metrics):
            self.best, self.worse = state.best, state.worse
