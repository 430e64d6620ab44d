"""Read the tree after a search: the numbers of the moves at the root, and the most visited lines below them.

    python docs/examples/read_tree.py [VISITS]

The tree is there twice: as arrays, one row a position, for numpy; and as nodes to walk.
"""

import sys

import keima

WIDTH, DEPTH = 3, 3


def print_below(node: keima.TreeNode) -> None:
    """The most visited moves of a node, and what is below them; win rates are those of the player who moves there."""
    for child in node.children[:WIDTH]:
        name = f"{'  ' * node.depth}{child.move}"
        print(f"{name:12} {child.visits:6} {child.prior:9.3f} {child.win_rate.pov(child.color):9.1%}")
        if child.depth < DEPTH:
            print_below(child)


def main(arguments: list[str]) -> None:
    """Search the empty board."""
    with keima.Engine(threads=1, seed=1) as engine:
        engine.analyse(keima.Board(9), keima.Limit(visits=int(arguments[0]) if arguments else 300))
        tree = engine.tree()
    print(f"{tree.root.visits} visits, {len(tree)} nodes, up to {tree.depth.max()} moves deep")
    print("move         visits     prior  win rate")
    print_below(tree.root)


if __name__ == "__main__":
    main(sys.argv[1:])
