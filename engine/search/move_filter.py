"""Which moves a search may choose, at the root and down to a given depth."""

from collections.abc import Collection

import numpy as np

from engine.search.pools import ROOT, Tree
from engine.search.tree import edge_visits


def marks(cells: int, allowed: Collection[int] | None, avoid: Collection[int], barred: np.ndarray | None) -> np.ndarray:
    """Which moves may be chosen at every depth that somebody minds; deeper all may.

    Args:
        cells: L, of the padded board.
        allowed, avoid, barred: as of :meth:`engine.search.search.Search.run`.
    Returns:
        uint8[D, L] by depth and point, D at least 1.
    """
    marked = np.ones((1, cells), np.uint8) if barred is None else 1 - barred.astype(np.uint8)
    if allowed is not None:
        others = np.ones(cells, bool)
        others[list(allowed)] = False
        marked[0, others] = 0
    marked[0, list(avoid)] = 0
    return marked


def has_barred_visits(tree: Tree, allowed: np.ndarray) -> bool:
    """Whether an earlier search visited root moves that may not be played now.

    Args:
        allowed: uint8[L] by point.
    """
    root = int(tree.meta[ROOT])
    first, count = int(tree.first_edge[root]), int(tree.n_edges[root])
    return any(edge_visits(tree, edge) > 0 and not allowed[tree.move[edge]] for edge in range(first, first + count))
