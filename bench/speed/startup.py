"""``python -m bench.speed.startup``: seconds from the start of ``keima gtp`` to its answers, one JSON line a figure.

``handshake`` is the time to the answer to ``name``, ``first_genmove`` to the first move, before which the network is
loaded and warmed up. For ``.../warm`` kernels are in the cache (compiled first if they are not); for ``.../cold`` the
cache folder is empty, so all kernels are compiled, which takes minutes and is measured once. The real process answers
through pipes, without a settings file. Start at :func:`command`.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence

import click

from bench.match.gtp_client import GtpClient
from bench.speed.figures import Figure, Timing, bench
from engine.go.points import MAX_SIZE, MIN_SIZE
from engine.system.jit import CACHE_VARIABLE
from engine.system.programs import keima
from gtp.cli.settings import NO_FILE
from weights import DEFAULT

QUESTIONS = {"handshake": "name", "first_genmove": "genmove b"}
"""Figure -> GTP command at whose answer its measurement ends; the commands are sent in this order"""
STATES = ("warm", "cold")
FIGURES = [f"{figure}/{state}" for state in STATES for figure in QUESTIONS]
PATIENCE_S = 1800.0


def seconds_of(
    command: str | Sequence[str], questions: Iterable[str] = QUESTIONS.values(), **variables: str
) -> list[float]:
    """Seconds from the start of an engine to its answer to each of some questions, which are GTP commands.

    Args:
        command: a command line, or its words.
        variables: environment variables.
    Raises:
        EngineError, EngineRefused: the engine does not answer.
    """
    begin, answered = time.perf_counter(), []
    with GtpClient(command, None, **variables) as engine:
        for question in questions:
            engine.ask(question, PATIENCE_S)
            answered.append(time.perf_counter() - begin)
    return answered


def samples(command: list[str], state: str, repeats: int) -> list[list[float]]:
    """Seconds of starts with a warm or a cold cache; a cold start is measured once."""
    if state == "cold":
        with tempfile.TemporaryDirectory() as folder:
            return [seconds_of(command, **{CACHE_VARIABLE: folder})]
    seconds_of(command)
    return [seconds_of(command) for _ in range(repeats)]


@bench("warm starts")
@click.option("--only", "names", multiple=True, type=click.Choice(FIGURES), help="figure to measure, repeatable")
@click.option("--weights", default=DEFAULT, help="network, as for keima gtp")
@click.option("--size", default=19, type=click.IntRange(MIN_SIZE, MAX_SIZE), help="board size")
@click.option("--device", default="cpu", help="device, as for keima gtp")
def command(names: tuple[str, ...], weights: str, size: int, device: str, timing: Timing) -> Iterator[Figure]:
    """Measure the time from start to answers, with a warm and with a cold kernel cache: a JSON line each."""
    words = keima(
        "gtp", "--config", NO_FILE, "--visits", 1, "--weights", weights, "--size", size, "--device", device
    )  # fmt: skip
    for state in STATES:
        wanted = {f"{figure}/{state}" for figure in QUESTIONS} & set(names or FIGURES)
        if wanted:
            click.echo(f"measuring {state} starts", err=True)
            found = zip(*samples(words, state, timing.repeats), strict=True)
            for figure, values in zip(QUESTIONS, found, strict=True):
                if f"{figure}/{state}" in wanted:
                    yield f"{figure}/{state}", values, "s"


if __name__ == "__main__":
    command()
