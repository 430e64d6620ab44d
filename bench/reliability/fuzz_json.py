"""A fuzzer of ``keima analysis``: sends valid and invalid queries and broken lines to the real process.

Lines are random, reproducible by seed: valid and invalid queries, actions, broken JSON, other text. Every line gets one
answer: an error, the answer to an action, or one final report of each turn of a query, preceded by any number of
warnings and reports during the search. A line that is not an object with an id gets an error without id. The output
consists of complete lines of JSON without internal errors. When its input ends the process finishes what is queued and
exits with status 0. One process in five is stopped by SIGTERM instead.

    python -m bench.reliability fuzz_json --quick
"""

import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from bench.reliability.campaign import Outcome, Part
from bench.reliability.fuzzed_process import FuzzedProcess
from bench.reliability.mutations import changed
from engine.system.programs import keima

PART = Part(
    title="JSON fuzz on the real process: wrong queries, broken lines, ends in the middle",
    unit="lines",
    wanted="100,000 lines, one answer each, 0 crashes",
    limit_s=7200.0,
)
LINES = 5_000
"""Number of lines of a case"""
ENDED = 5
"""Processes of seeds that are divisible by this number are stopped by SIGTERM"""
SILENCE_S, END_S = 120.0, 30.0
"""Longest silence, and longest time from SIGTERM to exit, in seconds"""

SIZES = (2, 3, 5, 7, 9, 9, 9, 13, 19)
COLUMNS = "ABCDEFGHJKLMNOPQRST"
RULES = ("chinese", "japanese", "Tromp-Taylor", "korean", "aga", "stone-scoring", {"ko": "SIMPLE", "scoring": "AREA"})
SWITCHES = (
    "includeOwnership", "includeOwnershipStdev", "includeMovesOwnership", "includeMovesOwnershipStdev", "includePolicy",
    "includePVVisits", "includeNoResultValue",
)  # fmt: skip
SETTINGS: dict[str, tuple[Any, ...]] = {
    "reportAnalysisWinratesAs": ("BLACK", "WHITE", "SIDETOMOVE", "nobody"), "wideRootNoise": (0.04, -1, "much"),
    "maxVisits": (1, 2, 0, "x"), "maxTime": (0.01, 1e9, -1), "maxPlayouts": (1, 3), "nnRandomize": (False, 3),
    "ignorePreRootHistory": (True, "no"), "rootNoiseEnabled": (True,), "rootDirichletNoiseWeight": (0.25, 2),
    "rules": ("chinese",), "cpuctExploration": (1.0, "nan", 1e300), "analysisPVLen": (3, 0), "": ("",),
    "no such setting": (1, None, [1]),
}  # fmt: skip
WILD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 19, 20, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1,
    10**300, float("nan"), float("inf"), "", " ", "B", "W", "b", "pass", "A1", "Z99", "5", "1e9", "true", "null",
    "\u0000", "\n", "\ud800", "\U0001f409", "\u56f2\u7881", "x" * 10_000, [], {}, [[]], [{}], [None], [[["B"]]],
    ["B", "A1"], [["B", "A1"]], [["W", "pass"], ["B", "A1"]], [["B"]], [["B", 5]], [0], [0, 0], [-1], [1, "1"],
    [10**30], {"": ""}, {"moves": [], "player": "B", "untilDepth": 1},
    [{"moves": ["A1"], "player": "W", "untilDepth": 3}],
    [{"moves": "A1", "player": 1, "untilDepth": 0}], {"ko": "NONE"}, {"scoring": None},
)  # fmt: skip
GARBAGE = (
    b"[", b"]", b"{", b"}", b"null", b"true", b"5", b'"id"', b"[]", b"{}", b"[[]]", b'{"id":5}', b'{"id":null}',
    b'{"id":["q"]}', b'{"action":"query_version"}', b"NaN", b"-", b"1e400", b"\xff\xfe", b"\x00", b"quit", b"name",
    b"[" * 100_000, b'{"a":' * 5_000, b'{"id":"' + b"x" * 100_000, b"9" * 5_000, b'"\\ud800"', b"// words", b"'id'",
)  # fmt: skip
"""Lines without a valid id"""


class JsonFuzzer(FuzzedProcess):
    """Sends the lines of a seed to a real ``keima analysis`` and checks its answers."""

    def __init__(self, seed: int, count: int, weights: str) -> None:
        """See :class:`FuzzedProcess`."""
        rng = random.Random(seed)
        command = keima(
            "analysis", "--weights", weights, "--memory", 64, "-override-config",
            f"numAnalysisThreads={rng.choice((1, 2, 8))},maxVisits=3,maxTime=5",
        )  # fmt: skip
        super().__init__(command, rng, SILENCE_S)
        self._sent = list(lines(seed, count))
        is_ended = seed % ENDED == 0 and os.name == "posix"
        self._answers_to_end = rng.randint(1, max(1, count // 2)) if is_ended else None
        """answers after which the process gets SIGTERM; None = it ends with its input"""
        self._found: defaultdict[str, Counter[int | None]] = defaultdict(Counter)
        """id -> turn -> number of final reports of the turn; turn None: number of errors and answers to actions"""
        self._nameless = self.heard = 0

    async def _write(self) -> None:
        for _, line in self._sent:
            await self._send(line, 4000)
        await self._send_waiting(is_end=self._answers_to_end is None)

    def _hear(self, line: bytes) -> None:
        self.has_begun = True
        self.heard += 1
        if self._answers_to_end is not None and self.heard >= self._answers_to_end:
            if self.heard == self._answers_to_end:
                self._process.terminate()
                self._silence_s = END_S
            return
        try:
            value = json.loads(line.decode("utf-8"))
        except ValueError as error:
            self._fault(f"not a line of JSON ({error}): {line[:500]!r}")
            return
        if not isinstance(value, dict) or not line.endswith(b"\n"):
            self._fault(f"not a JSON object on one line: {line[:500]!r}")
        else:
            self._count(value)

    def _check_end(self, status: int, errors: str) -> None:
        if "Traceback" in errors:
            self._fault(f"standard error: {errors[-2000:]}")
        if self._answers_to_end is None:
            if status:
                self._fault(f"exit status {status}; standard error: {errors[-2000:]}")
            self._check_answers()

    def _count(self, value: dict[str, Any]) -> None:
        """Count an answer under its id."""
        if "internal error" in str(value.get("error", "")) or ("error" in value and "turnNumber" in value):
            self._fault(f"an internal error: {json.dumps(value)[:1000]}")
        name = value.get("id")
        if not isinstance(name, str):
            self._nameless += 1
            if "error" not in value:
                self._fault(f"neither an id nor an error: {json.dumps(value)[:500]}")
            return
        found = self._found[name]
        if value.get("isDuringSearch") is False:
            found[int(value["turnNumber"])] += 1
        elif "warning" not in value and value.get("isDuringSearch") is not True:
            found[None] += 1

    def _check_answers(self) -> None:
        """Check that every line has exactly one answer."""
        by_name = dict(self._sent)
        by_name.pop("", None)
        for name, found in self._found.items():
            if name not in by_name:
                self._fault(f"answers to {name!r}, which was never sent")
                continue
            line, others = by_name[name], found.pop(None, 0)
            if not others + len(found) and asks_for_nothing(line):
                continue  # Only a warning.
            if others + bool(found) != 1 or (found and found != Counter(turns_of(line))):
                self._fault(f"{others} answers, reports of turns {dict(found)} to {line[:1000]!r}")
        unnamed = [line for name, line in self._sent if name not in self._found]
        silent = [line for line in unnamed if asks_for_nothing(line)]
        if self._nameless != len(unnamed) - len(silent):
            text = f"{self._nameless} answers without an id, expected {len(unnamed) - len(silent)} for the lines"
            self._fault(f"{text} {unnamed[:20]!r}")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def values_of(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; empty if there is none."""
    try:
        values = json.loads(line.decode("utf-8", "replace"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def turns_of(line: bytes) -> set[int]:
    """The turns that a query asks for."""
    values = values_of(line)
    # Fractions are cut off, as by KataGo.
    return {int(turn) for turn in values.get("analyzeTurns", [len(values["moves"])])}


def asks_for_nothing(line: bytes) -> bool:
    """Whether a line is a query with an empty list of turns, which gets no answer, as from KataGo."""
    return values_of(line).get("analyzeTurns") == []


def place(rng: random.Random, size: int) -> str:
    """A random vertex of a board, or seldom a pass."""
    return "pass" if rng.random() < 0.03 else f"{COLUMNS[rng.randrange(size)]}{rng.randint(1, size)}"


def query(rng: random.Random) -> dict[str, Any]:
    """A random query, valid except that moves may be illegal."""
    size = rng.choice(SIZES)
    moves = [["BW"[n % 2], place(rng, size)] for n in range(rng.choice((0, 1, 2, 3, 5, 8)))]
    found: dict[str, Any] = {
        "boardXSize": size, "boardYSize": size, "moves": moves, "rules": rng.choice(RULES),
        "maxVisits": rng.randint(1, 3),
    }  # fmt: skip
    for name in rng.sample(SWITCHES, rng.choice((0, 0, 1, 3))):
        found[name] = rng.random() < 0.8
    more: dict[str, Any] = {
        "komi": rng.randint(-30, 30) / 2,
        "initialStones": [[rng.choice("BW"), place(rng, size)] for _ in range(rng.randint(0, 4))],
        "initialPlayer": rng.choice("BWbw"),
        "analyzeTurns": [rng.randint(0, len(moves)) for _ in range(rng.randint(1, 3))],
        "priority": rng.randint(-3, 3),
        "whiteHandicapBonus": rng.choice(("0", "N", "N-1")),
        "overrideSettings": {name: rng.choice(SETTINGS[name]) for name in rng.sample(sorted(SETTINGS), 2)},
        "reportDuringSearchEvery": rng.choice((0.001, 0.01, 5)),
        "analysisPVLen": rng.randint(1, 20),
        rng.choice(("avoidMoves", "allowMoves")): [
            {"player": rng.choice("BW"), "moves": [place(rng, size)], "untilDepth": rng.randint(1, 5)}
        ],
    }
    for name in rng.sample(sorted(more), rng.choice((0, 1, 2, 4))):
        found[name] = more[name]
    return found


def spoiled(rng: random.Random, values: dict[str, Any]) -> dict[str, Any]:
    """A query with random damage: invalid values, missing fields or unknown fields."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice((*values, "priorities", "komi", "analyzeTurns", "overrideSettings", "allowMoves", "nonsense"))
        if name in values and rng.random() < 0.2:
            del values[name]
        elif name in values and isinstance(values[name], list) and values[name] and rng.random() < 0.5:
            values[name] = [*values[name]]
            values[name][rng.randrange(len(values[name]))] = rng.choice(WILD)
        else:
            values[name] = rng.choice(WILD)
    return values


def action(rng: random.Random, sent: int) -> dict[str, Any]:
    """A random action, known or unknown.

    Args:
        sent: number of queries and actions so far, of which ``terminate`` names a recent one.
    """
    kind = rng.choice(("query_version", "query_models", "clear_cache", *("terminate",) * 4, "terminate_all", "no such"))
    found: dict[str, Any] = {"action": kind}
    if kind == "terminate":
        found["terminateId"] = rng.choice((f"q{max(0, sent - rng.randint(0, 20))}", rng.choice(WILD)))
    if kind.startswith("terminate") and rng.random() < 0.3:
        found["turnNumbers"] = rng.choice(([0], [0, 1], rng.choice(WILD)))
    return found


def lines(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Lines without newlines, none blank, reproducible by seed.

    Yields:
        Id and line. The id is empty if the line surely has no valid one; a damaged line may have lost its id.
    """
    rng = random.Random(seed)
    for number in range(count):
        kind, name = rng.random(), f"q{number}"
        if kind < 0.06:
            yield "", rng.choice(GARBAGE)
            continue
        if kind < 0.16:
            values = action(rng, number)
        else:
            values = query(rng)
            if kind < 0.65:
                values = spoiled(rng, values)
        text = json.dumps({"id": name, **values}, ensure_ascii=rng.random() < 0.5)
        line = text.encode("utf-8", "surrogatepass")
        if kind > 0.85:
            head = len(f'{{"id": "{name}"')
            line = line[:head] + changed(line[head:], rng).replace(b"\n", b" ")
        yield name, line


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each seed."""
    cases, count = (2, 500) if metafunc.config.option.campaign["quick"] else (20, LINES)
    metafunc.parametrize(("seed", "amount"), [(seed, count) for seed in range(1, cases + 1)])


def test_lines(seed: int, amount: int, campaign: dict[str, Any], outcome: Outcome) -> None:
    """Send all lines of a seed to one process."""
    fuzzer = JsonFuzzer(seed, amount, campaign["weights"])
    fuzzer.run()
    outcome.faults += fuzzer.faults
