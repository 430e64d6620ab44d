"""Base of the fuzzers: one process that is sent lines in pieces cut anywhere, and killed when it falls silent."""

import asyncio
import os
import random
import tempfile
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from bench.match.gtp_client import ROOT

START_S = 900.0
"""Longest silence before the first answers, in seconds, since kernels may have to be compiled"""
LONGEST_LINE = 1 << 28
MOST_FAULTS = 10


class Fault(Exception):
    """A fault after which later output cannot be checked."""


class FuzzedProcess(ABC):
    """A process, the lines that it is sent, and the checks of its output. Start at :meth:`run`."""

    def __init__(self, command: Sequence[str], rng: random.Random, silence_s: float) -> None:
        """Prepare a process, which :meth:`run` starts.

        Args:
            command: words of the command line.
            rng: draws the lengths of the pieces that are sent.
            silence_s: longest silence once the first answers have come; a process that is silent longer is killed.
        """
        self._command, self._rng, self._silence_s = command, rng, silence_s
        self._process: Process
        self._waiting = b""
        """bytes that are not sent yet"""
        self.has_begun = False
        """whether the first answers have come, after which nothing is compiled"""
        self.faults: list[str] = []

    @abstractmethod
    async def _write(self) -> None:
        """Send all lines (:meth:`_send`), and close the input."""

    @abstractmethod
    def _hear(self, line: bytes) -> None:
        """Check a line of output, and set ``has_begun``.

        Raises:
            Fault: later output cannot be checked.
        """

    @abstractmethod
    def _check_end(self, status: int, errors: str) -> None:
        """Check exit status and standard error, and that no output is missing."""

    def run(self) -> None:
        """Start the process, send all lines, check its output, and wait for its end."""
        try:
            asyncio.run(self._talk())
        except Fault as fault:
            self._fault(str(fault))

    def _fault(self, text: str) -> None:
        """Add a fault, up to ``MOST_FAULTS``."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(text)

    async def _talk(self) -> None:
        search_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": search_path, "KEIMA_CONFIG": "none"}
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, stderr=errors, cwd=folder, env=environment, limit=LONGEST_LINE
            )
            assert self._process.stdout is not None  # as it was started
            writing = asyncio.create_task(self._write())
            try:
                while line := await self._soon(self._process.stdout.readline()):
                    self._hear(line)
                await self._soon(self._process.wait())
            except TimeoutError:
                self._fault(f"no reply for {self._silence_s:g} s")
            finally:
                writing.cancel()
                with suppress(ProcessLookupError):
                    self._process.kill()
                status = await self._process.wait()
            # Lines that the process has not read are dropped.
            with suppress(OSError, asyncio.CancelledError):
                await writing
            errors.seek(0)
            self._check_end(status, errors.read().decode(errors="replace"))

    async def _soon(self, coming):
        """The result of an awaitable; raises TimeoutError if it takes longer than the longest silence allowed."""
        return await asyncio.wait_for(coming, self._silence_s if self.has_begun else START_S)

    async def _send(self, line: bytes, most: int) -> None:
        """Queue a line; send a piece of the queued bytes if they are more than a random number up to ``most``."""
        self._waiting += line + b"\n"
        if len(self._waiting) > self._rng.randint(1, most):
            await self._send_waiting(self._rng.randint(0, len(self._waiting)))

    async def _send_waiting(self, count: int | None = None, is_end: bool = False) -> None:
        """Send the first ``count`` queued bytes (None = all); then close the input if ``is_end``."""
        pipe = self._process.stdin
        assert pipe is not None  # as it was started
        pipe.write(self._waiting[:count])
        self._waiting = b"" if count is None else self._waiting[count:]
        await pipe.drain()
        if is_end:
            pipe.close()
