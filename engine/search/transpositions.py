"""Graph search: nodes that different orders of the same moves lead to are one.

A table from position keys to nodes, open addressing with linear probing. The key covers the stones, the side to move,
the ko, passes and the number of moves played, so a node's parents are all one move before it and there are no cycles,
and what the rules count beside the stones: prisoners, the button, handicap stones. It does not cover the rest of the
history: superko and what a network sees of earlier moves are those of the path that came first. Where superko bans a
move of the position to play, its tree is begun anew (:func:`bans_repetition`).

An edge keeps its own count of visits, and its own values, which reports tell; selection takes for its value the mean of
all that was ever backed up through the node behind it, by whatever path (UCT2 in Childs, Brodeur and Kocsis,
"Transpositions and move groups in Monte Carlo tree search", 2008).
"""

import numpy as np

from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_KO_COLOR,
    META_KO_POINT,
    META_SIZE,
    is_legal,
)
from engine.go.geometry import EMPTY, ZOBRIST, point_of
from engine.go.position import (
    META_BUTTON_TAKER,
    META_HANDICAP,
    META_N_ALONE,
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    repeats,
)
from engine.go.rules import BONUS_NONE, RULE_HANDICAP_BONUS, RULE_SCORING, RULE_SUICIDE, SCORING_TERRITORY
from engine.go.splitmix import mix
from engine.search.pools import NONE
from engine.system.jit import kernel


@kernel
def position_key(position):
    """uint64, never 0: positions with the same key share a node."""
    board, to_move = position.board, position.meta[META_TO_MOVE]
    ko = board.meta[META_KO_POINT] if board.meta[META_KO_COLOR] == to_move else 0
    word = np.uint64((position.meta[META_N_MOVES] << 24) ^ (ko << 4) ^ position.meta[META_PASSES])
    return mix(board.hash[0] ^ ZOBRIST[EMPTY, to_move] ^ mix(word ^ mix(_counted_beside_stones(position)))) | np.uint64(
        1
    )


@kernel
def _counted_beside_stones(position):
    """uint64: a number for what the score depends on under the rules in force, but for the stones on the board."""
    rules, meta, board = position.rules, position.meta, position.board
    word = meta[META_BUTTON_TAKER]
    if rules[RULE_SCORING] == SCORING_TERRITORY:
        word ^= (board.meta[META_CAPTURED_BLACK] - board.meta[META_CAPTURED_WHITE]) << 2
    if rules[RULE_HANDICAP_BONUS] != BONUS_NONE:
        word ^= (meta[META_HANDICAP] << 20) ^ (meta[META_N_ALONE] << 32)
    return np.uint64(word)


@kernel
def bans_repetition(position):
    """Whether superko bans a move that is legal but for it: another path to the position may have left it."""
    board, color, size = position.board, position.meta[META_TO_MOVE], position.board.meta[META_SIZE]
    for index in range(size * size):
        point = point_of(index, size)
        if is_legal(board, point, color, position.rules[RULE_SUICIDE] == 1) and repeats(position, point, color):
            return True
    return False


@kernel
def _home(tree, key):
    """The slot where a key's search begins; the table's length is a power of two."""
    return np.int64((key >> np.uint64(20)) & np.uint64(len(tree.hash_slots) - 1))


@kernel
def look_up(tree, key):
    """The node of a key, NONE if there is none."""
    at = _home(tree, key)
    while tree.hash_slots[at] != NONE:
        if tree.key[tree.hash_slots[at]] == key:
            return np.int64(tree.hash_slots[at])
        at = (at + 1) & (len(tree.hash_slots) - 1)
    return NONE


@kernel
def enter(tree, node, key):
    """Let a node be found by its key, which no other node has."""
    tree.key[node] = key
    at = _home(tree, key)
    while tree.hash_slots[at] != NONE:
        at = (at + 1) & (len(tree.hash_slots) - 1)
    tree.hash_slots[at] = node


@kernel
def forget(tree, node):
    """Take a node out of the table, if it is there; what was stored past it moves up, so that no gap hides it."""
    if tree.key[node] == 0:
        return
    last = len(tree.hash_slots) - 1
    gap = _home(tree, tree.key[node])
    while tree.hash_slots[gap] != node:
        gap = (gap + 1) & last
    tree.key[node] = 0
    at = (gap + 1) & last
    while tree.hash_slots[at] != NONE:
        home = _home(tree, tree.key[tree.hash_slots[at]])
        if ((at - home) & last) >= ((at - gap) & last):
            tree.hash_slots[gap] = tree.hash_slots[at]
            gap = at
        at = (at + 1) & last
    tree.hash_slots[gap] = NONE


@kernel
def fill_table(tree, nodes):
    """Enter the first ``nodes`` rows anew, as far as they have keys."""
    tree.hash_slots[:] = NONE
    for node in range(nodes):
        if tree.key[node] != 0:
            enter(tree, node, tree.key[node])
