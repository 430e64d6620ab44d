"""Makes the parts of a search from options and files: networks, encoder, pattern policies, inference server."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from engine.config import PlayOptions, SearchOptions
from engine.config.declaration import resolve
from engine.features.encoder import ENCODERS, Encoder, sample_inputs, with_profile
from engine.inference.server import InferenceServer
from engine.nets.devices import choose_devices
from engine.nets.network import Network, NetworkSpec
from engine.nets.notices import say_once
from engine.nets.on_device import load_network
from engine.rollout.model import Patterns, load_both, load_rollout
from engine.rollout.policy import Tables
from engine.search.tuning import cache_mib, check_memory, resolved
from weights import SHIPPED_PATTERNS, NetworkPath, find_pattern_pair

Loader = Callable[..., Network]
"""Loads a network on a device; arguments as for :func:`engine.nets.on_device.load_network`"""


class Parts(NamedTuple):
    """The parts of a :class:`engine.search.search.Search`, except for its server."""

    options: SearchOptions
    """the given options, changed as the network requires"""
    networks: list[Network]
    """the network on each of its devices; empty = rollouts alone"""
    reload: Loader | None
    """loads the network on a device again; None without a network"""
    encoder: Encoder | None
    patterns: Patterns | None

    @property
    def spec(self) -> NetworkSpec | None:
        """The network's spec; None without a network."""
        return self.networks[0].spec if self.networks else None


def load_parts(options: SearchOptions, network: NetworkPath | None, device: str, load: Loader | None = None) -> Parts:
    """Load networks and patterns for the options.

    Args:
        network: a file, or files of AlphaGo's policy and value network; None = rollouts alone. Without a value head,
            values are rollouts'; without a policy head, priors are the tree policy's.
        load: loads a network on a device; None = :func:`engine.nets.on_device.load_network`.
    Raises:
        ValueError: network or device cannot be used, or the options take too much memory; one clear line.
    """
    if network is None:
        _encoder(None, options)
        check_memory(resolved(options, None), None, None)
        return Parts(options, [], None, None, _patterns(options, None))
    load = load or load_network
    networks = [load(network, one, sample_inputs) for one in choose_devices(device)]
    spec = networks[0].spec
    if spec.encoder not in ENCODERS:
        raise ValueError(f"network {spec.name} wants the encoder {spec.encoder!r}, known are {', '.join(ENCODERS)}")
    options = _forced(options, spec)
    check_memory(resolved(options, networks[0]), networks[0], ENCODERS[spec.encoder])
    reload = partial(load, network, samples=sample_inputs)
    return Parts(options, networks, reload, _encoder(spec, options), _patterns(options, spec))


def parts_with(parts: Parts, options: SearchOptions) -> Parts:
    """Parts of the same network with other options; ``parts`` itself if the options have the same effect.

    Raises:
        ValueError: the network does not allow the options, or they take too much memory; one line.
    """
    spec = parts.spec
    options = _forced(options, spec)
    network = parts.networks[0] if parts.networks else None
    check_memory(resolved(options, network), network, parts.encoder)
    if options == parts.options:
        return parts
    return parts._replace(options=options, encoder=_encoder(spec, options), patterns=_patterns(options, spec))


def without_network(parts: Parts) -> Parts:
    """The parts without their network, for a search by rollouts with the same options."""
    return Parts(parts.options, [], None, None, _patterns(parts.options, None))


def fitting(parts: Parts, size: int) -> Parts:
    """The parts for a board size: without a network that does not play it; a line on standard error says so."""
    if parts.spec is None or parts.spec.plays(size):
        return parts
    say_once(f"{parts.spec.said}: {size}x{size} is played without it, on rollouts and learnt patterns")
    return without_network(parts)


def for_play(search: SearchOptions, play: PlayOptions) -> SearchOptions:
    """The search options of a player: with ``policy_only`` the policy is averaged over all symmetries.

    ``wide_root_noise`` becomes 0: each analysis gets it as an argument instead, so a change of it keeps the tree.
    """
    search = replace(search, wide_root_noise=0.0)
    if not play.policy_only:
        return search
    return replace(search, root_symmetries=resolve(search, "policy_only").root_symmetries)


def _encoder(spec: NetworkSpec | None, options: SearchOptions) -> Encoder | None:
    """The encoder of a network, with the human profile of the options; None without a network.

    Raises:
        ValueError: the network does not know the profile; one line.
    """
    if spec is None:
        if options.human_profile:
            raise ValueError(f"human profile {options.human_profile}: there is no network to imitate it")
        return None
    return with_profile(ENCODERS[spec.encoder], options.human_profile)


def _forced(options: SearchOptions, spec: NetworkSpec | None) -> SearchOptions:
    """The options, with ``rollout_weight`` 1 if there is a network without a value head."""
    return options if spec is None or "value" in spec.heads else replace(options, rollout_weight=1.0)


def new_server(parts: Parts, shared: bool = False) -> InferenceServer | None:
    """The inference server for the options; None without a network.

    Args:
        shared: whether several searches use the server at once; their requests are merged.
    """
    if not parts.networks:
        return None
    options = resolved(parts.options, parts.networks[0])
    return InferenceServer(parts.networks, cache_mib(options), options.evaluators, reload=parts.reload, shared=shared)


def patterns_of(options: SearchOptions) -> Patterns:
    """The pattern policies named by the options, read once per process.

    Raises:
        ValueError: a file cannot be used; one clear line.
    """
    return load_both(*find_pattern_pair(options.patterns))


def tables_of(options: SearchOptions) -> Tables:
    """The rollout policy of :func:`patterns_of`, without the tree policy; reading it takes half a second."""
    return load_rollout(find_pattern_pair(options.patterns)[0])


def shipped_patterns() -> Patterns:
    """The shipped pattern policies, read once per process."""
    return load_both(*find_pattern_pair(SHIPPED_PATTERNS))


def shipped_tables() -> Tables:
    """The rollout policy of :func:`shipped_patterns`, without the tree policy."""
    return load_rollout(find_pattern_pair(SHIPPED_PATTERNS)[0])


def ownership_tables(parts: Parts) -> Tables | None:
    """The rollout policy that estimates ownership at a game's end; None = uniformly random rollouts."""
    return None if parts.options.uniform_rollouts else tables_of(parts.options)


def _patterns(options: SearchOptions, spec: NetworkSpec | None) -> Patterns | None:
    """The pattern policies; None if the search does not use them. Loading them takes half a second."""
    wanted = spec is None or "policy" not in spec.heads or options.rollout_weight > 0.0 or options.placeholder_priors
    if spec is not None and "policy" not in spec.heads and options.uniform_rollouts:
        raise ValueError(f"network {spec.name} has no policy: it cannot play without learnt patterns")
    if options.patterns != SHIPPED_PATTERNS:
        # Read at once, since finished games need the rollout policy: an unusable file is refused here.
        patterns_of(options)
    if options.uniform_rollouts or not wanted:
        return None
    return patterns_of(options)
