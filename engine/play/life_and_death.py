"""Estimates of a game's end: ownership, dead stones, and points still worth a move.

Ownership combines four sources. Rollouts by the learnt policy read fights and need no network; the network recognises
shapes of life and death. Their log-odds are added, so that the more certain one dominates. Two rules override rollouts
and network: Benson's theorem proves chains alive; and a group whose single eye cannot become two, which rollouts and
network misread, is dead (:mod:`engine.go.one_eye`). A point is *open* if its ownership is doubtful (a dame, an
unsettled group, a seki) or differs from the count with dead stones removed (an open border), or if its chain is in
atari, a dead one only beside an enemy chain in atari. A position without open points is *settled*.
``bench/strength/endings`` measures the accuracy.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.features.symmetry import canonical_board, symmetry_table
from engine.go.board import META_SIZE, META_STRIDE, Board
from engine.go.geometry import BLACK, EMPTY, WHITE, on_board_points, other
from engine.go.life import pass_alive
from engine.go.one_eye import lost_points
from engine.go.position import Position
from engine.go.rules import RULE_SUICIDE
from engine.go.scoring import area_owner, dead_points, final_score_black, remove_dead
from engine.go.seki import score_with_dame_filled, seki_points, seki_stones
from engine.rollout.ownership import rollout_ownership
from engine.rollout.policy import Tables

ROLLOUTS = 256
NETWORK_WEIGHT = 0.5
"""Weight of the log-odds of the network's ownership; those of rollouts have weight 1. Source:
docs/lab/2026-11-23-whole-groups.md"""
MOST_CERTAIN = 0.96
"""Ownership is clamped to plus or minus this before log-odds are taken: each source errs in at least 1 of 50."""
UNIFORM_NETWORK_SHARE = 0.5
"""Weight of the network's ownership in its mean with that by uniformly random rollouts, which are less accurate than
the rollout policy's"""
SURE = 0.5
"""A point is open if its ownership, from the view of the colour to which the area count gives it, is below this."""
WALLED = 0.9
"""A neutral point with at least this ownership belongs to territory that is not yet closed; otherwise it is a dame."""
DEAD = 0.1
"""A chain is dead if its mean ownership, from the opponent's view, is more than this."""
UNIFORM_DEAD = 0.35
"""``DEAD`` for uniformly random rollouts, which break sekis by playing into them"""
SEKI_DEAD = 0.5
"""``DEAD`` for a chain that is in seki on the current board: rollouts break many sekis that no player would break"""
SEED = 20260801
STATUSES = ("alive", "dead", "seki")


class EndEstimate(NamedTuple):
    """An estimate of a position's ownership, dead stones and score if play ended now."""

    ownership_black: np.ndarray
    """float32[N*N] in policy order: 1 = Black's, -1 = White's"""
    dead: list[int]
    """points of the dead stones of both colours"""
    n_open: int
    """number of open points: owner doubtful, territory not closed, or in atari"""
    n_dame: int
    """number of open points that are dame: empty, reached by both colours, owned by neither with certainty"""
    lead_black: float
    """Black's lead in points by the rules in force, dead stones removed"""
    strict_lead_black: float
    """Black's lead in points by the rules in force, all stones alive"""

    @property
    def is_settled(self) -> bool:
        return self.n_open == 0

    def lead(self, color: int) -> float:
        """A colour's lead in points, dead stones removed."""
        return self.lead_black if color == BLACK else -self.lead_black

    def strict_lead(self, color: int) -> float:
        """A colour's lead in points, all stones alive."""
        return self.strict_lead_black if color == BLACK else -self.strict_lead_black

    def surely_won(self, color: int) -> bool:
        """Whether the colour wins even if every open point goes to the opponent."""
        return self.lead(color) > 2 * self.n_open

    def value_of_ending(self, color: int) -> float:
        """Value for a colour if the game ended now, -1 to 1: a lead counts for less the more points are open."""
        if self.lead(color) < 0:
            return -1.0
        return min(1.0, self.lead(color) / max(1, 2 * self.n_open))


def estimate_end(
    position: Position,
    network_ownership: np.ndarray | None = None,
    tables: Tables | None = None,
    deadline_s: float = math.inf,
    rollouts: np.ndarray | None = None,
) -> EndEstimate:
    """Estimate ownership, dead stones and score if play ended now; takes some sixty milliseconds on 19x19.

    Args:
        position: only read.
        network_ownership: float32[N*N], 1 = Black's; None without an ownership head.
        tables: those of the rollout policy; None = uniformly random rollouts.
        deadline_s: ``time.perf_counter`` after which no more rollouts are played.
        rollouts: :func:`rolled_ownership` of the board, only read; None = it is computed here.
    """
    board = position.board
    certainty = DEAD if tables else UNIFORM_DEAD
    ownership = rolled_ownership(board, tables, deadline_s) if rollouts is None else rollouts.copy()
    if network_ownership is not None and tables:
        ownership = np.tanh(_half_log_odds(ownership) + NETWORK_WEIGHT * _half_log_odds(network_ownership))
    elif network_ownership is not None:
        ownership = (1 - UNIFORM_NETWORK_SHARE) * ownership + UNIFORM_NETWORK_SHARE * network_ownership
    _apply_proofs(board, ownership, position.rules[RULE_SUICIDE] == 1)
    return end_by_owners(position, ownership, certainty)


def end_by_owners(position: Position, ownership_black: np.ndarray, certainty: float = DEAD) -> EndEstimate:
    """Dead stones and score of a position with a given ownership.

    The result does not depend on the orientation of the position.

    Args:
        position: only read.
        ownership_black: float32[N*N] in policy order, 1 = Black's; only read.
        certainty: a chain is dead if its mean ownership, from the opponent's view, is more than this.
    """
    dead = _dead_points(position.board, ownership_black, certainty)
    cleared = remove_dead(position, dead)
    lost = lost_points(cleared.board)
    if lost.any():
        ownership_black = np.where(lost != 0, lost, ownership_black)
        dead = _dead_points(position.board, ownership_black, certainty)
        cleared = remove_dead(position, dead)
    counted, size = np.zeros(len(ownership_black), np.int8), int(position.board.meta[META_SIZE])
    area_owner(cleared.board, counted)
    in_atari = _in_atari(cleared.board) | _in_atari(position.board, _mutual_atari(position.board, dead))
    empty = cleared.board.color[on_board_points(size)] == EMPTY
    return EndEstimate(
        ownership_black=ownership_black,
        dead=dead,
        n_open=int(np.count_nonzero((ownership_black * counted < SURE) | in_atari)),
        n_dame=int(np.count_nonzero(empty & (counted == 0) & (np.abs(ownership_black) < WALLED) & ~in_atari)),
        lead_black=score_with_dame_filled(cleared),
        strict_lead_black=float(final_score_black(position)),
    )


def rolled_ownership(board: Board, tables: Tables | None, deadline_s: float = math.inf) -> np.ndarray:
    """Ownership by rollouts, float32[N*N], 1 = Black's; it takes nearly all the time of an estimate.

    The result does not depend on the board's orientation: rollouts are played in the canonical orientation. On a
    symmetric board the result is the mean over the board's symmetries.
    """
    canonical, symmetries = canonical_board(board)
    ownership = rollout_ownership(canonical, tables, ROLLOUTS, SEED, deadline_s)
    views = ownership[symmetry_table(int(board.meta[META_SIZE]))[symmetries, :-1]]
    mean: np.ndarray = views.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def _half_log_odds(ownership: np.ndarray) -> np.ndarray:
    """Half the log-odds of an ownership from -1 to 1: float32[N*N]; the inverse is the hyperbolic tangent."""
    log_odds: np.ndarray = np.arctanh(np.clip(ownership, -MOST_CERTAIN, MOST_CERTAIN))
    return log_odds


def _dead_points(board: Board, ownership_black: np.ndarray, certainty: float) -> list[int]:
    """Points of dead chains, whose mean ownership, from the opponent's view, is more than ``certainty``.

    For stable chains in seki the limit is ``SEKI_DEAD``.
    """
    dead = dead_points(board, ownership_black, certainty)
    if not dead:
        return dead
    points = on_board_points(int(board.meta[META_SIZE]))
    in_seki = points[(seki_points(board) != 0) & (board.color[points] != EMPTY)].tolist()
    stable = _stable(board, set(in_seki) - set(dead_points(board, ownership_black, SEKI_DEAD)))
    return [point for point in dead if point not in stable]


def _stable(board: Board, points: set[int]) -> set[int]:
    """Those of ``points`` whose chains are not in atari and touch no chain in atari: neither side gains by moving."""
    stride = int(board.meta[META_STRIDE])
    in_atari = (board.head > 0) & (board.libs[board.head] == 1)
    steps = (0, -stride, -1, 1, stride)
    unstable = {int(board.head[point]) for point in points if any(in_atari[point + step] for step in steps)}
    return {point for point in points if int(board.head[point]) not in unstable}


def _mutual_atari(board: Board, dead: list[int]) -> set[int]:
    """Heads of the chains in mutual atari: a dead chain and an enemy chain beside it, each with one liberty. The side
    to move captures the other.
    """
    stride, found = int(board.meta[META_STRIDE]), set[int]()
    for point in (one for one in dead if board.libs[board.head[one]] == 1):
        for step in (-stride, -1, 1, stride):
            beside = int(board.head[point + step])
            if beside > 0 and board.color[point + step] != board.color[point] and board.libs[beside] == 1:
                found |= {int(board.head[point]), beside}
    return found


def _in_atari(board: Board, among: set[int] | None = None) -> NDArray[np.bool_]:
    """bool[N*N] in policy order: True on chains in atari and on the last liberties of these chains.

    Args:
        among: heads of the chains to regard; None = all.
    """
    size = int(board.meta[META_SIZE])
    points = on_board_points(size)
    heads = board.head[points]
    threatened: NDArray[np.bool_] = (heads > 0) & (board.libs[heads] == 1)
    if among is not None:
        threatened &= np.isin(heads, sorted(among))
    liberties = board.lib_sum[heads[threatened]]
    return threatened | np.isin(points, liberties)


def _apply_proofs(board: Board, ownership_black: np.ndarray, suicide: bool) -> None:
    """Overwrite ownership that Benson's theorem proves: pass-alive chains and the regions they enclose."""
    proven = np.zeros(len(ownership_black), np.uint8)
    for color, value in ((BLACK, 1.0), (WHITE, -1.0)):
        pass_alive(board, color, proven, suicide)
        ownership_black[proven != 0] = value


def points_that_capture(board: Board, dead: list[int], color: int) -> list[int]:
    """Empty points adjacent to the opponent's dead stones, where a move leads to their capture."""
    stride, enemy = int(board.meta[META_STRIDE]), other(color)
    beside = {
        point + step
        for point in dead
        if board.color[point] == enemy
        for step in (-stride, -1, 1, stride)
        if board.color[point + step] == EMPTY
    }
    return sorted(beside)


def chains_with(status: str, position: Position, dead: list[int], all_alive: bool = False) -> list[list[int]]:
    """The chains of a position that are ``alive``, ``dead`` or in ``seki``, each as a list of points.

    Args:
        all_alive: the rules count all stones as alive.
    Raises:
        ValueError: "syntax error": no such status.
    """
    if status not in STATUSES:
        raise ValueError(f"syntax error: {status!r} is no status, expected one of {', '.join(STATUSES)}")
    board = position.board
    marked = {} if all_alive else {"dead": set(dead), "seki": set(seki_stones(position, dead))}
    chains: dict[int, list[int]] = {}
    for point in on_board_points(int(board.meta[META_SIZE])).tolist():
        found = next((name for name, points in marked.items() if point in points), "alive")
        if board.color[point] != EMPTY and found == status:
            chains.setdefault(int(board.head[point]), []).append(point)
    return list(chains.values())
