"""From options to a search's settings: device-dependent defaults, kernel parameters, memory limits."""

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
"""Memory that batches may always take, whatever ``SearchOptions.memory`` is"""
WORKER_BYTES, SCRATCH_BYTES = 1 << 20, 10240
"""A worker's own memory, and an encoder's for each point of the board, measured"""


def cache_mib(options: SearchOptions) -> int:
    """Memory of a network's result cache."""
    return int(options.memory * CACHE_SHARE)


def tree_bytes(options: SearchOptions, has_network: bool) -> int:
    """Memory limit of the tree; a network's result cache takes its share first."""
    return (options.memory - (cache_mib(options) if has_network else 0)) << 20


def working_bytes(options: SearchOptions, network: Network | None, encoder: Encoder | None) -> int:
    """Memory of all workers on the largest board: batches, inputs and outputs of the network.

    Args:
        options: resolved.
        network: None = rollouts alone.
        encoder: the network's.
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
    """Refuse options whose batches need more memory than ``SearchOptions.memory`` and than ``FREE_MIB``.

    Args:
        options, network, encoder: as for :func:`working_bytes`.
    Raises:
        ValueError: they need more; one line.
    """
    needed, most = working_bytes(options, network, encoder) >> 20, max(FREE_MIB, options.memory)
    if needed > most:
        raise ValueError(
            f"threads {options.threads} and batch {options.batch} need {needed:,} MiB for their batches, expected at "
            f"most {most:,}: what memory allows the tree, and {FREE_MIB} in any case"
        )


def resolved(options: SearchOptions, network: Network | InferenceServer | None) -> SearchOptions:
    """The options with defaults filled in that depend on the device and the network; None = rollouts alone."""
    if network is None:
        return resolve(options, "rollouts")
    conditions = ["network", "gpu" if network.batches_requests else "cpu"]
    if network.spec.encoder.startswith("katago-"):
        conditions.append("katago")
    return resolve(options, *conditions)


def move_choice(options: SearchOptions, server: InferenceServer | None) -> str:
    """How the root's moves are sorted; without a value head by visits, since bounds of rollout results are too wide."""
    has_values = server is not None and "value" in server.spec.heads
    return options.move_choice if has_values else "visits"


def root_symmetries(options: SearchOptions) -> int:
    """The number of symmetries over which the root's priors are averaged; options resolved."""
    numbers = {"1": 1, "8": 8}
    if options.root_symmetries not in numbers:
        raise no_branch("root_symmetries", options.root_symmetries)
    return numbers[options.root_symmetries]


def _has_plain_values(options: SearchOptions, server: InferenceServer | None) -> bool:
    """Whether all values are the network's, as value bias and child weights require."""
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
    """The constants of a search; arguments and errors as for :class:`engine.search.search.Search`, options resolved."""
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
    """The options, resolved, as the kernels read them."""
    mixes = server is not None and options.rollout_weight > 0.0
    shares = {"both": 1.0, "rollouts": options.rollout_weight}
    if options.virtual_loss_on not in shares:
        raise no_branch("virtual_loss_on", options.virtual_loss_on)
    return Tuning(
        c_puct=options.c_puct,
        # Equal priors are no evidence against a move: its first-play value is then its parent's.
        fpu_reduction=options.fpu_reduction if server or patterns else 0.0,
        score_weight=0.0,
        rollout_weight=options.rollout_weight,
        virtual_visits=options.virtual_visits,
        virtual_loss=options.virtual_loss * shares[options.virtual_loss_on],
        expand_after=options.expand_after if mixes else 0,
        is_plain=server is not None and not mixes,
        value_weight=options.value_weight if _has_plain_values(options, server) else 0.0,
    )
