"""Whether a game is finished: who owns what, which stones are dead, and what is still worth a move.

Four sources make one ownership. Rollouts by the learnt policy read fights and need no network; the network knows
shapes of life and death. Their log-odds are added, so that the one that is sure outweighs the one that is not. Groups
with one eye that nothing can save, which both misread, and Benson's theorem overrule them. A point is *open*
while that ownership is doubtful (a dame, an unsettled group, a seki) or differs from what counting would find with the
dead stones off (a border not yet closed), and while its chain is left in atari. A position without open points is
*settled*. How often all this is right is measured by ``bench/strength/endings``.
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
"""Weight of the network's log-odds beside those of the policy's rollouts (docs/lab/2026-11-23-whole-groups.md)"""
MOST_CERTAIN = 0.96
"""Ownership beyond this counts as this in log-odds: neither source knows better than 1 in 50."""
UNIFORM_NETWORK_SHARE = 0.5
"""Weight of the network's ownership beside uniformly random rollouts, which know less; the two are averaged."""
SURE = 0.5
"""A point is open unless it is owned with this certainty, by the colour that counting gives it to."""
WALLED = 0.9
"""A neutral point owned with this certainty is part of territory that is not walled off yet, else it is a dame."""
DEAD = 0.1
"""A chain is dead if its mean owner is the opponent with this certainty."""
UNIFORM_DEAD = 0.35
"""The same by uniformly random rollouts: these play into a seki, and give it away."""
SEKI_DEAD = 0.5
"""The same for a chain that is in seki as the board stands: rollouts break many a seki that no player would"""
SEED = 20260801
STATUSES = ("alive", "dead", "seki")


class EndEstimate(NamedTuple):
    """What one position would be worth if play ended now."""

    ownership_black: np.ndarray
    """float32[N*N] in policy order: 1 = Black's, -1 = White's"""
    dead: list[int]
    """points of the dead stones of both colours"""
    n_open: int
    """points whose owner is in doubt, or not yet walled off"""
    n_dame: int
    """of these, the dame: empty points that both colours reach, and neither is sure to own"""
    lead_black: float
    """by the rules in force, the dead stones taken off"""
    strict_lead_black: float
    """by the rules in force, all stones alive"""

    @property
    def is_settled(self) -> bool:
        return self.n_open == 0

    def lead(self, color: int) -> float:
        """A colour's lead, dead stones off."""
        return self.lead_black if color == BLACK else -self.lead_black

    def strict_lead(self, color: int) -> float:
        """A colour's lead, all stones alive."""
        return self.strict_lead_black if color == BLACK else -self.strict_lead_black

    def surely_won(self, color: int) -> bool:
        """Whether the colour wins even if every open point goes to the opponent."""
        return self.lead(color) > 2 * self.n_open

    def value_of_ending(self, color: int) -> float:
        """What the colour may expect if the game ended now, -1 to 1: a lead counts for less, the more is open."""
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
    """Owners, dead stones and score of a position as if play ended now; takes some sixty milliseconds on 19x19.

    Args:
        position: left as it is.
        network_ownership: float32[N*N], 1 = Black's; None without a network that gives it.
        tables: of the rollout policy; None = uniformly random rollouts.
        deadline_s: ``time.perf_counter`` after which the rollouts so far have to do.
        rollouts: what :func:`rolled_ownership` says of the board; None = it is asked.
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
    """Dead stones and score of a position once it is estimated who owns what.

    It is the same for all orientations of a position and its owners: nothing here depends on the order of points.

    Args:
        position: left as it is.
        ownership_black: float32[N*N] in policy order, 1 = Black's; left as it is.
        certainty: a chain is dead if its mean owner is the opponent with more than this.
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
    in_atari, empty = _in_atari(cleared.board), cleared.board.color[on_board_points(size)] == EMPTY
    return EndEstimate(
        ownership_black=ownership_black,
        dead=dead,
        n_open=int(np.count_nonzero((ownership_black * counted < SURE) | in_atari)),
        n_dame=int(np.count_nonzero(empty & (counted == 0) & (np.abs(ownership_black) < WALLED) & ~in_atari)),
        lead_black=score_with_dame_filled(cleared),
        strict_lead_black=float(final_score_black(position)),
    )


def rolled_ownership(board: Board, tables: Tables | None, deadline_s: float = math.inf) -> np.ndarray:
    """The ownership that rollouts find, float32[N*N], 1 = Black's: nearly all the time that an estimate takes.

    It is the same for all orientations of a board: the games are played in one of them. Where the board is symmetric,
    it is the mean over the symmetries that leave it as it is.
    """
    canonical, symmetries = canonical_board(board)
    ownership = rollout_ownership(canonical, tables, ROLLOUTS, SEED, deadline_s)
    turned_back = ownership[symmetry_table(int(board.meta[META_SIZE]))[symmetries, :-1]]
    mean: np.ndarray = turned_back.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def _half_log_odds(ownership: np.ndarray) -> np.ndarray:
    """Half the log-odds of owners, -1 to 1: float32[N*N]; its hyperbolic tangent is the owner again."""
    log_odds: np.ndarray = np.arctanh(np.clip(ownership, -MOST_CERTAIN, MOST_CERTAIN))
    return log_odds


def _dead_points(board: Board, ownership_black: np.ndarray, certainty: float) -> list[int]:
    """Points of the chains that are dead: owned by the opponent with this certainty."""
    dead = dead_points(board, ownership_black, certainty)
    if not dead:
        return dead
    points = on_board_points(int(board.meta[META_SIZE]))
    in_seki = points[(seki_points(board) != 0) & (board.color[points] != EMPTY)].tolist()
    resting = _resting(board, set(in_seki) - set(dead_points(board, ownership_black, SEKI_DEAD)))
    return [point for point in dead if point not in resting]


def _resting(board: Board, points: set[int]) -> set[int]:
    """Those of the points whose chains neither are in atari nor touch a chain that is: neither side gains by moving."""
    stride = int(board.meta[META_STRIDE])
    in_atari = (board.head > 0) & (board.libs[board.head] == 1)
    steps = (0, -stride, -1, 1, stride)
    restless = {int(board.head[point]) for point in points if any(in_atari[point + step] for step in steps)}
    return {point for point in points if int(board.head[point]) not in restless}


def _in_atari(board: Board) -> NDArray[np.bool_]:
    """bool[N*N]: chains in atari, and the liberty that is left to them: the first move decides them."""
    size = int(board.meta[META_SIZE])
    points = on_board_points(size)
    heads = board.head[points]
    threatened: NDArray[np.bool_] = (heads > 0) & (board.libs[heads] == 1)
    liberties = board.lib_sum[heads[threatened]]
    return threatened | np.isin(points, liberties)


def _apply_proofs(board: Board, ownership_black: np.ndarray, suicide: bool) -> None:
    """Overwrite what Benson's theorem proves: unconditional life and what it surrounds."""
    proven = np.zeros(len(ownership_black), np.uint8)
    for color, value in ((BLACK, 1.0), (WHITE, -1.0)):
        pass_alive(board, color, proven, suicide)
        ownership_black[proven != 0] = value


def points_that_capture(board: Board, dead: list[int], color: int) -> list[int]:
    """Empty points beside dead stones of the opponent's, where capturing them goes on."""
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
    """The chains of a position that are ``alive``, ``dead`` or in ``seki``, each as its points.

    Args:
        all_alive: none is dead or in seki, as where the rules count every stone on the board.
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
