"""``python -m bench.speed.selfplay``: speed of games in bulk, by policy and by search, and of the network alone.

Names of figures begin with ``NETWORK/SIZE``. ``.../alone`` is evaluations a second of the network without games, at the
batch size of games; ``NETWORK/SIZE`` evaluations a second during games by policy, with one evaluation a move;
``.../share`` the second rate divided by the first. ``.../games`` is games a second, measured from the first move of the
first game, which is too low in repetitions of few games. ``.../search``, ``.../search/share`` and ``.../search/games``
are the same for games by search with the default options, ``.../search/rows`` the rows a second of these games. Start
at :func:`command`.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import click
import numpy as np

from bench.speed.figures import Figure, Timing, bench, sample
from bench.speed.subjects import evaluation_works, made_network, network_options, new_runners, sizes
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.selfplay.game_distribution import GameDistribution, Komi
from engine.selfplay.games import GameBatch, Player, batches_for
from engine.selfplay.plan import BulkOptions, setups_of
from engine.selfplay.search_games import SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.system.executor import SharedNumbers
from gtp.cli.bulk import AT_ONCE
from weights import DEFAULT

WAIT_S = 0.01
SEARCH_CACHE_MIB = 64
VARIETY = GameDistribution(((RULE_SETS["chinese"], 1.0),), ((Komi(), 1.0),), ((1.0, 1.0),))


@bench("repetitions", 60.0)
@network_options(DEFAULT)
@sizes
@click.option("--at-once", type=click.IntRange(1), help="batch size, in games; default: as for keima data play")
def command(
    names, sizes, at_once: int | None, device: str, bits: str, threads: int, timing: Timing
) -> Iterator[Figure]:  # fmt: skip
    """Measure games in bulk by policy and by search, and the network alone, in turns: one JSON line a figure."""
    for name in names:
        network, _ = made_network(name, device, bits)
        batch = at_once or AT_ONCE["gpu" if network.batches_requests else "cpu"]
        for size in filter(network.spec.plays, sizes):
            click.echo(f"measuring {name}/{size}", err=True)
            yield from _figures(f"{name}/{size}", network, size, batch, threads, timing)


class _Rates(NamedTuple):
    """Rates of one repetition, each a second."""

    evaluations: float
    games: float
    rows: float


Play = Callable[[InferenceServer, int, int, Iterator[int], threading.Event], Iterator[tuple[int, int]]]
"""Plays games: (server, board size, games at once, numbers, stop event) -> counts of finished games and their rows"""


def _figures(
    name: str, network: Network, size: int, batch: int, threads: int, timing: Timing
) -> Iterator[Figure]:  # fmt: skip
    """The figures of a network on one board size."""
    works = evaluation_works(network, new_runners(network, threads), size, batch)
    alone: list[float] = []
    found: dict[str, list[_Rates]] = {name: [], f"{name}/search": []}
    part_s = timing.seconds / 3 / timing.repeats
    with InferenceServer(network, cache_mib=SEARCH_CACHE_MIB, threads=threads) as server:
        for play in PLAYS:
            _rates(play, server, size, batch, 0.0)  # Compiles.
        for _ in range(timing.repeats):
            alone.append(batch * sample(works, part_s, 1)[0].items_per_s)
            for play, rates in zip(PLAYS, found.values(), strict=True):
                rates.append(_rates(play, server, size, batch, part_s))
    yield f"{name}/alone", alone, "evaluations/s"
    for what, rates in found.items():
        yield what, [one.evaluations for one in rates], "evaluations/s"
        yield f"{what}/share", [one.evaluations / of for one, of in zip(rates, alone, strict=True)], "ratio"
        yield f"{what}/games", [one.games for one in rates], "games/s"
    yield f"{name}/search/rows", [one.rows for one in found[f"{name}/search"]], "rows/s"


def _policy_games(
    server: InferenceServer, size: int, batch: int, numbers: Iterator[int], stopped: threading.Event
) -> Iterator[tuple[int, int]]:
    """Play games by policy. See :data:`Play`."""
    options = BulkOptions(VARIETY, size=size)
    player = Player(server, options.config())
    for ended in GameBatch([player], size, batch, partial(setups_of, options), stopped).play(numbers):
        yield len(ended.games.size), 0


def _searched_games(
    server: InferenceServer, size: int, batch: int, numbers: Iterator[int], stopped: threading.Event
) -> Iterator[tuple[int, int]]:
    """Play games by search. See :data:`Play`."""
    for rows in SelfPlay(server, SearchPlayOptions(size=size), batch, stopped=stopped).play(numbers):
        yield len(rows.games.size), len(rows.game)


PLAYS: tuple[Play, ...] = (_policy_games, _searched_games)


def _rates(play: Play, server: InferenceServer, size: int, batch: int, seconds: float) -> _Rates:
    """Rates of games in bulk for some seconds, starting with an empty cache."""
    counted, stopped = SharedNumbers(itertools.count()), threading.Event()
    finished: list[tuple[int, int]] = []
    server.forget()

    def work() -> None:
        for ended in play(server, size, batch, counted, stopped):
            finished.append(ended)

    threads_ = [threading.Thread(target=work) for _ in range(batches_for(server))]
    before, start = server.evaluations, time.perf_counter()
    for thread in threads_:
        thread.start()
    time.sleep(seconds)
    while server.evaluations == before:  # At least one evaluation.
        time.sleep(WAIT_S)
    evaluations, spent = server.evaluations - before, time.perf_counter() - start
    games, rows = np.sum([(0, 0), *finished], axis=0)
    stopped.set()
    for thread in threads_:
        thread.join()
    return _Rates(evaluations / spent, games / spent, rows / spent)


if __name__ == "__main__":
    command()
