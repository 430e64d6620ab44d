"""What a search derives from its options: device-dependent defaults, kernel parameters, memory limits."""

from collections.abc import Callable

from engine.config import SearchOptions
from engine.config.declaration import no_branch, resolve
from engine.features.encoder import Encoder
from engine.go.geometry import MAX_SIZE
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.rollout.model import Patterns
from engine.rollout.policy import Tables
from engine.search.alphago_2016 import mechanisms
from engine.search.leaves import new_batch
from engine.search.selection import Tuning
from engine.search.state import NetworkAccess, Setup
from engine.search.worker import flights

CACHE_SHARE = 0.25
"""Share of ``SearchOptions.memory`` for the result cache; the tree gets the rest"""
FREE_MIB = 256
"""Memory in MiB that batches may take even if ``SearchOptions.memory`` is less"""
WORKER_BYTES, SCRATCH_BYTES = 1 << 20, 10240
"""Measured memory of a worker besides batches, and of its encoder's scratch for each point of the board"""


def cache_mib(options: SearchOptions) -> int:
    """Memory of a network's result cache, in MiB."""
    return int(options.memory * CACHE_SHARE)


def tree_bytes(options: SearchOptions, server: InferenceServer | None) -> int:
    """Memory limit of the tree in bytes: ``SearchOptions.memory`` minus the caches of the network's server."""
    if server is None:
        return options.memory << 20
    return ((options.memory - cache_mib(options)) << 20) - server.ownership_cache_bytes


def working_bytes(options: SearchOptions, network: Network | None, encoder: Encoder | None) -> int:
    """Bytes that all workers need on the largest board for batches and for inputs and outputs of the network.

    Args:
        options: resolved.
        network: None = rollouts alone.
        encoder: the network's; None without a network.
    """
    size = min(network.spec.max_size, MAX_SIZE) if network is not None else MAX_SIZE
    worker, leaf, batches = WORKER_BYTES, sum(array.nbytes for array in new_batch(size, 1)), 1
    if network is not None and encoder is not None:
        # Planes and global values; a policy, an ownership, value and score.
        leaf += 4 * (encoder.planes * size**2 + encoder.globals + 2 * size**2 + 3)
        worker += SCRATCH_BYTES * size**2
        batches = flights(options, options.evaluators, network.batches_requests)
    return options.threads * (worker + batches * options.batch * leaf)


def check_memory(options: SearchOptions, network: Network | None, encoder: Encoder | None) -> None:
    """Refuse options with which batches need more than ``SearchOptions.memory`` and more than ``FREE_MIB``.

    Args:
        options, network, encoder: as for :func:`working_bytes`.
    Raises:
        ValueError: the batches need more memory; the message is one line.
    """
    needed, most = working_bytes(options, network, encoder) >> 20, max(FREE_MIB, options.memory)
    if needed > most:
        raise ValueError(
            f"threads {options.threads} and batch {options.batch} need {needed:,} MiB for their batches, expected at "
            f"most {most:,} MiB: the option memory or {FREE_MIB} MiB, whichever is larger"
        )


def resolved(options: SearchOptions, network: Network | InferenceServer | None) -> SearchOptions:
    """The options with their defaults filled in, which depend on device and network; no network = rollouts alone."""
    if network is None:
        return resolve(options, "rollouts")
    conditions = ["network", "gpu" if network.batches_requests else "cpu"]
    if network.spec.encoder.startswith("katago-"):
        conditions.append("katago")
    return resolve(options, *conditions)


def move_choice(options: SearchOptions, server: InferenceServer | None) -> str:
    """The ``move_choice`` for :func:`engine.search.choosing.best_first`: the option's; "visits" without a value head.

    Confidence bounds of rollout results are too wide to choose by.
    """
    has_values = server is not None and "value" in server.spec.heads
    return options.move_choice if has_values else "visits"


def root_symmetries(options: SearchOptions) -> int:
    """The number of symmetries over which the root's priors are averaged, 1 or 8; the options are resolved ones."""
    numbers = {"1": 1, "8": 8}
    if options.root_symmetries not in numbers:
        raise no_branch("root_symmetries", options.root_symmetries)
    return numbers[options.root_symmetries]


def _has_plain_values(options: SearchOptions, server: InferenceServer | None) -> bool:
    """Whether all values are the network's: no rollouts, no placeholders. Value bias and child weights require this."""
    if server is None or "value" not in server.spec.heads or options.rollout_weight > 0.0:
        return False
    return not options.placeholder_priors


def new_setup(
    options: SearchOptions,
    server: InferenceServer | None,
    encoder: Encoder | None,
    patterns: Patterns | None,
    ownership_tables: Callable[[], Tables | None] | None,
) -> Setup:
    """The constants of a search; arguments and errors as for :class:`engine.search.search.Search`.

    The options must be resolved ones.
    """
    if server is not None and "policy" not in server.spec.heads and patterns is None:
        raise ValueError(f"network {server.spec.name} has no policy: it cannot play without learnt patterns")
    has_network = server is not None
    return Setup(
        options=options,
        network=NetworkAccess(server, encoder) if server is not None and encoder is not None else None,
        patterns=patterns,
        ownership_tables=ownership_tables or (lambda: patterns.tables if patterns else None),
        uses_rollouts=not has_network or options.rollout_weight > 0.0,
        value_bias=options.value_bias if _has_plain_values(options, server) else 0.0,
        mechanisms=mechanisms(options, has_network, patterns is not None),
    )


def new_tuning(options: SearchOptions, server: InferenceServer | None, patterns: Patterns | None) -> Tuning:
    """The numbers that kernels read, from resolved options."""
    mixes = server is not None and options.rollout_weight > 0.0
    shares = {"both": 1.0, "rollouts": options.rollout_weight}
    if options.virtual_loss_on not in shares:
        raise no_branch("virtual_loss_on", options.virtual_loss_on)
    bases = {"reduction": 1.0, "zero": 0.0}
    if options.fpu_strategy not in bases:
        raise no_branch("fpu_strategy", options.fpu_strategy)
    fpu_base = bases[options.fpu_strategy]
    return Tuning(
        c_puct=options.c_puct,
        # Without network and patterns priors are equal, which is no evidence against unvisited moves.
        fpu_reduction=options.fpu_reduction if fpu_base and (server or patterns) else 0.0,
        fpu_base=fpu_base,
        score_weight=0.0,
        rollout_weight=options.rollout_weight,
        virtual_visits=options.virtual_visits,
        virtual_loss=options.virtual_loss * shares[options.virtual_loss_on],
        expand_after=options.expand_after if mixes else 0,
        is_plain=server is not None and not mixes,
        value_weight=options.value_weight if _has_plain_values(options, server) else 0.0,
    )
