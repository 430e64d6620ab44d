"""``python -m bench.speed.analysis``: what a client feels of an analysis, through pipes; one JSON line a figure.

``first`` is the time from the command to its first update, in a position that nothing is known of, with everything
loaded; ``late`` how far the worst of the following intervals is from the one asked for; ``stop`` the time from the next
line to the empty line that ends the reply, ``next`` until that line is answered too. ``growth`` is what the process's
memory gains in the second half of an analysis of so many ``--minutes``, by when the tree has reached the limit that it
is given here; Linux only. Start at :func:`command`.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from bench.speed.figures import print_figure
from engine.go.geometry import on_board_points, to_vertex
from gtp.cli.settings import NO_FILE
from weights import DEFAULT_ALIAS

ROOT = Path(__file__).resolve().parent.parent
LONG_MEMORY_MIB = 128
"""Of the tree and the cache in a long analysis, so that they are full before its first half ends"""
LONG_INTERVAL_S = 5.0


class Client:
    """An engine over pipes, line by line."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process

    def send(self, line: str) -> float:
        """Send a line; returns when, in seconds."""
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        return time.perf_counter()

    def read(self) -> tuple[str, float]:
        """The next line, and when it came.

        Raises:
            click.ClickException: the engine has ended.
        """
        line = self.process.stdout.readline()
        if not line:
            raise click.ClickException("the engine has ended")
        return line.decode().rstrip(), time.perf_counter()

    def finish(self, first: str = "") -> float:
        """Read to the end of a reply; returns when it came.

        Raises:
            click.ClickException: the engine has ended, or answered with an error.
        """
        line, when_s = self.read()
        while line:
            first = first or line
            line, when_s = self.read()
        if not first.startswith("="):
            raise click.ClickException(first)
        return when_s

    def ask(self, command: str) -> float:
        """Send a command and read its reply; returns when that ended."""
        self.send(command)
        return self.finish()


@contextmanager
def started(*options: str) -> Iterator[Client]:
    """``keima gtp`` with these options, without a settings file; ended afterwards."""
    words = [sys.executable, "-m", "gtp.cli", "gtp", "--config", NO_FILE, *options]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Client(process)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def analysis_of(client: Client, interval_s: float, updates: int) -> tuple[float, float, float, float]:
    """Analyze the position on the board for so many updates.

    Returns:
        tuple: milliseconds of ``first``, ``late``, ``stop`` and ``next``.
    """
    begin_s = client.send(f"kata-analyze {100 * interval_s:g}")
    head, _ = client.read()
    times = [client.read()[1] for _ in range(updates)]
    asked_s = client.send("name")
    ended_s = client.finish(head)
    answered_s = client.finish()
    late_s = np.abs(np.diff(times) - interval_s).max()
    return tuple(1e3 * s for s in (times[0] - begin_s, late_s, ended_s - asked_s, answered_s - asked_s))


def growth_of(client: Client, minutes: float) -> float:
    """MiB that a long analysis gains in its second half."""
    end_s = client.send(f"kata-analyze {100 * LONG_INTERVAL_S:g} ownership true") + 60 * minutes
    used = []
    while client.read()[1] < end_s:
        used.append(_resident_mib(client.process.pid))
        click.echo(f"{used[-1]:.0f} MiB", err=True)
    return max(used[len(used) // 2 :]) - used[len(used) // 2]


def _resident_mib(pid: int) -> float:
    """Memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


@click.command(context_settings={"show_default": True})
@click.option("--weights", default=DEFAULT_ALIAS, help="as of keima gtp")
@click.option("--size", default=19, type=click.IntRange(2, 25), help="board")
@click.option("--device", default="cpu", help="as of keima gtp")
@click.option("--interval", default=0.1, type=click.FloatRange(0.01, 60.0), help="seconds between updates")
@click.option("--updates", default=20, type=click.IntRange(2, 10000), help="updates in each analysis")
@click.option("--repeats", default=9, type=click.IntRange(1, 300), help="analyses; their median counts")
@click.option("--minutes", default=0.0, type=click.FloatRange(0.0, 1440.0), help="length of a long analysis; 0 = none")
def command(weights: str, size: int, device: str, interval: float, updates: int, repeats: int, minutes: float) -> None:
    """How soon, how regularly and how long an analysis speaks: one JSON line a figure."""
    place = ("--weights", weights, "--size", str(size), "--device", device)
    points = np.random.default_rng(1).permutation(on_board_points(size))
    with started(*place) as client:
        client.ask("genmove b")
        found = []
        for repeat in range(repeats):
            client.ask("clear_board")
            client.ask(f"play b {to_vertex(int(points[repeat % len(points)]), size)}")
            found.append(analysis_of(client, interval, updates))
    for name, values in zip(("first", "late", "stop", "next"), zip(*found, strict=True), strict=True):
        print_figure(name, values, "ms")
        print_figure(f"{name}/worst", [max(values)], "ms")
    if minutes:
        with started(*place, "--memory", str(LONG_MEMORY_MIB)) as client:
            print_figure("growth", [growth_of(client, minutes)], "MiB")


if __name__ == "__main__":
    command()
