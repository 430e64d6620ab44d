"""Searches of a batch of games: the state of each game's search, and the kernels that advance it to its next leaf.

Each slot of a :mod:`engine.selfplay.table` has a row here: the tree of its game's search and one leaf in flight. In a
step every game advances until a leaf of its tree needs the network (:func:`advance_searches`), the network evaluates
these leaves, one of each game, and the results are backed up (:func:`back_up_results`). While a game advances, terminal
leaves are scored, cached leaves are backed up at once, searches end, their targets are recorded, moves are played and
the next searches begin, so a step evaluates one position of every game in play. Cached outputs equal those of the
network, so a game does not depend on the other games of its table.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import cell_count, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, new_position, play_move
from engine.go.random import draw, next_below, next_unit
from engine.records.games import MAX_MOVES, RESIGNED
from engine.rollout.run import is_sensible
from engine.search.backup import complete
from engine.search.leaves import MAX_DEPTH, Batch, prepare_for_network, take_results, write_leaf_priors
from engine.search.level_choice import LevelScratch, draw_by_level, new_level_scratch
from engine.search.root_targets import (
    best_candidate,
    cool,
    draw_candidates,
    forced_edge,
    improved_policy,
    improved_value,
    mix_dirichlet,
    next_candidate,
    read_losses,
    read_priors,
    temper,
    visit_target,
    write_priors,
)
from engine.search.selection import Tuning, select
from engine.search.tree import (
    EXPANDED,
    META_FIELDS,
    META_FULL,
    META_ROOT,
    META_ROOT_VISITS,
    NONE,
    TERMINAL,
    Tree,
    advance_root,
    clear,
    edge_visits,
    follow,
    new_tree,
)
from engine.search.values import node_value
from engine.selfplay.table import how_it_ended, is_ready, is_resigned, player_of, position_of
from engine.system.arrays import allocate, copy_items, row_of
from engine.system.jit import kernel

FULL, FAST, EARLY = range(3)
"""Kinds of searches: full, which gives a move and a training row; fast, which gives a move only; evaluation of the root
alone, with a move drawn from its policy"""
DECIDED = 0.9
"""A game is decided while the latest values (-1 to 1) of both sides all exceed this in favour of one side (KataGo)"""
LARGEST = 65535
"""Stored value of the largest probability in a policy target that consists of probabilities, not of visit counts"""
DEEPEST = 24
"""Maximum depth of a drawn position below the root; few are deeper in searches of some hundred visits"""
EDGES_PER_VISIT = 4
"""Edges allocated per visit: a playout adds at most one edge, but a node's run of edges takes new room of twice the
size when it is full"""


class DrawnPositions(NamedTuple):
    """Positions drawn so far from the search trees of S games, up to D per game."""

    n_positions: Annotated[np.ndarray, "int64[]"]
    ply: Annotated[np.ndarray, "int32[D]"]
    """number of the game's moves before the search"""
    depth: Annotated[np.ndarray, "int32[D]"]
    """number of moves from the search's root to the position"""
    path: Annotated[np.ndarray, "int16[D, DEEPEST]"]
    """the moves from the search's root to the position, as points"""


class Searches(NamedTuple):
    """The searches of S slots for games of one size; A = N*N + 1, CAP = maximum number of moves of a game."""

    forest: Tree
    """the trees, of fixed size; one row per slot (:func:`engine.system.arrays.row_of`), as in all arrays here"""
    leaves: Batch
    drawn: DrawnPositions
    early: Annotated[np.ndarray, "int64[]"]
    """number of the game's first moves that are drawn from the policy"""
    kind: Annotated[np.ndarray, "int64[]"]
    """FULL, FAST or EARLY: the current search; NONE = the next one has not begun"""
    is_prepared: Annotated[np.ndarray, "uint8[]"]
    """1 = :func:`_prepare_root` was called in this search"""
    row_policy: Annotated[np.ndarray, "uint16[CAP, A]"]
    """policy target of the position at each ply, not normalised: visits, or probabilities scaled to ``LARGEST``"""
    row_value: Annotated[np.ndarray, "float32[CAP]"]
    """value of the search of the position at each ply, for the side to move"""
    row_surprise: Annotated[np.ndarray, "float32[CAP]"]
    """Kullback-Leibler divergence of each ply's target from the network's prior, in nats; below 0 = the ply has no
    row"""
    priors: Annotated[np.ndarray, "float64[A]"]
    """the network's priors of the root's moves, before noise"""
    base: Annotated[np.ndarray, "float64[A]"]
    """Gumbel search: log prior / temperature plus Gumbel variable of each move; -inf = no move"""
    left: Annotated[np.ndarray, "uint8[A]"]
    """Gumbel search: 1 = the move is still a candidate of sequential halving"""
    goal: Annotated[np.ndarray, "int64[2]"]
    """Gumbel search: visits of each candidate at the end of the current round; number of candidates at first"""


class Work(NamedTuple):
    """A thread's working memory, overwritten by kernels."""

    position: Position
    filter: np.ndarray
    """uint8[1, L]: 1 = the root may choose the point"""
    policy: np.ndarray
    """float64[A]: weights of the moves, in policy order"""
    noise: np.ndarray
    """float64[A]: Dirichlet noise of the moves"""
    symmetries: np.ndarray
    """int16[8, A]: :func:`engine.features.symmetry.symmetry_table`, read only"""
    level: LevelScratch


def new_searches(size: int, slots: int, capacity: int, visits: int, draws: int = 0) -> Searches:
    """Allocate searches, none of which has begun.

    Args:
        capacity: maximum number of moves of a game.
        visits: maximum number of visits of a root, including a reused subtree's. A playout adds at most one node, and
            dropped nodes are freed when the tree is full.
        draws: number of positions drawn from the tree of each full search.
    """
    moves = size * size + 1
    lengths = {
        "A": moves, "L": moves, "M": META_FIELDS, "nodes": visits + 2, "buckets": 0,
        "edges": EDGES_PER_VISIT * visits + (2 << moves.bit_length()),
    }  # fmt: skip
    forest = allocate(Tree, slots, **lengths)
    forest.point[:] = new_tree(size).point
    leaves = allocate(Batch, slots, K=1, A=moves, D=MAX_DEPTH, B=0)
    drawn = allocate(DrawnPositions, slots, D=draws * capacity)
    return allocate(Searches, slots, forest=forest, leaves=leaves, drawn=drawn, A=moves, CAP=capacity)


def new_work(size: int, capacity: int) -> Work:
    """Allocate a thread's working memory for games of up to ``capacity`` moves."""
    moves = size * size + 1
    every_move = np.ones((1, cell_count(size)), np.uint8)
    position = new_position(size, capacity + MAX_DEPTH + 1)
    return Work(position, every_move, np.zeros(moves), np.zeros(moves), symmetry_table(size), new_level_scratch(size))


def new_tuning(c_puct: float, fpu_reduction: float, score_weight: float = 0.0) -> Tuning:
    """Constants of move selection with one leaf in flight, by network values and, with ``score_weight``, scores."""
    return Tuning(
        c_puct=c_puct, fpu_reduction=fpu_reduction, score_weight=score_weight, rollout_weight=0.0,
        virtual_visits=1, virtual_loss=0.0, expand_after=0, is_plain=score_weight == 0.0,
    )  # fmt: skip


@kernel
def clear_searches(searches, slots):
    """Reset the searches of some slots (int64[K]) for new games."""
    for k in range(len(slots)):
        slot = slots[k]
        searches.kind[slot], searches.drawn.n_positions[slot], searches.row_surprise[slot] = NONE, 0, -1.0
        clear(row_of(searches.forest, slot))


@kernel
def _begin_search(table, searches, config, slot):
    """Begin a game's next search: choose its kind, and clear the tree, with any reused subtree, for a Gumbel search."""
    share = config.full_share * config.decided_share if _is_decided(table, slot) else config.full_share
    kind = FULL if next_unit(table.states[slot]) < share else FAST
    is_early = table.boards.meta[slot, META_N_MOVES] < searches.early[slot]
    searches.kind[slot] = EARLY if is_early else kind
    searches.is_prepared[slot] = 0
    if searches.kind[slot] == FULL and config.candidates > 0:
        # Sequential halving needs all of its visits.
        clear(row_of(searches.forest, slot))


@kernel
def _is_decided(table, slot):
    """Whether both sides' last ``resign_count`` values all exceed ``DECIDED`` for the same side."""
    black, white = np.float32(1.0), np.float32(1.0)
    recent = table.recent[slot]
    for i in range(recent.shape[1]):
        # The minimum of both sides' values, from Black's and from White's perspective.
        black = min(black, recent[0, i], -recent[1, i])
        white = min(white, -recent[0, i], recent[1, i])
    return max(black, white) > DECIDED


@kernel
def advance_searches(table, searches, player, config, tuning, filled, work, cache, scratch, planes, globals_):
    """Advance every game in which a player is to move until the player's network must evaluate a leaf, it is the
    other player's turn, or the game is over.

    Args:
        player: 0 or 1.
        filled: number of rows of the request that are filled already.
        cache: :class:`engine.inference.cache.Cache`.
        scratch: the encoder's working memory.
        planes, globals_: inputs of the request, float32[R, C, N, N] and float32[R, G], written from row ``filled`` on.
    Returns:
        int: number of rows of the request that are filled now.
    """
    for slot in range(len(table.numbers)):
        if is_ready(table, slot) and player_of(table, slot) == player:
            rest = (planes[filled:], globals_[filled:])
            if _advance(table, searches, player, config, tuning, slot, work, cache, scratch, rest[0], rest[1]):
                table.request_row[slot] = filled
                filled += 1
    return filled


@kernel
def _advance(table, searches, player, config, tuning, slot, work, cache, scratch, planes, globals_):
    """Advance one game as in :func:`advance_searches`; returns whether a leaf, encoded in row 0, needs the network."""
    tree, leaf = row_of(searches.forest, slot), row_of(searches.leaves, slot)
    position = position_of(table.boards, slot)
    meta = tree.meta
    while table.endings[slot] == 0 and player_of(table, slot) == player:
        if searches.kind[slot] == NONE:
            _begin_search(table, searches, config, slot)
        is_open = tree.state[meta[META_ROOT]] == EXPANDED
        if is_open and searches.is_prepared[slot] == 0:
            _prepare_root(table, searches, config, tree, slot, work)
        kind = searches.kind[slot]
        wanted = 1 if kind == EARLY else config.visits if kind == FULL else config.fast_visits
        if is_open and (meta[META_ROOT_VISITS] >= wanted or meta[META_FULL] == 1):
            _end_search(table, searches, config, tuning, tree, slot, position, work)
            continue
        forced = _forced(searches, config, tuning, tree, slot, position.board.meta[META_SIZE]) if is_open else NONE
        if forced != NONE:
            work.filter[0, :] = 0
            work.filter[0, tree.move[forced]] = 1
        found = select(tree, leaf, 1, tuning, work.filter, forced != NONE)
        if forced != NONE:
            work.filter[0, :] = 1
        if found == 0:
            # The tree is full: the search ends with the visits it has.
            meta[META_FULL] = 1
            continue
        asked = prepare_for_network(
            position, work.position, leaf, 1, cache, scratch, np.uint64(config.seed), True, planes, globals_
        )
        if asked == 1:
            return True
        write_leaf_priors(leaf, 1, 1.0)
        complete(tree, leaf, 1, 0.0, True, False)
    return False


@kernel
def _prepare_root(table, searches, config, tree, slot, work):
    """Store the network's root priors, set those of excluded moves to 0, and add exploration in a full search: noise
    and temperature, or the candidates of Gumbel search."""
    searches.is_prepared[slot] = 1
    position, priors, is_full = position_of(table.boards, slot), searches.priors[slot], searches.kind[slot] == FULL
    read_priors(tree, position.board.meta[META_SIZE], priors)
    is_bound = position.meta[META_N_MOVES] < config.sensible_moves
    if is_bound:
        _leave_sensible(position, priors)
    if is_full and config.candidates > 0:
        width = min(config.candidates, config.visits - 1)
        drawn = draw_candidates(
            tree, priors, config.target_temperature, width, table.states[slot], searches.base[slot], searches.left[slot]
        )
        searches.goal[slot, 0], searches.goal[slot, 1] = 0, drawn
        cool(priors, config.target_temperature, _temperature(config, position), searches.base[slot])
        return
    explores = is_full and (config.noise > 0.0 or config.target_temperature != 1.0)
    if not explores and not is_bound:
        return
    copy_items(work.policy, priors, len(priors))
    if explores:
        temper(work.policy, config.target_temperature)
    if explores and config.noise > 0.0:
        mix_dirichlet(work.policy, config.noise, config.concentration, table.states[slot], work.noise)
    write_priors(tree, work.policy, searches.leaves.prior_codes[slot, 0])


@kernel
def _leave_sensible(position, priors):
    """Set the priors of suicide, filling own eyes and passing to 0; if no other move is left, the pass has prior 1.

    Args:
        priors: float64[A], normalised in place.
    """
    board, total = position.board, 0.0
    points = len(priors) - 1
    for index in range(points):
        point = point_of(index, board.meta[META_SIZE])
        if priors[index] > 0.0 and not is_sensible(board, point, position.meta[META_TO_MOVE]):
            priors[index] = 0.0
        total += priors[index]
    priors[points] = 0.0 if total > 0.0 else 1.0
    for index in range(points):
        priors[index] /= max(total, 1e-300)


@kernel
def _forced(searches, config, tuning, tree, slot, size):
    """The edge that the next playout must take at the root, by sequential halving or as a forced playout; NONE = PUCT
    chooses."""
    if searches.kind[slot] != FULL:
        return NONE
    if config.candidates > 0:
        return next_candidate(
            tree, size, tuning, searches.base[slot], searches.left[slot], searches.goal[slot, 1],
            config.visits - 1, searches.goal[slot], config.sigma_scale,
        )  # fmt: skip
    return forced_edge(tree, config.forced) if config.forced > 0.0 else NONE


@kernel
def _end_search(table, searches, config, tuning, tree, slot, position, work):
    """Record the result of a finished search, and play its move or resign."""
    kind, state, chosen = searches.kind[slot], table.states[slot], NONE
    searches.kind[slot] = NONE
    if kind == FULL and config.draws > 0:
        draw_positions(searches.drawn, slot, tree, position, config.draws, state)
    if kind != EARLY:
        chosen, value = _find_move(table, searches, config, tuning, tree, slot, kind == FULL, position, work)
        if is_resigned(table, config, slot, value):
            table.endings[slot] = RESIGNED
            return
    if chosen == NONE:
        chosen = draw(searches.priors[slot], state)
    point = point_of(chosen, position.board.meta[META_SIZE])
    play_move(position, point, position.meta[META_TO_MOVE])
    table.endings[slot] = how_it_ended(position, config.limit)
    if table.endings[slot] == 0:
        _keep_tree(config, tree, point)


@kernel
def _keep_tree(config, tree, point):
    """Make the node after a move the root; clear the tree if it is not to be kept, or full, or has no such node."""
    edge = follow(tree, tree.meta[META_ROOT], point)
    is_known = edge != NONE and tree.child[edge] != NONE
    if config.keep_tree and tree.meta[META_FULL] == 0 and is_known and tree.state[tree.child[edge]] == EXPANDED:
        advance_root(tree, edge)
    else:
        clear(tree)


@kernel
def _find_move(table, searches, config, tuning, tree, slot, is_full, position, work):
    """Policy index of the move to play (NONE if no move has visits) and the search's value for the side to move;
    records the training row of a full search."""
    size = position.board.meta[META_SIZE]
    halves = is_full and config.candidates > 0
    factor, value = config.forced if is_full and not halves else 0.0, node_value(tree, tree.meta[META_ROOT], 0.0)
    if config.level.visits > 0:
        read_losses(tree, size, work.level.losses)
        state = table.states[slot]
        return draw_by_level(position, searches.priors[slot], work.level.losses, config.level, work.level, state), value
    if visit_target(tree, size, tuning, factor, searches.priors[slot], work.policy) <= 0.0:
        return NONE, value
    if halves:
        improved_policy(
            tree, size, tuning, searches.priors[slot], config.target_temperature, config.sigma_scale, work.policy
        )
        value = improved_value(tree, size, work.policy)
    if is_full:
        _note_row(searches, slot, position.meta[META_N_MOVES], value, work.policy, halves)
    if halves:
        return best_candidate(tree, size, tuning, searches.base[slot], searches.left[slot], config.sigma_scale), value
    temperature, most = _temperature(config, position), 0.0
    for index in range(len(work.policy)):
        most = max(most, work.policy[index])
    for index in range(len(work.policy)):
        if work.policy[index] > 0.0:
            work.policy[index] = (work.policy[index] / most) ** (1.0 / temperature)
    return draw(work.policy, table.states[slot]), value


@kernel
def _temperature(config, position):
    """Temperature of the move choice, which fades from the first to the final one with the number of moves."""
    fading = 0.5 ** (position.meta[META_N_MOVES] / config.half_life)
    return config.final_temperature + (config.temperature - config.final_temperature) * fading


@kernel
def _note_row(searches, slot, ply, value, target, is_share):
    """Record the training row of a full search; ``target`` has visits, or probabilities if ``is_share``."""
    policy, most, total = searches.row_policy[slot, ply], 0.0, 0.0
    for index in range(len(target)):
        most = max(most, target[index])
    for index in range(len(target)):
        policy[index] = np.uint16(target[index] / most * LARGEST + 0.5) if is_share else np.uint16(target[index])
        total += policy[index]
    surprise = 0.0
    for index in range(len(target)):
        if policy[index] > 0:
            share = policy[index] / total
            surprise += share * math.log(share / max(searches.priors[slot, index], 1e-12))
    searches.row_value[slot, ply] = value
    searches.row_surprise[slot, ply] = max(surprise, 0.0)


@kernel
def back_up_results(table, searches, player, work, policy, value, score, has_score, cache):
    """Back up a network's results: one leaf of each game that waits for the player's network.

    Args:
        player: 0 or 1.
        policy, value, score: outputs for the R rows of the request: float32[R, A], float32[R] and float32[R].
        has_score: whether the network has a score head.
        cache: result cache, to which the results are added.
    """
    for slot in range(len(table.numbers)):
        row = table.request_row[slot]
        if row >= 0 and player_of(table, slot) == player:
            leaf = row_of(searches.leaves, slot)
            outputs = (policy[row:], value[row:], score[row:])
            take_results(leaf, 1, work.symmetries, outputs[0], outputs[1], outputs[2], True, has_score, cache)
            write_leaf_priors(leaf, 1, 1.0)
            complete(row_of(searches.forest, slot), leaf, 1, 0.0, True, False)
            table.request_row[slot] = -1


@kernel
def draw_positions(drawn, slot, tree, position, draws, state):
    """Draw positions from the tree of a finished search: the root, and others in proportion to visits.

    Draws that give the root again, the end of a game, a position deeper than ``DEEPEST`` or one after ``MAX_MOVES`` or
    more moves are dropped and not replaced.

    Args:
        position: that of the root.
        draws: maximum number of positions to draw; the first is the root.
        state: the game's random state.
    """
    for i in range(min(draws, drawn.path.shape[1] - drawn.n_positions[slot])):
        row = drawn.n_positions[slot]
        depth = _walk(tree, drawn.path[slot, row], state) if i > 0 else 0
        if depth != NONE and position.meta[META_N_MOVES] + depth < MAX_MOVES:
            drawn.ply[slot, row], drawn.depth[slot, row] = position.meta[META_N_MOVES], depth
            drawn.n_positions[slot] = row + 1


@kernel
def _walk(tree, path, state):
    """Draw one of the root's visits uniformly, and write the moves to the node that it evaluated into ``path``.

    Returns:
        int: depth of the node; NONE for the root, the end of a game and nodes deeper than ``path``.
    """
    node, depth = tree.meta[META_ROOT], 0
    while True:
        first, visits = tree.first_edge[node], 0
        for edge in range(first, first + tree.n_edges[node]):
            visits += edge_visits(tree, edge)
        # One of a node's visits is its own evaluation.
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
