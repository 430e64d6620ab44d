"""``python -m bench.speed.gpu``: throughput of a GPU, measured in eight minutes, one JSON line a figure.

``matrix`` is the rate of large matrix products, the upper bound for any network. ``eager/NETWORK/SIZE/BATCH`` and
``graphs/...`` are evaluations without a search, eager and from CUDA graphs, with two batches in flight; ``share/...``
is the share of the upper bound that the faster of the two reaches, by operations counted from the layers' shapes.
``search/NETWORK/SIZE`` is visits a second of a search from a middle-game position with an empty cache,
``search_evaluations/...`` evaluations a second of the search, ``search_share/...`` visits relative to evaluations
without a search, ``cores/...`` CPU cores busy for 10,000 visits a second.

On a device without CUDA graphs there is ``plain/...`` instead. Start at :func:`command`.
"""

import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import click
import torch

from bench.speed.figures import Figure, Timing, bench
from bench.speed.subjects import evaluation_works, made_network, middle_games, network_option, new_runners
from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.position import Position
from engine.inference.server import InferenceServer
from engine.nets.compute.precision import prefers_bfloat16, reduced_dtype
from engine.nets.compute.runner import PlainRunner, Runner
from engine.nets.devices import torch_device
from engine.nets.network import Network
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from gtp.cli.arguments import Number
from weights import DEFAULT

PRODUCTS = 10
"""Number of matrix products in a repetition"""
SEARCH_CACHE_MIB = 256
MERGED = 1024
"""Maximum number of positions in a merged batch during searches"""
WARM_UP, WARM_UP_S = 3, 2.0
"""Lengths of the warm-ups: number of matrix products, and seconds of search"""


def alone_figures(
    name: str, network: Network, share: float, size: int, batches: Sequence[int], timing: Timing
) -> Generator[Figure, None, float]:
    """Figures of a network without search; returns the best rate in evaluations/s.

    Args:
        share: operations of an evaluation divided by the matrix rate in operations/s.
    """
    makers: dict[str, Callable[[Network], Runner]] = {"plain": PlainRunner}
    if network.device.startswith("cuda"):
        from engine.nets.compute.cuda import CudaRunner

        makers = {
            "eager": lambda network: CudaRunner(network, False),
            "graphs": lambda network: CudaRunner(network, True),
        }
    runners = {kind: new_runners(network, new=make) for kind, make in makers.items()}
    best = 0.0
    for batch in batches:
        reached = 0.0
        for kind in makers:
            figure, works = f"{kind}/{name}/{size}/{batch}", evaluation_works(network, runners[kind], size, batch)
            rates = timing.rates(figure, works, batch)
            yield figure, rates, "evaluations/s"
            reached = max(reached, statistics.median(rates))
        yield f"share/{name}/{size}/{batch}", [reached * share], "of the matrix rate"
        best = max(best, reached)
    return best


def search_figures(
    name: str, network: Network, alone: float, start: Position, options: SearchOptions, seconds: float
) -> Iterator[Figure]:
    """Figures of a search.

    Args:
        name: network and board size, as in the figures.
        alone: the network's evaluations/s without a search.
    """
    click.echo(f"measuring search/{name}", err=True)
    with InferenceServer(network, SEARCH_CACHE_MIB, max_batch=MERGED) as server:
        search = Search(options, server, ENCODERS[network.spec.encoder])
        search.set_position(start)
        # Compiles kernels and captures CUDA graphs.
        search.run(SearchLimits(soft_s=WARM_UP_S))
        search.clear()
        server.forget()
        wall, cpu = time.perf_counter(), time.process_time()
        report = search.run(SearchLimits(soft_s=seconds))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    visits = report.playouts_this_run / wall
    yield f"search/{name}", [visits], "visits/s"
    yield f"search_evaluations/{name}", [report.evaluations / wall], "evaluations/s"
    yield f"search_share/{name}", [visits / alone], "of evaluations alone"
    yield f"cores/{name}", [cpu / wall / (visits / 1e4)], "cores per 10,000 visits/s"


def matrix_rate(device: torch.device, side: int, products: int) -> float:
    """Operations a second of square matrix products, in 16 bits if networks run in 16 bits on the device, else float32.

    A multiplication and an addition count as two operations.

    Args:
        side: rows and columns.
        products: number of products to measure together.
    """
    dtype = reduced_dtype(device) if prefers_bfloat16(device) else torch.float32
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(left)

    def multiply(count: int) -> float:
        for _ in range(count):
            torch.mm(left, right, out=out)
        # Reading a number synchronises with any device.
        float(out[0, 0])
        return time.perf_counter()

    start = multiply(WARM_UP)
    return products * 2.0 * side**3 / (multiply(products) - start)


@bench("repetitions", 2.0)
@click.option("--device", default="cuda", help="device: cuda, cuda:N, mps, or cpu for a test run")
@network_option(DEFAULT, "keima-12x192", "keima-20x256")
@click.option(
    "--batch", "batches", multiple=True, default=(8, 16, 32, 64, 128, 256, 512, 1024), type=click.IntRange(1, 1024),
    help="batch size, repeatable",
)  # fmt: skip
@click.option("--size", default=19, type=click.IntRange(7, 19), help="board size")
@click.option("--side", default=8192, type=click.IntRange(16, 32768), help="rows and columns of the matrices")
@click.option(
    "--leaves", "batch", default=64, type=click.IntRange(1, 512), help="maximum leaves in a search thread's batch"
)
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="search threads; 0 = automatic")
@click.option("--memory", default=16384, type=click.IntRange(512, 1 << 20), help="memory of the search tree, MiB")
@click.option("--search-seconds", default=15.0, type=Number(0.001, 600), help="time for each search")
def command(device, names, batches, size, side, search_seconds, timing: Timing, **search: Any) -> Iterator[Figure]:
    """Measure networks on a GPU, without and with a search: one JSON line a figure."""
    chosen = torch_device(device)
    click.echo("measuring matrix", err=True)
    rates = [matrix_rate(chosen, side, PRODUCTS) for _ in range(timing.repeats)]
    yield "matrix", [rate / 1e12 for rate in rates], "TFLOP/s"
    options, start = SearchOptions(**search), middle_games(size)[0].position
    for name in names:
        network, flops = made_network(name, device)
        alone = yield from alone_figures(name, network, flops / statistics.median(rates), size, batches, timing)
        yield from search_figures(f"{name}/{size}", network, alone, start, options, search_seconds)


if __name__ == "__main__":
    command()
