"""SIGKILL of Ray actors that play games in bulk: no game may be lost, none recorded twice.

The actors are real processes. The network sleeps and has fixed outputs, so a game depends on its number alone, and this
process plays the same games for comparison. After every ``GAMES_PER_KILL`` games a random actor is killed; Ray restarts
it.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest

from bench.reliability.campaign import Outcome, Part
from bench.reliability.kills import played
from bench.speed.executors import AT_ONCE, SleepingJob
from engine.selfplay.bulk import BulkPlay, BulkWorker
from engine.system.executor import Execution, Files
from gtp.cli.options import ExecutorOptions

ACTORS, KILLS, GAMES_PER_KILL = 16, 200, 24
TABLE, BATCH_S = 4, 0.02
PART = Part(
    title=f"Kill -9 of {ACTORS} actors of Ray that play games in bulk",
    unit="kills",
    wanted=f"{KILLS}: no game lost, none twice, all as of one process",
    alone=True,
    limit_s=7200.0,
)
NETWORK = [{"name": "sleeping", "sha256": "0"}]


@dataclass(frozen=True)
class NotedJob:
    """A :class:`SleepingJob`; each actor's process also creates a file in ``folder``, named by its process id."""

    job: SleepingJob
    folder: str

    def open(self, stack: ExitStack, files: Files, cores: int) -> BulkWorker:
        """Create the file of this process, and make a worker."""
        (Path(self.folder) / str(os.getpid())).touch()
        return self.job.open(stack, files, cores)


def _play(
    job: SleepingJob, out: Path, games: int, execution: Execution | None = None,
    report: Callable[[int], None] = lambda count: None,
) -> None:  # fmt: skip
    """Play games in bulk by threads of this process or by an executor.

    Args:
        execution: None = this process.
        report: called with the number of games in the folder ``out`` so far.
    """
    with ExitStack() as stack:
        play = BulkPlay([job.server(stack)], job.plan, NETWORK, out)
        stack.callback(play.close)
        play.run(games, job.games, AT_ONCE, lambda: report(play.games), 0.05, execution)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case: a number of actors and a number of kills."""
    case = (2, 4) if metafunc.config.option.campaign["quick"] else (ACTORS, KILLS)
    metafunc.parametrize(("actors", "amount"), [case])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")
@pytest.mark.skipif(not find_spec("ray"), reason="Ray")
def test_kills(actors: int, amount: int, folder: Path, outcome: Outcome) -> None:
    """Kill actors while they play, and compare the games with those that this process plays."""
    games = GAMES_PER_KILL * (amount + 1)
    _play(SleepingJob(16 * TABLE, 0.0), folder / "alone", games)
    (folder / "pids").mkdir()
    random, killed = Random(amount), list[str]()

    def report(count: int) -> None:
        living = sorted({path.name for path in (folder / "pids").iterdir()}.difference(killed))
        if living and len(killed) < min(amount, count // GAMES_PER_KILL):
            killed.append(random.choice(living))
            os.kill(int(killed[-1]), signal.SIGKILL)

    job = SleepingJob(TABLE, BATCH_S)
    with ExitStack() as stack:
        executor = ExecutorOptions("local", actors).open(stack, TABLE, AT_ONCE)
        execution = Execution(executor, NotedJob(job, str(folder / "pids")), {})
        _play(job, folder / "killed", games, execution, report)
    faults, expected, found = outcome.faults, played(folder / "alone"), played(folder / "killed")
    numbers = Counter(number for number, _ in found)
    if lost := games - len(numbers):
        faults.append(f"{lost} of {games} games are lost")
    if twice := len(found) - len(numbers):
        faults.append(f"{twice} games are recorded twice")
    if not faults and found != expected:
        faults.append("the games differ from those of one process")
    if len(killed) < amount:
        faults.append(f"{len(killed)} kills, expected {amount}")
    outcome.amount = len(killed)
