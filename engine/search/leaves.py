"""The batch of leaves that one worker has in flight, and their evaluation: finished games, cache, network, rollouts.

A batch has one row a leaf. :func:`engine.search.selection.select` fills the path, the kernels here the position at its
end, and :func:`engine.search.backup.complete` carries the result into the tree. Nothing here touches the tree, so no
lock is held; a worker replays each leaf's path on its own position.

The root is always playable, even after two passes; below it a game is over after two passes in a row. Under area
scoring the stones as they stand then decide, which is what makes a pass with the opponent's dead stones still on the
board safe or not. Under territory scoring dead stones would have to be agreed upon: :func:`score_finished_territory`
estimates them by rollouts.

A leaf's moves are its legal moves, superko included, and the pass. Left out are fills of an own single-point eye
with no chain beside it in atari: they win nothing that a pass would not keep.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from engine.features import encoder as encoders
from engine.go.board import META_SIZE, META_STRIDE, is_eye
from engine.go.geometry import BLACK, PASS, index_of
from engine.go.position import (
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    Position,
    copy_position,
    is_legal_move,
    play_move,
)
from engine.go.random import GOLDEN
from engine.go.rules import RULE_SCORING, SCORING_TERRITORY
from engine.go.scoring import dead_points, final_score_black, remove_dead, white_komi
from engine.go.seki import score_with_dame_filled
from engine.inference.cache import as_stored, insert, probe
from engine.rollout.last_good_replies import remember
from engine.rollout.ownership import rollout_ownership
from engine.rollout.patterns import all_states
from engine.rollout.policy import Tables, play_out_by_policy
from engine.rollout.run import area_lead_black, play_out
from engine.rollout.softmax import LAST_BEFORE, LAST_CAPTURED, LAST_MOVE, consider, weigh
from engine.search.priors import rank, rank_evenly
from engine.search.value_bias import bucket_key
from engine.system.arrays import allocate
from engine.system.jit import inlined_kernel, kernel

MAX_DEPTH = 512
"""Moves below the root that a path may hold; a node that deep is not searched further."""

NEW, KNOWN, FINISHED, UNSCORED, ROLLED, ROLLOUT_BACKED_UP = range(6)
"""What a leaf is: to be evaluated; valued in the tree already; game over, scored; game over, dead stones unknown;
to be rolled out and nothing else; to be evaluated, its rollout being backed up already."""


class Batch(NamedTuple):
    """K leaves; A = N*N + 1 policy entries, B = K where values are corrected, else 0."""

    node: Annotated[np.ndarray, "int32[K, MAX_DEPTH]"]
    """nodes of the path, the root first, the leaf not among them"""
    edge_index: Annotated[np.ndarray, "int16[K, MAX_DEPTH]"]
    """which of that node's edges was chosen"""
    move: Annotated[np.ndarray, "int16[K, MAX_DEPTH]"]
    """and the point it plays"""
    depth: Annotated[np.ndarray, "int32[K]"]
    """edges of the path"""
    leaf: Annotated[np.ndarray, "int32[K]"]
    """the node at its end"""
    kind: Annotated[np.ndarray, "uint8[K]"]
    """NEW, KNOWN, FINISHED, UNSCORED, ROLLED or ROLLOUT_BACKED_UP"""
    captured: Annotated[np.ndarray, "int16[K]"]
    """stones that the last move of the path captured"""
    request_row: Annotated[np.ndarray, "int32[K]"]
    """row of the evaluation request, -1 if none was needed"""
    bucket_key: Annotated[np.ndarray, "uint64[B]"]
    """where values are corrected, key of the positions that the network errs about alike
    (:mod:`engine.search.value_bias`); else empty"""
    cache_key: Annotated[np.ndarray, "uint64[K]"]
    """key of the result cache"""
    symmetry: Annotated[np.ndarray, "uint8[K]"]
    """the symmetry in which the network sees the position"""
    n_listed: Annotated[np.ndarray, "int32[K]"]
    """moves the leaf's node will have"""
    listed: Annotated[np.ndarray, "uint16[K, A]"]
    """these moves' policy indices"""
    prior_codes: Annotated[np.ndarray, "uint16[K, A]"]
    """their priors, by policy index (see :mod:`engine.search.priors`)"""
    logits: Annotated[np.ndarray, "float32[K, A]"]
    """the network's move logits, back in the position's own orientation, policy order"""
    value: Annotated[np.ndarray, "float32[K]"]
    """network value or exact result, -1 to 1 for the side to move at the leaf"""
    rollout: Annotated[np.ndarray, "float32[K]"]
    """rollout or exact result, likewise"""
    lead: Annotated[np.ndarray, "float32[K]"]
    """lead in points, likewise; 0 where nothing estimates it"""
    scratch: Annotated[np.ndarray, "float32[2, A]"]
    """working memory of the ranking"""


def new_batch(size: int, capacity: int, corrects: bool = False) -> Batch:
    """Room for ``capacity`` leaves on boards of one size.

    Args:
        corrects: in a tree that corrects values (:mod:`engine.search.value_bias`).
    """
    lengths = {"K": capacity, "A": size * size + 1, "B": capacity if corrects else 0}
    return allocate(Batch, **lengths)


FINISHED_ROLLOUTS, FINISHED_UNIFORM_ROLLOUTS = 16, 32
"""Rollouts by the learnt policy, or uniformly random ones, that decide which stones are dead at the end of a game under
territory scoring: two milliseconds on 19x19. Of 400 scored games between 9-dans the first find the winner of 95%, the
second that of 92%, where :mod:`engine.play.life_and_death` with many times as many finds that of 96%."""
FINISHED_CERTAINTY = 0.1
"""A chain is dead there if its mean owner is the opponent with this certainty."""
UNCONSIDERED = -9.0
"""Logit of the pass and of moves that the tree policy does not consider"""


@inlined_kernel
def replay(root, position, batch, i):
    """Make ``position`` the one at leaf i; returns the stones that the last move captured, 0 at the root."""
    copy_position(position, root)
    color, captured = root.meta[META_TO_MOVE], 0
    for d in range(batch.depth[i]):
        captured = play_move(position, batch.move[i, d], color)
        color = 3 - color
    return captured


@kernel
def _saves_chain(board, point, color):
    """Whether a chain of the colour beside the point is in atari."""
    stride = board.meta[META_STRIDE]
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == color and board.libs[board.head[neighbour]] == 1:
            return True
    return False


@kernel
def list_moves(position, listed):
    """Write the moves a search considers for the side to move, the pass last; returns their number.

    Args:
        listed: uint16[N*N + 1]: overwritten with their policy indices, in order.
    """
    board, color = position.board, position.meta[META_TO_MOVE]
    size = board.meta[META_SIZE]
    count, index = 0, 0
    for row in range(1, size + 1):
        for point in range(row * (size + 1) + 1, row * (size + 1) + 1 + size):
            if is_legal_move(position, point, color) and (
                not is_eye(board, point, color) or _saves_chain(board, point, color)
            ):
                listed[count] = index
                count += 1
            index += 1
    listed[count] = index
    return count + 1


@kernel
def _sign(lead):
    """Result of a lead: 1, 0 or -1."""
    if lead > 0.0:
        return 1.0
    return -1.0 if lead < 0.0 else 0.0


@inlined_kernel
def _open_leaf(root, position, batch, i):
    """Replay leaf i and list its moves; False where that is not needed. A finished game is scored instead."""
    batch.captured[i] = replay(root, position, batch, i)
    if len(batch.bucket_key) > 0:
        batch.bucket_key[i] = bucket_key(position)
    if batch.depth[i] > 0 and position.meta[META_PASSES] >= 2:
        if position.rules[RULE_SCORING] == SCORING_TERRITORY:
            batch.kind[i] = UNSCORED
        else:
            lead = final_score_black(position)
            finish_leaf(batch, i, lead if position.meta[META_TO_MOVE] == BLACK else -lead)
        return False
    if batch.kind[i] == ROLLED:
        return False
    batch.n_listed[i] = list_moves(position, batch.listed[i])
    return True


@kernel
def finish_leaf(batch, i, lead_stm):
    """Give leaf i the exact result of a finished game."""
    batch.kind[i] = FINISHED
    batch.value[i] = _sign(lead_stm)
    batch.rollout[i] = batch.value[i]
    batch.lead[i] = lead_stm


@kernel
def prepare(root, position, batch, count):
    """Open the new leaves of a batch that no network will see.

    Args:
        root: :class:`engine.go.position.Position` at the root, only read.
        position: the worker's own, with room for ``MAX_DEPTH`` more moves.
    """
    for i in range(count):
        if batch.kind[i] == NEW:
            _open_leaf(root, position, batch, i)


@kernel
def prepare_by_patterns(root, position, batch, count, moves, numbers, theta):
    """Open the new leaves of a batch and write the tree policy's logits for their moves.

    The pass, and moves that the policy does not consider (own eyes filled to save a chain), get little.

    Args:
        root, position: as for :func:`prepare`.
        moves: :class:`engine.rollout.softmax.Candidates`, the worker's own.
        numbers, theta: of the tree policy.
    """
    for i in range(count):
        if batch.kind[i] == NEW and _open_leaf(root, position, batch, i):
            _tree_policy_logits(position, batch, i, moves, numbers, theta)


@kernel
def _tree_policy_logits(position, batch, i, moves, numbers, theta):
    """Write the tree policy's logits for leaf i, whose position this is."""
    size, played = position.board.meta[META_SIZE], position.meta[META_N_MOVES]
    all_states(position.board, moves.cell)
    moves.last[LAST_MOVE] = position.moves[played - 1] if played > 0 else PASS
    moves.last[LAST_BEFORE] = position.moves[played - 2] if played > 1 else PASS
    moves.last[LAST_CAPTURED] = batch.captured[i]
    considered = consider(moves, position.board, numbers, position.meta[META_TO_MOVE])
    for index in range(size * size + 1):
        batch.logits[i, index] = UNCONSIDERED
    if considered > 0:
        weigh(moves, considered, theta)
        for j in range(considered):
            batch.logits[i, index_of(moves.point[j], size)] = max(UNCONSIDERED, math.log(moves.probability[j]))


@kernel
def tree_policy_priors(root, position, batch, count, moves, numbers, theta):
    """Rank the moves of the leaves that the network was asked about by the tree policy.

    These priors hold until the network answers (:mod:`engine.search.alphago_2016`), or for good if it has no policy.

    Args:
        root, position, moves, numbers, theta: as for :func:`prepare_by_patterns`.
    """
    for i in range(count):
        if batch.kind[i] == NEW and batch.request_row[i] >= 0:
            replay(root, position, batch, i)
            _tree_policy_logits(position, batch, i, moves, numbers, theta)
            _rank(batch, i, 1.0)


@kernel
def prepare_for_network(root, position, batch, count, cache, scratch, seed, random_symmetry, planes, globals_):
    """Open the new leaves of a batch, look them up in the cache and encode the misses.

    The symmetry a position is shown under is drawn from its key and the seed: as good as random, and the same
    whenever and by whomever the position is evaluated.

    Args:
        root, position: as for :func:`prepare`.
        scratch: the encoder's working memory, the worker's own.
        seed: uint64.
        random_symmetry: False = always the symmetry 0.
        planes, globals_: slots of the request, filled from the first on.
    Returns:
        int: slots filled.
    """
    size = root.board.meta[META_SIZE]
    filled = 0
    for i in range(count):
        batch.request_row[i] = -1
        if batch.kind[i] not in (NEW, ROLLED):
            continue
        batch.lead[i] = 0.0
        if not _open_leaf(root, position, batch, i):
            continue
        key = encoders.cache_key(position, scratch)
        batch.cache_key[i] = key
        found, value, score = probe(cache, key, size * size + 1, batch.logits[i])
        if found:
            batch.value[i] = value
            batch.lead[i] = score
            continue
        symmetry = ((key ^ seed) * GOLDEN) >> np.uint64(61) if random_symmetry else np.uint64(0)
        batch.symmetry[i] = symmetry
        encoders.encode(position, int(symmetry), scratch, planes[filled], globals_[filled])
        batch.request_row[i] = filled
        filled += 1
    return filled


@kernel
def begin_rollout(position):
    """What the lead of a rollout from a position starts from; see :func:`end_rollout`."""
    return -white_komi(position) if position.rules[RULE_SCORING] == SCORING_TERRITORY else 0.0


@kernel
def end_rollout(position, lead):
    """Black's lead in points after a rollout, now played out; ``lead`` is from :func:`begin_rollout`.

    Under territory scoring the area of the played-out board is counted, less what area gains over territory up to
    the start of the rollout; from there on both sides play alike.
    """
    territory = position.rules[RULE_SCORING] == SCORING_TERRITORY
    return lead + (area_lead_black(position.board) if territory else final_score_black(position))


@kernel
def _enter_rollout(position, batch, i, color, lead, gives_score):
    """Write the result of the rollout of leaf i, now played out, where ``color`` was to move."""
    lead = end_rollout(position, lead)
    if color != BLACK:
        lead = -lead
    batch.rollout[i] = _sign(lead)
    if gives_score or batch.kind[i] == ROLLED:
        batch.lead[i] = lead


@kernel
def roll_out_by_policy(
    root, position, batch, count, state, gives_score, weights, tables, replies, reply_probability, cell
):
    """Play every new leaf of a batch out by the rollout policy; see :func:`roll_out`.

    On the way to the leaf, the moves with the largest prior are remembered as last good replies.

    Args:
        weights, tables, replies, reply_probability: as for :func:`engine.rollout.policy.play_out_by_policy`.
        cell: uint8[L], overwritten.
    """
    for i in range(count):
        if batch.kind[i] not in (NEW, ROLLED):
            continue
        copy_position(position, root)
        board, captured = position.board, 0
        for d in range(batch.depth[i]):
            color, move, played = position.meta[META_TO_MOVE], np.int64(batch.move[i, d]), position.meta[META_N_MOVES]
            if reply_probability > 0.0 and batch.edge_index[i, d] == 0 and played > 0:
                all_states(board, cell)
                remember(replies, board, cell, np.int64(position.moves[played - 1]), color, move)
            captured = play_move(position, move, color)
        color, played = position.meta[META_TO_MOVE], position.meta[META_N_MOVES]
        last = np.int64(position.moves[played - 1]) if played > 0 else PASS
        lead = begin_rollout(position)
        limit = 3 * board.meta[META_SIZE] * board.meta[META_SIZE]
        play_out_by_policy(board, weights, tables, replies, reply_probability, color, last, captured, state, limit)
        _enter_rollout(position, batch, i, color, lead, gives_score)


@kernel
def roll_out(root, position, batch, count, state, gives_score):
    """Play every new leaf of a batch out once by uniformly random moves; writes ``rollout`` and perhaps ``lead``.

    Args:
        root, position: as for :func:`prepare`.
        state: uint64[4], the worker's random state.
        gives_score: write ``lead``; otherwise it is left to the network.
    """
    for i in range(count):
        if batch.kind[i] not in (NEW, ROLLED):
            continue
        replay(root, position, batch, i)
        board, color = position.board, position.meta[META_TO_MOVE]
        lead = begin_rollout(position)
        play_out(board, color, state, 3 * board.meta[META_SIZE] * board.meta[META_SIZE])
        _enter_rollout(position, batch, i, color, lead, gives_score)


@kernel
def take_results(batch, count, symmetries, policy, value, score, gives_policy, gives_score, cache):
    """Copy the network's outputs for the misses of a batch, symmetry undone, and store them in the cache.

    What the batch holds is what the cache would give, so that the same tree grows from either.

    Args:
        symmetries: int16[8, N*N + 1]: :func:`engine.features.symmetry.symmetry_table`.
        policy, value, score: output slots of the request.
        gives_policy: the network has a policy; otherwise ``batch.logits`` stay as they are.
        gives_score: the network has a score head; otherwise ``batch.lead`` stays as it is.
    """
    moves = symmetries.shape[1]
    for i in range(count):
        row = batch.request_row[i]
        if row < 0:
            continue
        if gives_policy:
            logits, output, indices = batch.logits[i], policy[row], symmetries[batch.symmetry[i]]
            for index in range(moves):
                logits[index] = output[indices[index]]
        as_stored(batch.logits[i, :moves])
        batch.value[i] = value[row]
        if gives_score:
            batch.lead[i] = score[row]
        insert(cache, batch.cache_key[i], moves, batch.logits[i], value[row], score[row])


@kernel
def rank_moves(batch, count, temperature):
    """Turn the logits of every new leaf into priors over its moves."""
    for i in range(count):
        if batch.kind[i] in (NEW, ROLLOUT_BACKED_UP):
            _rank(batch, i, temperature)


@kernel
def _rank(batch, i, temperature):
    """:func:`rank_moves` for leaf i."""
    n, surprise, likelihood = batch.n_listed[i], batch.scratch[0], batch.scratch[1]
    rank(batch.listed[i], n, batch.logits[i], temperature, surprise, likelihood, batch.prior_codes[i])


@kernel
def shuffle_moves(batch, count, state):
    """Give the moves of every new leaf equal priors: without a network none comes first."""
    for i in range(count):
        if batch.kind[i] == NEW:
            rank_evenly(batch.listed[i], batch.n_listed[i], state, batch.prior_codes[i])


def score_finished_territory(
    root: Position, position: Position, batch: Batch, count: int, tables: Tables | None, seed: int
) -> None:
    """Score the finished games of a batch whose dead stones are unknown, by the ownership that rollouts find.

    Rare (two passes in the tree under territory scoring) and slow, some milliseconds each; the result is kept in
    the tree, so each such node is scored once.

    Args:
        tables: of the rollout policy; None = uniformly random rollouts.
    """
    rollouts = FINISHED_ROLLOUTS if tables else FINISHED_UNIFORM_ROLLOUTS
    for i in np.flatnonzero(batch.kind[:count] == UNSCORED):
        replay(root, position, batch, i)
        ownership = rollout_ownership(position.board, tables, rollouts, seed)
        dead = dead_points(position.board, ownership, FINISHED_CERTAINTY)
        lead = score_with_dame_filled(remove_dead(position, dead))
        finish_leaf(batch, i, lead if position.meta[META_TO_MOVE] == BLACK else -lead)
