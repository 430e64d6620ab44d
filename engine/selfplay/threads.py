"""How many groups of games keep a server busy."""

from engine.inference.server import InferenceServer

GROUPS_ON_GPU = 3
"""One whose batch is computed, one whose batch waits, one whose kernels run"""


def groups_for(server: InferenceServer) -> int:
    """Groups of games that keep a server busy."""
    return GROUPS_ON_GPU if server.merges else server.evaluators + 1
