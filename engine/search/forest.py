"""Many small trees in one block of memory, one leaf in flight in each, so that one kernel call can walk through all.

A forest is a :class:`Tree`, and its leaves are a :class:`Batch`, of which every array has one more axis in front: the
number of the tree. :func:`engine.system.arrays.row_of` gives a row of them as views to the kernels of this room, which
know no forest. Room is fixed, and no values are corrected.
"""

from engine.search.leaves import Batch
from engine.search.tree import Tree, new_tree
from engine.system.arrays import allocate

EDGES_PER_VISIT = 4
"""A playout adds one edge at most; a run of edges has room for up to twice as many, beside the one it came from."""


def new_forest(size: int, trees: int, visits: int) -> tuple[Tree, Batch]:
    """Trees and their leaves, all zeros but for the moves' points: :func:`engine.search.tree.clear` begins a tree.

    Args:
        size: of the board.
        visits: of a root, those of a kept subtree included. A playout adds one node at most, and what is dropped is
            taken apart before a row is refused.
    """
    moves = size * size + 1
    rooms = {"nodes": visits + 2, "edges": EDGES_PER_VISIT * visits + (2 << moves.bit_length())}
    forest = allocate(Tree, trees, **rooms, A=moves, L=moves, buckets=0)
    forest.point[:] = new_tree(size).point
    return forest, allocate(Batch, trees, K=1, A=moves, B=0)
