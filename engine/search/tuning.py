"""From options to the numbers that a search works with: where an option says nothing, what suits the device."""

from collections.abc import Callable

from engine.config import SearchOptions
from engine.config.declaration import no_branch, resolve
from engine.features.encoder import Encoder
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.rollout.model import Patterns
from engine.rollout.policy import Tables
from engine.search.alphago_2016 import mechanisms
from engine.search.selection import Tuning
from engine.search.state import NetworkAccess, Setup

CACHE_SHARE = 0.25
"""Share of ``SearchOptions.memory`` that the result cache takes; the tree has the rest."""


def cache_mib(options: SearchOptions) -> int:
    """Memory of the result cache of a search with a network, for :class:`InferenceServer`."""
    return int(options.memory * CACHE_SHARE)


def tree_bytes(options: SearchOptions, has_network: bool) -> int:
    """Memory of the tree, which the result cache of a network leaves."""
    return (options.memory - (cache_mib(options) if has_network else 0)) << 20


def resolved(options: SearchOptions, network: Network | InferenceServer | None) -> SearchOptions:
    """The options with everything decided that they leave to the engine, by what evaluates; None = rollouts alone."""
    if network is None:
        return resolve(options, "rollouts")
    conditions = ["network", "gpu" if network.batches_requests else "cpu"]
    if network.spec.encoder.startswith("katago-"):
        conditions.append("katago")
    return resolve(options, *conditions)


def move_choice(options: SearchOptions, server: InferenceServer | None) -> str:
    """How the root's moves are put in order; results of single rollouts say too little for a bound."""
    has_values = server is not None and "value" in server.spec.heads
    return options.move_choice if has_values else "visits"


def root_symmetries(options: SearchOptions) -> int:
    """The number of symmetries that the root's priors are averaged over; options resolved."""
    numbers = {"1": 1, "8": 8}
    if options.root_symmetries not in numbers:
        raise no_branch("root_symmetries", options.root_symmetries)
    return numbers[options.root_symmetries]


def _has_plain_values(options: SearchOptions, server: InferenceServer | None) -> bool:
    """Whether values below a node are the network's alone: what corrects and weighs them needs that."""
    if server is None or "value" not in server.spec.heads or options.rollout_weight > 0.0:
        return False
    return not options.placeholder_priors


def new_setup(
    options: SearchOptions,
    server: InferenceServer | None,
    encoder: Encoder | None,
    patterns: Patterns | None,
    owner_tables: Callable[[], Tables | None] | None,
) -> Setup:
    """What is fixed for a search; arguments and errors as of :class:`engine.search.search.Search`, options resolved."""
    if server is not None and "policy" not in server.spec.heads and patterns is None:
        raise ValueError(f"network {server.spec.name} has no policy: it cannot play without learnt patterns")
    has_network = server is not None
    return Setup(
        n_workers=options.threads,
        batch=options.batch,
        visits_per_leaf=options.visits_per_leaf,
        limit_bytes=tree_bytes(options, has_network),
        seed=options.seed,
        policy_temperature=options.policy_temperature,
        random_symmetry=options.random_symmetry,
        network=NetworkAccess(server, encoder) if server is not None and encoder is not None else None,
        patterns=patterns,
        owner_tables=owner_tables or (lambda: patterns.tables if patterns else None),
        uses_rollouts=not has_network or options.rollout_weight > 0.0,
        value_bias=options.value_bias if _has_plain_values(options, server) else 0.0,
        mechanisms=mechanisms(options, has_network, patterns is not None),
    )


def new_tuning(options: SearchOptions, server: InferenceServer | None, patterns: Patterns | None) -> Tuning:
    """The options, resolved, as the kernels read them."""
    mixes = server is not None and options.rollout_weight > 0.0
    shares = {"both": 1.0, "rollouts": options.rollout_weight}
    if options.virtual_loss_on not in shares:
        raise no_branch("virtual_loss_on", options.virtual_loss_on)
    return Tuning(
        c_puct=options.c_puct,
        c_puct_growth=options.c_puct_growth,
        # Equal priors say nothing against a move: then none is valued below its parent.
        fpu_reduction=options.fpu_reduction if server or patterns else 0.0,
        score_weight=options.score_weight,
        rollout_weight=options.rollout_weight,
        virtual_visits=options.virtual_visits,
        virtual_loss=options.virtual_loss * shares[options.virtual_loss_on],
        expand_after=options.expand_after if mixes else 0,
        is_plain=server is not None and not mixes and options.score_weight == 0.0,
        value_weight=options.value_weight if _has_plain_values(options, server) else 0.0,
    )
