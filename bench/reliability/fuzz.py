"""A fuzzer: sends the real process malformed lines, and holds it to one reply a command and nothing else.

Lines are a random mixture, the same for the same seed: sensible commands with good and bad arguments, so that games
go on, finish and are taken back; those with bytes changed, words doubled, ids put in front; random bytes; endless
lines. All are sent as fast as the process takes them, cut anywhere. Checked are: exactly one reply a command, in order,
with its id; nothing between replies; no "internal error"; no silence of a minute; exit status 0.

    python -m bench.reliability.fuzz --lines 100000 --seed 1
"""

import os
import random
import re
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import click

from bench.match.gtp_client import ROOT, keima
from bench.reliability.part import Campaign, Case, Outcome, Part
from bench.speed.figures import print_figure
from gtp.commands import COMMANDS
from gtp.session import MAX_LINE

COMMAND_LINE = keima("--weights", "none", "--size", "9", "--visits", "1", "--policy-only", "--memory", "64")
"""An engine that moves at once: the search is not tested here"""
SILENCE_S = 60.0
START_S = 600.0
"""Silence that is allowed before the first reply: kernels may have to be compiled"""
SHOWN = 12
"""Lines before a fault that a report repeats"""
FIRST_LINE = re.compile(rb"([=?])([0-9]*)(?: .*)?")
COMMAND = re.compile(rb"[ \t]*(?:([0-9]{1,10})(?![^ \t]))?[ \t]*([^ \t]?[^ \t]*)")
CONTROL = bytes([*range(9), *range(11, 32), 127])
LINES = 4000
"""of one case"""
LARGEST_ID = 2**31 - 1
LEFT_OUT = ("quit", "printsgf")
PARAMETERS = ("temperature", "temperature-moves", "resignThreshold", "lag", "c-puct", "gumbel", "seed", "nonsense")
"""For kata-set-param: none that lets it search for long, or in many threads"""
SIZES = ("2", "3", "5", "7", "9", "9", "9", "13", "19", "25", "26", "0", "-1", "9 9", "9 13")
WORDS = (
    "b", "w", "black", "WHITE", "green", "pass", "PASS", "resign", "D4", "A1", "J9", "T19", "z99", "0", "1", "2", "-1",
    "7.5", "-0.5", "1e9", "nan", "inf", "999999999", "99999999999999999999", "true", "all", "dead", "alive", "seki",
    "chinese", "japanese", "{", '{"ko":"SIMPLE"}', "byoyomi", "canadian", "fischer", "none", "\u00e9", "\u56f2\u7881",
)  # fmt: skip


class Fault(Exception):
    """The process did what it must not do."""


def sensible(rng: random.Random) -> str:
    """A command of a game, its arguments mostly good."""
    color, size = rng.choice("bw"), 9
    vertex = rng.choice("ABCDEFGHJ") + str(rng.randint(1, size))
    clock = f"{rng.randint(-5, 90)} {rng.randint(-2, 30)} {rng.randint(-2, 10)}"
    game = (
        *(f"play {color} {vertex}",) * 16, f"play {color} pass", *(f"genmove {color}",) * 12, "undo", "undo",
        f"reg_genmove {color}", "clear_board", f"boardsize {rng.choice(SIZES)}", f"komi {rng.randint(-20, 20) / 2}",
        f"fixed_handicap {rng.randint(0, 10)}", f"place_free_handicap {rng.randint(0, 12)}",
        f"set_free_handicap {vertex} D4", f"time_settings {clock}", f"kgs-time_settings byoyomi {clock}",
        f"kata-time_settings fischer-capped {clock} -1", f"time_left {color} {rng.randint(-9, 90)} 1",
        f"kgs-rules {rng.choice(('japanese', 'chinese', 'aga', 'new_zealand', 'x'))}", "final_score",
        f"final_status_list {rng.choice(('dead', 'alive', 'seki', 'x'))}", "showboard", "list_commands", "help",
        f"kata-set-param {rng.choice(PARAMETERS)} {rng.choice(WORDS)}", "known_command play", "# interrupt",
    )  # fmt: skip
    return rng.choice(game)


def anything(rng: random.Random, names: list[str]) -> str:
    """A registered command with any words behind it."""
    return " ".join([rng.choice(names), *rng.choices(WORDS, k=rng.randint(0, 4))])


def mutated(rng: random.Random, line: bytes) -> bytes:
    """A line with something changed."""
    at = rng.randint(0, len(line))
    match rng.randint(0, 7):
        case 0:
            return line[:at] + bytes([rng.randrange(256)]) + line[at + 1 :]
        case 1:
            return line[:at] + rng.randbytes(rng.randint(1, 5)) + line[at:]
        case 2:
            return line[:at] + line[at + rng.randint(1, 5) :]
        case 3:
            return b" ".join(word for word in line.split() for _ in range(rng.randint(0, 2)))
        case 4:
            return b"%d %s" % (rng.choice((0, 7, rng.randrange(10**6), LARGEST_ID, LARGEST_ID + 1, 10**40)), line)
        case 5:
            return line + rng.choice((b"\r", b" \t ", b" # words", b"#", b"\x00", b"\x0b")) + line[:at]
        case 6:
            return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\t", b"   ", b"\x1b[A", b"=", b"?")) + line
    return line.swapcase()


def line_of(rng: random.Random, names: list[str]) -> bytes:
    """One line without its end."""
    kind = rng.random()
    if kind < 0.55:
        line = sensible(rng).encode()
    elif kind < 0.65:
        line = anything(rng, names).encode()
    elif kind < 0.90:
        line = mutated(rng, (sensible(rng) if rng.random() < 0.7 else anything(rng, names)).encode())
    elif kind < 0.998:
        line = rng.randbytes(rng.randint(0, 200))
    else:
        line = rng.choice((b"", b"5 ", b"# ", b"play b ")) + b"x" * rng.randint(MAX_LINE - 9, 4 * MAX_LINE)
    # No other folder may be read or written; a line is one line.
    return line.replace(b"/", b"|").replace(b"\n", b" ")


def reply_to(line: bytes) -> tuple[bytes, bytes] | None:
    """Id and name of the command in a line, as the protocol's text defines them; None = no reply is due."""
    text = line[: MAX_LINE + 1].translate(None, CONTROL).partition(b"#")[0].strip(b" \t")
    if not text:
        return None
    found = COMMAND.match(text)
    assert found is not None  # every part of the pattern may be empty
    id_, name = found.groups()
    if id_ is not None and int(id_) > LARGEST_ID:
        id_, name = None, id_
    return id_ or b"", name


def lines(seed: int, count: int) -> Iterator[bytes]:
    """``count`` lines, none of which ends the session or writes a file."""
    rng = random.Random(seed)
    names = [command.name for command in COMMANDS if command.name not in LEFT_OUT]
    while count:
        line = line_of(rng, names)
        due = reply_to(line)
        if due is None or not due[1].lower().startswith(tuple(name.encode() for name in LEFT_OUT)):
            count -= 1
            yield line


class Fuzzer:
    """One process and the lines it is sent. Threads: one writes, the caller's reads."""

    def __init__(self, seed: int, count: int) -> None:
        self._lines = lines(seed, count)
        self._rng = random.Random(seed)
        self._due: deque[tuple[bytes, bytes]] = deque()
        """ids of replies that are still to come, with their lines"""
        self._recent: deque[bytes] = deque(maxlen=SHOWN)
        self.sent = self.replies = 0
        self.seconds = 0.0
        """from the first reply to the last"""

    def run(self) -> None:
        """Send everything, then end the input.

        Raises:
            Fault: the process did something else than it should.
        """
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            search_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = {**os.environ, "PYTHONPATH": search_path, "KEIMA_CONFIG": "none"}
            with subprocess.Popen(
                COMMAND_LINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder, env=environment
            ) as process:
                threading.Thread(target=self._write, args=(process.stdin,), daemon=True).start()
                try:
                    self._read(process)
                    status = process.wait(SILENCE_S)
                finally:
                    process.kill()
            errors.seek(0)
            said = errors.read().decode(errors="replace")
        if status or self._due or "Traceback" in said:
            raise self._fault(f"exit status {status}, {len(self._due)} replies missing; standard error: {said[-2000:]}")

    def _write(self, pipe: IO[bytes]) -> None:
        """Send all lines, in pieces that end anywhere."""
        waiting = b""
        try:
            for line in self._lines:
                due = reply_to(line)
                if due is not None:
                    self._due.append((due[0], line))
                self.sent += 1
                waiting += line + b"\n"
                if len(waiting) > self._rng.randint(1, 2000):
                    cut = self._rng.randint(0, len(waiting))
                    pipe.write(waiting[:cut])
                    pipe.flush()
                    waiting = waiting[cut:]
            pipe.write(waiting)
            pipe.close()
        except OSError:
            pass  # The process has ended; its exit status tells.

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Check all that comes back."""
        begin, pipe = 0.0, process.stdout
        assert pipe is not None  # as it was started
        while True:
            watchdog = threading.Timer(SILENCE_S if self.replies else START_S, process.kill)
            watchdog.start()
            reply = []
            while (line := pipe.readline()) not in (b"", b"\n"):
                reply.append(line[:-1])
            watchdog.cancel()
            if not line:
                if reply:
                    raise self._fault(f"half a reply: {reply}")
                return
            self._check(reply)
            begin = begin or time.perf_counter()
            self.replies += 1
            self.seconds = time.perf_counter() - begin

    def _check(self, reply: list[bytes]) -> None:
        """Compare a reply with the line it answers."""
        found = FIRST_LINE.fullmatch(reply[0]) if reply else None
        if found is None:
            raise self._fault(f"no reply of GTP: {reply}")
        if not self._due:
            raise self._fault(f"a reply without a command: {reply}")
        id_, line = self._due.popleft()
        self._recent.append(line[:200])
        if found[2] != id_ or (id_ and not reply[0].startswith((b"=" + id_, b"?" + id_))):
            raise self._fault(f"id {id_.decode()!r} was asked, answered: {reply}")
        if b"internal error" in reply[0]:
            raise self._fault(f"an internal error: {reply}")

    def _fault(self, text: str) -> Fault:
        """What is wrong, with the lines that led there."""
        before = "\n".join(repr(line) for line in self._recent)
        following = repr(self._due[0][1][:200]) if self._due else "nothing"
        return Fault(f"reply {self.replies}: {text}\nafter\n{before}\nnext was {following}")


def _run(seed: int, folder: Path) -> Outcome:
    """One process and all lines of a seed."""
    fuzzer = Fuzzer(seed, LINES)
    try:
        fuzzer.run()
    except Fault as fault:
        return Outcome([str(fault)], amount=fuzzer.sent)
    return Outcome(figures={"slowest case, lines/s": fuzzer.sent / max(fuzzer.seconds, 1e-9)})


def _cases(campaign: Campaign) -> Iterator[Case]:
    """One case a seed."""
    for seed in range(1, (2 if campaign.quick else 250) + 1):
        yield Case(f"seed-{seed}", partial(_run, seed), LINES)


PART = Part(
    __name__,
    title="GTP fuzz on the real process, several seeds",
    unit="lines",
    wanted="1,000,000 lines, 0 crashes, hangs, stray bytes",
    cases=_cases,
    figures={"slowest case, lines/s": min},
)


@click.command(context_settings={"show_default": True})
@click.option("--lines", "count", default=100_000, type=click.IntRange(1), help="lines to send")
@click.option("--seed", default=1, help="of the lines; the same seed sends the same")
def main(count: int, seed: int) -> None:
    """Send the engine malformed lines, and check what comes back."""
    fuzzer = Fuzzer(seed, count)
    try:
        fuzzer.run()
    except Fault as fault:
        raise click.ClickException(str(fault)) from fault
    print_figure(f"fuzz/{seed}/{fuzzer.replies} replies", [fuzzer.sent / max(fuzzer.seconds, 1e-9)], "lines/s")


if __name__ == "__main__":
    main()
