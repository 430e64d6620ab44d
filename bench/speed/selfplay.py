"""``python -m bench.speed.selfplay``: games in bulk, by policy or by search, beside what the network reaches alone.

``SIZE/alone`` is evaluations a second of the network by itself, at the batch that the games have; ``SIZE`` the same
while policies play, each evaluation a move; ``SIZE/share`` their ratio, repetition by repetition. ``SIZE/games`` is
games a second, from the first move of the first game on: it is low where a repetition is not many games long.
``SIZE/search``, ``/search/share`` and ``/search/games`` are the same of games by search with the default options, and
``/search/rows`` their rows a second. Start at :func:`command`.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import click
import numpy as np

from bench.speed.figures import measured, print_figure, sample
from bench.speed.networks import bits_option, evaluation_works, evaluator_count, made_network, network_option
from bench.speed.positions import sizes
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.runner import new_runner
from engine.selfplay.many_games import Group, groups_for
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.search_games import SearchGroup
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.variety import Komi, Variety
from engine.system.crew import SharedNumbers
from gtp.cli.bulk import AT_ONCE
from weights import DEFAULT

WAIT_S = 0.01
SEARCH_CACHE_MIB = 64
VARIETY = Variety(((RULE_SETS["chinese"], 1.0),), ((Komi(), 1.0),), ((1.0, 1.0),))


@click.command(context_settings={"show_default": True})
@network_option(DEFAULT)
@sizes
@click.option("--at-once", type=click.IntRange(1), help="games of a batch; by default as keima data play has them")
@click.option("--device", default="auto", help="auto, cpu, mps, cuda or cuda:N")
@bits_option
@click.option("--threads", default=0, type=click.IntRange(0, 256), help="evaluators on the CPU; 0 = one a core")
@measured(60.0)
def command(
    names, sizes, at_once: int | None, device: str, bits: str, threads: int, seconds: float, repeats: int
) -> None:
    """Speed of games in bulk: one JSON line a figure. The network alone, policies and searches share the time."""
    for name in names:
        network, _ = made_network(name, device, bits)
        batch = at_once or AT_ONCE["gpu" if network.merges else "cpu"]
        for size in sizes:
            if network.spec.plays(size):
                click.echo(f"measuring {name}/{size}", err=True)
                _measure(f"{name}/{size}", network, size, batch, threads, seconds / 3, repeats)


class _Rates(NamedTuple):
    """What play achieves a second."""

    evaluations: float
    games: float
    rows: float


Play = Callable[[InferenceServer, int, int, Iterator[int], threading.Event], Iterator[tuple[int, int]]]
"""Plays games by their numbers on a board size, K at once, until stopped; yields how many games and rows ended"""


def _measure(
    name: str, network: TorchNetwork, size: int, batch: int, threads: int, seconds: float, repeats: int
) -> None:
    """The figures of one board size."""
    runners = [new_runner(network) for _ in range(evaluator_count(network, threads))]
    works = evaluation_works(network, runners, size, batch)
    alone: list[float] = []
    found: dict[str, list[_Rates]] = {name: [], f"{name}/search": []}
    with InferenceServer(network, cache_mib=SEARCH_CACHE_MIB, threads=threads) as server:
        for play in PLAYS:
            _rates(play, server, size, batch, 0.0)  # Everything is compiled.
        for _ in range(repeats):
            alone.append(batch * sample(works, seconds / repeats, 1)[0].items_per_s)
            for play, rates in zip(PLAYS, found.values(), strict=True):
                rates.append(_rates(play, server, size, batch, seconds / repeats))
    print_figure(f"{name}/alone", alone, "evaluations/s")
    for what, rates in found.items():
        print_figure(what, [one.evaluations for one in rates], "evaluations/s")
        print_figure(f"{what}/share", [one.evaluations / of for one, of in zip(rates, alone, strict=True)], "ratio")
        print_figure(f"{what}/games", [one.games for one in rates], "games/s")
    print_figure(f"{name}/search/rows", [one.rows for one in found[f"{name}/search"]], "rows/s")


def _policy_games(
    server: InferenceServer, size: int, batch: int, numbers: Iterator[int], stopped: threading.Event
) -> Iterator[tuple[int, int]]:
    """See :data:`Play`."""
    options = BulkOptions(VARIETY, size=size)
    set_up = partial(setups_of, options, n_networks=1)
    for ended in Group([server], size, batch, options.conduct(), options.seed, set_up, stopped).play(numbers):
        yield len(ended.games.size), 0


def _searched_games(
    server: InferenceServer, size: int, batch: int, numbers: Iterator[int], stopped: threading.Event
) -> Iterator[tuple[int, int]]:
    """See :data:`Play`."""
    for rows in SearchGroup(server, SearchPlayOptions(size=size), batch, stopped=stopped).play(numbers):
        yield len(rows.games.size), len(rows.game)


PLAYS: tuple[Play, ...] = (_policy_games, _searched_games)


def _rates(play: Play, server: InferenceServer, size: int, batch: int, seconds: float) -> _Rates:
    """Games in bulk for some time, from an empty cache on."""
    counted, stopped = SharedNumbers(itertools.count()), threading.Event()
    finished: list[tuple[int, int]] = []
    server.forget()

    def work() -> None:
        for ended in play(server, size, batch, counted, stopped):
            finished.append(ended)

    threads_ = [threading.Thread(target=work) for _ in range(groups_for(server))]
    before, start = server.evaluations, time.perf_counter()
    for thread in threads_:
        thread.start()
    time.sleep(seconds)
    while server.evaluations == before:  # However little time was given.
        time.sleep(WAIT_S)
    evaluations, spent = server.evaluations - before, time.perf_counter() - start
    games, rows = np.sum([(0, 0), *finished], axis=0)
    stopped.set()
    for thread in threads_:
        thread.join()
    return _Rates(evaluations / spent, games / spent, rows / spent)


if __name__ == "__main__":
    command()
