"""One process under a fuzzer: it is sent lines in pieces that end anywhere, and killed when it falls silent."""

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
"""Silence that is allowed until the process has begun: kernels may have to be compiled"""
LONGEST_LINE = 1 << 28
MOST_FAULTS = 10


class Fault(Exception):
    """The process did what it must not do, and what follows cannot be judged."""


class FuzzedProcess(ABC):
    """One process, the lines that it is sent, and what it must not do. Start at :meth:`run`."""

    def __init__(self, command: Sequence[str], rng: random.Random, silence_s: float) -> None:
        """Nothing is started yet.

        Args:
            rng: draws where pieces end.
            silence_s: longest silence of a process that has begun; it is killed then.
        """
        self._command, self._rng, self._silence_s = command, rng, silence_s
        self._process: Process
        self._waiting = b""
        """lines, or the end of one, that are to be sent with the next piece"""
        self.has_begun = False
        """whether nothing is left to compile"""
        self.faults: list[str] = []

    @abstractmethod
    async def _write(self) -> None:
        """Send all lines (:meth:`_send`), and end the input."""

    @abstractmethod
    def _hear(self, line: bytes) -> None:
        """Check a line that has come, and note when the process has begun.

        Raises:
            Fault: nothing that follows can be checked.
        """

    @abstractmethod
    def _check_end(self, status: int, errors: str) -> None:
        """Check what is known at the end: the exit status, standard error, and what has not come."""

    def run(self) -> None:
        """Start the process, send everything, check everything, and wait for its end."""
        try:
            asyncio.run(self._talk())
        except Fault as fault:
            self._fault(str(fault))

    def _fault(self, text: str) -> None:
        """Something that should not be."""
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
            # What the process has not read cannot be sent any more.
            with suppress(OSError, asyncio.CancelledError):
                await writing
            errors.seek(0)
            self._check_end(status, errors.read().decode(errors="replace"))

    async def _soon(self, coming):
        """What is awaited, if it comes before the process counts as silent."""
        return await asyncio.wait_for(coming, self._silence_s if self.has_begun else START_S)

    async def _send(self, line: bytes, most: int) -> None:
        """Send a piece of what waits and of a line, if that is longer than a number of bytes drawn up to ``most``."""
        self._waiting += line + b"\n"
        if len(self._waiting) > self._rng.randint(1, most):
            await self._send_waiting(self._rng.randint(0, len(self._waiting)))

    async def _send_waiting(self, count: int | None = None, is_end: bool = False) -> None:
        """Send the first bytes of what waits, or all; and end the input."""
        pipe = self._process.stdin
        assert pipe is not None  # as it was started
        pipe.write(self._waiting[:count])
        self._waiting = b"" if count is None else self._waiting[count:]
        await pipe.drain()
        if is_end:
            pipe.close()
