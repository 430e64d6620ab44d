"""Read the tree after a search: the numbers of the moves at the root, and the most visited lines below them.

    python docs/examples/read_tree.py [VISITS]

A search without a front end: a network, a server that evaluates batches for it, a search, a position. The tree is
arrays, one row an edge (a move that has been chosen), so it can be read as it is once no search runs.
"""

import sys
from contextlib import closing

from engine.config import SearchOptions
from engine.go.game import Game
from engine.go.geometry import to_vertex
from engine.play.factory import load_parts, new_server
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_ROOT, NONE, Tree
from engine.search.values import edge_mean
from weights import find_network

SIZE, WIDTH, DEPTH = 9, 3, 3


def print_below(tree: Tree, node: int, depth: int = 0) -> None:
    """The most visited edges of a node, and what is below them; values are those of the player who moves there."""
    first = tree.first_edge[node]
    edges = sorted(range(first, first + tree.n_edges[node]), key=lambda edge: -tree.N_v[edge])
    for edge in [edge for edge in edges if tree.N_v[edge]][:WIDTH]:
        name = "  " * depth + to_vertex(int(tree.move[edge]), SIZE)
        print(f"{name:12} {tree.N_v[edge]:6} {tree.P[edge]:9.3f} {edge_mean(tree, edge, 0.0):+8.3f}")
        if depth + 1 < DEPTH and tree.child[edge] != NONE:
            print_below(tree, int(tree.child[edge]), depth + 1)


def main(arguments: list[str]) -> None:
    """Search the empty board."""
    parts = load_parts(SearchOptions(threads=1, seed=1), find_network("default"), "cpu")
    with new_server(parts) as server, closing(Search(parts.options, server, parts.encoder)) as search:
        search.set_position(Game(SIZE).position)
        report = search.run(SearchLimits(visits=int(arguments[0]) if arguments else 300))
        print(f"{report.visits} visits, {report.tree_nodes} nodes, {report.evaluations} evaluations")
        print("move         visits     prior        Q")
        print_below(search.tree, int(search.tree.meta[META_ROOT]))


if __name__ == "__main__":
    main(sys.argv[1:])
