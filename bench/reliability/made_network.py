"""Our own engine with a network made to order: of any cost, with any fault. It speaks GTP like ``keima gtp``.

    python -m bench.reliability.made_network --seconds-each 0.05 --fault hang --good 200 -- --size 9

Outputs are those of :class:`engine.nets.fakes.HashNetwork`, so evaluations cost what they are told to and no more; all
else, from the pipe to the search, is what plays. What stands behind ``--`` is for ``keima gtp``.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
import torch
from torch import Tensor

from bench.match.gtp_client import ROOT, GtpClient
from engine.features.encoder import KEIMA
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetOutput
from engine.play import ahead
from weights import NetworkPath

FAULTS = ("error", "hang", "memory", "nan")
HANG_S = 86400.0
UNLIMITED = 1 << 60
START_S, SETTLE_S = 600.0, 3.0
"""For an engine's first answers, and for what it loads after them"""


class MadeNetwork(HashNetwork):
    """A hash network that takes its time over every position, and fails after some. Threads: any."""

    def __init__(self, seconds_each: float, fault: str, good: int, bad: int) -> None:
        """A network that has not been asked yet.

        Args:
            seconds_each: for a position, slept.
            fault: one of ``FAULTS``, or ``none``.
            good, bad: calls without the fault, and calls with it after these; then it works again.
        """
        super().__init__(KEIMA.name)
        self._seconds_each, self._fault, self._good, self._bad = seconds_each, fault, good, bad
        self._calls, self._lock = 0, threading.Lock()

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        with self._lock:
            self._calls += 1
            is_bad = self._good < self._calls <= self._good + self._bad
        time.sleep(self._seconds_each * len(planes))
        output = super().evaluate(planes, globals_)
        if not is_bad or self._fault == "none":
            return output
        if self._fault == "error":
            raise RuntimeError("made to fail")
        if self._fault == "memory":
            raise torch.OutOfMemoryError("out of memory, as it was made to be")
        if self._fault == "hang":
            time.sleep(HANG_S)
        return output.each(lambda head: head * float("nan"))


def command(network: dict[str, object], *options: str) -> list[str]:
    """The command line of an engine.

    Args:
        network: arguments of :class:`MadeNetwork`.
        options: of ``keima gtp``.
    """
    words = [word for name, value in network.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, "-P", "-m", __name__, *words, "--", *options]


@contextmanager
def started(network: dict[str, object], *options: str) -> Iterator[GtpClient]:
    """An engine with a made network that has loaded all that it plays with; arguments as of :func:`command`."""
    ahead.compile_kernels(KEIMA.name)
    with GtpClient(command(network, *options), ROOT) as client:
        for question in ("kata-get-rules", "final_score"):
            client.ask(question, START_S)
        time.sleep(SETTLE_S)
        yield client


@click.command(context_settings={"show_default": True})
@click.option("--seconds-each", default=0.0, help="seconds an evaluation of a position takes")
@click.option("--fault", default="none", type=click.Choice(("none", *FAULTS)), help="what goes wrong")
@click.option("--good", default=0, help="calls of the network before it does")
@click.option("--bad", default=UNLIMITED, help="calls for which it does")
@click.argument("options", nargs=-1)
def main(seconds_each: float, fault: str, good: int, bad: int, options: tuple[str, ...]) -> None:
    """Speak GTP, with a network made to order."""
    from gtp.cli import main as keima

    made = MadeNetwork(seconds_each, fault, good, bad)

    def load(path: NetworkPath, device: object, samples: object = None) -> MadeNetwork:
        """In the place of a network of the same encoder that is read from a file."""
        return made

    keima(["gtp", *options], obj=load)


if __name__ == "__main__":
    main()
