"""One process under a fuzzer: it is sent lines in pieces that end anywhere, and killed when it falls silent."""

import os
import random
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from bench.match.gtp_client import ROOT

START_S = 900.0
"""Silence that is allowed until the process has begun: kernels may have to be compiled"""
WATCH_S = 0.5


class Ended(NamedTuple):
    """How a process ended."""

    status: int
    errors: str
    """standard error"""


class FuzzedProcess(ABC):
    """One process and what it is sent. Threads: one writes, one watches, the caller's reads."""

    def __init__(self, command: Sequence[str], rng: random.Random, silence_s: float) -> None:
        """Nothing is started yet.

        Args:
            rng: draws where pieces end.
            silence_s: longest silence of a process that has begun; it is killed then.
        """
        self._command, self._rng, self._silence_s = command, rng, silence_s
        self._ended = threading.Event()
        self._heard_s = 0.0
        self._is_silent = False
        """It was killed for its silence"""

    @property
    @abstractmethod
    def has_begun(self) -> bool:
        """Whether it has answered, so that nothing is left to compile."""

    @abstractmethod
    def _write(self, pipe: IO[bytes]) -> None:
        """Send all lines; errors of the pipe end it, for the exit status tells."""

    @abstractmethod
    def _read(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        """Check all that comes back, and note when it came (:meth:`_hear`)."""

    def _talk(self) -> Ended:
        """Start the process, send everything, read everything, and wait for its end."""
        search_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": search_path, "KEIMA_CONFIG": "none"}
        pipe = subprocess.PIPE
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            with subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=errors, cwd=folder, env=environment
            ) as process:
                assert process.stdin is not None and process.stdout is not None  # as it was started
                self._hear()
                for target, argument in ((self._send, process.stdin), (self._watch, process)):
                    threading.Thread(target=target, args=(argument,), daemon=True).start()
                try:
                    self._read(process, process.stdout)
                    status = process.wait(self._silence_s)
                finally:
                    self._ended.set()
                    process.kill()
                    with suppress(OSError):  # What it has not read cannot be sent any more.
                        process.stdin.close()
            errors.seek(0)
            return Ended(status, errors.read().decode(errors="replace"))

    def _hear(self) -> None:
        """Something has come."""
        self._heard_s = time.monotonic()

    def _send(self, pipe: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            self._write(pipe)

    def _send_some(self, pipe: IO[bytes], waiting: bytes, most: int) -> bytes:
        """Send a piece of what waits, if that is longer than a number of bytes drawn up to ``most``; what is left."""
        if len(waiting) <= self._rng.randint(1, most):
            return waiting
        cut = self._rng.randint(0, len(waiting))
        pipe.write(waiting[:cut])
        pipe.flush()
        return waiting[cut:]

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill a process that says nothing."""
        while not self._ended.wait(WATCH_S):
            if time.monotonic() > self._heard_s + (self._silence_s if self.has_begun else START_S):
                self._is_silent = True
                process.kill()
                return
