"""``python -m bench.speed.executors``: scaling of bulk games with the number of Ray actors, one JSON line a figure.

The network sleeps instead of computing, so that a machine with few processors can run many actors: the bench measures
the executor's overhead and idle times. ``here`` is evaluations a second with threads of this process, ``N`` with N
actors, ``N/times`` the speed-up over one actor. The number of games for each actor is constant.
"""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import click

from bench.speed.figures import Figure, Timing, bench
from bench.speed.selfplay import VARIETY
from engine.inference.server import InferenceServer
from engine.nets.fakes import SerialNetwork
from engine.records.games import GAMES
from engine.selfplay.bulk import BulkWorker
from engine.selfplay.plan import BulkOptions, Plan
from engine.system.executor import Done, Executor, Files, LocalExecutor
from gtp.cli.arguments import Number
from gtp.cli.options import ExecutorOptions

SIZE, MOVES = 7, 40
"""Board size, and length of every game; moves are random, so few games end earlier"""
AT_ONCE = 2
"""Tables of games that an actor plays concurrently"""


@dataclass(frozen=True)
class SleepingJob:
    """Bulk games with a network that sleeps. See :class:`engine.system.executor.Job`."""

    games: int
    """number of games that a table plays side by side"""
    batch_s: float
    """seconds that an evaluation takes"""

    @property
    def plan(self) -> Plan:
        """How the games are played."""
        return Plan(BulkOptions(VARIETY, size=SIZE, limit=MOVES))

    def server(self, stack: ExitStack) -> InferenceServer:
        """Server of the network, which evaluates one batch at a time; ``stack`` closes it."""
        return stack.enter_context(InferenceServer(SerialNetwork("keima-1", self.batch_s)))

    def open(self, stack: ExitStack, files: Files, cores: int) -> BulkWorker:
        """Make a worker with its own server."""
        return BulkWorker([self.server(stack)], self.plan, self.games, AT_ONCE)


@bench("repetitions", 60.0)
@click.option("--ray", default="local", metavar="ADDRESS", help="address of a Ray cluster; local: Ray on this machine")
@click.option("--actors", multiple=True, type=click.IntRange(2), default=(8,), help="number of actors, repeatable")
@click.option("--games", default=16, type=click.IntRange(1), help="games side by side; an actor plays two such tables")
@click.option("--batch-ms", default=100.0, type=Number(0.1), help="milliseconds that an evaluation takes")
def command(ray: str, actors: tuple[int, ...], games: int, batch_ms: float, timing: Timing) -> Iterator[Figure]:
    """Measure the speed-up of many Ray actors over one, with a network that sleeps: one JSON line a figure."""
    job = SleepingJob(games, batch_ms / 1000)
    tables = AT_ONCE * max(1, round(timing.seconds / timing.repeats / (AT_ONCE * MOVES * job.batch_s)))
    alone: list[float] = []
    for count in (0, 1, *actors):
        click.echo(f"measuring {count or 'here'}", err=True)
        with ExitStack() as stack:
            executor = ExecutorOptions(ray, count).open(stack, games, AT_ONCE) if count else LocalExecutor()
            # Starts the processes and compiles.
            _rate(executor, job, AT_ONCE * max(1, count))
            rates = [_rate(executor, job, tables * max(1, count)) for _ in range(timing.repeats)]
        yield str(count or "here"), rates, "evaluations/s"
        if count == 1:
            alone = rates
        elif count:
            yield f"{count}/times", [one / of for one, of in zip(rates, alone, strict=True)], "ratio"


def _rate(executor: Executor, job: SleepingJob, tables: int) -> float:
    """Evaluations a second while a number of tables is played."""
    moves: list[int] = []

    def take(done: Done) -> None:
        moves.append(len(GAMES.unpack(done[1]).moves))

    numbers = itertools.islice(itertools.count(), tables * job.games)
    start = time.perf_counter()
    executor.work(job, {}, numbers, take, threading.Event(), lambda: None, 1.0)
    return sum(moves) / (time.perf_counter() - start)


if __name__ == "__main__":
    command()
