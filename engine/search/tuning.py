"""From options to the numbers that a search works with: where an option says nothing, what suits the device."""

from engine.config import SearchOptions
from engine.config.declaration import resolve
from engine.inference.server import InferenceServer
from engine.nets.network import Network
from engine.rollout.model import Patterns
from engine.search.selection import Tuning

CACHE_SHARE = 0.25
"""Share of ``SearchOptions.memory`` that the result cache takes; the tree has the rest."""


def cache_mib(options: SearchOptions) -> int:
    """Memory of the result cache of a search with a network, for :class:`InferenceServer`."""
    return int(options.memory * CACHE_SHARE)


def resolved(options: SearchOptions, network: Network | InferenceServer | None) -> SearchOptions:
    """The options with everything decided that they leave to the engine, by what evaluates; None = rollouts alone."""
    if network is None:
        return resolve(options, "rollouts")
    return resolve(options, "network", "gpu" if network.merges else "cpu")


def move_choice(options: SearchOptions, server: InferenceServer | None) -> str:
    """How the root's moves are put in order; results of single rollouts say too little for a bound."""
    judges = server is not None and server.spec.has_value
    return options.move_choice if judges else "visits"


def new_tuning(options: SearchOptions, server: InferenceServer | None, patterns: Patterns | None) -> Tuning:
    """The options, resolved, as the kernels read them."""
    mixes = server is not None and options.rollout_weight > 0.0
    share = options.rollout_weight if options.virtual_loss_on == "rollouts" else 1.0
    return Tuning(
        c_puct=options.c_puct,
        c_puct_growth=options.c_puct_growth,
        # Equal priors say nothing against a move: then none is valued below its parent.
        fpu_reduction=options.fpu_reduction if server or patterns else 0.0,
        score_weight=options.score_weight,
        rollout_weight=options.rollout_weight,
        virtual_visits=options.virtual_visits,
        virtual_loss=options.virtual_loss * share,
        expand_after=options.expand_after if mixes else 0,
        is_plain=server is not None and not mixes and options.score_weight == 0.0 and not options.transpositions,
    )
