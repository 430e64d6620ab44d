"""``python -m bench.strength.signature``: a hash of search trees, which shows whether a commit changes the search.

It hashes the visits of every node after searches of fixed positions by one thread with a fixed seed. The network's
outputs are integer arithmetic, so the hash is the same on every machine. A commit that only makes the search faster
keeps SIGNATURE; a commit that changes which nodes are visited updates it and says so.
"""

import hashlib
from collections.abc import Iterator

import click

from bench.speed.subjects import middle_games
from engine.config import SearchOptions
from engine.features.encoder import ZERO
from engine.go.position import Position, new_position
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from engine.search.tree import META_ROOT, NONE, Tree, edge_visits

SIGNATURE = "78b6d7b1b6f284b9"
"""Hash of this version's search trees"""
SIZES = (9, 13, 19)
VISITS = 400
MIDDLE_GAMES = 2
SEED = 20160127


def positions() -> Iterator[Position]:
    """Empty boards and middle games of several sizes."""
    for size in SIZES:
        yield new_position(size)
        yield from (game.position for game in middle_games(size)[:MIDDLE_GAMES])


def _visits_below(tree: Tree, node: int) -> list:
    """Moves and visits of a subtree as nested lists, in the order in which the moves were expanded."""
    if node == NONE:
        return []
    first = int(tree.first_edge[node])
    return [
        [int(tree.move[edge]), int(edge_visits(tree, edge)), _visits_below(tree, int(tree.child[edge]))]
        for edge in range(first, first + int(tree.n_edges[node]))
    ]


def signature() -> str:
    """Search all positions and hash the trees: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    with InferenceServer(HashNetwork(ZERO.name), threads=1) as server:
        for position in positions():
            search = Search(SearchOptions(threads=1, seed=SEED), server, ZERO)
            search.set_position(position)
            search.run(SearchLimits(visits=VISITS))
            tree = search.tree
            digest.update(repr(_visits_below(tree, int(tree.meta[META_ROOT]))).encode())
            server.forget()
    return digest.hexdigest()[:16]


@click.command()
def command() -> None:
    """Print the signature of the search, and a line on standard error if it is not SIGNATURE."""
    found = signature()
    click.echo(found)
    if found != SIGNATURE:
        click.echo(f"the search has changed: this version's signature is {SIGNATURE}", err=True)


if __name__ == "__main__":
    command()
