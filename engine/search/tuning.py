"""From options to the numbers that a search works with: where an option says nothing, what suits the device."""

from engine.config import SearchOptions, core_count
from engine.inference.server import InferenceServer
from engine.rollout.model import Patterns
from engine.search.selection import Tuning

CACHE_SHARE = 0.25
"""Share of ``SearchOptions.memory`` that the result cache takes; the tree has the rest."""
CPU_BATCH = 8
"""Leaves a batch: larger ones are hardly faster on the CPU."""
GPU_BATCH = 64
"""And before a GPU, which merges what waits. Leaves that travel together share what Python costs: with 16 a batch, a
device that takes 64 in 2 ms gave 73 to 85% of what it could, with 64 a batch 88%."""
C_PUCT_NETWORK = 1.4
C_PUCT_ROLLOUTS = 5.0
"""Results of single rollouts are far noisier than a network's values; 2 loses to 4 by 170 Elo, 10 to 5 by 240."""
CPU_RAMP = 96
"""With a ramp of 32, playouts in flight lose some 40 Elo at 200 visits, with this nothing; the price is some 10% fewer
visits a second in the first 800. See docs/lab/small-searches.md."""
RAMP = 32
CPU_VIRTUAL_LOSS = 0.5
"""With 0, edges with a playout under way keep their value: playouts meet so often that batches hold five leaves rather
than eight, and the CPU evaluates a quarter fewer a second. See docs/lab/small-searches.md."""
VIRTUAL_LOSS = 1.0
"""A GPU gets some 85 different leaves of 128 (one 19x19 middle game), with 0 only nine."""


def cache_mib(options: SearchOptions) -> int:
    """Memory of the result cache of a search with a network, for :class:`InferenceServer`."""
    return int(options.memory * CACHE_SHARE)


def worker_count(options: SearchOptions, server: InferenceServer | None) -> int:
    """Worker threads: as asked for, or what suits the machine.

    On the CPU the network takes nearly all the time and all cores, and one worker prepares leaves enough for them. In
    front of a GPU, and where rollouts are all there is, workers are what computes. A GPU gets two at least: the batches
    of a single one are not merged.
    """
    cores = core_count()
    if options.threads:
        return options.threads
    if server is None:
        return cores
    return max(2, min(4, cores - 1)) if server.merges else 1


def batch_size(options: SearchOptions, server: InferenceServer | None) -> int:
    """Most leaves a batch: as asked for, or what suits the device."""
    return options.batch or (GPU_BATCH if server is not None and server.merges else CPU_BATCH)


def batch_ramp(options: SearchOptions, server: InferenceServer | None) -> int:
    """Visits for which a batch takes one leaf more: as asked for, or what suits the device; 0 = no ramp."""
    if options.ramp >= 0:
        return options.ramp
    return CPU_RAMP if server is not None and not server.merges else RAMP


def virtual_loss(options: SearchOptions, server: InferenceServer | None) -> float:
    """What is taken off an edge's value for visits under way: as asked for, or what suits the device."""
    loss = options.virtual_loss
    if loss < 0.0:
        loss = CPU_VIRTUAL_LOSS if server is not None and not server.merges else VIRTUAL_LOSS
    return loss * options.rollout_weight if options.virtual_loss_on == "rollouts" else loss


def move_choice(options: SearchOptions, server: InferenceServer | None) -> str:
    """How the root's moves are put in order; results of single rollouts say too little for a bound."""
    judges = server is not None and server.spec.has_value
    return options.move_choice if judges else "visits"


def new_tuning(options: SearchOptions, server: InferenceServer | None, patterns: Patterns | None) -> Tuning:
    """The options as the kernels read them."""
    mixes = server is not None and options.rollout_weight > 0.0
    return Tuning(
        c_puct=options.c_puct or (C_PUCT_NETWORK if server else C_PUCT_ROLLOUTS),
        c_puct_growth=options.c_puct_growth,
        # Equal priors say nothing against a move: then none is valued below its parent.
        fpu_reduction=options.fpu_reduction if server or patterns else 0.0,
        score_weight=options.score_weight,
        rollout_weight=options.rollout_weight,
        virtual_visits=options.virtual_visits,
        virtual_loss=virtual_loss(options, server),
        expand_after=options.expand_after if mixes else 0,
        is_plain=server is not None and not mixes and options.score_weight == 0.0 and not options.transpositions,
    )
