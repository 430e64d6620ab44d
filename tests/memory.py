"""A bound on what code under test takes of the memory.

Of the system's account, not of ``tracemalloc``: that crashes the process when other threads allocate while it stops.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.process_memory import PeakMemory


@contextmanager
def at_most_mib(limit: float) -> Iterator[None]:
    """Assert that the process's peak rises by no more meanwhile."""
    peak = PeakMemory()
    yield
    assert peak.grown_mib() < limit
