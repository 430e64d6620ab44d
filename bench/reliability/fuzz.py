"""A GTP fuzzer: sends valid and malformed lines to the real process and checks that each command has one reply.

Lines are random, reproducible by seed: commands with valid and invalid arguments, so that games are played to their
ends and undone, clocks run and analyses begin; the same with bytes changed, words doubled, ids prepended; random bytes;
very long lines. They are sent as fast as the process reads them, in pieces cut anywhere. For engines that search the
writer sometimes waits until the process has caught up and a little longer, so that analyses and pondering run for a
while before the next line stops them. The lines come from ``random`` and not from hypothesis, whose draws depend on its
release and on the modules that are imported.

Checked are: exactly one reply a command, in order, with its id; no output between replies; no control characters; lines
of an analysis begin with ``info`` or ``play``; no "internal error"; no silence of a minute; exit status 0.
"""

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from bench.reliability.campaign import Outcome, Part
from bench.reliability.fuzzed_process import Fault, FuzzedProcess
from bench.reliability.mutations import changed
from engine.system.programs import keima
from gtp.commands import COMMANDS
from gtp.session import MAX_LINE
from weights import DEFAULT

PART = Part(
    title="GTP fuzz on the real process, a seed each, with analysis, pondering and clocks running",
    unit="lines",
    wanted="1,000,000 lines, 0 crashes, hangs, stray bytes",
    figures={"slowest process, lines/s": min},
)
ENGINES: dict[str, tuple[str, ...]] = {
    "policy": ("--visits", "1", "--policy-only"),
    "rollouts": ("--visits", "40", "--ponder", "--ponder-visits", "500", "--threads", "2"),
    "network": ("--visits", "6", "--ponder", "--ponder-visits", "100", "--threads", "2", "--evaluators", "1"),
}
"""Name -> options: an engine without a search, for many lines and long games, and two that search, with pondering and
several threads"""
COMMON = ("--size", "9", "--memory", "64", "--lag", "0.05")
SHARES = ("policy", "rollouts", "policy", "network", "policy")
"""Engines of consecutive seeds, in cyclic order"""
WARM_UP = (b"genmove b", b"final_score", b"clear_board")
SILENCE_S = 60.0
PAUSES, PAUSES_OF_ANALYSES = 0.01, 0.5
"""Share of lines, and share of commands that begin an analysis, after which the writer waits if the engine searches"""
PAUSE_S = 0.04
"""Longest wait of the writer after a line, in seconds"""
SHOWN = 12
"""Number of lines before a fault that its report shows"""
LINES = 10_000
"""Number of lines of a case"""

FIRST_LINE = re.compile(rb"([=?])([0-9]*)(?: .*)?")
STRAY = re.compile(rb"[\x00-\x1f\x7f]")
ANALYSIS = re.compile(rb"(info|play) .+|\{.+\}")
COMMAND = re.compile(rb"[ \t]*(?:([0-9]{1,10})(?![^ \t]))?[ \t]*([^ \t]?[^ \t]*)")
CONTROL = bytes([*range(9), *range(11, 32), 127])
LARGEST_ID = 2**31 - 1

LEFT_OUT = ("quit", "printsgf")
"""Commands that are never sent, since they end the session or write a file"""
ANALYZE = (
    "lz-analyze", "kata-analyze", "cgos-analyze", "lz-genmove_analyze", "kata-genmove_analyze", "cgos-genmove_analyze",
    "kata-search_analyze", "kata-search_analyze_cancellable",
)  # fmt: skip
ANALYZE_NAMES = frozenset(name.encode() for name in ANALYZE)
PARAMETERS = ("temperature", "temperature-moves", "resignThreshold", "lag", "c-puct", "root-noise", "seed", "nonsense")
"""Parameters for kata-set-param, without those that make searches long or use many threads"""
SIZES = ("2", "3", "5", "7", "9", "9", "9", "13", "19", "25", "26", "0", "-1", "9 9", "9 13")
WORDS = (
    "b", "w", "black", "WHITE", "green", "pass", "PASS", "resign", "D4", "A1", "J9", "T19", "z99", "0", "1", "2", "-1",
    "7.5", "-0.5", "1e9", "nan", "inf", "999999999", "99999999999999999999", "true", "all", "dead", "alive", "seki",
    "chinese", "japanese", "{", '{"ko":"SIMPLE"}', "byoyomi", "canadian", "fischer", "none", "\u00e9", "\u56f2\u7881",
)  # fmt: skip
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BEFORE = (BYTE_ORDER_MARK, b"\xff\xfe", b"\t", b"   ", b"\x1b[A", b"=", b"?")
BEHIND = (b"\r", b" \t ", b" # words", b"#", b"\x00", b"\x0b")
LONG = (b"", b"5 ", b"# ", b"play b ")


class Fuzzer(FuzzedProcess):
    """Sends the lines of a seed to a real ``keima gtp`` and checks its replies."""

    def __init__(self, seed: int, count: int, engine: str = "policy", weights: str = DEFAULT) -> None:
        """Prepare a fuzzer of an engine.

        Args:
            engine: one of ``ENGINES``.
            weights: network of the engine "network".
        """
        super().__init__(command_line(engine, weights), random.Random(seed), SILENCE_S)
        self._lines = [*WARM_UP, *lines(seed, count)]
        self._pauses = engine != "policy"
        self._due: deque[tuple[bytes, bytes, bytes]] = deque()
        """id, name and line of each command without a reply yet"""
        self._recent: deque[bytes] = deque(maxlen=SHOWN)
        self._reply: list[bytes] = []
        """lines of the current reply"""
        self.has_begun = not WARM_UP
        self._begun_s = self._heard_s = time.monotonic()
        self.sent = self.replies = -len(WARM_UP)

    @property
    def seconds(self) -> float:
        """Seconds from the last reply of the warm-up to the latest reply."""
        return self._heard_s - self._begun_s

    async def _write(self) -> None:
        for line in self._lines:
            due = reply_to(line)
            if due is not None:
                self._due.append((*due, line))
            self.sent += 1
            await self._send(line, 2000)
            share = PAUSES_OF_ANALYSES if due is not None and due[1] in ANALYZE_NAMES else PAUSES
            if self._pauses and self._rng.random() < share:
                await self._send_waiting()
                while len(self._due) > 1:
                    await asyncio.sleep(0.002)
                await asyncio.sleep(self._rng.uniform(0, PAUSE_S))
        await self._send_waiting(is_end=True)

    def _hear(self, line: bytes) -> None:
        if line != b"\n":
            self._reply.append(line.removesuffix(b"\n"))
            return
        reply, self._reply = self._reply, []
        found = FIRST_LINE.fullmatch(reply[0]) if reply else None
        if found is None:
            raise self._fault_at(f"not a GTP reply: {reply}")
        if not self._due:
            raise self._fault_at(f"a reply without a command: {reply}")
        id_, name, asked = self._due.popleft()
        self._recent.append(asked[:200])
        if found[2] != id_:
            raise self._fault_at(f"expected id {id_.decode()!r}: {reply}")
        if b"internal error" in reply[0]:
            raise self._fault_at(f"an internal error: {reply}")
        if any(map(STRAY.search, reply)):
            raise self._fault_at(f"control characters: {reply}")
        if name in ANALYZE_NAMES and not all(map(ANALYSIS.fullmatch, reply[1:])):
            raise self._fault_at(f"not a report of an analysis: {reply}")
        self.replies += 1
        self._heard_s = time.monotonic()
        if self.replies == 0:
            self.has_begun, self._begun_s = True, self._heard_s

    def _check_end(self, status: int, errors: str) -> None:
        if self._reply:
            raise self._fault_at(f"an incomplete reply: {self._reply}")
        if status or self._due or "Traceback" in errors:
            missing = f"exit status {status}, {len(self._due)} replies missing"
            raise self._fault_at(f"{missing}; standard error: {errors[-2000:]}")

    def _fault_at(self, text: str) -> Fault:
        """Make a fault: its text, the number of the reply, the last commands with a reply, and the next command."""
        before = "\n".join(repr(line) for line in self._recent)
        following = repr(self._due[0][2][:200]) if self._due else "nothing"
        return Fault(f"reply {self.replies}: {text}\nafter\n{before}\nnext was {following}")


def command_line(engine: str, weights: str) -> list[str]:
    """The command that starts an engine of ``ENGINES``."""
    network = ("--weights", weights if engine == "network" else "none")
    return keima("gtp", *network, *ENGINES[engine], *COMMON)


def lines(seed: int, count: int) -> Iterator[bytes]:
    """``count`` random lines, without those that end the session or write a file."""
    rng = random.Random(seed)
    names = [command.name for command in COMMANDS if command.name not in LEFT_OUT]
    while count:
        # Without "/" no line names another folder.
        line = line_of(rng, names).replace(b"/", b"|").replace(b"\n", b" ")
        due = reply_to(line)
        if due is None or not due[1].lower().startswith(tuple(name.encode() for name in LEFT_OUT)):
            count -= 1
            yield line


def line_of(rng: random.Random, names: list[str]) -> bytes:
    """A random line without its newline: a command of ``names`` or of a game, perhaps changed, or random bytes."""
    kind = rng.random()
    if kind < 0.002:
        return rng.choice(LONG) + b"x" * rng.randint(MAX_LINE - 9, 4 * MAX_LINE)
    if kind < 0.1:
        return rng.randbytes(rng.randint(0, 200))
    anything = " ".join([rng.choice(names), *rng.choices(WORDS, k=rng.randint(0, 4))])
    line = (sensible(rng) if rng.random() < 0.8 else anything).encode()
    return mutated(rng, line) if kind < 0.35 else line


def sensible(rng: random.Random) -> str:
    """A random command of a game, with mostly valid arguments."""
    color, size = rng.choice("bw"), 9
    vertex = rng.choice("ABCDEFGHJ") + str(rng.randint(1, size))
    clock = f"{rng.choice((0, 0.2, 3, 90, -5))} {rng.choice((0, 0.05, 0.3, 30, -2))} {rng.randint(-1, 10)}"
    left = rng.choice((-9, 0, 0.1, 1, 90))
    report = rng.choice(("", "1", "interval 2 ownership true", f"{color} 1 maxmoves 2 pvVisits true", "rootInfo true"))
    moves = rng.choice(("", "", f" avoid {color} {vertex} 1", f" allow {color} {vertex},D4 2"))
    game = (
        *(f"play {color} {vertex}",) * 24, f"play {color} pass", *(f"genmove {color}",) * 8, "undo", "undo",
        f"reg_genmove {color}", "clear_board", f"boardsize {rng.choice(SIZES)}", f"komi {rng.randint(-20, 20) / 2}",
        f"fixed_handicap {rng.randint(0, 10)}", f"place_free_handicap {rng.randint(0, 12)}",
        f"set_free_handicap {vertex} D4", f"set_position {color} {vertex} w D4", f"kata-search {color}",
        f"kata-search_cancellable {color}", f"time_settings {clock}", f"kgs-time_settings byoyomi {clock}",
        f"kata-time_settings fischer-capped {clock} -1", f"time_left {color} {left} {rng.randint(0, 5)}",
        f"kgs-rules {rng.choice(('japanese', 'chinese', 'aga', 'new_zealand', 'x'))}", "final_score",
        f"final_status_list {rng.choice(('dead', 'alive', 'seki', 'x'))}", "showboard", "list_commands", "help",
        f"kata-set-param {rng.choice(PARAMETERS)} {rng.choice(WORDS)}", *("# interrupt",) * 2,
        "known_command play",
        *(f"{rng.choice(ANALYZE)} {report}{moves}",) * 4, "stop",
    )  # fmt: skip
    return rng.choice(game)


def mutated(rng: random.Random, line: bytes) -> bytes:
    """A line with a random change."""
    match rng.randrange(8):
        case 0:
            return b" ".join(word for word in line.split() for _ in range(rng.randint(0, 2)))
        case 1:
            return b"%d %s" % (rng.choice((0, 7, rng.randrange(10**6), LARGEST_ID, LARGEST_ID + 1, 10**40)), line)
        case 2:
            return line + rng.choice(BEHIND) + line[: rng.randint(0, len(line))]
        case 3:
            return rng.choice(BEFORE) + line
        case 4:
            return line.swapcase()
    return changed(line, rng)


def reply_to(line: bytes) -> tuple[bytes, bytes] | None:
    """Id and name of the command in a line by the GTP specification; None = the line gets no reply."""
    text = line[: MAX_LINE + 1].translate(None, CONTROL).partition(b"#")[0]
    text = text.removeprefix(BYTE_ORDER_MARK).strip(b" \t")
    if not text:
        return None
    found = COMMAND.match(text)
    assert found is not None  # the pattern matches any text
    id_, name = found.groups()
    if id_ is not None and int(id_) > LARGEST_ID:
        id_, name = None, id_
    return id_ or b"", name


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each seed."""
    cases, count = (4, 1_000) if metafunc.config.option.campaign["quick"] else (100, LINES)
    seeds = range(1, cases + 1)
    metafunc.parametrize(("engine", "seed", "amount"), [(SHARES[seed % len(SHARES)], seed, count) for seed in seeds])


def test_lines(engine: str, seed: int, amount: int, campaign: dict[str, Any], outcome: Outcome) -> None:
    """Send all lines of a seed to one process."""
    fuzzer = Fuzzer(seed, amount, engine, campaign["weights"])
    fuzzer.run()
    outcome.faults += fuzzer.faults
    outcome.amount = fuzzer.sent
    if not fuzzer.faults:
        outcome.figures = {"slowest process, lines/s": fuzzer.sent / max(fuzzer.seconds, 1e-9)}
