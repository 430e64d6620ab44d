"""``python -m bench.speed.analysis``: latencies of an analysis as a GTP client sees them; one JSON line a figure.

``first`` is the time from the command to its first update, in a new position, with everything loaded; ``late`` the
largest deviation of an interval between updates from the requested one; ``stop`` the time from the next line to the
empty line that ends the reply, ``next`` to the reply to that line. ``growth`` is the growth of the process's memory in
the second half of an analysis of ``--minutes``, when the tree has reached the memory limit set here; Linux only. Start
at :func:`command`.
"""

import time
from collections.abc import Iterator

import click
import numpy as np

from bench.match.gtp_client import ROOT, EngineRefused, GtpClient
from bench.process_memory import own_mib
from bench.speed.figures import Figure, Timing, bench
from engine.go.geometry import on_board_points, to_vertex
from engine.system.programs import keima
from gtp.cli.arguments import Number
from gtp.cli.settings import NO_FILE
from weights import DEFAULT

PATIENCE_S = 1800.0
"""Longest wait for a line; the first answers may need compiled kernels"""
LONG_MEMORY_MIB = 128
"""``--memory`` of a long analysis: tree and cache are full before its first half ends"""
LONG_INTERVAL_S = 5.0


def analysis_of(client: GtpClient, interval_s: float, updates: int) -> list[float]:
    """Analyse the position on the board for a number of updates.

    Returns:
        ``first``, ``late``, ``stop`` and ``next`` in milliseconds.
    """
    begin_s = time.perf_counter()
    client.send(f"kata-analyze {100 * interval_s:g}")
    read_head(client)
    times = []
    for _ in range(updates):
        client.read_line(PATIENCE_S)
        times.append(time.perf_counter())
    asked_s = time.perf_counter()
    client.send("name")
    while client.read_line(PATIENCE_S):
        pass
    ended_s = time.perf_counter()
    read_head(client)
    client.read_line(PATIENCE_S)
    late_s = float(np.abs(np.diff(times) - interval_s).max())
    return [1e3 * s for s in (times[0] - begin_s, late_s, ended_s - asked_s, time.perf_counter() - asked_s)]


def read_head(client: GtpClient) -> None:
    """Read the first line of a reply.

    Raises:
        EngineRefused: the reply is an error.
    """
    head = client.read_line(PATIENCE_S)
    if not head.startswith("="):
        raise EngineRefused(head)


def growth_of(client: GtpClient, minutes: float) -> float:
    """Growth of the engine's resident memory in MiB in the second half of an analysis of ``minutes``."""
    end_s = time.perf_counter() + 60 * minutes
    client.send(f"kata-analyze {100 * LONG_INTERVAL_S:g} ownership true")
    used = []
    while time.perf_counter() < end_s:
        client.read_line(PATIENCE_S)
        used.append(own_mib(client.pid))
        click.echo(f"{used[-1]:.0f} MiB", err=True)
    return max(used[len(used) // 2 :]) - used[len(used) // 2]


@bench("analyses", repeats=9)
@click.option("--weights", default=DEFAULT, help="network, as for keima gtp")
@click.option("--size", default=19, type=click.IntRange(2, 25), help="board size")
@click.option("--device", default="cpu", help="device, as for keima gtp")
@click.option("--interval", default=0.1, type=Number(0.01, 60.0), help="seconds between updates")
@click.option("--updates", default=20, type=click.IntRange(2, 10000), help="updates in each analysis")
@click.option("--minutes", default=0.0, type=Number(0.0, 1440.0), help="length of a long analysis; 0 = none")
def command(
    weights: str, size: int, device: str, interval: float, updates: int, minutes: float, timing: Timing
) -> Iterator[Figure]:
    """Measure the latencies of an analysis: one JSON line a figure."""
    words = keima("gtp", "--config", NO_FILE, "--weights", weights, "--size", size, "--device", device)
    points = np.random.default_rng(1).permutation(on_board_points(size))
    with GtpClient(words, ROOT) as client:
        client.ask("genmove b", PATIENCE_S)
        found = []
        for repeat in range(timing.repeats):
            client.ask("clear_board", PATIENCE_S)
            client.ask(f"play b {to_vertex(int(points[repeat % len(points)]), size)}", PATIENCE_S)
            found.append(analysis_of(client, interval, updates))
    for name, values in zip(("first", "late", "stop", "next"), zip(*found, strict=True), strict=True):
        yield name, values, "ms"
        yield f"{name}/worst", [max(values)], "ms"
    if minutes:
        with GtpClient([*words, "--memory", str(LONG_MEMORY_MIB)], ROOT) as client:
            yield "growth", [growth_of(client, minutes)], "MiB"


if __name__ == "__main__":
    command()
