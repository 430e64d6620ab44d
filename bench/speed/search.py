"""``python -m bench.speed.search``: visits a second, one JSON line a figure.

``null`` uses an evaluator without delay, with uniform priors and a hash of the position as value: it measures the
search itself. ``null_encoded`` adds the encoding of AlphaGo Zero's planes. ``delayed`` uses an evaluator with the
timing of a GPU: 2 ms for a batch of up to 64, one batch at a time. These three grow a tree of 100,000 visits from the
empty board, nearly all of which are evaluated. ``net6x96`` (random weights) and ``default`` search ten middle-game
positions, 800 visits each, with an empty result cache; ``.../evaluations`` are their evaluations a second,
``.../alone`` those of the same threads without a search. Names end in board size and threads: search threads for
``null``, evaluator threads (with one search thread) for networks. Start at :func:`command`.
"""

import math
import threading
from collections.abc import Iterator

import click
import numpy as np

from bench.speed.figures import Figure, Timing, bench, sample
from bench.speed.subjects import bits_option, evaluation_works, made_network, middle_games, new_runners
from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, KEY, ZERO, Encoder
from engine.go.game import Game
from engine.go.rules import rules_named
from engine.inference.cache import new_cache
from engine.inference.device import Pace
from engine.inference.server import InferenceServer
from engine.inference.slots import Request, State
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
"""A half-point komi, so that no game is drawn: if two passes were a draw, searches would play little else"""
NULL_VISITS = 100_000
NULL_BATCH = 128
"""Leaves of a batch for the evaluator without delay"""
DELAYED_THREADS = 2
SHAPE = "keima-6x96"
"""Name of the network of ``net6x96`` in :mod:`bench.speed.subjects`"""
ALONE_S = 3.0
POSITIONS = 10
VISITS = 800
MEMORY = 2048
FIGURES = (
    "null/19/1", "null/19/2", "null_encoded/19/1", "null_encoded/19/2", "delayed/19", "net6x96/19/2", "default/19/2",
    "default/9/2",
)  # fmt: skip


@kernel
def _answer(planes, globals_, value):
    """Write a value for each position: its first global feature or, without globals, a hash of its planes."""
    for i in range(len(value)):
        if globals_.shape[1] > 0:
            value[i] = globals_[i, 0]
            continue
        digest, flat = np.int64(0), planes[i].reshape(-1)
        for j in range(len(flat)):
            digest += np.int64(flat[j]) * ((j * 40503) & 0xFFFF)
        value[i] = ((digest * 0x9E3779B97F4A7C1 >> 32) & 0xFFFF) / 32768.0 - 1.0


class InstantServer(InferenceServer):
    """An inference server that evaluates in the caller's thread."""

    batches_requests = False
    evaluators = 1
    evaluations = 0

    def __init__(self, encoder: Encoder):
        self.spec = NetworkSpec("null", encoder.name, 2, 25)
        # The smallest cache: nearly all positions are new.
        self.cache = new_cache(0, SIZE * SIZE + 1)
        self.pace = Pace()
        self._lock, self._devices = threading.Condition(), []

    def new_request(self, size: int, capacity: int, planes: int, globals_: int) -> Request:
        """See :class:`InferenceServer`."""
        return Request(size, capacity, planes, globals_)

    def submit(self, request: Request) -> None:
        """Evaluate the request."""
        count = request.count
        _answer(request.planes[:count], request.globals[:count], request.value[:count])
        self.evaluations += count
        request.state = State.DONE

    def wait(self, request: Request, deadline_s: float = math.inf) -> None:
        """Do nothing: requests are evaluated when they are submitted."""

    def cancel(self, request: Request, running: bool = False) -> None:
        """Do nothing: no request waits."""


def empty_board_figures(name: str, repeats: int) -> Iterator[Figure]:
    """Figures of ``null``, ``null_encoded`` or ``delayed``; with ``null/19/1`` also the bytes of a tree's node."""
    kind, _, *given = name.split("/")
    encoder, threads, batch = KEY if kind == "null" else ZERO, DELAYED_THREADS, NULL_BATCH
    server: InferenceServer
    if kind == "delayed":
        network = SerialNetwork(encoder.name)
        batch = resolved(SearchOptions(), network).batch
        server = InferenceServer(network, max_batch=network.rows)
    else:
        server, threads = InstantServer(encoder), int(given[0])
    search = Search(SearchOptions(threads=threads, batch=batch, memory=MEMORY), server, encoder)
    search.set_position(Game(SIZE, rules_named("tromp-taylor"), KOMI).position)
    search.run(SearchLimits(visits=NULL_VISITS // 50))
    reports = []
    for _ in range(repeats):
        search.clear()
        reports.append(search.run(SearchLimits(visits=NULL_VISITS)))
    yield name, [report.visits / report.seconds for report in reports], "visits/s"
    yield f"{name}/evaluations", [report.evaluations / report.seconds for report in reports], "evaluations/s"
    if name == "null/19/1":
        yield "node_bytes/19", [used_bytes(search.tree) / int(search.tree.meta[META_USED_NODES])], "bytes"
    if kind == "delayed":
        server.close()


def network_figures(name: str, network_name: str, bits: str, repeats: int) -> Iterator[Figure]:
    """Figures of ``net6x96`` or ``default``: visits/s, evaluations/s, and evaluations/s without a search."""
    size, threads = map(int, name.split("/")[1:])
    network, _ = made_network(network_name, "cpu", bits)
    batch = resolved(SearchOptions(), network).batch
    works = evaluation_works(network, new_runners(network, threads), size, batch)
    positions = [game.position for game in middle_games(size)[:POSITIONS]]
    with InferenceServer(network, cache_mib=64, threads=threads) as server:
        search = Search(SearchOptions(threads=1), server, ENCODERS[network.spec.encoder])
        search.set_position(positions[0])
        search.run(SearchLimits(visits=50))
        visits, evaluations, alone = [], [], []
        for _ in range(repeats):
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
    yield name, visits, "visits/s"
    yield f"{name}/evaluations", evaluations, "evaluations/s"
    yield f"{name}/alone", alone, "evaluations/s"


@bench("measurements")
@click.option("--only", "names", multiple=True, type=click.Choice(FIGURES), help="figure to measure, repeatable")
@click.option("--weights", default=DEFAULT, help="network of the figures default/...: a shipped one or a file")
@bits_option
def command(names: tuple[str, ...], weights: str, bits: str, timing: Timing) -> Iterator[Figure]:
    """Measure visits a second of searches: one JSON line a figure. The module's docstring explains the figures."""
    networks = {"net6x96": SHAPE, "default": weights}
    for name in names or FIGURES:
        click.echo(f"measuring {name}", err=True)
        network = networks.get(name.split("/")[0])
        if network:
            yield from network_figures(name, network, bits, timing.repeats)
        else:
            yield from empty_board_figures(name, timing.repeats)


if __name__ == "__main__":
    command()
