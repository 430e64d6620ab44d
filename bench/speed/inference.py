"""``python -m bench.speed.inference``: evaluations a second of networks alone, one JSON line a figure.

``NETWORK/SIZE/BATCH`` is what all evaluators together reach that the server would start for the device: one a core on
the CPU, each with one thread of torch, and two on a GPU. Inputs are random. Start at :func:`command`.
"""

from collections.abc import Iterator

import click

from bench.speed.figures import Figure, Timing, bench
from bench.speed.subjects import evaluation_works, made_network, network_options, new_runners, sizes
from weights import DEFAULT


@bench("parts to cut it into", 3.0)
@network_options(DEFAULT, "keima-6x96")
@sizes
@click.option(
    "--batch", "batches", multiple=True, default=(1, 8, 64), type=click.IntRange(1, 4096), help="positions, repeatable"
)
def command(names, sizes, batches, device: str, bits: str, threads: int, timing: Timing) -> Iterator[Figure]:
    """Speed of networks without search: one JSON line a figure. A board that a network does not play is left out."""
    for name in names:
        network, _ = made_network(name, device, bits)
        runners = new_runners(network, threads)
        for size in filter(network.spec.plays, sizes):
            for batch in batches:
                figure, works = f"{name}/{size}/{batch}", evaluation_works(network, runners, size, batch)
                yield figure, timing.rates(figure, works, batch), "evaluations/s"


if __name__ == "__main__":
    command()
