"""``python -m bench.speed.inference``: evaluations a second of networks alone, one JSON line a figure.

``NETWORK/SIZE/BATCH`` is what all evaluators together reach that the server would start for the device: one a core on
the CPU, each with one thread of torch, and two on a GPU. Inputs are random. Start at :func:`command`.
"""

import click

from bench.speed.figures import measure, measured, print_figure
from bench.speed.networks import bits_option, evaluation_works, evaluator_count, made_network, network_option
from bench.speed.positions import sizes
from engine.nets.compute.runner import new_runner
from weights import DEFAULT


@click.command(context_settings={"show_default": True})
@network_option(DEFAULT, "keima-6x96")
@sizes
@click.option(
    "--batch", "batches", multiple=True, default=(1, 8, 64), type=click.IntRange(1, 4096), help="positions, repeatable"
)
@click.option("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N")
@bits_option
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="evaluators on the CPU; 0 = one a core")
@measured(3.0)
def command(names, sizes, batches, device: str, bits: str, threads: int, seconds: float, repeats: int) -> None:
    """Speed of networks without search: one JSON line a figure. A board that a network does not play is left out."""
    for name in names:
        network, _ = made_network(name, device, bits)
        runners = [new_runner(network) for _ in range(evaluator_count(network, threads))]
        for size in sizes:
            if not network.spec.plays(size):
                continue
            for batch in batches:
                figure, works = f"{name}/{size}/{batch}", evaluation_works(network, runners, size, batch)
                rates = [batch * one.items_per_s for one in measure(figure, works, seconds, repeats)]
                print_figure(figure, rates, "evaluations/s")


if __name__ == "__main__":
    command()
