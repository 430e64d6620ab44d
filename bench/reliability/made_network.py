"""``keima gtp`` with a fake network of configurable evaluation time and faults::

    python -m bench.reliability.made_network --seconds-each 0.05 --fault hang --good 200 -- --size 9

Outputs are those of :class:`engine.nets.fakes.HashNetwork`, which takes no time itself; everything else, from the pipe
to the search, is the real engine. Arguments after ``--`` are options of ``keima gtp``.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
import numpy as np

from bench.match.gtp_client import ROOT, GtpClient
from engine.features.encoder import KEIMA
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetArrays
from engine.play import ahead
from weights import NetworkPath

FAULTS = ("error", "hang", "memory", "nan")
HANG_S = 86400.0
UNLIMITED = 1 << 60
START_S, SETTLE_S = 600.0, 3.0
"""Longest wait for an engine's first answers, and pause after them in which it loads the rest, in seconds"""


class MadeNetwork(HashNetwork):
    """A hash network that sleeps during evaluations and has a fault in some calls. Threads: any."""

    def __init__(self, seconds_each: float, fault: str, good: int, bad: int) -> None:
        """Make a network that is slow or fails.

        Args:
            seconds_each: seconds to sleep for each position of a batch.
            fault: one of ``FAULTS``, or ``none``.
            good, bad: number of calls before the fault begins, and of calls with the fault.
        """
        super().__init__(KEIMA.name)
        self._seconds_each, self._fault, self._good, self._bad = seconds_each, fault, good, bad
        self._calls, self._lock = 0, threading.Lock()

    def evaluate(self, planes: np.ndarray, globals_: np.ndarray) -> NetArrays:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        with self._lock:
            self._calls += 1
            is_bad = self._good < self._calls <= self._good + self._bad
        time.sleep(self._seconds_each * len(planes))
        output = super().evaluate(planes, globals_)
        if not is_bad or self._fault == "none":
            return output
        if self._fault == "error":
            raise RuntimeError("failed on purpose")
        if self._fault == "memory":
            raise RuntimeError("out of memory, on purpose")
        if self._fault == "hang":
            time.sleep(HANG_S)
        return output.each(lambda head: head * np.float32("nan"))


def command(network: dict[str, object], *options: str) -> list[str]:
    """The command line of ``keima gtp`` with a made network, as words.

    Args:
        network: arguments of :class:`MadeNetwork`, by name.
        options: options of ``keima gtp``.
    """
    words = [word for name, value in network.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, "-P", "-m", __name__, *words, "--", *options]


@contextmanager
def started(network: dict[str, object], *options: str) -> Iterator[GtpClient]:
    """Start an engine with a made network and wait until it has loaded; arguments as for :func:`command`."""
    ahead.compile_kernels(KEIMA.name)
    with GtpClient(command(network, *options), ROOT) as client:
        for question in ("kata-get-rules", "final_score"):
            client.ask(question, START_S)
        time.sleep(SETTLE_S)
        yield client


@click.command(context_settings={"show_default": True})
@click.option("--seconds-each", default=0.0, help="seconds to evaluate a position")
@click.option("--fault", default="none", type=click.Choice(("none", *FAULTS)), help="fault of the network")
@click.option("--good", default=0, help="calls of the network before the fault begins")
@click.option("--bad", default=UNLIMITED, help="calls of the network with the fault, after which it works again")
@click.argument("options", nargs=-1)
def main(seconds_each: float, fault: str, good: int, bad: int, options: tuple[str, ...]) -> None:
    """Run keima gtp with OPTIONS and a network of configurable evaluation time and faults."""
    from gtp.cli import main as keima

    made = MadeNetwork(seconds_each, fault, good, bad)

    def load(path: NetworkPath, device: object, samples: object = None) -> MadeNetwork:
        """Return the made network, in place of the function that loads a network from a file."""
        return made

    keima(["gtp", *options], obj=load)


if __name__ == "__main__":
    main()
