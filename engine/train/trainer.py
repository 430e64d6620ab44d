"""The one training loop: batches in, checkpoints and curves out; can be interrupted and resumed at any step.

A run lives in one folder: ``state.safetensors`` (weights, averaged weights, optimizer, step: what resuming needs),
``network.safetensors`` (the averaged weights, ready to play), ``curves.csv`` and ``curves.png``.
"""

import json
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.config import TrainOptions
from engine.nets.checkpoint import save_network
from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet
from engine.train.dataset import Batch, Mixture
from engine.train.losses import LossWeights, combined_loss, to_targets
from engine.train.metrics import Curves

Validate = Callable[[ResNet], dict[str, float]]


def learning_rate(step: int, options: TrainOptions) -> float:
    """Linear warm-up, a plateau, and a linear fall to zero over the last ``decay_share`` of the run."""
    rising = min(1.0, (step + 1) / max(1, options.warmup))
    falling = min(1.0, (options.steps - step) / max(1.0, options.steps * options.decay_share))
    return options.rate * rising * max(0.0, falling)


class Trainer:
    """Trains one :class:`ResNet` in one run folder."""

    def __init__(
        self, model: ResNet, spec: NetworkSpec, data: Mixture, validate: Validate, options: TrainOptions, folder: Path,
        device: torch.device, record: dict[str, Any],
    ):  # fmt: skip
        """Prepare the run, going on from the folder's ``state.safetensors`` if there is one.

        Args:
            validate: figures of the averaged network, by name.
            record: what the network file says of its training (data, licence); step and figures are added.
        Raises:
            ValueError: the folder's state belongs to another network.
        """
        self.model = model.to(device=device, memory_format=torch.channels_last)
        self.spec, self.data, self.validate, self.options = spec, data, validate, options
        self.folder, self.device, self.record = folder, device, record
        self.average = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        decayed = [value for value in self.model.parameters() if value.ndim > 1]
        plain = [value for value in self.model.parameters() if value.ndim <= 1]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": options.weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=options.rate,
            betas=(0.9, 0.99),
        )
        self.reduced = device.type == "cuda" or torch.cpu._is_avx512_bf16_supported()
        self.step = 0
        self.figures: dict[str, float] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self._state_path.exists():
            self._load()
        self.curves = Curves(folder / "curves.csv", self.step)

    @property
    def _state_path(self) -> Path:
        return self.folder / "state.safetensors"

    def run(self) -> dict[str, float]:
        """Train to the last step or to Ctrl-C; returns the latest validation figures. State is saved either way."""
        stop = _StopOnSignal()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        stream = self.data.stream(self.step)
        with stop, Progress(*columns, console=_error_console()) as progress:
            task = progress.add_task("training", total=self.options.steps, completed=self.step)
            while self.step < self.options.steps and not stop.asked:
                parts = self._one_step(next(stream))
                self.step += 1
                self.curves.add(parts)
                if self.step % 20 == 0:
                    progress.update(task, completed=self.step, description=self.curves.summary())
                if self.step % self.options.validate_every == 0 or self.step == self.options.steps:
                    self._validate()
                    progress.console.print(f"step {self.step}: {_figures_text(self.figures)}")
                if self.step % self.options.save_every == 0:
                    self.save()
        stream.close()
        self.save()
        self.curves.plot(self.folder / "curves.png")
        return self.figures

    def _one_step(self, batch: Batch) -> dict[str, Tensor]:
        """One gradient step; returns the parts of the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.options)
        planes = torch.from_numpy(batch.planes).to(self.device, memory_format=torch.channels_last)
        globals_ = torch.from_numpy(batch.globals).to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.reduced):
            outputs = self.model(planes, globals_)
        loss, parts = combined_loss(outputs, to_targets(batch, self.device), LossWeights())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        # The average starts as a plain mean of the first steps, so that it is useful from the beginning.
        keep = min(self.options.ema, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                self.average[name].lerp_(value, 1 - keep)
        return parts

    def averaged(self) -> ResNet:
        """A copy of the network with the averaged weights."""
        model = ResNet(self.model.shape).to(self.device, memory_format=torch.channels_last)
        model.load_state_dict(self.average)
        return model.eval()

    def _validate(self) -> None:
        self.figures = self.validate(self.averaged())
        self.curves.validated(self.step, self.figures)

    def save(self) -> None:
        """Write state and network, each atomically."""
        tensors = {f"average/{name}": value for name, value in self.average.items()}
        tensors |= {f"model/{name}": value for name, value in self.model.state_dict().items()}
        for name, value in self.model.named_parameters():
            for key, moment in self.optimizer.state.get(value, {}).items():
                tensors[f"optimizer/{key}/{name}"] = moment
        facts = {"step": self.step, "shape": asdict(self.model.shape), "figures": self.figures}
        part = self._state_path.with_suffix(".part")
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in tensors.items()},
            part,
            metadata={"keima": json.dumps(facts)},
        )
        part.replace(self._state_path)
        record = self.record | {"step": self.step, "options": asdict(self.options), "figures": self.figures}
        save_network(self.folder / "network.safetensors", self.averaged(), self.spec, record)

    def _load(self) -> None:
        with safe_open(self._state_path, "pt", device=str(self.device)) as file:
            facts = json.loads(file.metadata()["keima"])
            if facts["shape"] != asdict(self.model.shape):
                raise ValueError(f"{self._state_path}: holds a network of shape {facts['shape']}")
            self.model.load_state_dict({name: file.get_tensor(f"model/{name}") for name in self.average})
            self.average = {name: file.get_tensor(f"average/{name}") for name in self.average}
            held = set(file.keys())
            for name, value in self.model.named_parameters():
                kinds = ("step", "exp_avg", "exp_avg_sq")
                keys = {kind: f"optimizer/{kind}/{name}" for kind in kinds}
                if keys["step"] in held:
                    self.optimizer.state[value] = {kind: file.get_tensor(key) for kind, key in keys.items()}
        self.step = facts["step"]
        self.figures = facts["figures"]


class _StopOnSignal:
    """Turns Ctrl-C into a request to stop after the step at hand; a second one interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "_StopOnSignal":
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _error_console():
    from rich.console import Console

    return Console(stderr=True)


def _figures_text(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
