"""Games by search side by side: the kernels that take every game of a table a leaf further.

A table (:mod:`engine.selfplay.search_table`) has S seats, each with a game or none, the tree of its search and one leaf
in flight. A step is: every game goes on until a leaf of its tree needs the network (:func:`advance_games`), the network
evaluates these leaves, one of each game, and the results are backed up (:func:`back_up_results`). On the way finished
leaves are scored, leaves that the result cache knows are backed up at once, searches end, their targets are noted,
moves are played and the next searches begin, so a step asks for one evaluation of every game in play.

All that is drawn comes from a random state of the game's own, and what the cache knows is what the network would say;
so a game is the same whichever others share its table. Threads: a table is one thread's at a time.
"""

import math

import numpy as np

from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, begin, play_move
from engine.go.random import next_unit
from engine.go.rules import RULE_FIELDS
from engine.go.scoring import area_owner, final_score_black
from engine.records.games import RESIGNED
from engine.rollout.run import is_sensible
from engine.search.backup import complete
from engine.search.halving import (
    best_candidate,
    cool,
    draw_candidates,
    improved_policy,
    improved_value,
    next_candidate,
)
from engine.search.leaves import prepare_for_network, rank_moves, take_results
from engine.search.root_targets import forced_edge, mix_dirichlet, read_priors, temper, visit_target, write_priors
from engine.search.selection import select
from engine.search.tree import EXPANDED, META_FULL, META_ROOT, META_ROOT_VISITS, NONE, advance_root, clear, follow
from engine.search.values import node_value
from engine.selfplay.boards import position_of
from engine.selfplay.drawn_positions import draw_positions
from engine.selfplay.search_table import DECIDED, EARLY, FAST, FULL, HANDED_OVER
from engine.selfplay.table import draw, fill_state, how_it_ended
from engine.system.arrays import copy_items, row_of
from engine.system.jit import kernel

LARGEST = 65535
"""What the largest probability of a target that is no visit count is stored as"""


@kernel
def begin_searched_games(table, conduct, fresh, seats, numbers, seed, rules, quits, early):
    """Begin one game on each of some seats, on the empty board.

    Args:
        fresh: :class:`Boards` of one empty position.
        seats, numbers: int64[K].
        rules: int64[K, RULE_FIELDS].
        quits, early: int64[K], as in :class:`SearchTable`.
    """
    for k in range(len(seats)):
        seat = seats[k]
        position = position_of(table.boards, seat)
        copy_items(table.boards.buffer[seat], fresh.buffer[0], fresh.buffer.shape[1])
        copy_items(position.rules, rules[k], RULE_FIELDS)
        begin(position, BLACK)
        table.numbers[seat] = numbers[k]
        fill_state(table.states[seat], seed, numbers[k])
        table.quits[seat], table.early[seat] = quits[k], early[k]
        table.resigner[seat], table.n_rows[seat], table.drawn.n_positions[seat] = 0, 0, 0
        table.recent[seat], table.n_searched[seat], table.lowest[seat] = 1.0, 0, 1.0
        clear(row_of(table.forest, seat))
        _begin_search(table, conduct, seat, position)


@kernel
def _begin_search(table, conduct, seat, position):
    """Say what kind of search comes next; its tree is there, as far as it is kept."""
    share = conduct.full_share * conduct.decided_share if _is_decided(table, conduct, seat) else conduct.full_share
    kind = FULL if next_unit(table.states[seat]) < share else FAST
    table.kind[seat] = EARLY if position.meta[META_N_MOVES] < table.early[seat] else kind
    table.is_prepared[seat] = 0
    if table.kind[seat] == FULL and conduct.candidates > 0:
        # Sequential halving needs all of its visits.
        clear(row_of(table.forest, seat))


@kernel
def _is_decided(table, conduct, seat):
    """Whether the latest values of both sides, the number that resignation looks at, say that the same one wins."""
    black, white = np.float32(1.0), np.float32(1.0)
    recent = table.recent[seat]
    for i in range(conduct.resign_count):
        # The least of each side's values, taken for Black and for White.
        black = min(black, recent[0, i], -recent[1, i])
        white = min(white, -recent[0, i], recent[1, i])
    return max(black, white) > DECIDED


@kernel
def _wanted(conduct, kind):
    """Visits of a root after which the search ends."""
    if kind == EARLY:
        return 1
    return conduct.visits if kind == FULL else conduct.fast_visits


@kernel
def advance_games(table, conduct, tuning, seats, filled, work, cache, scratch, planes, globals_, endings):
    """Take each of some games to the next leaf that the network must evaluate, or to its end.

    Args:
        seats: int64[B]; no leaf of theirs is in flight.
        filled: rows of the request filled before.
        cache: :class:`engine.inference.cache.Cache`.
        scratch: the encoder's working memory.
        planes, globals_: slots of the request, float32[R, C, N, N] and float32[R, G].
        endings: uint8[S], by seat, overwritten for these games: how each has ended, 0 = it waits, or HANDED_OVER.
    Returns:
        int: rows filled now.
    """
    for b in range(len(seats)):
        seat = seats[b]
        endings[seat] = _advance(table, conduct, tuning, seat, work, cache, scratch, planes[filled:], globals_[filled:])
        if endings[seat] == 0:
            table.request_row[seat] = filled
            filled += 1
    return filled


@kernel
def _advance(table, conduct, tuning, seat, work, cache, scratch, planes, globals_):
    """:func:`advance_games` for one game, into the first slot; returns how it has ended, 0 = it waits for a leaf."""
    tree, leaf = row_of(table.forest, seat), row_of(table.leaves, seat)
    position = position_of(table.boards, seat)
    meta = tree.meta
    while True:
        is_open = tree.state[meta[META_ROOT]] == EXPANDED
        if is_open and table.is_prepared[seat] == 0:
            _prepare_root(table, conduct, tree, seat, work)
        if is_open and (meta[META_ROOT_VISITS] >= _wanted(conduct, table.kind[seat]) or meta[META_FULL] == 1):
            ending = _end_search(table, conduct, tuning, tree, seat, position, work)
            if ending != 0:
                return ending
            if conduct.hands_over:
                return HANDED_OVER
            continue
        forced = _forced(table, conduct, tuning, tree, seat, position.board.meta[META_SIZE]) if is_open else NONE
        if forced != NONE:
            work.filter[0, :] = 0
            work.filter[0, tree.move[forced]] = 1
        found = select(tree, leaf, 1, tuning, work.filter, forced != NONE)
        if forced != NONE:
            work.filter[0, :] = 1
        if found == 0:
            # No room is left: the search ends with the visits it has.
            meta[META_FULL] = 1
            continue
        asked = prepare_for_network(
            position, work.position, leaf, 1, cache, scratch, np.uint64(conduct.seed), True, planes, globals_
        )
        if asked == 1:
            return 0
        rank_moves(leaf, 1, 1.0)
        complete(tree, leaf, 1, 0.0, True, False)


@kernel
def _prepare_root(table, conduct, tree, seat, work):
    """Note the network's priors at the root, leave sensible moves alone, and explore in a full search."""
    table.is_prepared[seat] = 1
    position, priors, is_full = position_of(table.boards, seat), table.priors[seat], table.kind[seat] == FULL
    read_priors(tree, position.board.meta[META_SIZE], priors)
    is_bound = position.meta[META_N_MOVES] < conduct.sensible_moves
    if is_bound:
        _leave_sensible(position, priors)
    if is_full and conduct.candidates > 0:
        width = min(conduct.candidates, conduct.visits - 1)
        drawn = draw_candidates(
            tree, priors, conduct.policy_temperature, width, table.states[seat], table.base[seat], table.left[seat]
        )
        table.goal[seat, 0], table.goal[seat, 1] = 0, drawn
        cool(priors, conduct.policy_temperature, _temperature(conduct, position), table.base[seat])
        return
    explores = is_full and (conduct.noise > 0.0 or conduct.policy_temperature != 1.0)
    if not explores and not is_bound:
        return
    copy_items(work.policy, priors, len(priors))
    if explores:
        temper(work.policy, conduct.policy_temperature)
    if explores and conduct.noise > 0.0:
        mix_dirichlet(work.policy, conduct.noise, conduct.concentration, table.states[seat], work.noise)
    write_priors(tree, work.policy, table.leaves.prior_codes[seat, 0])


@kernel
def _leave_sensible(position, priors):
    """Take the priors of suicide, of own eyes and of a pass away, normalised; a pass stays where nothing else would.

    Args:
        priors: float64[A], in place.
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
def _drop_filtered(target, priors):
    """Take from a target what a kept tree holds of moves that have no prior now; returns the sum of what is left."""
    total = 0.0
    for index in range(len(target)):
        if priors[index] <= 0.0:
            target[index] = 0.0
        total += target[index]
    return total


@kernel
def _forced(table, conduct, tuning, tree, seat, size):
    """The edge that the root must take, whatever PUCT prefers; NONE = as PUCT prefers."""
    if table.kind[seat] != FULL:
        return NONE
    if conduct.candidates > 0:
        return next_candidate(
            tree, size, tuning, table.base[seat], table.left[seat], table.goal[seat, 1],
            conduct.visits - 1, table.goal[seat], conduct.sigma_scale,
        )  # fmt: skip
    return forced_edge(tree, conduct.forced) if conduct.forced > 0.0 else NONE


@kernel
def _end_search(table, conduct, tuning, tree, seat, position, work):
    """Note what a search has found, play its move and begin the next one; returns how the game has ended, or 0."""
    kind, color, size = table.kind[seat], position.meta[META_TO_MOVE], position.board.meta[META_SIZE]
    chosen = NONE
    if kind == FULL and conduct.draws > 0:
        draw_positions(table.drawn, seat, tree, position, conduct.draws, table.states[seat])
    if kind != EARLY:
        chosen, value = _find_move(table, conduct, tuning, tree, seat, position, work)
        if _note_value(table, conduct, seat, color, value):
            if table.resigner[seat] == 0:
                table.resigner[seat] = color
            if table.quits[seat]:
                return RESIGNED
    if chosen == NONE:
        total = 0.0
        for index in range(len(work.policy)):
            work.policy[index] = table.priors[seat, index]
            total += work.policy[index]
        chosen = draw(work.policy, total, table.states[seat])
    point = point_of(chosen, size)
    play_move(position, point, color)
    ending = how_it_ended(position, conduct.limit)
    if ending == 0:
        _keep_tree(conduct, tree, point)
        _begin_search(table, conduct, seat, position)
    return ending


@kernel
def _keep_tree(conduct, tree, point):
    """Make the position after a move the root; begin anew where there is nothing to keep."""
    edge = follow(tree, tree.meta[META_ROOT], point)
    is_known = edge != NONE and tree.child[edge] != NONE
    if conduct.keeps_tree and tree.meta[META_FULL] == 0 and is_known and tree.state[tree.child[edge]] == EXPANDED:
        advance_root(tree, edge)
    else:
        clear(tree)


@kernel
def _find_move(table, conduct, tuning, tree, seat, position, work):
    """Policy index of the move to play, NONE without any visits, and the value; a full search's row is noted."""
    size, is_full = position.board.meta[META_SIZE], table.kind[seat] == FULL
    halves = is_full and conduct.candidates > 0
    factor, value = conduct.forced if is_full and not halves else 0.0, node_value(tree, tree.meta[META_ROOT], 0.0)
    visit_target(tree, size, tuning, factor, work.policy)
    if _drop_filtered(work.policy, table.priors[seat]) <= 0.0:
        return NONE, value
    if halves:
        improved_policy(
            tree, size, tuning, table.priors[seat], conduct.policy_temperature, conduct.sigma_scale, work.policy
        )
        value = improved_value(tree, size, work.policy)
    if is_full:
        _note_row(table, seat, position.meta[META_N_MOVES], value, work.policy, halves)
    if halves:
        return best_candidate(tree, size, tuning, table.base[seat], table.left[seat], conduct.sigma_scale), value
    temperature, most, total = _temperature(conduct, position), 0.0, 0.0
    for index in range(len(work.policy)):
        most = max(most, work.policy[index])
    for index in range(len(work.policy)):
        if work.policy[index] > 0.0:
            work.policy[index] = (work.policy[index] / most) ** (1.0 / temperature)
            total += work.policy[index]
    return draw(work.policy, total, table.states[seat]), value


@kernel
def _temperature(conduct, position):
    """What moves are drawn with now."""
    fading = 0.5 ** (position.meta[META_N_MOVES] / conduct.half_life)
    return conduct.final_temperature + (conduct.temperature - conduct.final_temperature) * fading


@kernel
def _note_row(table, seat, ply, value, target, is_share):
    """Keep the target of a full search: visits, or probabilities that are shares of 1."""
    row, most, total = table.n_rows[seat], 0.0, 0.0
    policy = table.row_policy[seat, row]
    for index in range(len(target)):
        most = max(most, target[index])
    for index in range(len(target)):
        policy[index] = np.uint16(target[index] / most * LARGEST + 0.5) if is_share else np.uint16(target[index])
        total += policy[index]
    surprise = 0.0
    for index in range(len(target)):
        if policy[index] > 0:
            share = policy[index] / total
            surprise += share * math.log(share / max(table.priors[seat, index], 1e-12))
    table.row_ply[seat, row] = ply
    table.row_value[seat, row] = value
    table.row_surprise[seat, row] = max(surprise, 0.0)
    table.n_rows[seat] = row + 1


@kernel
def _note_value(table, conduct, seat, color, value):
    """Note a search's value for the side to move; whether its values in a row give it reason to resign."""
    side = color - BLACK
    recent = table.recent[seat, side]
    recent[table.n_searched[seat, side] % conduct.resign_count] = value
    table.n_searched[seat, side] += 1
    highest = np.float32(-1.0)
    for i in range(conduct.resign_count):
        highest = max(highest, recent[i])
    table.lowest[seat, side] = min(table.lowest[seat, side], highest)
    return highest < conduct.resign_below


@kernel
def back_up_results(table, work, policy, value, score, has_score, cache):
    """Back the network's results up: one leaf of each game that waits for one.

    Args:
        policy, value, score: output slots of the request: float32[R, A], float32[R] and float32[R].
        has_score: the network has a score head.
        cache: gets the results.
    """
    for seat in range(len(table.numbers)):
        row = table.request_row[seat]
        if row >= 0:
            leaf = row_of(table.leaves, seat)
            outputs = (policy[row:], value[row:], score[row:])
            take_results(leaf, 1, work.symmetries, outputs[0], outputs[1], outputs[2], True, has_score, cache)
            rank_moves(leaf, 1, 1.0)
            complete(row_of(table.forest, seat), leaf, 1, 0.0, True, False)
            table.request_row[seat] = -1


@kernel
def count_searched_games(table, seats, endings, leads, owners):
    """Black's leads and who owns what in games that ended, the board counted as it stands.

    Args:
        leads: float64[K], overwritten; NaN = resigned, without owners.
        owners: int8[K, N*N], overwritten: 1 = Black's, -1 = White's, 0 = neither.
    """
    for k in range(len(seats)):
        position = position_of(table.boards, seats[k])
        leads[k] = np.nan
        owners[k] = 0
        if endings[seats[k]] != RESIGNED:
            leads[k] = final_score_black(position)
            area_owner(position.board, owners[k])
