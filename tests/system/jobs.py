"""Jobs for tests of executors, which take no time or sleep."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Squares:
    """Squares of numbers, two at a time, each with what a file says."""

    seconds: float = 0.0
    """seconds that each item takes"""
    fails_at: int = -1

    def open(self, stack: ExitStack, files, cores: int):
        stack.callback(lambda: None)
        return _Squarer(self, files["text"].read_text())


class _Squarer:
    threads = 2

    def __init__(self, job: Squares, text: str):
        self._job, self._text = job, text

    def do(self, numbers: Iterator[int], stopped: threading.Event):
        held: list[int] = []
        for number in numbers:
            if number == self._job.fails_at:
                raise ValueError("seven is refused")
            if stopped.is_set():
                return
            time.sleep(self._job.seconds)
            held.append(number)
            if len(held) == 2:
                yield tuple(held), self._said(held)
                held = []
        if held:
            yield tuple(held), self._said(held)

    def _said(self, held: list[int]) -> bytes:
        return f"{self._text} {' '.join(str(one * one) for one in held)}".encode()


@dataclass(frozen=True)
class Pids(Squares):
    """The id of the process that does an item."""

    def open(self, stack: ExitStack, files, cores: int):
        return _Pid(self, "")


class _Pid(_Squarer):
    def _said(self, held: list[int]) -> bytes:
        return str(os.getpid()).encode()


def kill(pid: int) -> None:
    """Kill a process if it lives."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
