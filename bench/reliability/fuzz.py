"""A fuzzer: sends the real process malformed lines, and holds it to one reply a command and nothing else.

Lines are a random mixture, the same for the same seed (:mod:`bench.reliability.fuzz_lines`): sensible commands with
good and bad arguments, so that games go on, finish and are taken back, clocks run and analyses begin; those with bytes
changed, words doubled, ids put in front; random bytes; endless lines. They are sent as fast as the process takes them,
cut anywhere; where it searches, the writer at times waits until the process has caught up and then a little longer, so
that analyses and pondering run for a while before the next line ends them.

Checked are: exactly one reply a command, in order, with its id; nothing between replies; no control characters; lines
of an analysis that begin with ``info`` or ``play``; no "internal error"; no silence of a minute; exit status 0.

    python -m bench.reliability.fuzz --lines 100000 --seed 1 --engine network
"""

import random
import re
import subprocess
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import click

from bench.reliability.fuzz_lines import ANALYZE, lines, reply_to
from bench.reliability.fuzzed_process import FuzzedProcess
from bench.reliability.part import Campaign, Case, Outcome, Part
from bench.speed.figures import print_figure
from engine.system.programs import keima
from weights import DEFAULT

ENGINES: dict[str, tuple[str, ...]] = {
    "policy": ("--visits", "1", "--policy-only"),
    "rollouts": ("--visits", "40", "--ponder", "--ponder-visits", "500", "--threads", "2"),
    "network": ("--visits", "6", "--ponder", "--ponder-visits", "100", "--threads", "2", "--evaluators", "1"),
}
"""One that moves at once, so that most lines are parsed and games are long; searches, with pondering and threads"""
COMMON = ("--size", "9", "--memory", "64", "--lag", "0.05")
SHARES = ("policy", "rollouts", "policy", "network", "policy")
"""The engines of consecutive seeds"""
WARM_UP = (b"genmove b", b"final_score", b"clear_board")
SILENCE_S = 60.0
PAUSES = 0.01
"""Share of lines behind which the writer waits, where the engine searches; of those that begin an analysis, half"""
PAUSE_S = 0.04
"""Longest of these waits"""
SHOWN = 12
"""Lines before a fault that a report repeats"""
FIRST_LINE = re.compile(rb"([=?])([0-9]*)(?: .*)?")
STRAY = re.compile(rb"[\x00-\x1f\x7f]")
ANALYSIS = re.compile(rb"(info|play) .+|\{.+\}")
ANALYZE_NAMES = frozenset(name.encode() for name in ANALYZE)
LINES = 10_000
"""of one case"""


class Fault(Exception):
    """The process did what it must not do."""


class Fuzzer(FuzzedProcess):
    """The real process and the malformed lines of a seed."""

    def __init__(self, seed: int, count: int, engine: str = "policy", weights: str = DEFAULT) -> None:
        """Nothing is started yet.

        Args:
            engine: one of ``ENGINES``.
            weights: network of the one that plays with a network.
        """
        super().__init__(command_line(engine, weights), random.Random(seed), SILENCE_S)
        self._lines = lines(seed, count)
        self._pauses = PAUSES if engine != "policy" else 0.0
        self._due: deque[tuple[bytes, bytes, bytes]] = deque()
        """ids and names of commands whose replies are still to come, with their lines"""
        self._recent: deque[bytes] = deque(maxlen=SHOWN)
        self.sent = self.replies = 0
        """without those of the warm-up"""
        self._warm = -len(WARM_UP)
        self.seconds = 0.0
        """from the warm-up's last reply to the last"""

    @property
    def has_begun(self) -> bool:
        """Whether the warm-up is over."""
        return self._warm == 0

    def run(self) -> None:
        """Send everything, then end the input.

        Raises:
            Fault: the process did something else than it should.
        """
        status, said = self._talk()
        if status or self._due or "Traceback" in said:
            what = f"no reply for {SILENCE_S:g} s" if self._is_silent else f"exit status {status}"
            raise self._fault(f"{what}, {len(self._due)} replies missing; standard error: {said[-2000:]}")

    def _write(self, pipe: IO[bytes]) -> None:
        waiting = b""
        for line in WARM_UP:
            self._due.append((b"", line, line))
            pipe.write(line + b"\n")
        for line in self._lines:
            due = reply_to(line)
            if due is not None:
                self._due.append((*due, line))
            self.sent += 1
            waiting += line + b"\n"
            begins = due is not None and due[1] in ANALYZE_NAMES
            if self._pauses and self._rng.random() < (0.5 if begins else self._pauses):
                pipe.write(waiting)
                pipe.flush()
                waiting = b""
                self._pause()
            else:
                waiting = self._send_some(pipe, waiting, 2000)
        pipe.write(waiting)
        pipe.close()

    def _pause(self) -> None:
        """Wait until the process is at the last line, and a little longer."""
        while len(self._due) > 1 and not self._ended.wait(0.002):
            pass
        self._ended.wait(self._rng.uniform(0, PAUSE_S))

    def _read(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        begin = 0.0
        while True:
            reply = []
            while (line := pipe.readline()) not in (b"", b"\n"):
                reply.append(line[:-1])
                self._hear()
            if not line:
                if reply:
                    raise self._fault(f"half a reply: {reply}")
                return
            self._check(reply)
            self._hear()
            begin = begin or (self._warm == 0 and self._heard_s) or 0.0
            self.seconds = self._heard_s - begin if begin else 0.0

    def _check(self, reply: list[bytes]) -> None:
        """Compare a reply with the line it answers."""
        found = FIRST_LINE.fullmatch(reply[0]) if reply else None
        if found is None:
            raise self._fault(f"no reply of GTP: {reply}")
        if not self._due:
            raise self._fault(f"a reply without a command: {reply}")
        id_, name, line = self._due.popleft()
        self._recent.append(line[:200])
        if found[2] != id_ or (id_ and not reply[0].startswith((b"=" + id_, b"?" + id_))):
            raise self._fault(f"id {id_.decode()!r} was asked, answered: {reply}")
        if b"internal error" in reply[0]:
            raise self._fault(f"an internal error: {reply}")
        if any(map(STRAY.search, reply)):
            raise self._fault(f"control characters: {reply}")
        if name in ANALYZE_NAMES and not all(map(ANALYSIS.fullmatch, reply[1:])):
            raise self._fault(f"no report of an analysis: {reply}")
        if self._warm < 0:
            self._warm += 1
        else:
            self.replies += 1

    def _fault(self, text: str) -> Fault:
        """What is wrong, with the lines that led there."""
        before = "\n".join(repr(line) for line in self._recent)
        following = repr(self._due[0][2][:200]) if self._due else "nothing"
        return Fault(f"reply {self.replies}: {text}\nafter\n{before}\nnext was {following}")


def command_line(engine: str, weights: str) -> list[str]:
    """The command that starts an engine of ``ENGINES``."""
    network = ("--weights", weights if engine == "network" else "none")
    return keima("gtp", *network, *ENGINES[engine], *COMMON)


def _run(seed: int, count: int, engine: str, weights: str, folder: Path) -> Outcome:
    """One process and all lines of a seed."""
    fuzzer = Fuzzer(seed, count, engine, weights)
    try:
        fuzzer.run()
    except Fault as fault:
        return Outcome([str(fault)], amount=fuzzer.sent)
    return Outcome(figures={"slowest process, lines/s": fuzzer.sent / max(fuzzer.seconds, 1e-9)})


def _cases(campaign: Campaign) -> Iterator[Case]:
    """One case a seed."""
    cases, count = (4, 1_000) if campaign.quick else (100, LINES)
    for seed in range(1, cases + 1):
        engine = SHARES[seed % len(SHARES)]
        yield Case(f"{engine}-{seed}", partial(_run, seed, count, engine, campaign.weights), count)


PART = Part(
    __name__,
    title="GTP fuzz on the real process, a seed each, with analysis, pondering and clocks running",
    unit="lines",
    wanted="1,000,000 lines, 0 crashes, hangs, stray bytes",
    cases=_cases,
    figures={"slowest process, lines/s": min},
)


@click.command(context_settings={"show_default": True})
@click.option("--lines", "count", default=100_000, type=click.IntRange(1), help="lines to send")
@click.option("--seed", default=1, help="of the lines; the same seed sends the same")
@click.option("--engine", default="policy", type=click.Choice(list(ENGINES)), help="what it plays with")
def main(count: int, seed: int, engine: str) -> None:
    """Send the engine malformed lines, and check what comes back."""
    fuzzer = Fuzzer(seed, count, engine)
    try:
        fuzzer.run()
    except Fault as fault:
        raise click.ClickException(str(fault)) from fault
    print_figure(f"fuzz/{engine}/{seed}/{fuzzer.replies} replies", [fuzzer.sent / max(fuzzer.seconds, 1e-9)], "lines/s")


if __name__ == "__main__":
    main()
