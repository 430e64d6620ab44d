"""Worker processes that run the cases of a part, and what becomes of cases that break down, hang or are interrupted."""

import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from bench.reliability.folder import Record
from bench.reliability.part import Campaign, Case, Outcome, Part, load_part
from gtp.cli.terminal import INTERRUPTED

POLL_S = 0.2
STOP_S = 15.0
"""How long a case may take to end its child processes"""


class Worker:
    """A process that runs one case after the other. Threads: one at a time."""

    def __init__(self, part: Part, campaign: Campaign) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._limit_s = part.limit_s
        self._case = Case("", lambda folder: Outcome())
        self._begun_s = 0.0
        self._process = context.Process(target=_work, args=(part.module, campaign, theirs))
        self._process.start()
        theirs.close()

    def begin(self, case: Case) -> None:
        """Send a case."""
        self._case, self._begun_s = case, time.monotonic()
        with suppress(OSError):  # It has died; reading from it tells.
            self.pipe.send(case.name)

    def record(self) -> Record | None:
        """The record of the case sent last; None while it runs. A process that failed it can be used no more.

        Raises:
            KeyboardInterrupt: it was interrupted from outside, which is no fault of the case.
        """
        seconds = time.monotonic() - self._begun_s
        if self.pipe.poll():
            try:
                return self._as_record(self.pipe.recv(), seconds)
            except (EOFError, OSError):
                self._process.join(STOP_S)
                if self._process.exitcode == INTERRUPTED:
                    raise KeyboardInterrupt from None
                died = f"the process that ran it ended with status {self._process.exitcode}"
                return self._as_record(Outcome([died], amount=0), seconds)
        if seconds > self._limit_s:
            self.stop()
            return self._as_record(Outcome([f"no end within {self._limit_s:g} s"], amount=0), seconds)
        return None

    @property
    def is_alive(self) -> bool:
        """Whether it can be sent a case."""
        return self._process.is_alive()

    def stop(self) -> None:
        """Interrupt the case, kill what does not end."""
        pid = self._process.pid
        if self._process.is_alive() and pid is not None:
            os.kill(pid, signal.SIGINT)
            self._process.join(STOP_S)
        self._process.kill()
        self._process.join()

    def _as_record(self, outcome: Outcome, seconds: float) -> Record:
        amount = self._case.amount if outcome.amount is None else outcome.amount
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        return Record(self._case.name, amount, round(seconds, 3), outcome.faults, outcome.figures, ended)


def run_cases(part: Part, campaign: Campaign, cases: Sequence[Case], jobs: int) -> Generator[Record, None, None]:
    """Run some cases of a part and give their records out as they end.

    Args:
        jobs: most worker processes.
    Raises:
        KeyboardInterrupt: Ctrl-C; running cases are ended and have no record.
    """
    waiting = deque(cases)
    workers: list[Worker] = []
    busy = [get_context("spawn").Process(target=_keep_busy) for _ in range(part.busy if cases else 0)]
    try:
        for process in busy:
            process.start()
        while waiting or workers:
            while waiting and len(workers) < (1 if part.alone else jobs):
                workers.append(Worker(part, campaign))
                workers[-1].begin(waiting.popleft())
            connection.wait([worker.pipe for worker in workers], POLL_S)
            for worker in list(workers):
                if (record := worker.record()) is None:
                    continue
                if waiting and worker.is_alive:
                    worker.begin(waiting.popleft())
                else:
                    workers.remove(worker)
                    worker.stop()
                yield record
    finally:
        for worker in workers:
            worker.stop()
        for process in busy:
            if process.pid is not None:
                process.kill()
                process.join()


def _keep_busy() -> None:
    """Compute until killed, or until the process that started this one has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for those that started it.
    threading.Thread(target=_end_with_parent, args=(signal.SIGKILL,), daemon=True).start()
    while True:
        pass


def _work(module: str, campaign: Campaign, pipe: Any) -> None:
    """The worker process: runs the cases whose names it is sent, until no more are sent."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt_once)
    os.dup2(2, 1)  # Standard output is for figures alone.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        cases = {case.name: case for case in load_part(module).cases(campaign)}
        while True:
            pipe.send(_outcome(cases[pipe.recv()]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (EOFError, OSError):
        return


def _outcome(case: Case) -> Outcome:
    """Run a case in a folder of its own; an exception is a fault."""
    with tempfile.TemporaryDirectory(prefix="keima-reliability-", ignore_cleanup_errors=True) as folder:
        try:
            return case.run(Path(folder))
        except Exception:
            return Outcome([traceback.format_exc()], amount=0)


def _interrupt_once(number: int, frame: object) -> None:
    """Ctrl-C reaches the worker from the terminal and from the campaign; cleaning up is interrupted by neither."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent(number: int = signal.SIGINT) -> None:
    """Send this process a signal when the one that started it has died."""
    parent = parent_process()
    assert parent is not None  # as it was started
    parent.join()
    os.kill(os.getpid(), number)
