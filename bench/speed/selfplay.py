"""``python -m bench.speed.selfplay``: policy games in bulk, beside what the same network reaches alone.

``SIZE/alone`` is evaluations a second of the network by itself, at the batch that the games have; ``SIZE`` the same
while games are played, each evaluation a move; ``SIZE/share`` their ratio, repetition by repetition. ``SIZE/games`` is
games a second, from the first move of the first game on: it is low where a repetition is not many games long. Start at
:func:`command`.
"""

import itertools
import threading
import time
from functools import partial

import click

from bench.speed.figures import measured, print_figure, sample
from bench.speed.networks import bits_option, evaluation_works, evaluator_count, made_network, network_option
from bench.speed.positions import sizes
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.runner import new_runner
from engine.selfplay.bulk import PlayOptions, setups_of
from engine.selfplay.many_games import Group
from engine.selfplay.variety import Komi, Variety
from gtp.cli.data_play import AT_ONCE, groups_for
from weights import DEFAULT_ALIAS

WAIT_S = 0.01
VARIETY = Variety(((RULE_SETS["chinese"], 1.0),), ((Komi(), 1.0),), ((1.0, 1.0),))


@click.command(context_settings={"show_default": True})
@network_option(DEFAULT_ALIAS)
@sizes
@click.option("--at-once", type=click.IntRange(1), help="games of a batch; by default as keima data play has them")
@click.option("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N")
@bits_option
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="evaluators on the CPU; 0 = one a core")
@measured(60.0)
def command(
    names, sizes, at_once: int | None, device: str, bits: str, threads: int, seconds: float, repeats: int
) -> None:
    """Speed of policy games in bulk: one JSON line a figure. Half of the time goes to the network alone."""
    for name in names:
        network, _ = made_network(name, device, bits)
        batch = at_once or AT_ONCE["gpu" if network.merges else "cpu"]
        for size in sizes:
            if network.spec.min_size <= size <= network.spec.max_size:
                click.echo(f"measuring {name}/{size}", err=True)
                _measure(f"{name}/{size}", network, size, batch, threads, seconds / 2, repeats)


def _measure(
    name: str, network: TorchNetwork, size: int, batch: int, threads: int, seconds: float, repeats: int
) -> None:
    """The figures of one board size."""
    runners = [new_runner(network) for _ in range(evaluator_count(network, threads))]
    works = evaluation_works(network, runners, size, batch)
    alone, playing, games = [], [], []
    with InferenceServer(network, cache_mib=1, threads=threads) as server:
        _play(server, size, batch, 0.0)  # Everything is compiled.
        for _ in range(repeats):
            alone.append(batch * sample(works, seconds / repeats, 1)[0].items_per_s)
            positions, finished = _play(server, size, batch, seconds / repeats)
            playing.append(positions)
            games.append(finished)
    print_figure(f"{name}/alone", alone, "evaluations/s")
    print_figure(name, playing, "evaluations/s")
    print_figure(f"{name}/share", [one / other for one, other in zip(playing, alone, strict=True)], "ratio")
    print_figure(f"{name}/games", games, "games/s")


def _play(server: InferenceServer, size: int, batch: int, seconds: float) -> tuple[float, float]:
    """Games in bulk for some time: evaluations and finished games a second."""
    options = PlayOptions(VARIETY, size=size)
    counted, stopped = itertools.count(), threading.Event()
    finished: list[int] = []
    set_up = partial(setups_of, options, n_networks=1)

    def work() -> None:
        group = Group([server], size, batch, options.conduct(), options.seed, set_up, stopped)
        for ended in group.play(counted):
            finished.append(len(ended.games.size))

    threads_ = [threading.Thread(target=work) for _ in range(groups_for(server))]
    before, start = server.evaluations, time.perf_counter()
    for thread in threads_:
        thread.start()
    time.sleep(seconds)
    while server.evaluations == before:  # However little time was given.
        time.sleep(WAIT_S)
    evaluations, spent = server.evaluations - before, time.perf_counter() - start
    games = sum(finished) / spent
    stopped.set()
    for thread in threads_:
        thread.join()
    return evaluations / spent, games


if __name__ == "__main__":
    command()
