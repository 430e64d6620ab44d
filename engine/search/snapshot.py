"""A copy of the whole tree: its visited nodes in rows, breadth first."""

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.go.geometry import BLACK, WHITE, index_of
from engine.search.selection import Tuning
from engine.search.tree import META_ROOT, META_ROOT_VISITS, META_USED_NODES, NONE, Tree, edge_visits
from engine.search.values import edge_mean, root_lead, root_value
from engine.system.arrays import allocate
from engine.system.jit import kernel


class Snapshot(NamedTuple):
    """R nodes that have a visit; row 0 is the root, and parents come before their children.

    The children of a node are consecutive rows, most visits first.
    """

    parent: Annotated[NDArray[np.int32], "int32[R]"]
    """row of the parent; NONE for the root"""
    first_child: Annotated[NDArray[np.int32], "int32[R]"]
    """first row of the children; undefined without children"""
    children: Annotated[NDArray[np.int16], "int16[R]"]
    """number of children"""
    move: Annotated[NDArray[np.int16], "int16[R]"]
    """policy index of the move that leads to the node; NONE for the root"""
    color: Annotated[NDArray[np.uint8], "uint8[R]"]
    """colour that played the move; for the root the colour that is not to move there"""
    depth: Annotated[NDArray[np.int16], "int16[R]"]
    """number of moves from the root"""
    visits: Annotated[NDArray[np.int32], "int32[R]"]
    """visits of the node"""
    prior: Annotated[NDArray[np.float32], "float32[R]"]
    """prior of the move; 1 for the root"""
    value_black: Annotated[NDArray[np.float32], "float32[R]"]
    """mean value over the node's visits, -1 to 1 for Black"""
    lead_black: Annotated[NDArray[np.float32], "float32[R]"]
    """mean lead over the node's visits in points, for Black"""
    node: Annotated[NDArray[np.int32], "int32[R]"]
    """row of the node in the tree; undefined once the tree's lock is released"""


def read_tree(tree: Tree, tuning: Tuning, to_move: int) -> Snapshot:
    """Copy the visited nodes below the root, and the root.

    Args:
        to_move: the root's side to move.
    Threads: the tree's lock is held.
    """
    nodes = allocate(Snapshot, R=int(tree.meta[META_USED_NODES]))
    count = _read_nodes(tree, tuning, to_move, nodes)
    parts = (column[:count] for column in nodes)
    return Snapshot(*parts)  # type: ignore[arg-type]  # columns of the same fields


@kernel
def _read_nodes(tree, tuning, to_move, nodes):
    """Fill the rows of ``nodes``; returns their number."""
    size, root = np.int64(math.sqrt(len(tree.point) - 1)), tree.meta[META_ROOT]
    sign = 1.0 if to_move == BLACK else -1.0
    nodes.parent[0], nodes.move[0], nodes.depth[0], nodes.color[0] = NONE, NONE, 0, BLACK + WHITE - to_move
    nodes.visits[0], nodes.prior[0], nodes.node[0] = tree.meta[META_ROOT_VISITS], 1.0, root
    nodes.value_black[0], nodes.lead_black[0] = sign * root_value(tree, tuning), sign * root_lead(tree)
    count, row = 1, 0
    while row < count:
        node = np.int64(nodes.node[row])
        first, color = count, BLACK + WHITE - nodes.color[row]
        sign = 1.0 if color == BLACK else -1.0
        for edge in range(tree.first_edge[node], tree.first_edge[node] + tree.n_edges[node]):
            visits = edge_visits(tree, edge)
            if visits == 0:
                continue
            # Insertion by visits: edges are in the order of their priors, which is nearly that of visits.
            place = count
            while place > first and nodes.visits[place - 1] < visits:
                _copy_row(nodes, place - 1, place)
                place -= 1
            nodes.move[place], nodes.visits[place] = index_of(tree.move[edge], size), visits
            nodes.prior[place], nodes.node[place] = tree.P[edge], tree.child[edge]
            nodes.value_black[place] = sign * edge_mean(tree, edge, tuning.rollout_weight)
            nodes.lead_black[place] = sign * tree.W_lead[edge] / visits
            count += 1
        nodes.first_child[row], nodes.children[row] = first, count - first
        nodes.parent[first:count], nodes.color[first:count] = row, color
        nodes.depth[first:count] = nodes.depth[row] + 1
        row += 1
    return count


@kernel
def _copy_row(nodes, source, target):
    """Copy what differs between siblings from one row to another."""
    nodes.move[target], nodes.visits[target] = nodes.move[source], nodes.visits[source]
    nodes.prior[target], nodes.node[target] = nodes.prior[source], nodes.node[source]
    nodes.value_black[target], nodes.lead_black[target] = nodes.value_black[source], nodes.lead_black[source]
