"""``python -m bench.speed.training``: positions a second of data preparation and of training steps.

Positions are from games of the rollout policy, so no data is needed. ``batches/ENCODER/19`` is one thread's rate of
replay, encoding and targets; ``step/NETWORK/BATCH`` the rate of training steps on the device; ``threads/NETWORK/BATCH``
the number of threads that must prepare data to keep the device busy. One JSON line a figure; start at :func:`command`.
"""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from bench.speed.figures import Figure, Timing, Work, bench
from bench.speed.subjects import NETWORKS, middle_games, shape_of
from engine.config import TrainOptions
from engine.features.encoder import ENCODERS
from engine.go.position import META_N_MOVES
from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.devices import torch_device
from engine.nets.model import new_model
from engine.records.games import Games, offsets_of, policy_indices
from engine.train.batches import BatchBuilder
from engine.train.dataset import Material, Mixture
from engine.train.trainer import Goal, Measure, Trainer

SIZE = 19


def made_games() -> Games:
    """Games of the rollout policy up to the middle game."""
    moves = []
    for position, _ in middle_games(SIZE):
        played = position.moves[: int(position.meta[META_N_MOVES])]
        moves.append(policy_indices(played, SIZE).astype(np.uint16))
    count = len(moves)
    return Games(
        size=np.full(count, SIZE), komi=np.full(count, 7.5, np.float32),
        offsets=offsets_of([len(one) for one in moves]), moves=np.concatenate(moves),
        result=np.ones(count, np.int8), territory=np.zeros(count, bool),
    )  # fmt: skip


def batch_work(games: Games, encoder: str, batch: int) -> Work:
    """Work that prepares batches of random positions; an item is a position."""
    builder, rng = BatchBuilder(ENCODERS[encoder]), np.random.default_rng(1)
    lengths = np.diff(games.offsets)

    def work(count: int) -> int:
        rows = rng.integers(0, len(lengths), count)
        plies = (rng.random(count) * lengths[rows]).astype(np.int64)
        for part in np.split(np.arange(count), range(batch, count, batch)):
            builder.from_games(games, rows[part], plies[part], np.zeros(len(part), bool), rng.integers(0, 8, len(part)))
        return count

    return work


def step_work(games: Games, name: str, batch: int, device, folder: Path) -> Work:
    """Work that does training steps on one fixed batch; an item is a step."""
    model, options = new_model(*shape_of(name)), TrainOptions(batch=batch, steps=10**9)
    encoder = ENCODERS[ARCHITECTURES[NETWORKS[name][0]].encoder]
    data = Mixture(encoder, Material([games]), options)
    measure = Measure(lambda _: {}, Goal("top1", 1))
    trainer = Trainer(model, new_spec(model, name), data, measure, options, folder / name, device, {})
    held = trainer.tensors(data.batch_at(0))

    def work(count: int) -> int:
        for _ in range(count):
            parts = trainer.one_step(held)
        float(next(iter(parts.values())))  # synchronises with the device
        return count

    return work


@bench("repetitions", 20.0)
@click.option(
    "--network", "names", multiple=True, default=("keima-6x64",), type=click.Choice(list(NETWORKS)),
    help="network, repeatable",
)  # fmt: skip
@click.option(
    "--batch", "batches", multiple=True, default=(64,), type=click.IntRange(1, 65536), help="batch size, repeatable"
)
@click.option("--device", default="auto", help="device: auto, cpu, cuda or mps")
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="CPU threads of torch; 0 = torch's default")
def command(names, batches, device: str, threads: int, timing: Timing) -> Iterator[Figure]:
    """Measure data preparation and training steps: one JSON line a figure."""
    chosen, games, prepared = torch_device(device, threads), made_games(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            encoder = ARCHITECTURES[NETWORKS[name][0]].encoder
            if encoder not in prepared:
                figure = f"batches/{encoder}/{SIZE}"
                prepared[encoder] = timing.rates(figure, [batch_work(games, encoder, 64)])
                yield figure, prepared[encoder], "positions/s"
            for batch in batches:
                figure, work = f"step/{name}/{batch}", step_work(games, name, batch, chosen, Path(folder))
                rates = timing.rates(figure, [work], batch)
                yield figure, rates, "positions/s"
                needed = statistics.median(rates) / statistics.median(prepared[encoder])
                yield f"threads/{name}/{batch}", [needed], "threads"


if __name__ == "__main__":
    command()
