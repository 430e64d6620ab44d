"""A fuzzer of ``keima analysis``: sends the real process wrong queries and broken lines, and holds it to its answers.

Lines are a random mixture, the same for the same seed (:mod:`bench.reliability.json_lines`). Every one is answered
once: by an error, by what an action says, or by one last report of each turn that a query asks for, before which
warnings and reports during the search may stand. A line that is no object with an id is answered by an error without
one. All that is written is whole lines of JSON; no error is an internal one; the process ends with status 0 when its
input ends, whatever still waits then. One process in five is ended by SIGTERM in the middle instead.

    python -m bench.reliability fuzz_json --quick
"""

import json
import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

from bench.reliability.fuzzed_process import FuzzedProcess
from bench.reliability.json_lines import lines
from bench.reliability.part import Campaign, Case, Outcome, Part
from engine.system.programs import keima

LINES = 5_000
"""of one case"""
ENDED = 5
"""Every such seed's process is ended by a signal"""
SILENCE_S = 120.0
END_S = 30.0
"""From SIGTERM to the end"""
MOST_FAULTS = 10


@dataclass
class Answered:
    """What has come for one id."""

    turns: Counter[int] = field(default_factory=Counter)
    """last reports, by turn"""
    others: int = 0
    """errors, and answers to actions"""


class JsonFuzzer(FuzzedProcess):
    """The real process and the lines of a seed."""

    def __init__(self, seed: int, count: int, weights: str) -> None:
        """Nothing is started yet."""
        rng = random.Random(seed)
        command = keima(
            "analysis", "--weights", weights, "--memory", 64, "-override-config",
            f"numAnalysisThreads={rng.choice((1, 2, 8))},maxVisits=3,maxTime=5",
        )  # fmt: skip
        super().__init__(command, rng, SILENCE_S)
        self._sent = list(lines(seed, count))
        is_ended = seed % ENDED == 0 and os.name == "posix"
        self._answers_to_end = rng.randint(1, max(1, count // 2)) if is_ended else None
        """answers after which the process is ended by SIGTERM; None = by the end of its input"""
        self._found: dict[str, Answered] = {}
        self._nameless = 0
        self.heard = 0
        self.faults: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether anything was answered."""
        return self.heard > 0

    def run(self) -> None:
        """Send everything, end the process, and check all that it said."""
        status, said = self._talk()
        if self._is_silent:
            self._fault(f"silent after {self.heard} answers")
        if "Traceback" in said:
            self._fault(f"standard error: {said[-2000:]}")
        if self._answers_to_end is None:
            if status:
                self._fault(f"exit status {status}; standard error: {said[-2000:]}")
            self._check_answers()

    def _write(self, pipe: IO[bytes]) -> None:
        waiting = b""
        for _, line in self._sent:
            waiting = self._send_some(pipe, waiting + line + b"\n", 4000)
        pipe.write(waiting)
        if self._answers_to_end is None:
            pipe.close()
        else:
            pipe.flush()

    def _read(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        while line := pipe.readline():
            self._hear()
            self.heard += 1
            if self.heard == self._answers_to_end:
                self._end(process, pipe)
                return
            try:
                value = json.loads(line.decode("utf-8"))
            except ValueError as error:
                self._fault(f"no line of JSON ({error}): {line[:500]!r}")
                continue
            if not isinstance(value, dict) or not line.endswith(b"\n"):
                self._fault(f"no object in a line: {line[:500]!r}")
            else:
                self._sort(value)

    def _end(self, process: "subprocess.Popen[bytes]", pipe: IO[bytes]) -> None:
        """End the process by SIGTERM, whatever it is at."""

        def late() -> None:
            self._fault(f"still there {END_S:g} s after SIGTERM")
            process.kill()

        timer = threading.Timer(END_S, late)
        timer.start()
        process.send_signal(signal.SIGTERM)
        pipe.read()
        timer.cancel()

    def _sort(self, value: dict[str, Any]) -> None:
        """Enter what answers a line."""
        if "internal error" in str(value.get("error", "")) or ("error" in value and "turnNumber" in value):
            self._fault(f"an error that is ours: {json.dumps(value)[:1000]}")
        name = value.get("id")
        if not isinstance(name, str):
            self._nameless += 1
            if "error" not in value:
                self._fault(f"neither an id nor an error: {json.dumps(value)[:500]}")
            return
        found = self._found.setdefault(name, Answered())
        if value.get("isDuringSearch") is False:
            found.turns[int(value["turnNumber"])] += 1
        elif "warning" not in value and value.get("isDuringSearch") is not True:
            found.others += 1

    def _check_answers(self) -> None:
        """Whether every line had its answer, and only one."""
        by_name = dict(self._sent)
        by_name.pop("", None)
        for name, found in self._found.items():
            if name not in by_name:
                self._fault(f"answers to {name!r}, which was never sent")
                continue
            line, answers = by_name[name], found.others + bool(found.turns)
            if not answers and asks_for_nothing(line):
                continue  # It was warned of something.
            if answers != 1 or (found.turns and found.turns != Counter(turns_of(line))):
                self._fault(f"{found.others} answers, reports of turns {dict(found.turns)} to {line[:1000]!r}")
        unnamed = [line for name, line in self._sent if name not in self._found]
        silent = [line for line in unnamed if asks_for_nothing(line)]
        if self._nameless != len(unnamed) - len(silent):
            told = f"{self._nameless} answers without an id, {len(unnamed)} lines without an answer of their own"
            self._fault(f"{told}: {unnamed[:20]!r}")

    def _fault(self, text: str) -> None:
        """Something that should not be."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(text)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def values_of(line: bytes) -> dict[str, Any]:
    """The object of a line; empty where it holds none."""
    try:
        values = json.loads(line.decode("utf-8", "replace"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def turns_of(line: bytes) -> set[int]:
    """The turns that a query asks for."""
    values = values_of(line)
    # As KataGo reads them, fractions are cut off.
    return {int(turn) for turn in values.get("analyzeTurns", [len(values["moves"])])}


def asks_for_nothing(line: bytes) -> bool:
    """Whether a line is a query that names no turn; it is not answered, nor by KataGo."""
    return values_of(line).get("analyzeTurns") == []


def _run(seed: int, count: int, weights: str, folder: Path) -> Outcome:
    """One process and all lines of a seed."""
    fuzzer = JsonFuzzer(seed, count, weights)
    fuzzer.run()
    return Outcome(fuzzer.faults)


def _cases(campaign: Campaign) -> Iterator[Case]:
    """One case a seed."""
    cases, count = (2, 500) if campaign.quick else (20, LINES)
    for seed in range(1, cases + 1):
        yield Case(f"{seed}", partial(_run, seed, count, campaign.weights), count)


PART = Part(
    __name__,
    title="JSON fuzz on the real process: wrong queries, broken lines, ends in the middle",
    unit="lines",
    wanted="100,000 lines, one answer each, 0 crashes",
    cases=_cases,
    limit_s=7200.0,
)
