"""Memory leaks: growth of one process over many short games, hours of analysis, and self-play.

Measured is resident memory without mapped files (``RssAnon`` and ``RssShmem`` of Linux's ``/proc/PID/status``). Growth
is the median of the last tenth of the samples relative to that of the first tenth, after a warm-up in which tree,
result cache and allocators reach their size; up to 2% is allowed.

The engine is the real one with network and rollouts. Tree and cache are limited to 64 MiB, so they are full before the
warm-up ends, and later growth is a leak.

* games: the commands of a server for every game (board size, clock, genmoves of both colours with searches and
  pondering; undo, an analysis, ``final_score`` and ``final_status_list``), on 9x9, 13x13, 9x9 and 19x19 in turn; one
  sample after each game.
* analysis: ``kata-analyze`` with ownership on 19x19; a move is played every ten seconds, the last two moves are undone
  after every fifth move, the board is cleared after 120 moves; one sample for each update, every half second.
* self-play: games by search in bulk on 5x5, with the default options and a fake network without cost; rows go to
  shards, of which only the newest are kept; two samples a second.

The quick campaign (few games, seconds of analysis, small boards) has almost no warm-up and allows 10%.
"""

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.match.gtp_client import ROOT, EngineRefused, GtpClient
from bench.process_memory import STATUS, own_mib
from bench.reliability.campaign import Outcome, Part
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.selfplay.search_games import Origin
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.search_play import CACHE_MIB, SearchPlay, played_here
from engine.system.programs import keima
from gtp.cli.settings import NO_FILE

TOLERANCE, QUICK_TOLERANCE = 0.02, 0.10
LIMIT_S = 900.0
"""Longest wait for an answer; the first ones may need compiled kernels"""
MEMORY_MIB = 64
GAME_MOVES, GAME_VISITS = 24, 16
SIZES, QUICK_SIZES = (9, 13, 9, 19), (9,)
SLICE_S = 10.0
"""Seconds of analysis of each position"""
ANALYSED_MOVES = 120
SELF_PLAY_SIZE, AT_ONCE, KEPT_SHARDS = 5, 64, 8
SAMPLE_S = 0.5
SHOWN = 24
"""Number of samples in the report of a fault"""


class Scale(NamedTuple):
    """Lengths of warm-up and measurement, board sizes and tolerance of the full or the quick campaign."""

    warm_up_games: int
    games: int
    warm_up_s: float
    analysis_s: float
    sizes: tuple[int, ...]
    """board sizes of the games, in turn"""
    analysed_size: int
    warm_up_self_play: int
    """number of games of the warm-up"""
    self_play: int
    """number of games after the warm-up"""
    tolerance: float


WHOLE = Scale(40, 200, 900.0, 7200.0, SIZES, 19, 10_000, 100_000, TOLERANCE)
QUICK = Scale(4, 8, 4.0, 8.0, QUICK_SIZES, 9, 300, 1_000, QUICK_TOLERANCE)


def _engine(weights: str, *options: str) -> GtpClient:
    """Start an engine and let it play its first move."""
    command = keima("gtp", "--weights", weights, "--memory", MEMORY_MIB, *options)
    client = GtpClient(command, ROOT, KEIMA_CONFIG=NO_FILE)
    client.ask("genmove b", LIMIT_S)
    return client


def growth(samples: list[float]) -> float:
    """Growth from the first to the last tenth of the samples (medians), as a share."""
    tenth = max(1, len(samples) // 10)
    return statistics.median(samples[-tenth:]) / statistics.median(samples[:tenth]) - 1.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One case for each of ``SAMPLES``."""
    metafunc.parametrize("name", SAMPLES)


@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from Linux's /proc")
def test_growth(name: str, campaign: dict[str, Any], folder: Path, outcome: Outcome) -> None:
    """Growth of memory beyond the tolerance is a fault."""
    scale = QUICK if campaign["quick"] else WHOLE
    samples = SAMPLES[name](scale, campaign["weights"], folder)
    grown = growth(samples)
    outcome.figures = {f"growth over {name}, %": 100 * grown, f"most during {name}, MiB": max(samples)}
    if grown > scale.tolerance:
        shown = ", ".join(f"{value:.1f}" for value in samples[:: max(1, len(samples) // SHOWN)])
        fault = f"memory grew by {grown:.1%}, expected at most {scale.tolerance:.0%}; MiB: {shown}"
        outcome.faults.append(fault)


def _games(scale: Scale, weights: str, folder: Path) -> list[float]:
    """Play short games in one process; one sample a game."""
    samples = []
    with _engine(weights, "--visits", str(GAME_VISITS), "--ponder", "--ponder-visits", "50") as client:
        for number in range(scale.warm_up_games + scale.games):
            _play(client, scale.sizes[number % len(scale.sizes)])
            samples.append(own_mib(client.pid))
    return samples[scale.warm_up_games :]


def _play(client: GtpClient, size: int) -> None:
    """Play one short game with the commands of a server and a viewer."""
    for line in (f"boardsize {size}", "clear_board", "komi 7", "kata-time_settings byoyomi 60 5 3"):
        client.ask(line, LIMIT_S)
    passes = 0
    for number in range(GAME_MOVES):
        color = "bw"[number % 2]
        client.ask(f"time_left {color} 50 0", LIMIT_S)
        move = client.ask(f"genmove {color}", LIMIT_S)
        passes = passes + 1 if move == "pass" else 0
        if move == "resign" or passes == 2:
            break
    for line in ("undo", "showboard", "final_score", "final_status_list dead"):
        with suppress(EngineRefused):  # undo is refused after a resignation at the first move
            client.ask(line, LIMIT_S)
    list(_updates(client, 0.1))


def _analysis(scale: Scale, weights: str, folder: Path) -> list[float]:
    """Analyse consecutive positions of games; one sample an update."""
    samples, moves, slices = [], 0, 0
    with _engine(weights, "--size", str(scale.analysed_size)) as client:
        client.ask("clear_board", LIMIT_S)
        list(_updates(client, 0.1))  # Compiles the kernels of an analysis before the clock starts.
        begun_s = time.monotonic()
        while (passed_s := time.monotonic() - begun_s) < scale.warm_up_s + scale.analysis_s:
            color = "bw"[moves % 2]
            updates = _updates(client, min(SLICE_S, scale.analysis_s / 4))
            measured = [(own_mib(client.pid), best) for best in updates]
            if passed_s >= scale.warm_up_s:
                samples += [mib for mib, _ in measured]
            slices, moves = slices + 1, moves + 1
            client.ask(f"play {color} {measured[-1][1]}", LIMIT_S)
            if slices % 5 == 0:
                client.ask("undo", LIMIT_S)
                client.ask("undo", LIMIT_S)
                moves -= 2
            if moves >= ANALYSED_MOVES:
                client.ask("clear_board", LIMIT_S)
                moves = 0
    return samples


def _updates(client: GtpClient, seconds: float) -> Iterator[str]:
    """Analyse for some seconds; yields the best move of every update."""
    begun_s = time.monotonic()
    client.send("kata-analyze 50 ownership true rootInfo true")
    client.read_line(LIMIT_S)
    while True:
        words = client.read_line(LIMIT_S).split()
        yield words[words.index("move") + 1]
        if time.monotonic() - begun_s >= seconds:
            break
    client.send("stop")
    for _ in range(2):  # the end of the analysis, and the reply to stop
        while client.read_line(LIMIT_S):
            pass


def _self_play(scale: Scale, weights: str, folder: Path) -> list[float]:
    """Play games by search in this process and write their rows to disk."""
    options, samples = SearchPlayOptions(size=SELF_PLAY_SIZE), list[float]()
    network = UniformNetwork("keima-1")
    with (
        InferenceServer(network, cache_mib=CACHE_MIB, threads=1) as server,
        closing(SearchPlay(folder / "rows", options)) as rows,
    ):

        def look() -> None:
            for path in rows.forget(max(0, len(rows.shards) - KEPT_SHARDS)):
                path.unlink()
            if rows.games >= scale.warm_up_self_play:
                samples.append(own_mib(os.getpid()))

        games = scale.warm_up_self_play + scale.self_play
        rows.play(played_here(server, options, Origin(0, 0), AT_ONCE), games, look, SAMPLE_S)
        look()
    return samples


SAMPLES = {"games": _games, "analysis": _analysis, "self-play": _self_play}
"""Case -> function that returns the samples after the warm-up, in MiB"""
PART = Part(
    title="Memory over 200 short games in one process, two hours of analysis, and 100,000 games of self-play on 5x5",
    unit="processes",
    wanted="flat within 2%",
    figures={figure.format(name): max for figure in ("growth over {}, %", "most during {}, MiB") for name in SAMPLES},
    limit_s=6 * 3600.0,
)
