"""Networks to measure: shipped ones, and some sizes with random weights, which cost the same."""

from collections.abc import Callable, Sequence

import click
import numpy as np
import torch

from bench.speed.figures import Work
from engine.config.declaration import core_count
from engine.features.encoder import ENCODERS
from engine.inference.server import FLIGHTS
from engine.inference.slots import Request
from engine.nets.architectures.registry import ARCHITECTURES, new_model, new_spec
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.runner import Runner
from engine.nets.files.read import forward_flops, read_network
from engine.nets.network import Network
from engine.nets.on_device import choose_device
from weights import DEFAULT, find_network

NETWORKS = {
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
"""Name -> architecture and shape"""
CHOICES = (DEFAULT, *NETWORKS)
BITS = {"auto": None, "16": True, "32": False}
"""What ``--bits`` allows, and what it means to a network"""
bits_option = click.option(
    "--bits", default="auto", type=click.Choice(list(BITS)), help="of numbers; auto = as we play"
)
DENSITY = 0.3
"""Share of ones in the planes that are evaluated"""
SEED = 1


def network_option(*default: str) -> Callable:
    """Decorator: the option that chooses networks among ``CHOICES``."""
    return click.option(
        "--network", "names", multiple=True, default=default, type=click.Choice(CHOICES), help="repeatable"
    )


def shape_of(name: str) -> tuple[str, dict]:
    """Architecture and whole shape of one of ``NETWORKS``."""
    architecture, shape = NETWORKS[name]
    encoder = ENCODERS[ARCHITECTURES[architecture].encoder]
    inputs = {"planes": encoder.planes} | ({"globals": encoder.globals} if encoder.globals else {})
    return architecture, inputs | shape


def made_network(name: str, device: str, bits: str = "auto") -> tuple[TorchNetwork, int]:
    """One of ``CHOICES`` on a device, and its operations for a position on the largest board up to 19x19.

    Args:
        bits: one of ``BITS``.
    Raises:
        click.ClickException: the device or the shipped network cannot be used.
    """
    try:
        if name in NETWORKS:
            # Some random networks like to pass, and their searches meet many finished games.
            torch.manual_seed(SEED)
            model = new_model(*shape_of(name))
            spec = new_spec(model, name)
        else:
            path = find_network(name)
            if isinstance(path, tuple):
                raise ValueError(f"{name}: expected a single network")
            model, spec, _ = read_network(path)
        # One thread of torch for each evaluator, as when we play.
        chosen = choose_device(device, threads=1)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    network = TorchNetwork(model, spec, chosen, BITS[bits])
    return network, forward_flops(model, min(19, spec.max_size))


def evaluator_count(network: Network, threads: int = 0) -> int:
    """How many threads evaluate at once when we play."""
    return FLIGHTS if network.merges else threads or core_count()


def evaluation_works(network: TorchNetwork, runners: Sequence[Runner], size: int, batch: int) -> list[Work]:
    """Batches of one size again and again, one work a runner; the GIL is free while a network computes."""
    rng, encoder = np.random.default_rng(SEED), ENCODERS[network.spec.encoder]

    def work_of(runner: Runner) -> Work:
        slots = Request(size, batch, encoder.planes, encoder.globals, network.device.type == "cuda")
        slots.planes[:] = rng.random(slots.planes.shape) < DENSITY
        slots.globals[:] = rng.random(slots.globals.shape)
        inputs = [slots.tensors["planes"]], [slots.tensors["globals"]]

        def work(count: int) -> int:
            for _ in range(count):
                runner.run(*inputs)
            return 0

        return work

    return [work_of(runner) for runner in runners]
