"""From game records to training batches: sampling, replay, encoding, targets.

A batch holds positions of one board size and is a pure function of (seed, step), so a resumed run sees the batches
the interrupted one would have seen. Replay and encoding are one kernel call a batch (about 60 us a position on
19x19), run ahead by a background thread.
"""

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.features.encoder import Encoder, encode, new_scratch
from engine.features.symmetry import turn
from engine.go.geometry import BLACK, point_of
from engine.go.position import TO_MOVE, copy_position, new_position, play_move
from engine.go.rules import (
    KO,
    KO_SIMPLE,
    KOMI_X2,
    RULE_FIELDS,
    SCORING,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX,
    TAX_NONE,
    TAX_SEKI,
)
from engine.jit import kernel
from engine.train.records import Games, Labels


class Batch(NamedTuple):
    """B positions of N x N with targets, everything turned by one random symmetry each, for the side to move."""

    planes: np.ndarray
    """float32[B, C, N, N]"""
    globals: np.ndarray
    """float32[B, G]"""
    policy: np.ndarray
    """float32[B, N*N+1]: target probabilities, rows sum to 1"""
    value: np.ndarray
    """float32[B] in [-1, 1]"""
    score: np.ndarray
    """float32[B]: points"""
    ownership: np.ndarray
    """float32[B, N, N] in [-1, 1]"""
    judged: bool
    """whether value, score and ownership are known (labels) or zero (games)"""


@kernel
def _encode_rows(
    encoder_id, fresh, position, scratch, games, plies, offsets, moves, rules, turns, planes, globals_, colors
):  # fmt: skip
    """Replay each row's game to its ply under its rules and encode the position; ``colors`` says who is to move."""
    size = planes.shape[2]
    for row in range(len(games)):
        copy_position(position, fresh)
        for i in range(RULE_FIELDS):
            position.rules[i] = rules[row, i]
        start = offsets[games[row]]
        for i in range(start, start + plies[row]):
            play_move(position, point_of(moves[i], size), position.meta[TO_MOVE])
        encode(encoder_id, position, turns[row], scratch, planes[row], globals_[row])
        colors[row] = position.meta[TO_MOVE]


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
                policy[b, turn(index[row, k], size, turns[b])] = weight[row, k] / total
        out_value[b] = sign * value[row]
        out_score[b] = sign * lead[row]
        for i in range(size * size):
            at = turn(i, size, turns[b])
            out_ownership[b, at // size, at % size] = sign * 0.1 * ownership[own_offsets[row] + i]


class BatchBuilder:
    """Encodes rows of records into batches; owns the replay boards. Not for two threads at once."""

    def __init__(self, encoder: Encoder):
        self.encoder = encoder
        self._boards: dict[int, tuple] = {}

    def _encode(self, size: int, games: Games, rows: np.ndarray, plies: np.ndarray, rules: np.ndarray, turns):
        if size not in self._boards:
            self._boards[size] = (new_position(size, 1024), new_position(size, 1024), new_scratch(size))
        fresh, position, scratch = self._boards[size]
        planes = np.empty((len(rows), self.encoder.planes, size, size), np.float32)
        globals_ = np.empty((len(rows), self.encoder.globals), np.float32)
        colors = np.empty(len(rows), np.uint8)
        _encode_rows(
            self.encoder.id, fresh, position, scratch, rows, plies, games.offsets, games.moves, rules, turns, planes,
            globals_, colors,
        )  # fmt: skip
        return planes, globals_, colors

    def from_games(self, games: Games, rows: np.ndarray, plies: np.ndarray, territory: np.ndarray, turns) -> Batch:
        """Positions before the recorded move ``plies[i]`` of game ``rows[i]``; the target is that move."""
        size = int(games.size[rows[0]])
        count = len(rows)
        rules = np.zeros((count, RULE_FIELDS), np.int64)
        rules[:, KOMI_X2] = np.rint(2 * np.nan_to_num(games.komi[rows], nan=7.5))
        rules[:, SCORING] = np.where(territory, SCORING_TERRITORY, SCORING_AREA)
        rules[:, TAX] = np.where(territory, TAX_SEKI, TAX_NONE)
        rules[:, KO] = KO_SIMPLE
        planes, globals_, _ = self._encode(size, games, rows, plies, rules, turns)
        played = games.moves[games.offsets[rows] + plies]
        policy = np.zeros((count, size * size + 1), np.float32)
        for i, (move, symmetry) in enumerate(zip(played.tolist(), turns.tolist(), strict=True)):
            policy[i, turn(move, size, symmetry)] = 1.0
        zero = np.zeros(count, np.float32)
        return Batch(planes, globals_, policy, zero, zero, np.zeros((count, size, size), np.float32), False)

    def from_labels(self, labels: Labels, rows: np.ndarray, turns: np.ndarray) -> Batch:
        """The positions of labels rows, all of one size, with the teacher's opinion as the target."""
        games, size = labels.games, int(labels.games.size[labels.game[rows[0]]])
        count = len(rows)
        rules = np.zeros((count, RULE_FIELDS), np.int64)
        rules[:, KOMI_X2] = np.rint(2 * games.komi[labels.game[rows]])
        planes, globals_, colors = self._encode(size, games, labels.game[rows], labels.ply[rows], rules, turns)
        policy = np.zeros((count, size * size + 1), np.float32)
        value, score = np.zeros(count, np.float32), np.zeros(count, np.float32)
        ownership = np.zeros((count, size, size), np.float32)
        _label_targets(
            rows, turns, colors, labels.policy_index, labels.policy, labels.value_black, labels.lead_black,
            labels.ownership_black, labels.own_offsets, size, (policy, value, score, ownership),
        )  # fmt: skip
        return Batch(planes, globals_, policy, value, score, ownership, True)


class Mixture:
    """Endless batches drawn from game shards and labels shards.

    Args:
        games: shards of games; may be empty.
        labels: shards of labels; may be empty.
        label_share: share of 19x19-equivalent work (points on the board) drawn from labels.
        batch: positions of a 19x19 batch; smaller boards get more, up to twice as many.
    """

    def __init__(
        self, encoder: Encoder, games: Sequence[Games], labels: Sequence[Labels], batch: int, label_share: float,
        seed: int,
    ):  # fmt: skip
        if not games and not labels:
            raise ValueError("no training data: neither games nor labels were given")
        self.games, self.labels, self.batch, self.seed = list(games), list(labels), batch, seed
        self.label_share = 0.0 if not labels else 1.0 if not games else label_share
        self._builder = BatchBuilder(encoder)
        sizes = [shard.games.size[shard.game] for shard in self.labels]
        self._sizes, counts = np.unique(np.concatenate(sizes), return_counts=True) if sizes else ((), ())
        self._size_odds = np.asarray(counts) / max(1, np.sum(counts))
        self._rows = [{int(s): np.flatnonzero(of == s) for s in self._sizes} for of in sizes]

    def batch_at(self, step: int) -> Batch:
        """The batch of one step: depends on nothing but the data, the seed and the step."""
        rng = np.random.default_rng([self.seed, step])
        if rng.random() < self.label_share:
            size = int(rng.choice(self._sizes, p=self._size_odds))
            held = [len(rows[size]) for rows in self._rows]
            shard = int(rng.choice(len(self.labels), p=np.array(held) / sum(held)))
            count = int(self.batch * min(2.0, 361 / size**2))
            rows = rng.choice(self._rows[shard][size], count)
            return self._builder.from_labels(self.labels[shard], rows, rng.integers(0, 8, count))
        shard = self.games[int(rng.integers(len(self.games)))]
        rows = rng.integers(0, len(shard.size), self.batch)
        lengths = shard.offsets[rows + 1] - shard.offsets[rows]
        plies = (rng.random(self.batch) * lengths).astype(np.int64)
        # Which way a game was counted hardly shows in its moves, so half are shown as area games: the network must
        # not learn to play like people under one scoring only.
        territory = shard.territory[rows] & (rng.random(self.batch) < 0.5)
        return self._builder.from_games(shard, rows, plies, territory, rng.integers(0, 8, self.batch))

    def stream(self, first_step: int, ahead: int = 4) -> Iterator[Batch]:
        """Batches from ``first_step`` on, prepared by a background thread that stops with the iterator."""
        ready: queue.Queue = queue.Queue(maxsize=ahead)
        stopped = threading.Event()

        def produce() -> None:
            step = first_step
            while not stopped.is_set():
                try:
                    item = self.batch_at(step)
                except Exception as error:
                    item = error
                while not stopped.is_set():
                    try:
                        ready.put(item, timeout=0.2)
                        break
                    except queue.Full:
                        continue
                if isinstance(item, Exception):
                    return
                step += 1

        thread = threading.Thread(target=produce, name="batches", daemon=True)
        thread.start()
        try:
            while True:
                item = ready.get()
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            stopped.set()
            thread.join()


def sample_games(games: Games, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A fixed sample of positions, spread over all games: (game, ply), both int64[count]."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.resize(rng.permutation(len(games.size)), count))
    lengths = games.offsets[rows + 1] - games.offsets[rows]
    return rows, (rng.random(count) * lengths).astype(np.int64)
