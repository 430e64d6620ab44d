"""``python -m bench.strength.signature``: one line that changes when, and only when, what the search does changes.

It hashes the visits of every node after searches of fixed positions by one thread with a fixed seed, evaluated by a
network whose outputs are integer arithmetic, so it is the same on every machine. A change that is meant to make the
search faster leaves it as it is; one that makes it choose otherwise says so and changes SIGNATURE with it.
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
"""What this version of the search gives"""
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
    """Moves and visits of a subtree as nested lists, in the order in which the moves were first chosen."""
    if node == NONE:
        return []
    first = int(tree.first_edge[node])
    return [
        [int(tree.move[edge]), int(edge_visits(tree, edge)), _visits_below(tree, int(tree.child[edge]))]
        for edge in range(first, first + int(tree.n_edges[node]))
    ]


def signature() -> str:
    """Search all positions and hash what grew: 16 hexadecimal digits."""
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
    """Print the signature of the search, and say so on standard error if it is not the one this version should have."""
    found = signature()
    click.echo(found)
    if found != SIGNATURE:
        click.echo(f"this version should have {SIGNATURE}: the search chooses otherwise", err=True)


if __name__ == "__main__":
    command()
