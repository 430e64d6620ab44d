"""``python -m bench.speed.inference``: evaluations a second of networks without a search, one JSON line a figure.

``NETWORK/SIZE/BATCH`` is the total of all evaluators that the server would start on the device: one a core on the CPU,
each with one torch thread, two on a GPU. Inputs are random. Start at :func:`command`.
"""

from collections.abc import Iterator

import click

from bench.speed.figures import Figure, Timing, bench
from bench.speed.subjects import evaluation_works, made_network, network_options, new_runners, sizes
from weights import DEFAULT


@bench("repetitions", 3.0)
@network_options(DEFAULT, "keima-6x96")
@sizes
@click.option(
    "--batch", "batches", multiple=True, default=(1, 8, 64), type=click.IntRange(1, 4096), help="batch size, repeatable"
)
def command(names, sizes, batches, device: str, bits: str, threads: int, timing: Timing) -> Iterator[Figure]:
    """Measure networks without a search, on the board sizes that each plays: one JSON line a figure."""
    for name in names:
        network, _ = made_network(name, device, bits)
        runners = new_runners(network, threads)
        for size in filter(network.spec.plays, sizes):
            for batch in batches:
                figure, works = f"{name}/{size}/{batch}", evaluation_works(network, runners, size, batch)
                yield figure, timing.rates(figure, works, batch), "evaluations/s"


if __name__ == "__main__":
    command()
