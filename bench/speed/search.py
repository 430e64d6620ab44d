"""``python -m bench.speed.search``: visits a second, one JSON line a figure.

``null`` searches with an evaluator that answers at once, every legal move alike and the value a hash of the position:
what remains is the search itself. ``null_encoded`` also writes AlphaGo Zero's planes for it. ``delayed`` has an
evaluator shaped like a GPU: 2 ms for any batch of up to 64, one after another. These grow a tree of 100,000 visits
from the empty board, nearly all of which are evaluated. ``net6x96`` (random weights) and ``default`` search ten
middle-game positions, 800 visits each, the result cache empty, beside ``.../evaluations`` and what the same threads
reach without a search, ``.../alone``. Names end in board and threads: search threads where evaluating costs nothing,
evaluator threads for networks, which one search thread feeds. Start at :func:`command`.
"""

import math
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import click
import numpy as np

from bench.speed.figures import print_figure, sample
from bench.speed.networks import bits_option, evaluation_works, made_network
from bench.speed.positions import middle_games
from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, KEY, ZERO, Encoder
from engine.go.game import Game
from engine.go.rules import rules_named
from engine.inference.cache import new_cache
from engine.inference.device import Pace
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
from engine.nets.compute.runner import new_runner
from engine.nets.fakes import SerialNetwork
from engine.nets.network import NetworkSpec
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_USED_NODES, used_bytes
from engine.search.tuning import resolved
from engine.system.jit import kernel
from weights import DEFAULT

SIZE = 19
KOMI = 7.5
"""No game is drawn with it: where two passes drew, searches would hardly play anything else."""
NULL_VISITS = 100_000
NULL_BATCH = 128
"""Leaves a batch where evaluating costs nothing"""
DELAYED_THREADS = 2
SHAPE = "keima-6x96"
"""What :mod:`bench.speed.networks` calls the network of ``net6x96``"""
ALONE_S = 3.0
POSITIONS = 10
VISITS = 800
MEMORY = 2048


class Run(NamedTuple):
    """How to measure."""

    repeats: int
    weights: str
    """the network of ``default``"""
    bits: str
    """one of :data:`bench.speed.networks.BITS`"""


@kernel
def _answer(planes, globals_, value):
    """Write a value for each position: its first global, or without globals a hash of its planes."""
    for i in range(len(value)):
        if globals_.shape[1] > 0:
            value[i] = globals_[i, 0]
            continue
        digest, flat = np.int64(0), planes[i].reshape(-1)
        for j in range(len(flat)):
            digest += np.int64(flat[j]) * ((j * 40503) & 0xFFFF)
        value[i] = ((digest * 0x9E3779B97F4A7C1 >> 32) & 0xFFFF) / 32768.0 - 1.0


class InstantServer(InferenceServer):
    """An inference server without threads: it answers in the caller's."""

    merges = False
    evaluators = 1
    evaluations = 0

    def __init__(self, encoder: Encoder):
        self.spec = NetworkSpec("null", encoder.name, 2, 25, has_score=False, has_ownership=False)
        # One set of entries: nothing here is worth keeping.
        self.cache = new_cache(0, SIZE * SIZE + 1)
        self.pace = Pace()
        self._changed, self._devices = threading.Condition(), []

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """See the server."""
        return Request(size, capacity, planes, globals_)

    def submit(self, request: Request) -> None:
        """Answer."""
        count = request.count
        _answer(request.planes[:count], request.globals[:count], request.value[:count])
        self.evaluations += count
        request.state = State.DONE

    def wait(self, request: Request, deadline_s: float = math.inf) -> None:
        """Nothing to wait for."""

    def cancel(self, request: Request) -> None:
        """Nothing waits."""


def grown(server: InferenceServer, encoder: Encoder, threads: int, batch: int, repeats: int) -> Iterator[Search]:
    """Searches of the empty board, one after another, each finished when it is given out."""
    search = Search(SearchOptions(threads=threads, batch=batch, memory=MEMORY), server, encoder)
    search.set_position(Game(SIZE, rules_named("tromp-taylor"), KOMI).position)
    search.run(SearchLimits(visits=NULL_VISITS // 50))
    for _ in range(repeats):
        search.clear()
        search.run(SearchLimits(visits=NULL_VISITS))
        yield search


def measure_empty_board(name: str, run: Run) -> None:
    """``null``, ``null_encoded`` and ``delayed``, and what a node weighs."""
    kind, _, *threads = name.split("/")
    encoder = KEY if kind == "null" else ZERO
    server: InferenceServer
    if kind == "delayed":
        network = SerialNetwork(ZERO.name)
        batch = resolved(SearchOptions(), network).batch
        server, setting = InferenceServer(network, max_batch=network.rows), (DELAYED_THREADS, batch)
    else:
        server, setting = InstantServer(encoder), (int(threads[0]), NULL_BATCH)
    visits, evaluations = [], []
    for search in grown(server, encoder, *setting, run.repeats):
        report = search.report()
        visits.append(report.visits / report.seconds)
        evaluations.append(report.evaluations / report.seconds)
    print_figure(name, visits, "visits/s")
    print_figure(f"{name}/evaluations", evaluations, "evaluations/s")
    if name == "null/19/1":
        print_figure("node_bytes/19", [used_bytes(search.tree) / int(search.tree.meta[META_USED_NODES])], "bytes")
    if kind == "delayed":
        server.close()


def measure_network(name: str, run: Run) -> None:
    """``net6x96`` and ``default``: visits and evaluations a second, and evaluations alone."""
    kind, size, threads = name.split("/")
    network, _ = made_network(run.weights if kind == "default" else SHAPE, "cpu", run.bits)
    runners = [new_runner(network) for _ in range(int(threads))]
    batch = resolved(SearchOptions(), network).batch
    works = evaluation_works(network, runners, int(size), batch)
    encoder = ENCODERS[network.spec.encoder]
    positions = [game.position for game in middle_games(int(size))[:POSITIONS]]
    with InferenceServer(network, cache_mib=64, threads=int(threads)) as server:
        search = Search(SearchOptions(threads=1), server, encoder)
        search.set_position(positions[0])
        search.run(SearchLimits(visits=50))
        visits, evaluations, alone = [], [], []
        for _ in range(run.repeats):
            seconds, done, before = 0.0, 0, server.evaluations
            for position in positions:
                server.forget()
                search.set_position(position)
                search.clear()
                report = search.run(SearchLimits(visits=VISITS))
                seconds, done = seconds + report.seconds, done + report.visits
            visits.append(done / seconds)
            evaluations.append((server.evaluations - before) / seconds)
            alone += [batch * one.items_per_s for one in sample(works, ALONE_S, 1)]
    print_figure(name, visits, "visits/s")
    print_figure(f"{name}/evaluations", evaluations, "evaluations/s")
    print_figure(f"{name}/alone", alone, "evaluations/s")


FIGURES: dict[str, Callable[[str, Run], None]] = {
    "null/19/1": measure_empty_board,
    "null/19/2": measure_empty_board,
    "null_encoded/19/1": measure_empty_board,
    "null_encoded/19/2": measure_empty_board,
    "delayed/19": measure_empty_board,
    "net6x96/19/2": measure_network,
    "default/19/2": measure_network,
    "default/9/2": measure_network,
}


@click.command(context_settings={"show_default": True})
@click.option("--only", "names", multiple=True, type=click.Choice(list(FIGURES)), help="figure to measure, repeatable")
@click.option("--repeats", default=5, type=click.IntRange(1, 999), help="measurements of each; their median counts")
@click.option("--weights", default=DEFAULT, help="the network of default/...: a shipped one or a file")
@bits_option
def command(names: tuple[str, ...], repeats: int, weights: str, bits: str) -> None:
    """Visits a second of searches, one JSON line a figure; see the module for what is what."""
    for name in names or FIGURES:
        click.echo(f"measuring {name}", err=True)
        FIGURES[name](name, Run(repeats, weights, bits))


if __name__ == "__main__":
    command()
