"""Networks and positions for benchmarks: networks shipped or with random weights, middle-game positions.

Random weights cost as much time as trained ones. Positions are from games of the rollout policy, so no data is needed.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from bench.speed.figures import Work
from engine.config.declaration import core_count
from engine.features.encoder import ENCODERS
from engine.go.geometry import MAX_SIZE, MIN_SIZE, PASS
from engine.go.position import META_TO_MOVE, Position, new_position, play_move
from engine.go.random import seed_state
from engine.inference.server import GPU_EVALUATORS
from engine.inference.slots import Request
from engine.nets.architectures.registry import ARCHITECTURES, make, new_spec
from engine.nets.compute.runner import Runner, new_runner
from engine.nets.devices import choose_devices
from engine.nets.files.read import multiply_adds, read_network
from engine.nets.layers import Drawn
from engine.nets.network import Network
from engine.nets.on_device import network_on
from engine.play.factory import shipped_patterns
from engine.rollout.policy import begin, clear_responses, draw, follow, list_responses, new_weights
from engine.rollout.softmax import Candidates, new_candidates
from engine.system.jit import kernel
from weights import DEFAULT, find_network

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "keima-4x48": ("keima-resnet", {"blocks": 4, "channels": 48}),
    "keima-6x64": ("keima-resnet", {}),
    "keima-6x96": ("keima-resnet", {"channels": 96}),
    "keima-10x128": ("keima-resnet", {"blocks": 10, "channels": 128}),
    "keima-12x192": ("keima-resnet", {"blocks": 12, "channels": 192}),
    "keima-20x256": ("keima-resnet", {"blocks": 20, "channels": 256}),
    "policy-192": ("alphago-policy", {}),
    "value-192": ("alphago-value", {}),
    "zero-12x128": ("alphago-zero", {}),
}
"""Name -> architecture, and shape where it differs from the architecture's default"""
CHOICES = (DEFAULT, *NETWORKS)
BITS = {"auto": None, "16": True, "32": False}
"""Value of ``--bits`` -> whether the network computes in 16 bits; None = as in play"""
DENSITY = 0.3
"""Share of ones in random input planes"""
POSITIONS = 16
MIDDLE = 110 / 361
"""Number of moves before a middle-game position, as a share of the points"""
SEED = 1

bits_option = click.option(
    "--bits", default="auto", type=click.Choice(list(BITS)), help="bits of numbers in networks; auto = as in play"
)
sizes = click.option(
    "--size", "sizes", multiple=True, default=(19, 9), type=click.IntRange(MIN_SIZE, MAX_SIZE),
    help="board size, repeatable",
)  # fmt: skip
"""Decorator that adds the option ``--size``"""


def network_option(*default: str) -> Callable:
    """Decorator that adds the option ``--network``, one of ``CHOICES``."""
    return click.option(
        "--network", "names", multiple=True, default=default, type=click.Choice(CHOICES), help="network, repeatable"
    )


def network_options(*default: str) -> Callable:
    """Decorator that adds the options ``--network``, ``--device``, ``--bits`` and ``--threads``."""
    device = click.option("--device", default="auto", help="device: auto, cpu, mps, cuda or cuda:N")
    threads = click.option(
        "--threads", default=0, type=click.IntRange(0, 256), help="evaluator threads on the CPU; 0 = one a core"
    )
    return lambda command: network_option(*default)(device(bits_option(threads(command))))


def shape_of(name: str) -> tuple[str, dict[str, Any]]:
    """Architecture and complete shape of one of ``NETWORKS``."""
    architecture, shape = NETWORKS[name]
    encoder = ENCODERS[ARCHITECTURES[architecture].encoder]
    inputs = {"planes": encoder.planes} | ({"globals": encoder.globals} if encoder.globals else {})
    return architecture, inputs | shape


def made_network(name: str, device: str, bits: str = "auto") -> tuple[Network, int]:
    """One of ``CHOICES`` on a device, and the operations of an evaluation on 19x19, or the network's largest board.

    Args:
        bits: one of ``BITS``.
    Raises:
        ValueError: the device or the shipped network cannot be used.
    """
    if name in NETWORKS:
        # A fixed seed: with some random weights passes are likely, and searches reach many finished games.
        plain = make(*shape_of(name), Drawn(SEED))
        spec = new_spec(plain, name)
    else:
        path = find_network(name)
        if isinstance(path, tuple):
            raise ValueError(f"{name}: expected a single network")
        plain, spec, _ = read_network(path)
    network = network_on(plain, spec, choose_devices(device)[0], BITS[bits])
    return network, 2 * multiply_adds(plain, min(19, spec.max_size))


def new_runners(network: Network, threads: int = 0, new: Callable[[Network], Runner] = new_runner) -> list[Runner]:
    """One runner for each evaluator thread that the server would start.

    Args:
        threads: evaluators on the CPU; 0 = one a core.
        new: makes a runner.
    """
    return [new(network) for _ in range(GPU_EVALUATORS if network.batches_requests else threads or core_count())]


def evaluation_works(network: Network, runners: Sequence[Runner], size: int, batch: int) -> list[Work]:
    """Works that evaluate a random batch again and again, one work for each runner; an item is a batch."""
    rng, encoder = np.random.default_rng(SEED), ENCODERS[network.spec.encoder]

    def work_of(runner: Runner) -> Work:
        slots = Request(size, batch, encoder.planes, encoder.globals, network.device.startswith("cuda"))
        slots.planes[:] = rng.random(slots.planes.shape) < DENSITY
        slots.globals[:] = rng.random(slots.globals.shape)
        inputs = [slots.planes], [slots.globals]

        def work(count: int) -> int:
            for _ in range(count):
                runner.run(*inputs)
            return 0

        return work

    return [work_of(runner) for runner in runners]


@kernel
def _play_on(position, weights, tables, last, state, count):
    """Play ``count`` moves of the rollout policy.

    Args:
        last: int64[3] of :class:`engine.rollout.softmax.Candidates`, updated.
    """
    board = position.board
    begin(weights, board, tables)
    for _ in range(count):
        color = position.meta[META_TO_MOVE]
        answers = clear_responses(weights)
        if last[0] != PASS:
            answers = list_responses(weights, board, tables, last[0], color, last[2])
        last[1] = last[0]
        last[0] = draw(weights, board, color, answers, state)
        last[2] = play_move(position, last[0], color)
        if last[0] != PASS:
            follow(weights, board, tables, last[0], color, last[2])


class MiddleGame(NamedTuple):
    """A position, and memory for its candidate moves with ``last`` filled in."""

    position: Position
    moves: Candidates


def middle_games(size: int) -> list[MiddleGame]:
    """``POSITIONS`` positions from games of the shipped rollout policy.

    Raises:
        ValueError: the file of the policy is missing or damaged.
    """
    tables = shipped_patterns().tables
    games = [MiddleGame(new_position(size), new_candidates(size)) for _ in range(POSITIONS)]
    for stream, (position, moves) in enumerate(games):
        _play_on(position, new_weights(size), tables, moves.last, seed_state(SEED, stream), round(MIDDLE * size * size))
    return games


def move_lists(size: int) -> list[list[int]]:
    """The moves that lead to the positions of :func:`middle_games`, as points, Black's first, passes included."""
    tables, weights, lists = shipped_patterns().tables, new_weights(size), []
    for stream in range(POSITIONS):
        position, moves, state = new_position(size), new_candidates(size), seed_state(SEED, stream)
        points = []
        for _ in range(round(MIDDLE * size * size)):
            _play_on(position, weights, tables, moves.last, state, 1)
            points.append(int(moves.last[0]))
        lists.append(points)
    return lists
