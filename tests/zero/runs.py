"""Runs of the loop of AlphaGo Zero on 3x3, for its tests."""

import torch

from engine.config import TrainOptions
from engine.selfplay.search_options import SearchPlayOptions
from engine.zero.loop import Zero
from engine.zero.options import ZeroConfig, ZeroOptions
from engine.zero.turn import Progress

CPU = torch.device("cpu")
CONFIG = ZeroConfig(
    ZeroOptions(first_rows=120, rows=60, samples=4.0, batch=16, window=100, at_once=4),
    SearchPlayOptions(size=3, visits=8, fast_visits=4, full_share=0.5, komi=2.0),
    TrainOptions(schedule="constant", warmup=10, ema=0.9),
    {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 8},
)


class Stopping(Progress):
    """Stops a run as soon as a phase has come so far."""

    def __init__(self, phase="", done=0.0):
        self.phase, self.done, self.phases, self.zero = phase, done, [], None

    def at(self, phase, done, total, words):
        self.phases.append(phase)
        if phase == self.phase and done >= self.done:
            self.zero.stop()


def run(out, config=CONFIG, turns=0, stop=("", 0.0), **rest):
    progress = Stopping(*stop)
    progress.zero = zero = Zero(out, config, CPU, threads=1, progress=progress, **rest)
    zero.run(turns)
    return zero
