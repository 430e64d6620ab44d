"""From options and files to what a search is made of, for those who play and those who measure."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS, Encoder
from engine.features.samples import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.load import choose_devices, load_network
from engine.nets.network import Network, NetworkSpec
from engine.rollout.model import Patterns, load_both, load_patterns, rollout_tables
from engine.rollout.policy import Tables
from engine.search.tuning import cache_mib
from weights import find_patterns


class Parts(NamedTuple):
    """All that a :class:`engine.search.search.Search` needs but for its server."""

    options: SearchOptions
    """as given, but for what the network forces"""
    networks: list[Network]
    """the network on each of its devices; empty = rollouts alone"""
    reload: Callable | None
    """puts the network on a device anew"""
    encoder: Encoder | None
    patterns: Patterns | None


def load_parts(options: SearchOptions, network: Path | tuple[Path, Path] | None, device: str) -> Parts:
    """Load what the options ask for.

    Args:
        network: a file, or files of AlphaGo's policy and value network; None = rollouts alone. Where it gives no
            values, rollouts alone judge; where it has no policy, the tree policy gives the priors.
    Raises:
        ValueError: network or device cannot be used; one clear line.
    """
    if network is None:
        return Parts(options, [], None, None, _patterns(options, None))
    networks = [load_network(network, one, sample_inputs) for one in choose_devices(device)]
    spec = networks[0].spec
    if spec.encoder not in ENCODERS:
        raise ValueError(f"network {spec.name} wants the encoder {spec.encoder!r}, known are {', '.join(ENCODERS)}")
    if not spec.has_value:
        options = replace(options, rollout_weight=1.0)
    reload = partial(load_network, network, samples=sample_inputs)
    return Parts(options, networks, reload, ENCODERS[spec.encoder], _patterns(options, spec))


def new_server(parts: Parts) -> InferenceServer | None:
    """The evaluators that the options ask for; None = there is no network."""
    if not parts.networks:
        return None
    evaluators = parts.options.evaluators or parts.options.threads
    return InferenceServer(parts.networks, cache_mib(parts.options), evaluators, reload=parts.reload)


@cache
def judging_tables() -> Tables:
    """The rollout policy, for whoever judges finished games and searches without it; loading takes half a second."""
    return rollout_tables(load_patterns(find_patterns("rollout")))


def _patterns(options: SearchOptions, spec: NetworkSpec | None) -> Patterns | None:
    """The pattern policies, if the search has a use for them; loading them takes half a second."""
    wanted = spec is None or not spec.has_policy or options.rollout_weight > 0.0 or options.placeholder_priors
    if spec is not None and not spec.has_policy and options.uniform_rollouts:
        raise ValueError(f"network {spec.name} has no policy: it cannot play without learnt patterns")
    if options.uniform_rollouts or not wanted:
        return None
    return load_both(find_patterns("rollout"), find_patterns("tree"))
