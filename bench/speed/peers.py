"""``python -m bench.speed.peers``: two engines in turns, their speed and memory: one JSON line a figure, and a table.

The engines are command lines of GTP engines; nothing of them is built here or shipped. ``start`` is the time from the
start of the process to the answer to ``name``, ``first_move/SIZE`` to the first move, under the limit that the command
line gives. ``visits/SIZE`` is the rate of an analysis of ``--seconds`` in a middle-game position with an empty cache
(``kata-analyze`` or ``lz-analyze``); ``memory/SIZE`` the peak of the resident memory of the engine's processes after it
(after a move if the engine has no analysis; Linux only). ``evaluations/SIZE`` is the network's evaluations a second
during ``kata-benchmark``; ``json/SIZE`` positions a second that a JSON engine of KataGo's protocol answers, sent at
once. Names end in ``/first`` and ``/second``. Figures of searches depend on the processor; ``memory_bandwidth``, of
copies by all cores, tells two machines of the same processor apart.

Only one engine runs at a time: the first, the second, the first again, and so on. Start at :func:`command`.
"""

import json
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click
import numpy as np

from bench.match.gtp_client import EngineRefused, GtpClient
from bench.process_memory import STATUS, session_peak_mib
from bench.speed.analysis import PATIENCE_S, read_head
from bench.speed.figures import Figure, Timing, bench, rounded, sample
from bench.speed.startup import seconds_of
from bench.speed.subjects import move_lists, sizes
from bench.strength.peer import LIMIT_S, Peer
from engine.config.declaration import core_count
from engine.go.geometry import BLACK, WHITE, to_vertex
from engine.go.points import color_letter

ROLES = ("first", "second")
RULES, KOMI = "tromp-taylor", 7.5
ANALYSES = {"kata-analyze": "rootInfo true", "lz-analyze": ""}
"""GTP command of an analysis -> arguments for which its updates tell the visits of the root, if it can"""
INTERVAL_CS = 20
"""Time between the updates of an analysis, in hundredths of a second as in GTP"""
TURNS = 8
"""Positions of each game that a JSON engine is asked about"""
EVALUATIONS = re.compile(r"nnEvals/s = ([\d.]{1,20})|\b([\d.]{1,20}) evaluations/s")
"""Rates in answers to ``kata-benchmark``, KataGo's and Keima's; the last one is of all positions"""
COPY_MIB = 64
"""Size of the arrays that are copied, larger than caches"""
BANDWIDTH_S = 0.5
Measured = tuple[str, float, str]
"""Name, value, unit"""


class Lines(NamedTuple):
    """Command lines of an engine: as GTP engine, and as JSON engine if not empty."""

    gtp: str
    json: str


class Amounts(NamedTuple):
    """The length of each search."""

    seconds: float
    """of an analysis"""
    visits: int
    """of each position of ``kata-benchmark``"""
    json_visits: int
    """of each position of a JSON engine"""


def measured(
    lines: Lines, size: int, games: Sequence[Sequence[int]], turn: int, amounts: Amounts
) -> Iterator[Measured]:
    """The figures of one engine on one board size.

    Args:
        games: moves of games, as points, Black's first.
        turn: number of the repetition, which chooses the game that is analysed.
    """
    start, *_, move = seconds_of(lines.gtp, ("name", f"boardsize {size}", "genmove b"))
    yield "start", start, "s"
    yield f"first_move/{size}", move, "s"
    with Peer(lines.gtp, RULES, size, KOMI) as peer:
        client = peer.client
        peer.move([])
        peer.set_position(games[turn % len(games)])
        for analysis in [name for name in ANALYSES if client.lists(name, LIMIT_S)][:1]:
            yield f"visits/{size}", visits_per_s(client, analysis, amounts.seconds), "visits/s"
        if STATUS.exists():
            yield f"memory/{size}", session_peak_mib(client.pid), "MiB"
        if client.lists("kata-benchmark", LIMIT_S):
            told = EVALUATIONS.findall(client.ask(f"kata-benchmark {amounts.visits}", PATIENCE_S))
            if told:
                yield f"evaluations/{size}", float("".join(told[-1])), "evaluations/s"
    if lines.json:
        yield f"json/{size}", positions_per_s(lines.json, size, games, amounts.json_visits), "positions/s"


def visits_per_s(client: GtpClient, analysis: str, seconds: float) -> float:
    """Visits a second of an analysis of the position on the board.

    Args:
        analysis: one of ``ANALYSES``.
    """
    begin = time.perf_counter()
    client.send(f"{analysis} {INTERVAL_CS} {ANALYSES[analysis]}".rstrip())
    read_head(client)
    spent, visits = 0.0, 0
    while spent < seconds:
        update = client.read_line(PATIENCE_S)
        spent, visits = time.perf_counter() - begin, visits_in(update)
    client.ask("name", PATIENCE_S)  # ends the analysis
    return visits / spent


def visits_in(update: str) -> int:
    """Visits that an update of an analysis tells: those of the root or, without them, the sum of all moves.

    The sum may count a visit several times: KataGo lists moves that are symmetric to each other with the same visits.
    """
    return sum(map(int, re.findall(r"\bvisits (\d+)", update.rpartition("rootInfo")[2])))


def positions_per_s(line: str, size: int, games: Sequence[Sequence[int]], visits: int) -> float:
    """Positions a second that a JSON engine answers, started and warmed up: ``TURNS`` of each game but the first.

    Raises:
        EngineError: the engine failed.
        EngineRefused: it answered with an error.
    """
    # This client reads lines for it; the protocol has no command that ends the process, so it is killed.
    client = GtpClient(line)
    try:
        _answers(client, size, games[:1], visits)
        begin = time.perf_counter()
        count = _answers(client, size, games[1:], visits)
        return count / (time.perf_counter() - begin)
    finally:
        client.kill()


def _answers(client: GtpClient, size: int, games: Sequence[Sequence[int]], visits: int) -> int:
    """Ask a JSON engine about positions of games and await all answers; returns their number."""
    waiting = 0
    for number, moves in enumerate(games):
        turns = sorted({len(moves) * i // TURNS for i in range(1, TURNS + 1)})
        named = [[color_letter((BLACK, WHITE)[i % 2]), to_vertex(point, size)] for i, point in enumerate(moves)]
        query = {
            "id": str(number),
            "moves": named,
            "rules": RULES,
            "komi": KOMI,
            "boardXSize": size,
            "boardYSize": size,
        }
        client.send(json.dumps(query | {"maxVisits": visits, "analyzeTurns": turns}))
        waiting += len(turns)
    count = 0
    while count < waiting:
        line = client.read_line(PATIENCE_S)
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise EngineRefused(f"{client.command}: {line!r}, expected JSON") from error
        if "error" in answer:
            raise EngineRefused(f"{client.command}: {answer['error']}")
        count += "turnNumber" in answer
    return count


def memory_bandwidth() -> float:
    """GB/s that all cores read and write together when they copy arrays."""

    def copying():
        source, target = np.ones(COPY_MIB << 17), np.ones(COPY_MIB << 17)

        def copy(count: int) -> int:
            for _ in range(count):
                np.copyto(target, source)
            return 0

        return copy

    (found,) = sample([copying() for _ in range(core_count())], BANDWIDTH_S, 1)
    return found.items_per_s * 2 * (COPY_MIB << 20) / 1e9


def name_of(line: str, sizes: Sequence[int]) -> str:
    """Name and version of a GTP engine, which plays a move on each board size before: it may compile kernels for it."""
    with GtpClient(line) as client:
        for size in sizes:
            for question in (f"boardsize {size}", "genmove b"):
                client.ask(question, PATIENCE_S)
        return " ".join(client.ask(question, PATIENCE_S) for question in ("name", "version"))


def table(found: dict[str, list[float]], units: dict[str, str], names: Sequence[str]) -> str:
    """A Markdown table of medians: both engines, and the first's divided by the second's; a dash where one has none.

    Args:
        found: name with role -> values.
        units: name without role -> unit, in the order of the rows.
        names: the engines'.
    """
    rows = [f"| figure | unit | {' | '.join(names)} | ratio |", "|---|---|---|---|---|"]
    for name, unit in units.items():
        values = [statistics.median(found[key]) if (key := f"{name}/{role}") in found else None for role in ROLES]
        shown = ["-" if value is None else str(rounded(value)) for value in values]
        ratio = f"{values[0] / values[1]:.2f}" if values[0] is not None and values[1] else "-"
        rows.append(f"| {name} | {unit} | {' | '.join(shown)} | {ratio} |")
    return "\n".join(rows)


@bench("turns", 5.0, 3)
@click.option("--first", required=True, help="command line of the first GTP engine")
@click.option("--second", required=True, help="command line of the second GTP engine")
@click.option("--first-json", default="", help="command line of the first as JSON engine, such as keima analysis")
@click.option("--second-json", default="", help="command line of the second as JSON engine")
@sizes
@click.option("--visits", default=200, type=click.IntRange(1), help="visits of each of kata-benchmark's positions")
@click.option("--json-visits", default=50, type=click.IntRange(1), help="visits of each of the JSON engine's positions")
def command(
    first: str, second: str, first_json: str, second_json: str, sizes: Sequence[int], visits: int, json_visits: int,
    timing: Timing,
) -> Iterator[Figure]:  # fmt: skip
    """Measure two engines in turns: one JSON line a figure, and a table of both on standard error."""
    engines = dict(zip(ROLES, (Lines(first, first_json), Lines(second, second_json)), strict=True))
    amounts, games = Amounts(timing.seconds, visits, json_visits), {size: move_lists(size) for size in sizes}
    names = [name_of(lines.gtp, sizes) for lines in engines.values()]
    found: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    bandwidth = []
    for turn in range(timing.repeats):
        bandwidth.append(memory_bandwidth())
        for (role, lines), size in ((engine, size) for size in sizes for engine in engines.items()):
            click.echo(f"measuring {role}/{size}, turn {turn + 1}", err=True)
            for name, value, unit in measured(lines, size, games[size], turn, amounts):
                units[name] = unit
                found.setdefault(f"{name}/{role}", []).append(value)
    yield "memory_bandwidth", bandwidth, "GB/s"
    for name, unit in units.items():
        for role in ROLES:
            if values := found.get(f"{name}/{role}"):
                yield f"{name}/{role}", values, unit
    click.echo(
        f"memory bandwidth {rounded(statistics.median(bandwidth))} GB/s\n\n{table(found, units, names)}", err=True
    )


if __name__ == "__main__":
    command()
