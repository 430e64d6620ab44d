"""What a search takes beside its tree and the result cache: counted before any of it is allocated."""

from engine.config import SearchOptions
from engine.features.encoder import Encoder
from engine.go.geometry import MAX_SIZE
from engine.nets.network import Network
from engine.search.leaves import new_batch
from engine.search.worker import flights

FREE_MIB = 256
"""Allowed whatever ``SearchOptions.memory`` says"""
WORKER_BYTES, SCRATCH_BYTES = 1 << 20, 10240
"""A worker's own memory, and an encoder's for each point of the board, measured"""


def working_bytes(options: SearchOptions, network: Network | None, encoder: Encoder | None) -> int:
    """Memory of all workers on the largest board: their batches, and what the network reads and writes of those.

    Args:
        options: resolved.
        network: None = rollouts alone.
        encoder: the network's.
    """
    size = min(network.spec.max_size, MAX_SIZE) if network is not None else MAX_SIZE
    worker, leaf, at_once = WORKER_BYTES, sum(array.nbytes for array in new_batch(size, 1)), 1
    if network is not None and encoder is not None:
        # Planes and global values; a policy, an ownership, value and score.
        leaf += 4 * (encoder.planes * size**2 + encoder.globals + 2 * size**2 + 3)
        worker += SCRATCH_BYTES * size**2
        at_once = flights(options.threads, options.batch, options.evaluators, network.batches_requests)
    return options.threads * (worker + at_once * options.batch * leaf)


def check_memory(options: SearchOptions, network: Network | None, encoder: Encoder | None) -> None:
    """Refuse options that would take more memory than the tree and the result cache may, or than ``FREE_MIB``.

    Args:
        options, network, encoder: as of :func:`working_bytes`.
    Raises:
        ValueError: they would; one line.
    """
    needed, most = working_bytes(options, network, encoder) >> 20, max(FREE_MIB, options.memory)
    if needed > most:
        raise ValueError(
            f"threads {options.threads} and batch {options.batch} need {needed:,} MiB for their batches, expected at "
            f"most {most:,}: what memory allows the tree, and {FREE_MIB} in any case"
        )
