"""From records to batches: replay, encoding and targets, a kernel call for a whole batch."""

from typing import NamedTuple

import numpy as np

from engine.features.encoder import Encoder, encode
from engine.features.symmetry import apply_symmetry
from engine.go.geometry import BLACK, point_of
from engine.go.position import META_TO_MOVE, is_legal_move, new_position
from engine.go.rules import RULE_FIELDS, RULE_KOMI_X2
from engine.jit import kernel
from engine.records.final_owners import FinalOwners
from engine.records.games import Games
from engine.records.labels import Labels
from engine.records.replay import game_rules, komi_of, recorded, replay

REPLAY_MOVES = 1024
"""Longest game replayed at first; boards grow with longer ones."""


class Batch(NamedTuple):
    """B positions of N x N with targets, everything turned by one random symmetry each, for the side to move.

    A target nobody knows is zero and so is its weight; a position whose recorded move is unknown has a policy of
    zeros.
    """

    planes: np.ndarray
    """float32[B, C, N, N]"""
    globals: np.ndarray
    """float32[B, G]"""
    policy: np.ndarray
    """float32[B, N*N+1]: target probabilities; rows sum to 1"""
    value: np.ndarray
    """float32[B] in [-1, 1]"""
    value_weight: np.ndarray
    """float32[B]: what the value's loss counts for"""
    score: np.ndarray
    """float32[B]: points"""
    ownership: np.ndarray
    """float32[B, N, N] in [-1, 1]"""
    area_weight: np.ndarray
    """float32[B]: what score and ownership count for"""


@kernel
def _encode_rows(fresh, position, scratch, record, rows, plies, rules, turns, planes, globals_, colors, legal):
    """Replay each row's game to its ply under its rules and encode the position; ``colors`` says who is to move.

    ``legal`` has the turned positions' legal moves written to it, or has no rows.

    Returns -1, or the first row whose game cannot be replayed.
    """
    for b in range(len(rows)):
        if replay(position, fresh, record, rows[b], plies[b], rules[b]) >= 0:
            return b
        encode(position, turns[b], scratch, planes[b], globals_[b])
        colors[b] = position.meta[META_TO_MOVE]
        if len(legal) > 0:
            size = planes.shape[2]
            for i in range(size * size):
                legal[b, apply_symmetry(i, size, turns[b])] = is_legal_move(position, point_of(i, size), colors[b])
            legal[b, size * size] = True
    return -1


@kernel
def _label_targets(rows, turns, colors, index, weight, value, lead, ownership, own_offsets, size, out):
    """Fill a batch's targets from labels rows, turned and seen from the side to move."""
    policy, out_value, out_score, out_ownership = out
    for b in range(len(rows)):
        row = rows[b]
        sign = 1.0 if colors[b] == BLACK else -1.0
        total = 0.0
        for k in range(index.shape[1]):
            total += weight[row, k]
        for k in range(index.shape[1]):
            if weight[row, k] > 0:
                policy[b, apply_symmetry(index[row, k], size, turns[b])] = weight[row, k] / total
        out_value[b] = sign * value[row]
        out_score[b] = sign * lead[b]
        for i in range(size * size):
            at = apply_symmetry(i, size, turns[b])
            out_ownership[b, at // size, at % size] = sign * 0.1 * ownership[own_offsets[row] + i]


@kernel
def _turn_ownership(ownership, signs, turns, size, out):
    """Turn rows of ownership (int8[B, N*N or more], Black's) and show them for the side to move."""
    for b in range(len(turns)):
        for i in range(size * size):
            at = apply_symmetry(i, size, turns[b])
            out[b, at // size, at % size] = signs[b] * ownership[b, i]


def label_rules(labels: Labels, rows: np.ndarray) -> np.ndarray:
    """int64[B, RULE_FIELDS]: the rules and komi under which labels were made."""
    rules = np.zeros((len(rows), RULE_FIELDS), np.int64)
    rules[:, :RULE_KOMI_X2] = labels.flags[labels.game[rows]]
    rules[:, RULE_KOMI_X2] = np.rint(2 * komi_of(labels.games, labels.game[rows]))
    return rules


class BatchBuilder:
    """Encodes rows of records into batches; owns the replay boards. Not for two threads at once."""

    def __init__(self, encoder: Encoder):
        self.encoder = encoder
        self._boards: dict[int, tuple] = {}

    def encode(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, turns: np.ndarray,
        legal: np.ndarray | None = None,
    ):  # fmt: skip
        """Input of the positions after ``plies[i]`` moves of game ``rows[i]``, all of one board size.

        Args:
            rows, plies, turns: int64[B]; the symmetry each is shown under.
            rules: int64[B, RULE_FIELDS].
            legal: bool[B, N*N+1], overwritten: the legal moves of the positions as they are shown.
        Returns:
            planes float32[B, C, N, N], globals float32[B, G], colors uint8[B] to move.
        Raises:
            ValueError: a recorded move is on a stone.
        """
        size, longest = int(games.size[rows[0]]), int(plies.max(initial=0))
        if size not in self._boards or len(self._boards[size][1].moves) <= longest:
            room = max(REPLAY_MOVES, 2 * longest)
            self._boards[size] = (new_position(size, room), new_position(size, room), self.encoder.new_scratch(size))
        fresh, position, scratch = self._boards[size]
        planes = np.empty((len(rows), self.encoder.planes, size, size), np.float32)
        globals_ = np.empty((len(rows), self.encoder.globals), np.float32)
        colors = np.empty(len(rows), np.uint8)
        unasked = np.empty((0, size * size + 1), bool)
        wrong = _encode_rows(
            fresh, position, scratch, recorded(games), rows, plies, rules, turns, planes, globals_,
            colors, unasked if legal is None else legal,
        )  # fmt: skip
        if wrong >= 0:
            raise ValueError(f"game {rows[wrong]} of its shard has a move on a stone before move {plies[wrong]}")
        return planes, globals_, colors

    def from_games(
        self, games: Games, rows: np.ndarray, plies: np.ndarray, territory: np.ndarray, turns: np.ndarray,
        owners: FinalOwners | None = None, result_weight: float = 1.0,
    ) -> Batch:  # fmt: skip
        """Positions before the recorded move ``plies[i]`` of game ``rows[i]``: that move, the result, who owned what.

        Args:
            territory: bool[B]: shown as counted by territory.
            owners: last boards of these games where they could be scored; None = nothing is known of areas.
            result_weight: ``value_weight`` of a game whose result is known.
        """
        size, count = int(games.size[rows[0]]), len(rows)
        rules = game_rules(games, rows, territory)
        planes, globals_, colors = self.encode(games, rows, plies, rules, turns)
        sign = np.where(colors == BLACK, 1.0, -1.0).astype(np.float32)
        policy = np.zeros((count, size * size + 1), np.float32)
        played = games.moves[games.offsets[rows] + plies]
        for i, (move, symmetry) in enumerate(zip(played.tolist(), turns.tolist(), strict=True)):
            policy[i, apply_symmetry(move, size, symmetry)] = 1.0
        result = games.result[rows].astype(np.float32)
        decided = (result != 0) | (games.margin[rows] == 0)
        score, area_weight = np.zeros(count, np.float32), np.zeros(count, np.float32)
        ownership = np.zeros((count, size, size), np.float32)
        if owners is not None:
            known, owned = owners.row[rows] >= 0, owners.ownership_black[owners.row[rows]]
            # By area the same board may give another lead, and now and then another winner.
            by_area = owned.sum(axis=1, dtype=np.float32) - komi_of(games, rows)
            lead = np.where(games.territory[rows] & ~territory, by_area, owners.lead_black[rows])
            result = np.where(known, np.sign(lead), result)
            area_weight[known] = 1.0
            score[known] = (sign * lead)[known]
            _turn_ownership(owned, sign, turns, size, ownership)
        value, value_weight = sign * result, np.where(decided, np.float32(result_weight), np.float32(0))
        return Batch(planes, globals_, policy, value, value_weight, score, ownership, area_weight)

    def from_labels(self, labels: Labels, rows: np.ndarray, turns: np.ndarray) -> Batch:
        """The positions of labels rows, all of one size, with the teacher's opinion as the target."""
        games, size, count = labels.games, int(labels.games.size[labels.game[rows[0]]]), len(rows)
        rules = label_rules(labels, rows)
        planes, globals_, colors = self.encode(games, labels.game[rows], labels.ply[rows], rules, turns)
        policy = np.zeros((count, size * size + 1), np.float32)
        value, score = np.zeros(count, np.float32), np.zeros(count, np.float32)
        ownership = np.zeros((count, size, size), np.float32)
        lead = labels.lead_black[rows]
        _label_targets(
            rows, turns, colors, labels.policy_index, labels.policy, labels.value_black, np.nan_to_num(lead),
            labels.ownership_black, labels.own_offsets, size, (policy, value, score, ownership),
        )  # fmt: skip
        known = np.isfinite(lead).astype(np.float32)
        return Batch(planes, globals_, policy, value, np.ones(count, np.float32), score, ownership, known)
