"""A batch of leaves in flight, and their evaluation: finished games, cache, network, rollouts.

A batch has one row for each leaf. :func:`engine.search.selection.select` writes the path; the kernels here write what
they find about the position at its end (moves, priors, values); :func:`engine.search.backup.complete` backs the result
up. Nothing here touches the tree, so no lock is held; a worker replays each leaf's path on its own position.

The root is always playable, even after two passes; below it a game is over after two passes in a row. Under area
scoring the board is then scored with all stones alive, so the search sees whether a pass is safe while dead stones of
the opponent are still on the board. Under territory scoring the players would agree on dead stones:
:func:`score_finished_territory` estimates them by rollouts.

A leaf's moves are its legal moves, by superko too, and the pass, except moves that fill a single-point eye of the
player's own while no chain beside the eye is in atari: they win nothing that a pass would not keep.
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
from engine.search.priors import write_codes, write_equal_codes
from engine.search.value_bias import bucket_key
from engine.system.arrays import allocate
from engine.system.jit import inlined_kernel, kernel

MAX_DEPTH = 512
"""Maximum number of moves in a path; a node at this depth is not searched further."""

NEW, IN_TREE, FINISHED, UNSCORED, ROLLED, VALUED, PRIORS = range(7)
"""Kinds of leaves:

NEW: to be expanded, evaluated by the result cache, the network or a rollout;
IN_TREE: the tree has its value already, since the game is over there or its depth is MAX_DEPTH;
FINISHED: the game is over, scored by this row;
UNSCORED: the game is over under territory scoring, dead stones not estimated yet;
ROLLED: not to be expanded, for a rollout alone;
VALUED: not to be expanded yet, but to be evaluated;
PRIORS: to be expanded, its value backed up before as that of a VALUED row."""

ROLLED_OUT = (NEW, ROLLED, VALUED, PRIORS)
"""Kinds from which a rollout is played"""


class Batch(NamedTuple):
    """A batch of K leaves; A = N*N + 1 policy entries, B = K with value bias correction, else 0."""

    node: Annotated[np.ndarray, "int32[K, MAX_DEPTH]"]
    """nodes of the path, from the root to the leaf's parent"""
    edge_index: Annotated[np.ndarray, "int16[K, MAX_DEPTH]"]
    """for each node of the path, the index of the chosen edge among the node's edges"""
    move: Annotated[np.ndarray, "int16[K, MAX_DEPTH]"]
    """point played by each edge of the path, PASS = 0"""
    depth: Annotated[np.ndarray, "int32[K]"]
    """number of edges of the path"""
    leaf: Annotated[np.ndarray, "int32[K]"]
    """the node at the end of the path"""
    kind: Annotated[np.ndarray, "uint8[K]"]
    """NEW, IN_TREE, FINISHED, UNSCORED, ROLLED, VALUED or PRIORS"""
    is_backed_up: Annotated[np.ndarray, "uint8[K]"]
    """1 = the rollout is backed up already and the path unmarked (:mod:`engine.search.alphago_2016`)"""
    captured: Annotated[np.ndarray, "int16[K]"]
    """stones captured by the last move of the path"""
    request_slot: Annotated[np.ndarray, "int32[K]"]
    """the leaf's slot in the evaluation request; -1 if the network does not evaluate it"""
    bucket_key: Annotated[np.ndarray, "uint64[B]"]
    """:func:`engine.search.value_bias.bucket_key` of the leaf's position"""
    cache_key: Annotated[np.ndarray, "uint64[K]"]
    """key of the leaf's position in the result cache"""
    symmetry: Annotated[np.ndarray, "uint8[K]"]
    """symmetry under which the position is encoded, 0 to 7"""
    n_listed: Annotated[np.ndarray, "int32[K]"]
    """number of the leaf's moves"""
    listed: Annotated[np.ndarray, "uint16[K, A]"]
    """policy indices of the leaf's moves, ascending, the pass last; the first n_listed are in use"""
    prior_codes: Annotated[np.ndarray, "uint16[K, A]"]
    """codes of the priors by policy index (:mod:`engine.search.priors`)"""
    logits: Annotated[np.ndarray, "float32[K, A]"]
    """move logits of the network or the tree policy in policy order, symmetry undone"""
    value: Annotated[np.ndarray, "float32[K]"]
    """network value or exact result, -1 to 1 for the side to move at the leaf"""
    rollout: Annotated[np.ndarray, "float32[K]"]
    """rollout or exact result, -1 to 1 for the side to move at the leaf"""
    lead: Annotated[np.ndarray, "float32[K]"]
    """lead in points of the side to move at the leaf; 0 if unknown"""
    scratch: Annotated[np.ndarray, "float32[2, A]"]
    """working memory of :func:`engine.search.priors.write_codes`"""


def new_batch(size: int, capacity: int, corrects: bool = False) -> Batch:
    """Allocate a batch for ``capacity`` leaves on one board size.

    Args:
        corrects: whether the tree uses value bias correction (:mod:`engine.search.value_bias`).
    """
    lengths = {"K": capacity, "A": size * size + 1, "B": capacity if corrects else 0}
    return allocate(Batch, **lengths)


FINISHED_ROLLOUTS, FINISHED_UNIFORM_ROLLOUTS = 16, 32
"""Number of rollouts that estimate dead stones at the end of a game under territory scoring: by the rollout policy, or
uniformly random ones. They take two milliseconds on 19x19. In 400 scored games between 9-dans the rollout policy finds
95% of the winners, uniform rollouts 92%; :mod:`engine.play.life_and_death` with many more rollouts finds 96%."""
FINISHED_CERTAINTY = 0.1
"""Minimum mean ownership for the opponent at which a chain is dead at the end of a game under territory scoring"""
UNCONSIDERED = -9.0
"""Logit of the pass and of moves that the tree policy does not consider"""


@inlined_kernel
def replay(root, position, batch, i):
    """Set ``position`` to leaf i's by playing its path from ``root``; returns the stones captured by the last move."""
    copy_position(position, root)
    color, captured = root.meta[META_TO_MOVE], 0
    for d in range(batch.depth[i]):
        captured = play_move(position, batch.move[i, d], color)
        color = 3 - color
    return captured


@kernel
def _saves_chain(board, point, color):
    """Whether a chain of the colour ``color`` next to the point is in atari."""
    stride = board.meta[META_STRIDE]
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == color and board.libs[board.head[neighbour]] == 1:
            return True
    return False


@kernel
def list_moves(position, listed):
    """List the moves that the search considers in a position, the pass last; returns their number.

    Args:
        listed: uint16[N*N + 1], overwritten: policy indices of the moves, ascending.
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
    """The sign of a lead as a game result: 1, 0 or -1."""
    if lead > 0.0:
        return 1.0
    return -1.0 if lead < 0.0 else 0.0


@inlined_kernel
def _prepare_leaf(root, position, batch, i):
    """Replay leaf i, then list its moves or, if the game is over, score it (area) or mark it UNSCORED (territory).

    Returns:
        bool: whether the leaf needs an evaluation: the game is not over, and the leaf is not ROLLED.
    """
    batch.captured[i] = replay(root, position, batch, i)
    if len(batch.bucket_key) > 0:
        batch.bucket_key[i] = bucket_key(position)
    if batch.depth[i] > 0 and position.meta[META_PASSES] >= 2:
        if position.rules[RULE_SCORING] == SCORING_TERRITORY:
            batch.kind[i] = UNSCORED
        else:
            lead = final_score_black(position)
            set_exact_result(batch, i, lead if position.meta[META_TO_MOVE] == BLACK else -lead)
        return False
    if batch.kind[i] in (NEW, PRIORS):
        batch.n_listed[i] = list_moves(position, batch.listed[i])
    return batch.kind[i] != ROLLED


@kernel
def set_exact_result(batch, i, lead_stm):
    """Make leaf i FINISHED; its value, rollout result and lead follow from ``lead_stm``, the side to move's points."""
    batch.kind[i] = FINISHED
    batch.value[i] = _sign(lead_stm)
    batch.rollout[i] = batch.value[i]
    batch.lead[i] = lead_stm


@kernel
def prepare(root, position, batch, count):
    """Replay the NEW leaves of a batch and list their moves, in a search without network and patterns.

    Args:
        root: :class:`engine.go.position.Position` at the root, only read.
        position: the worker's own, with room for ``MAX_DEPTH`` more moves.
    """
    for i in range(count):
        if batch.kind[i] == NEW:
            _prepare_leaf(root, position, batch, i)


@kernel
def prepare_by_patterns(root, position, batch, count, moves, numbers, theta):
    """Replay the NEW leaves of a batch, list their moves and write the tree policy's logits for the moves.

    The pass, and moves that the policy does not consider (filling an eye of one's own to save a chain), get
    ``UNCONSIDERED``.

    Args:
        root, position: as for :func:`prepare`.
        moves: :class:`engine.rollout.softmax.Candidates`, the worker's own, overwritten.
        numbers, theta: the tree policy's tables and weights.
    """
    for i in range(count):
        if batch.kind[i] == NEW and _prepare_leaf(root, position, batch, i):
            _tree_policy_logits(position, batch, i, moves, numbers, theta)


@kernel
def _tree_policy_logits(position, batch, i, moves, numbers, theta):
    """Write the tree policy's logits for leaf i, to which ``position`` has been replayed."""
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
def tree_policy_priors(root, position, batch, count, moves, numbers, theta, temperature):
    """Write the tree policy's priors for the leaves of a batch that are expanded once the network has answered.

    The priors are placeholders (:mod:`engine.search.alphago_2016`), or final if the network has no policy. Leaves that
    the result cache has answered get its priors.

    Args:
        root, position, moves, numbers, theta: as for :func:`prepare_by_patterns`.
        temperature: softmax temperature of the network's policy.
    """
    for i in range(count):
        if batch.kind[i] not in (NEW, PRIORS):
            continue
        if batch.request_slot[i] < 0:
            _write_row_priors(batch, i, temperature)
            continue
        replay(root, position, batch, i)
        _tree_policy_logits(position, batch, i, moves, numbers, theta)
        _write_row_priors(batch, i, 1.0)


@kernel
def prepare_for_network(root, position, batch, count, cache, scratch, seed, random_symmetry, planes, globals_):
    """Replay all leaves of a batch but the IN_TREE ones; look up all but the ROLLED ones in the cache and
    encode the misses.

    A position's symmetry is a hash of its key and the seed, so it is the same in every worker and every search.

    Args:
        root, position: as for :func:`prepare`.
        scratch: the encoder's working memory, the worker's own; its type selects the encoder.
        seed: uint64, for the symmetries.
        random_symmetry: False = always symmetry 0.
        planes, globals_: arrays of a :class:`engine.inference.slots.Request`; slot 0, 1, ... gets the misses.
    Returns:
        int: number of slots filled.
    """
    size = root.board.meta[META_SIZE]
    filled = 0
    for i in range(count):
        batch.request_slot[i] = -1
        if batch.kind[i] == IN_TREE:
            continue
        batch.lead[i] = 0.0
        if not _prepare_leaf(root, position, batch, i):
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
        batch.request_slot[i] = filled
        filled += 1
    return filled


@kernel
def begin_rollout(position):
    """Black's points that :func:`end_rollout` adds to a rollout's lead, computed before the rollout begins."""
    return -white_komi(position) if position.rules[RULE_SCORING] == SCORING_TERRITORY else 0.0


@kernel
def end_rollout(position, lead):
    """Black's lead in points at the end of a rollout.

    Under territory scoring this is the area lead minus ``white_komi`` at the start of the rollout, which includes the
    difference between the two scorings up to there; from there on both sides play equally many stones.

    Args:
        position: at the end of the rollout.
        lead: result of :func:`begin_rollout`.
    """
    territory = position.rules[RULE_SCORING] == SCORING_TERRITORY
    return lead + (area_lead_black(position.board) if territory else final_score_black(position))


@kernel
def _enter_rollout(position, batch, i, color, lead, gives_score):
    """Write the result of leaf i's rollout, and its lead if ``gives_score`` or the leaf is ROLLED.

    Args:
        position: at the end of the rollout.
        color: to move at its start.
        lead: result of :func:`begin_rollout`.
    """
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
    """Play a rollout by the rollout policy from every leaf of the kinds ``ROLLED_OUT``; see :func:`roll_out`.

    With a reply probability above 0, moves of the path that have the largest prior of their node are stored as last
    good replies.

    Args:
        root, position, state, gives_score: as for :func:`roll_out`.
        weights, tables, replies, reply_probability: as for :func:`engine.rollout.policy.play_out_by_policy`.
        cell: uint8[L], working memory, overwritten.
    """
    for i in range(count):
        if batch.kind[i] not in ROLLED_OUT:
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
    """Play a uniformly random rollout from every leaf of the kinds ``ROLLED_OUT``.

    Writes ``batch.rollout``; also ``batch.lead`` of ROLLED leaves, and of all others if ``gives_score``.

    Args:
        root, position: as for :func:`prepare`.
        state: uint64[4], the worker's random state.
        gives_score: leads come from rollouts, since no network has a score head.
    """
    for i in range(count):
        if batch.kind[i] not in ROLLED_OUT:
            continue
        replay(root, position, batch, i)
        board, color = position.board, position.meta[META_TO_MOVE]
        lead = begin_rollout(position)
        play_out(board, color, state, 3 * board.meta[META_SIZE] * board.meta[META_SIZE])
        _enter_rollout(position, batch, i, color, lead, gives_score)


@kernel
def take_results(batch, count, symmetries, policy, value, score, gives_policy, gives_score, cache):
    """Copy the network's outputs from a request into the batch, symmetry undone, and store them in the cache.

    Logits are rounded as the cache rounds them, so that hits and misses grow the same tree.

    Args:
        symmetries: int16[8, N*N + 1]: :func:`engine.features.symmetry.symmetry_table`.
        policy, value, score: output arrays of the request, by slot.
        gives_policy: the network has a policy head; otherwise ``batch.logits`` are only rounded.
        gives_score: the network has a score head; otherwise ``batch.lead`` stays unchanged.
    """
    moves = symmetries.shape[1]
    for i in range(count):
        row = batch.request_slot[i]
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
def write_leaf_priors(batch, count, temperature):
    """Turn the logits of every NEW or PRIORS leaf into priors over its moves (:func:`write_codes`)."""
    for i in range(count):
        if batch.kind[i] in (NEW, PRIORS):
            _write_row_priors(batch, i, temperature)


@kernel
def _write_row_priors(batch, i, temperature):
    """Turn leaf i's logits into priors over its moves."""
    n, surprise, likelihood = batch.n_listed[i], batch.scratch[0], batch.scratch[1]
    write_codes(batch.listed[i], n, batch.logits[i], temperature, surprise, likelihood, batch.prior_codes[i])


@kernel
def write_equal_priors(batch, count, state):
    """Write equal priors for the moves of every NEW leaf, with jitter that decides their order.

    Args:
        state: uint64[4], random state.
    """
    for i in range(count):
        if batch.kind[i] == NEW:
            write_equal_codes(batch.listed[i], batch.n_listed[i], state, batch.prior_codes[i])


def score_finished_territory(
    root: Position, position: Position, batch: Batch, count: int, tables: Tables | None, seed: int
) -> None:
    """Score the UNSCORED leaves of a batch, with dead stones by the ownership of rollouts.

    Rare (two passes in the tree under territory scoring) and slow, some milliseconds each; each such node is scored
    once, since the tree stores the result.

    Args:
        root, position: as for :func:`prepare`.
        tables: the rollout policy's; None = uniformly random rollouts.
    """
    rollouts = FINISHED_ROLLOUTS if tables else FINISHED_UNIFORM_ROLLOUTS
    for i in np.flatnonzero(batch.kind[:count] == UNSCORED):
        replay(root, position, batch, i)
        ownership = rollout_ownership(position.board, tables, rollouts, seed)
        dead = dead_points(position.board, ownership, FINISHED_CERTAINTY)
        lead = score_with_dame_filled(remove_dead(position, dead))
        set_exact_result(batch, i, lead if position.meta[META_TO_MOVE] == BLACK else -lead)
