"""``python -m bench.speed.gpu``: what a GPU reaches, in one command of eight minutes, one JSON line a figure.

``matrix`` is what the card multiplies large matrices at, the ceiling for any network. ``eager/NETWORK/SIZE/BATCH`` and
``graphs/...`` are evaluations alone, kernel by kernel and from CUDA graphs, with two batches in flight; ``share/...``
is the better one's part of the ceiling, from operations counted by shape. ``search/NETWORK/SIZE`` is a search from a
middle-game position, cold, with ``search_evaluations/...`` beside it; ``search_share/...`` compares its visits with
evaluations alone and ``cores/...`` is the processor's part: cores busy for 10,000 visits a second.

On a device without graphs there is ``plain/...`` instead. Start at :func:`command`.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import click

from bench.speed.figures import measure, print_figure
from bench.speed.networks import evaluation_works, evaluator_count, made_network, network_option
from bench.speed.positions import middle_games
from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.position import Position
from engine.inference.server import InferenceServer
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.cuda import CudaRunner
from engine.nets.compute.runner import PlainRunner, Runner
from engine.nets.compute.speed import matrix_rate
from engine.nets.on_device import choose_device
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from gtp.cli.arguments import Number
from weights import DEFAULT

PRODUCTS = 10
"""Matrix products a repetition"""
SEARCH_CACHE_MIB = 256
MERGED = 1024
"""Most positions of a batch in search"""
WARM_UP_S = 2.0


def measure_alone(
    name: str, network: TorchNetwork, flops: int, ceiling: float, size: int, batches, seconds: float, repeats: int
) -> float:
    """Print the figures of a network without search; returns the best rate, evaluations/s."""
    makers: dict[str, Callable[[], Runner]] = {"plain": lambda: PlainRunner(network)}
    if network.device.type == "cuda":
        makers = {"eager": lambda: CudaRunner(network, False), "graphs": lambda: CudaRunner(network, True)}
    kinds = {kind: [make() for _ in range(evaluator_count(network))] for kind, make in makers.items()}
    best = 0.0
    for batch in batches:
        reached = 0.0
        for kind, runners in kinds.items():
            figure, works = f"{kind}/{name}/{size}/{batch}", evaluation_works(network, runners, size, batch)
            rates = [batch * one.items_per_s for one in measure(figure, works, seconds, repeats)]
            print_figure(figure, rates, "evaluations/s")
            reached = max(reached, statistics.median(rates))
        print_figure(f"share/{name}/{size}/{batch}", [reached * flops / ceiling], "of the matrix rate")
        best = max(best, reached)
    return best


def measure_search(
    name: str, network: TorchNetwork, alone: float, start: Position, size: int, options: SearchOptions, seconds: float
) -> None:
    """Print the figures of a search with a network that reaches ``alone`` evaluations/s without one."""
    click.echo(f"measuring search/{name}/{size}", err=True)
    with InferenceServer(network, SEARCH_CACHE_MIB, max_batch=MERGED) as server:
        search = Search(options, server, ENCODERS[network.spec.encoder])
        search.set_position(start)
        # Compiles kernels, and captures graphs for the batches that come up.
        search.run(SearchLimits(soft_s=WARM_UP_S))
        search.clear()
        server.forget()
        wall, cpu = time.perf_counter(), time.process_time()
        report = search.run(SearchLimits(soft_s=seconds))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    visits = report.playouts_this_run / wall
    print_figure(f"search/{name}/{size}", [visits], "visits/s")
    print_figure(f"search_evaluations/{name}/{size}", [report.evaluations / wall], "evaluations/s")
    print_figure(f"search_share/{name}/{size}", [visits / alone], "of evaluations alone")
    print_figure(f"cores/{name}/{size}", [cpu / wall / (visits / 1e4)], "cores per 10,000 visits/s")


@click.command(context_settings={"show_default": True})
@click.option("--device", default="cuda", help="cuda, cuda:N, mps, or cpu to rehearse")
@network_option(DEFAULT, "keima-12x192", "keima-20x256")
@click.option(
    "--batch", "batches", multiple=True, default=(8, 16, 32, 64, 128, 256, 512, 1024), type=click.IntRange(1, 1024),
    help="positions, repeatable",
)  # fmt: skip
@click.option("--size", default=19, type=click.IntRange(7, 19), help="board")
@click.option("--side", default=8192, type=click.IntRange(16, 32768), help="of the matrices")
@click.option(
    "--leaves", "batch", default=64, type=click.IntRange(1, 512), help="most leaves of a search thread's batch"
)
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="search threads; 0 = chosen for the machine")
@click.option("--memory", default=16384, type=click.IntRange(512, 1 << 20), help="of the search's tree, in MiB")
@click.option("--seconds", default=2.0, type=Number(0.001, 600), help="time for each network and batch")
@click.option("--search-seconds", default=15.0, type=Number(0.001, 600), help="time for each search")
@click.option("--repeats", default=5, type=click.IntRange(1, 999), help="parts to cut it into; their median counts")
def command(device, names, batches, size, side, seconds, search_seconds, repeats, **search: Any) -> None:
    """What a GPU reaches with our networks, alone and in search: one JSON line a figure."""
    try:
        chosen = choose_device(device)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo("measuring matrix", err=True)
    rates = [matrix_rate(chosen, side, PRODUCTS) for _ in range(repeats)]
    print_figure("matrix", [rate / 1e12 for rate in rates], "TFLOP/s")
    options, start = SearchOptions(**search), middle_games(size)[0].position
    for name in names:
        network, flops = made_network(name, device)
        alone = measure_alone(name, network, flops, statistics.median(rates), size, batches, seconds, repeats)
        measure_search(name, network, alone, start, size, options, search_seconds)


if __name__ == "__main__":
    command()
