"""Positions that a search has evaluated, drawn from its tree: what a network sees where it is searched with.

A search also evaluates positions after weak moves, and a network that learned from games alone evaluates them poorly
(docs/lab/2026-11-26-positions-that-searches-reach.md).
"""

from typing import NamedTuple

import numpy as np

from engine.go.geometry import PASS
from engine.go.position import META_N_MOVES
from engine.go.random import next_below
from engine.go.rules import RULE_KOMI_X2
from engine.records.games import MAX_MOVES, Games, offsets_of, policy_indices
from engine.search.tree import META_ROOT, NONE, TERMINAL, edge_visits
from engine.selfplay.boards import Boards
from engine.system.jit import kernel

DEEPEST = 24
"""Moves from the root to a position that is kept; few are deeper in searches of some hundred visits"""


class DrawnPositions(NamedTuple):
    """For S seats the positions drawn in the game so far, up to D each."""

    n_positions: np.ndarray
    """int64[S]"""
    ply: np.ndarray
    """int32[S, D]: moves of the game before the position's search"""
    depth: np.ndarray
    """int32[S, D]: moves that follow on them"""
    path: np.ndarray
    """int16[S, D, DEEPEST]: these, as points"""


def new_drawn_positions(seats: int, most: int) -> DrawnPositions:
    """Room for ``most`` positions a seat."""
    count, ply, depth = np.zeros(seats, np.int64), np.zeros((seats, most), np.int32), np.zeros((seats, most), np.int32)
    return DrawnPositions(count, ply, depth, np.zeros((seats, most, DEEPEST), np.int16))


def drawn_games(drawn: DrawnPositions, boards: Boards, size: int, numbers: np.ndarray, seats: np.ndarray) -> Games:
    """The positions drawn in the games on some seats, at least one of each, as games that lead there and then pass.

    Args:
        size: of the boards.
        numbers: int64[S]: the games on all seats.
    Returns:
        games with ``position`` and the ``number`` of the game that the position was drawn in; without results.
    """
    # A game in which nothing was drawn gives the position before its last move: bulk play counts what games gave.
    empty = seats[drawn.n_positions[seats] == 0]
    drawn.n_positions[empty], drawn.depth[empty, 0] = 1, 0
    drawn.ply[empty, 0] = np.maximum(0, boards.meta[empty, META_N_MOVES] - 1)
    counts = drawn.n_positions[seats]
    seat = np.repeat(seats, counts)
    row = np.arange(len(seat)) - np.repeat(np.cumsum(counts) - counts, counts)
    ply, depth = drawn.ply[seat, row], drawn.depth[seat, row]
    points = [
        part
        for at, of, before, after in zip(seat.tolist(), row.tolist(), ply.tolist(), depth.tolist(), strict=True)
        for part in (boards.moves[at, :before], drawn.path[at, of, :after], (PASS,))
    ]
    rules = boards.rules[seat]
    return Games(
        size=np.full(len(seat), size, np.int64),
        offsets=offsets_of(ply + depth + 1),
        moves=policy_indices(np.concatenate([np.zeros(0, np.int16), *points]), size).astype(np.uint16),
        komi=(rules[:, RULE_KOMI_X2] / 2).astype(np.float32),
        number=numbers[seat],
        position=(ply + depth).astype(np.int16),
    )


@kernel
def draw_positions(drawn, seat, tree, position, draws, state):
    """Keep the root of a search that has ended, and others of its tree, every visit as probable.

    Finished games, what is deeper than ``DEEPEST`` and what no record could hold are left out.

    Args:
        position: of the root.
        draws: positions to keep, at most; the first is the root.
        state: the game's random state.
    """
    for i in range(min(draws, drawn.path.shape[1] - drawn.n_positions[seat])):
        row = drawn.n_positions[seat]
        depth = _walk(tree, drawn.path[seat, row], state) if i > 0 else 0
        if depth != NONE and position.meta[META_N_MOVES] + depth < MAX_MOVES:
            drawn.ply[seat, row], drawn.depth[seat, row] = position.meta[META_N_MOVES], depth
            drawn.n_positions[seat] = row + 1


@kernel
def _walk(tree, path, state):
    """Go to where one visit of the root, any as probable, ended; returns the moves on the way there, or NONE."""
    node, depth = tree.meta[META_ROOT], 0
    while True:
        first, visits = tree.first_edge[node], 0
        for edge in range(first, first + tree.n_edges[node]):
            visits += edge_visits(tree, edge)
        # One visit of a node is its own evaluation.
        left = next_below(state, visits + 1)
        if left == visits:
            return NONE if depth == 0 or tree.state[node] == TERMINAL else depth
        if depth == len(path):
            return NONE
        edge = first
        while left >= edge_visits(tree, edge):
            left -= edge_visits(tree, edge)
            edge += 1
        path[depth] = tree.move[edge]
        node, depth = tree.child[edge], depth + 1
