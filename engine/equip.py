"""From options and files to a search that is ready to run: network, server, encoder and patterns."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, Encoder
from engine.features.samples import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.load import choose_devices, load_network
from engine.nets.network import Network, NetworkSpec
from engine.rollout.model import Patterns, load_both
from engine.search.search import Search, cache_mib
from weights import find_patterns


def equip(
    options: SearchOptions, network: Path | tuple[Path, Path] | None, device: str = "auto"
) -> tuple[Search, InferenceServer | None]:
    """A search, and the inference server that it asks.

    Args:
        network: file of the network, or files of AlphaGo's policy and value network; None = rollouts alone, on any
            board. Where a network gives no values, rollouts alone judge; where it has no policy, the tree policy
            gives the priors.
        device: as for :func:`engine.nets.load.choose_devices`.
    Raises:
        ValueError: network or device cannot be used; one clear line.
    """
    if network is None:
        return Search(options, None, None, _patterns(options, None)), None
    networks, encoder = _load(network, device)
    spec = networks[0].spec
    if not spec.has_value:
        options = replace(options, rollout_weight=1.0)
    patterns = _patterns(options, spec)
    reload = partial(load_network, network, samples=sample_inputs)
    server = InferenceServer(networks, cache_mib(options), options.threads, reload=reload)
    return Search(options, server, encoder, patterns), server


def _load(files: Path | tuple[Path, Path], device: str) -> tuple[list[Network], Encoder]:
    """A network on every device named, and the encoder it wants."""
    networks = [load_network(files, one, sample_inputs) for one in choose_devices(device)]
    spec = networks[0].spec
    if spec.encoder not in ENCODERS:
        raise ValueError(f"network {spec.name} wants the encoder {spec.encoder!r}, known are {', '.join(ENCODERS)}")
    return networks, ENCODERS[spec.encoder]


def _patterns(options: SearchOptions, spec: NetworkSpec | None) -> Patterns | None:
    """The pattern policies, if the search has a use for them; loading them takes half a second."""
    wanted = spec is None or not spec.has_policy or options.rollout_weight > 0.0 or options.placeholder_priors
    if spec is not None and not spec.has_policy and options.uniform_rollouts:
        raise ValueError(f"network {spec.name} has no policy: it cannot play without learnt patterns")
    if options.uniform_rollouts or not wanted:
        return None
    return load_both(find_patterns("rollout"), find_patterns("tree"))
