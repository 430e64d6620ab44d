"""Training batches from records: one kernel call replays the games and encodes the positions of a batch."""

import functools
from threading import local
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.features.encoder import Encoder, encode
from engine.features.symmetry import apply_symmetry, symmetry_table
from engine.go.geometry import BLACK, point_of
from engine.go.position import META_TO_MOVE, is_legal_move, new_position
from engine.records.final_owners import FinalOwners
from engine.records.games import Games
from engine.records.labels import Labels
from engine.records.replay import game_rules, komi_of, recorded, replay
from engine.records.search_rows import SearchRows, replies, targets
from engine.rollout.run import is_sensible
from engine.system.jit import kernel

REPLAY_MOVES = 1024
"""Number of moves for which replay boards have room at first; they are replaced by larger ones for longer games"""


class TrainingBatch(NamedTuple):
    """B positions on N x N boards: network input and targets, from the view of the side to move.

    Each position is under a symmetry of its own. An unknown target is zero, and so is its mask; policy and reply
    have no mask: they are all zero if unknown.
    """

    planes: np.ndarray
    """float32[B, C, N, N]: input planes"""
    globals: np.ndarray
    """float32[B, G]: input values that are not planes"""
    policy: np.ndarray
    """float32[B, N*N+1]: target probabilities of the moves; a row sums to 1, or is zero = unknown"""
    value: np.ndarray
    """float32[B]: target of the value, in [-1, 1]"""
    value_known: np.ndarray
    """float32[B]: weight of the position in the value loss; 0 = the value is unknown"""
    score: np.ndarray
    """float32[B]: target of the score lead, in points"""
    ownership: np.ndarray
    """float32[B, N, N]: target of the ownership, in [-1, 1]"""
    score_ownership_weight: np.ndarray
    """float32[B]: weight of the position in the losses of score and ownership; 0 = these targets are unknown"""
    reply: np.ndarray
    """float32[B, N*N+1]: target probabilities of the opponent's next move; zero = unknown"""


OF_BOARDS = frozenset({"planes", "ownership"})
"""Fields of :class:`TrainingBatch` whose last two axes are the board"""
OF_MOVES = frozenset({"policy", "reply"})
"""Fields of :class:`TrainingBatch` whose last axis is the policy index"""
TARGETS = frozenset(TrainingBatch._fields) - {"planes", "globals"}
"""Fields of :class:`TrainingBatch` that are not network input: targets and their weights"""


@kernel
def _encode_rows(
    fresh, position, scratch, record, rows, plies, rules, symmetries, planes, globals_, colors, legal, is_sensible_only
):
    """Replay each row's game to its ply under its rules and encode the position under its symmetry.

    Args:
        fresh: an empty position of the games' size; ``position`` and ``scratch`` are overwritten.
        planes, globals_, colors: outputs of :meth:`BatchBuilder.encode`.
        legal, is_sensible_only: as for :meth:`BatchBuilder.encode`; ``legal`` with no rows = not needed.
    Returns:
        int: -1, or the index b of the first position whose game cannot be replayed.
    """
    for b in range(len(rows)):
        if replay(position, fresh, record, rows[b], plies[b], rules[b]) >= 0:
            return b
        encode(position, symmetries[b], scratch, planes[b], globals_[b])
        colors[b] = position.meta[META_TO_MOVE]
        if len(legal) > 0:
            size = planes.shape[2]
            for i in range(size * size):
                point = point_of(i, size)
                is_marked = is_legal_move(position, point, colors[b])
                if is_marked and is_sensible_only:
                    is_marked = is_sensible(position.board, point, colors[b])
                legal[b, apply_symmetry(i, size, symmetries[b])] = is_marked
            legal[b, size * size] = not is_sensible_only
    return -1


@kernel
def _show_ownership(ownership, signs, symmetries, out):
    """Write ownership into ``out`` (float32[B, N, N]) for the side to move, under each position's symmetry.

    Args:
        ownership: [B, N*N or more]: for Black, in policy order.
        signs: float[B]: 1 = Black to move, -1 = White.
        symmetries: int64[B].
    """
    size = out.shape[1]
    for b in range(len(symmetries)):
        for i in range(size * size):
            at = apply_symmetry(i, size, symmetries[b])
            out[b, at // size, at % size] = signs[b] * ownership[b, i]


@functools.cache
def moves_under_symmetries(size: int) -> np.ndarray:
    """int64[8, N*N+1]: the policy index to which each symmetry takes each policy index, on a board of ``size``."""
    return symmetry_table(size).astype(np.int64)


def rules_of(flags: np.ndarray, komi: np.ndarray) -> np.ndarray:
    """int64[B, RULE_FIELDS]: rules, from fields without the komi (uint8[B, RULE_FIELDS - 1]) and komi (float[B])."""
    return np.column_stack([flags.astype(np.int64), np.rint(2 * komi).astype(np.int64)])


def label_rules(labels: Labels, rows: np.ndarray) -> np.ndarray:
    """int64[B, RULE_FIELDS]: rules and komi of the games of label rows ``rows`` (int64[B])."""
    return rules_of(labels.flags[labels.game[rows]], komi_of(labels.games, labels.game[rows]))


def under_symmetry(tensors: dict[str, Tensor], symmetry: int) -> dict[str, Tensor]:
    """A batch with all its positions under one further symmetry of the board.

    Args:
        tensors: the batch's tensors by field of :class:`TrainingBatch`.
        symmetry: 0 to 7, as in :mod:`engine.features.symmetry`; 0 = identity.
    """
    if not symmetry:
        return tensors
    size = tensors["planes"].shape[-1]

    def shown(points: Tensor) -> Tensor:
        points = points.mT if symmetry & 4 else points
        return points.flip([axis for axis, bit in ((-2, 1), (-1, 2)) if symmetry & bit])

    def shown_moves(moves: Tensor) -> Tensor:
        points = shown(moves[:, :-1].view(-1, size, size)).reshape(len(moves), -1)
        return torch.cat([points, moves[:, -1:]], dim=1)

    return (
        tensors
        | {name: shown(tensors[name]) for name in OF_BOARDS}
        | {name: shown_moves(tensors[name]) for name in OF_MOVES}
    )


class _Boards(local):
    """A thread's replay boards by board size: (an empty position, a position to overwrite, the encoder's scratch)."""

    def __init__(self) -> None:
        self.by_size: dict[int, tuple] = {}


class BatchBuilder:
    """Makes training batches from games, labels or self-play rows. Threads: any; each has its own replay boards."""

    def __init__(self, encoder: Encoder):
        self.encoder = encoder
        self._boards = _Boards()

    def encode(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, symmetries: np.ndarray,
        legal: np.ndarray | None = None, is_sensible_only: bool = False,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Network input of the positions after ``plies[i]`` moves of game ``rows[i]``, all of one board size.

        Args:
            rows, plies: int64[B].
            rules: int64[B, RULE_FIELDS]: rules and komi to replay and encode by.
            symmetries: int64[B]: symmetry of each position's input.
            legal: bool[B, N*N+1], overwritten: the legal moves under the symmetry, pass last; None = not needed.
            is_sensible_only: exclude suicide, filling a single-point eye of the mover's, and passing from ``legal``.
        Returns:
            planes float32[B, C, N, N], globals float32[B, G], and the colours to move, uint8[B].
        Raises:
            ValueError: a recorded move is on a stone, or the arguments differ in length.
        """
        # The kernel does not check bounds.
        if not len(rows) == len(plies) == len(rules) == len(symmetries):
            lengths = f"{len(plies)} plies, {len(rules)} rules and {len(symmetries)} symmetries"
            raise ValueError(f"{len(rows)} rows with {lengths}")
        size, longest = int(games.size[rows[0]]), int(plies.max(initial=0))
        boards = self._boards.by_size
        if size not in boards or len(boards[size][1].moves) <= longest:
            room = max(REPLAY_MOVES, 2 * longest)
            boards[size] = (new_position(size, room), new_position(size, room), self.encoder.new_scratch(size))
        fresh, position, scratch = boards[size]
        planes = np.empty((len(rows), self.encoder.planes, size, size), np.float32)
        globals_ = np.empty((len(rows), self.encoder.globals), np.float32)
        colors = np.empty(len(rows), np.uint8)
        unasked = np.empty((0, size * size + 1), bool)
        wrong = _encode_rows(
            fresh, position, scratch, recorded(games), rows, plies, rules, symmetries, planes, globals_,
            colors, unasked if legal is None else legal, is_sensible_only,
        )  # fmt: skip
        if wrong >= 0:
            raise ValueError(f"game {rows[wrong]} of its shard has a move on a stone before move {plies[wrong]}")
        return planes, globals_, colors

    def from_games(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, territory: np.ndarray, symmetries: np.ndarray,
        owners: FinalOwners | None = None, result_weight: float = 1.0, rules: np.ndarray | None = None,
    ) -> TrainingBatch:  # fmt: skip
        """Positions before the recorded move ``plies[i]`` of game ``rows[i]``, with move, result and ownership as
        targets.

        Args:
            rows, plies: int64[B], games of one board size.
            territory: bool[B]: scoring rule in the input and for the score: True = territory, False = area.
            symmetries: int64[B]: symmetry of each position.
            owners: ownership of the games' last boards; None = unknown.
            result_weight: ``value_known`` of positions from games with a known result.
            rules: int64[B, RULE_FIELDS]: rules and komi in the input, not of the targets; None = those of the games.
        """
        size, count = int(games.size[rows[0]]), len(rows)
        rules = game_rules(games, rows, territory) if rules is None else rules
        inputs, table = self.encode(games, rows, plies, rules, symmetries), moves_under_symmetries(size)
        policy, reply = np.zeros((2, count, size * size + 1), np.float32)
        at = games.offsets[rows] + plies
        policy[np.arange(count), table[symmetries, games.moves[at]]] = 1.0
        policy[games.are_reached(rows)] = 0.0
        answered = np.flatnonzero(at + 1 < games.offsets[rows + 1])
        reply[answered, table[symmetries[answered], games.moves[at[answered] + 1]]] = 1.0
        result = games.result[rows].astype(np.float32)
        value_known = np.where((result != 0) | (games.margin[rows] == 0), result_weight, 0.0)
        known, lead, owned = np.zeros(count, bool), np.zeros(count), None
        if owners is not None:
            known, owned = owners.row[rows] >= 0, owners.ownership_black[owners.row[rows]]
            # Area scoring may give another lead, and sometimes another winner.
            by_area = owned.sum(axis=1, dtype=np.float32) - komi_of(games, rows)
            lead = np.where(games.territory[rows] & ~territory, by_area, owners.lead_black[rows])
            result, lead = np.where(known, np.sign(lead), result), np.where(known, lead, 0.0)
        return _batch(inputs, symmetries, policy, reply, (result, value_known), (lead, owned, known))

    def from_labels(self, labels: Labels, rows: np.ndarray, symmetries: np.ndarray) -> TrainingBatch:
        """The positions of labels, with the labels (a teacher's outputs) as targets.

        Args:
            rows: int64[B]: indices of labels of one board size.
            symmetries: int64[B]: symmetry of each position.
        """
        games, size, count = labels.games, int(labels.games.size[labels.game[rows[0]]]), len(rows)
        inputs = self.encode(games, labels.game[rows], labels.ply[rows], label_rules(labels, rows), symmetries)
        policy, reply = np.zeros((2, count, size * size + 1), np.float32)
        weight = labels.policy[rows].astype(np.float64)
        row, k = np.nonzero(weight > 0)
        at = moves_under_symmetries(size)[symmetries[row], labels.policy_index[rows[row], k]]
        policy[row, at] = (weight / weight.sum(axis=1, keepdims=True))[row, k]
        owned = 0.1 * labels.ownership_black[labels.own_offsets[rows][:, None] + np.arange(size * size)]
        lead, value = labels.lead_black[rows], (labels.value_black[rows], np.ones(count))
        return _batch(inputs, symmetries, policy, reply, value, (np.nan_to_num(lead), owned, np.isfinite(lead)))

    def from_search_rows(self, rows: SearchRows, which: np.ndarray, symmetries: np.ndarray) -> TrainingBatch:
        """Positions of self-play, with the search's policy target and the game's result, score and ownership.

        The rows' weights are for drawing rows, and have no effect here.

        Args:
            which: int64[B]: indices of rows.
            symmetries: int64[B]: symmetry of each position.
        """
        games, size, game = rows.games, int(rows.games.size[0]), rows.game[which]
        rules = rules_of(rows.flags[game], games.komi[game])
        inputs = self.encode(games, game, rows.ply[which], rules, symmetries)
        policy, reply = np.zeros((2, len(which), size * size + 1), np.float32)
        shown = moves_under_symmetries(size)[symmetries]
        np.put_along_axis(policy, shown, targets(rows, which), axis=1)
        np.put_along_axis(reply, shown, replies(rows, which), axis=1)
        result, margin = games.result[game].astype(np.float32), games.margin[game]
        score = result * np.nan_to_num(margin), rows.owner[game], np.isfinite(margin)
        return _batch(inputs, symmetries, policy, reply, (result, np.ones(len(which))), score)


def _batch(
    inputs: tuple[np.ndarray, np.ndarray, np.ndarray], symmetries: np.ndarray, policy: np.ndarray, reply: np.ndarray,
    value: tuple[np.ndarray, np.ndarray], score_ownership: tuple[np.ndarray, np.ndarray | None, np.ndarray],
) -> TrainingBatch:  # fmt: skip
    """Make a batch from targets that are given for Black.

    Args:
        inputs: the result of :meth:`BatchBuilder.encode`.
        policy, reply: as in :class:`TrainingBatch`, under ``symmetries``.
        value: target for Black, float[B], and ``value_known``.
        score_ownership: score for Black, float[B]; ownership for Black, [B, N*N or more] in policy order (None = all
            unknown); and ``score_ownership_weight``.
    """
    (planes, globals_, colors), (score, owned, known) = inputs, score_ownership
    sign = np.where(colors == BLACK, 1.0, -1.0)
    ownership = np.zeros((len(planes), *planes.shape[2:]), np.float32)
    if owned is not None:
        _show_ownership(owned, sign, symmetries, ownership)
    value_of_mover, value_known, score_of_mover, weight = (
        array.astype(np.float32) for array in (sign * value[0], value[1], sign * score, known)
    )
    return TrainingBatch(
        planes, globals_, policy, value_of_mover, value_known, score_of_mover, ownership, weight, reply
    )
