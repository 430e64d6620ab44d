"""What a leaf is worth and which moves it has: finished games, cache, network and rollouts, a batch at a time.

Nothing here touches the tree, so no lock is held; a worker replays each leaf's path on its own position. The root is
always playable, even after two passes; below it a game is over after two passes in a row. Under area scoring the
stones as they stand then decide, which is what makes a pass with the opponent's dead stones still on the board safe
or not. Under territory scoring dead stones would have to be agreed upon: :func:`settle_territory` takes the opinion
of rollouts.

A leaf's moves are its legal moves, superko included, and the pass. Left out are fills of an own single-point eye
with no chain beside it in atari: they win nothing that a pass would not keep.
"""

import math

import numpy as np

from engine.features import encoder as encoders
from engine.features.keima import white_komi
from engine.features.symmetry import turn
from engine.go.board import SIZE, STRIDE, is_eye, new_board
from engine.go.geometry import BLACK, PASS, index_of, point_of
from engine.go.position import N_MOVES, PASSES, TO_MOVE, Position, copy_position, is_legal_move, play_move
from engine.go.rules import SCORING, SCORING_TERRITORY
from engine.go.scoring import dead_points, final_score_black, score_with_dead
from engine.inference.cache import insert, probe
from engine.jit import kernel
from engine.rollout.patterns import all_states
from engine.rollout.policy import play_out_by_policy
from engine.rollout.random import next_below
from engine.rollout.replies import remember
from engine.rollout.run import area_lead_black, average_ownership, play_out
from engine.rollout.softmax import consider, weigh
from engine.search.batch import FINISHED, NEW, UNSETTLED, Batch
from engine.search.tree import candidate_point, pack_candidate

SETTLING_ROLLOUTS = 32
"""Rollouts that decide which stones are dead at the end of a game under territory scoring."""
UNCONSIDERED = -9.0
"""Logit of the pass and of moves that the tree policy does not consider"""


@kernel
def replay(root, position, batch, i):
    """Make ``position`` the one at leaf i; returns the stones that the last move captured, 0 at the root."""
    copy_position(position, root)
    color, captured = root.meta[TO_MOVE], 0
    for d in range(batch.depth[i]):
        captured = play_move(position, batch.move[i, d], color)
        color = 3 - color
    return captured


@kernel
def _saves_chain(board, point, color):
    """Whether a chain of the colour beside the point is in atari."""
    stride = board.meta[STRIDE]
    for neighbour in (point - stride, point - 1, point + 1, point + stride):
        if board.color[neighbour] == color and board.libs[board.head[neighbour]] == 1:
            return True
    return False


@kernel
def list_moves(position, points):
    """Write the points a search considers for the side to move, the pass last; returns their number.

    Args:
        points: uint32[N*N + 1].
    """
    board, color = position.board, position.meta[TO_MOVE]
    size = board.meta[SIZE]
    count = 0
    for index in range(size * size):
        point = point_of(index, size)
        if is_legal_move(position, point, color) and (
            not is_eye(board, point, color) or _saves_chain(board, point, color)
        ):
            points[count] = point
            count += 1
    points[count] = PASS
    return count + 1


@kernel
def _sign(lead):
    """Result of a lead: 1, 0 or -1."""
    if lead > 0.0:
        return 1.0
    return -1.0 if lead < 0.0 else 0.0


@kernel
def _open_leaf(root, position, batch, i):
    """Replay leaf i and list its moves; a finished game is settled instead and False returned."""
    batch.captured[i] = replay(root, position, batch, i)
    if batch.depth[i] > 0 and position.meta[PASSES] >= 2:
        if position.rules[SCORING] == SCORING_TERRITORY:
            batch.kind[i] = UNSETTLED
        else:
            lead = final_score_black(position)
            finish_leaf(batch, i, lead if position.meta[TO_MOVE] == BLACK else -lead)
        return False
    batch.n_candidates[i] = list_moves(position, batch.candidates[i])
    return True


@kernel
def finish_leaf(batch, i, lead_stm):
    """Give leaf i the exact result of a finished game."""
    batch.kind[i] = FINISHED
    batch.value[i] = _sign(lead_stm)
    batch.rollout[i] = batch.value[i]
    batch.score[i] = lead_stm


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
            _think_by_patterns(position, batch, i, moves, numbers, theta)


@kernel
def _think_by_patterns(position, batch, i, moves, numbers, theta):
    """Write the tree policy's logits for leaf i, whose position this is."""
    size, played = position.board.meta[SIZE], position.meta[N_MOVES]
    all_states(position.board, moves.cell)
    moves.last[0] = position.moves[played - 1] if played > 0 else PASS
    moves.last[1] = position.moves[played - 2] if played > 1 else PASS
    moves.last[2] = batch.captured[i]
    considered = consider(moves, position.board, numbers, position.meta[TO_MOVE])
    for index in range(size * size + 1):
        batch.logits[i, index] = UNCONSIDERED
    if considered > 0:
        weigh(moves, considered, theta)
        for j in range(considered):
            batch.logits[i, index_of(moves.point[j], size)] = max(UNCONSIDERED, math.log(moves.chance[j]))


@kernel
def placeholder_priors(root, position, batch, count, moves, numbers, theta):
    """Rank the moves of the leaves that the network was asked about by the tree policy.

    These priors hold until the network answers (:func:`engine.search.kernels.place`), or for good if it has no policy.

    Args:
        root, position, moves, numbers, theta: as for :func:`prepare_by_patterns`.
    """
    for i in range(count):
        if batch.kind[i] == NEW and batch.request_row[i] >= 0:
            replay(root, position, batch, i)
            _think_by_patterns(position, batch, i, moves, numbers, theta)
            _rank(batch, i, root.board.meta[SIZE], 1.0)


@kernel
def prepare_for_network(root, position, batch, count, cache, encoder_id, scratch, seed, planes, globals_):
    """Open the new leaves of a batch, look them up in the cache and encode the misses.

    The symmetry a position is shown under is drawn from its key and the seed: as good as random, and the same
    whenever and by whomever the position is evaluated.

    Args:
        root, position: as for :func:`prepare`.
        seed: uint64.
        planes, globals_: slots of the request, filled from the first on.
    Returns:
        int: slots filled.
    """
    size = root.board.meta[SIZE]
    filled = 0
    for i in range(count):
        batch.request_row[i] = -1
        batch.score[i] = 0.0 if batch.kind[i] == NEW else batch.score[i]
        if batch.kind[i] != NEW or not _open_leaf(root, position, batch, i):
            continue
        key = encoders.key(encoder_id, position) + np.uint64(size) * np.uint64(0xD1B54A32D192ED03)
        batch.key[i] = key
        found, value, score = probe(cache, key, size * size + 1, batch.logits[i])
        if found:
            batch.value[i] = value
            batch.score[i] = score
            continue
        symmetry = ((key ^ seed) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(61)
        batch.symmetry[i] = symmetry
        encoders.encode(encoder_id, position, np.int64(symmetry), scratch, planes[filled], globals_[filled])
        batch.request_row[i] = filled
        filled += 1
    return filled


@kernel
def begin_rollout(position):
    """What the lead of a rollout from a position starts from; see :func:`end_rollout`."""
    return -white_komi(position) if position.rules[SCORING] == SCORING_TERRITORY else 0.0


@kernel
def end_rollout(position, lead):
    """Black's lead in points after a rollout, now played out; ``lead`` is from :func:`begin_rollout`.

    Under territory scoring the area of the played-out board is counted, less what area gains over territory up to
    the start of the rollout; from there on both sides play alike.
    """
    territory = position.rules[SCORING] == SCORING_TERRITORY
    return lead + (area_lead_black(position.board) if territory else final_score_black(position))


@kernel
def _enter_rollout(position, batch, i, color, lead, gives_score):
    """Write the result of the rollout of leaf i, now played out, where ``color`` was to move."""
    lead = end_rollout(position, lead)
    if color != BLACK:
        lead = -lead
    batch.rollout[i] = _sign(lead)
    if gives_score:
        batch.score[i] = lead


@kernel
def roll_out_by_policy(
    root, position, batch, count, state, gives_score, mercy, weights, tables, replies, reply_chance, cell
):
    """Play every new leaf of a batch out by the rollout policy; see :func:`roll_out`.

    On the way to the leaf, moves that the tree's policy thinks the most probable are remembered as replies.

    Args:
        weights, tables, replies, reply_chance: as for :func:`engine.rollout.policy.play_out_by_policy`.
        cell: uint8[L], overwritten.
    """
    for i in range(count):
        if batch.kind[i] != NEW:
            continue
        copy_position(position, root)
        board, captured = position.board, 0
        for d in range(batch.depth[i]):
            color, move, played = position.meta[TO_MOVE], np.int64(batch.move[i, d]), position.meta[N_MOVES]
            if reply_chance > 0.0 and batch.slot[i, d] == 0 and played > 0:
                all_states(board, cell)
                remember(replies, board, cell, np.int64(position.moves[played - 1]), color, move)
            captured = play_move(position, move, color)
        color, played = position.meta[TO_MOVE], position.meta[N_MOVES]
        last = np.int64(position.moves[played - 1]) if played > 0 else PASS
        lead = begin_rollout(position)
        limit = 3 * board.meta[SIZE] * board.meta[SIZE]
        play_out_by_policy(board, weights, tables, replies, reply_chance, color, last, captured, state, limit, mercy)
        _enter_rollout(position, batch, i, color, lead, gives_score)


@kernel
def roll_out(root, position, batch, count, state, gives_score, mercy):
    """Play every new leaf of a batch out once by uniformly random moves; writes ``rollout`` and perhaps ``score``.

    Args:
        root, position: as for :func:`prepare`.
        state: uint64[4], the worker's random state.
        gives_score: write ``score``; otherwise it is left to the network.
        mercy: as for :func:`engine.rollout.run.play_out`.
    """
    for i in range(count):
        if batch.kind[i] != NEW:
            continue
        replay(root, position, batch, i)
        board, color = position.board, position.meta[TO_MOVE]
        lead = begin_rollout(position)
        play_out(board, color, state, 3 * board.meta[SIZE] * board.meta[SIZE], mercy)
        _enter_rollout(position, batch, i, color, lead, gives_score)


@kernel
def take_results(batch, count, size, policy, value, score, gives_policy, gives_score, cache):
    """Bring the network's answers for the misses of a batch home, un-turned, and store them in the cache.

    Args:
        policy, value, score: output slots of the request.
        gives_policy: the network has a policy; otherwise ``batch.logits`` stay as they are.
        gives_score: the network has a score head; otherwise ``batch.score`` stays as it is.
    """
    moves = size * size + 1
    for i in range(count):
        row = batch.request_row[i]
        if batch.kind[i] != NEW or row < 0:
            continue
        if gives_policy:
            for index in range(moves):
                batch.logits[i, index] = policy[row, turn(index, size, batch.symmetry[i])]
        batch.value[i] = value[row]
        if gives_score:
            batch.score[i] = score[row]
        insert(cache, batch.key[i], moves, batch.logits[i], value[row], score[row])


@kernel
def rank_moves(batch, count, size, temperature):
    """Turn the logits of every new leaf into priors over its moves (softmax), sorted best first."""
    for i in range(count):
        if batch.kind[i] == NEW:
            _rank(batch, i, size, temperature)


@kernel
def _rank(batch, i, size, temperature):
    """:func:`rank_moves` for leaf i; its candidates may hold earlier priors."""
    candidates, logits, n = batch.candidates[i], batch.logits[i], batch.n_candidates[i]
    top = -math.inf
    for j in range(n):
        top = max(top, logits[index_of(candidate_point(candidates[j]), size)])
    total = 0.0
    for j in range(n):
        total += math.exp((logits[index_of(candidate_point(candidates[j]), size)] - top) / temperature)
    shift = math.log(total)
    for j in range(n):
        point = candidate_point(candidates[j])
        candidates[j] = pack_candidate((top - logits[index_of(point, size)]) / temperature + shift, point)
    _sort(candidates, n)


@kernel
def shuffle_moves(batch, count, state):
    """Give the moves of every new leaf equal priors, in random order: without a network none comes first."""
    for i in range(count):
        if batch.kind[i] != NEW:
            continue
        points, n = batch.candidates[i], batch.n_candidates[i]
        for j in range(n - 1, 0, -1):
            other = next_below(state, j + 1)
            points[j], points[other] = points[other], points[j]
        surprise = math.log(n)
        for j in range(n):
            points[j] = pack_candidate(surprise, np.int64(points[j]))


def settle_territory(root: Position, position: Position, batch: Batch, count: int, state: np.ndarray) -> None:
    """Settle the finished games of a batch whose dead stones nobody has declared, by the ownership rollouts find.

    Rare (two passes in the tree under territory scoring) and slow, some milliseconds each; the result is kept in
    the tree, so each such node is settled once.
    """
    size = int(root.board.meta[SIZE])
    ownership = np.zeros(size * size, np.float32)
    scratch = new_board(size)
    for i in np.flatnonzero(batch.kind[:count] == UNSETTLED):
        replay(root, position, batch, i)
        to_move = int(position.meta[TO_MOVE])
        average_ownership(position.board, scratch, to_move, SETTLING_ROLLOUTS, state, ownership)
        lead = score_with_dead(position, dead_points(position.board, ownership))
        finish_leaf(batch, i, lead if to_move == BLACK else -lead)


@kernel
def _sort(values, n):
    """Sort the first n values (uint32), ascending: Shell's method with Ciura's gaps, enough for 626."""
    for gap in (301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
