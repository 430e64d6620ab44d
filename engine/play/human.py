"""Moves drawn from a human network while the main network searches, as KataGo's human SL configuration describes it.

The human network says which moves people of a profile play at the root, the search says how good they are. For the root
with the human policy h over the moves that the search considers, visits n, and utilities u (:func:`utility`):

1. Pikl: h'(a) = h(a) * exp((u(a) - max u) / lambda), normalised. A move that loses lambda of utility is e times less
   likely. A move that was not searched has the mean utility of the searched ones.
2. With ``human_ignore_pass`` the pass has its share of the visits, and the other moves share the rest by h'.
3. The weights are (1 - s) * n / sum(n) + s * h', with the share s of the human policy.
4. One move is drawn with a temperature T that affects small probabilities alone (:func:`cooled`).

``human_explore`` p gives the share p of a move's visits to likely human moves, "weightless": they say how good these
moves are, and do not count in the position's value. They are made by a search of its own, whose root has the human
policy as priors and an exploration constant c + c_permanent * sqrt(N).

Differences from KataGo: n are visits, not weights after pruning; the utility has the mean of the score without its
spread; weightless visits do not share the main search's subtrees, though they share its cache. KataGo's exploration by
the human policy with weight, and below the root, does not exist here. Source: KataGo 1.17,
``cpp/search/searchresults.cpp`` and ``searchhelpers.cpp``, and gtp_human5k_example.cfg.

Start at :class:`HumanNetwork` and :func:`choose_human`.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.config import HumanOptions, SearchOptions
from engine.features.encoder import ENCODERS, with_profile
from engine.features.symmetry import symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import index_of, point_of
from engine.go.position import Position, new_position
from engine.inference.server import InferenceServer
from engine.nets.network import NetworkSpec, softmax
from engine.play.factory import Loader, load_parts, new_server
from engine.search.choosing import RootPolicy
from engine.search.leaves import list_moves
from engine.search.report import MoveReport, Report
from engine.search.state import NetworkAccess
from engine.search.symmetries import SymmetricEvaluation
from weights import NetworkPath

MEMORY_MIB = 16
"""Memory of the human network's cache and of batches: it evaluates roots alone"""
SYMMETRIES = 2
"""Symmetries over which the human policy is averaged, as in KataGo's human configuration"""
EXPLORED_MIB = 64
"""Maximum memory of the tree of human moves"""
SCORE_SCALE = 2.0
"""Score, in board sides, whose score utility is half of the largest (KataGo's static score utility)"""
SHARPEST = 1e-4
"""Temperature from which on the likeliest move is played"""


class HumanOutput(NamedTuple):
    """A human network's outputs for a position, means over symmetries, for the side to move."""

    policy: np.ndarray
    """float64[N*N + 1] in policy order: probabilities of the moves that a search considers; 0 for all others"""
    value: float | None
    """-1 to 1; None = the network has no such head"""
    score: float | None
    """lead in points; None = the network has no such head"""
    ownership: np.ndarray | None
    """float32[N*N], under one symmetry alone; 1 = the side to move's; None = the network has no such head"""

    def root_policy(self, options: HumanOptions) -> RootPolicy:
        """The policy for the search of human moves."""
        logits = np.log(self.policy + 1e-30).astype(np.float32)
        return RootPolicy(logits, options.human_c_puct, options.human_c_permanent)


class HumanNetwork:
    """A human network, loaded for evaluations of roots. Threads: any."""

    def __init__(self, path: NetworkPath, device: str = "auto", load: Loader | None = None) -> None:
        """Load the network; arguments and errors as for :func:`engine.play.factory.load_parts`.

        Raises:
            ValueError: the network has no policy; one line.
        """
        self.path = path
        parts = load_parts(SearchOptions(memory=MEMORY_MIB), path, device, load)
        server = new_server(parts, shared=True)
        assert server is not None, "a path gives a network"
        if "policy" not in server.spec.heads:
            server.close()
            raise ValueError(f"network {server.spec.name} has no policy, expected a network of human play")
        self.server: InferenceServer = server

    @property
    def spec(self) -> NetworkSpec:
        """The network's spec."""
        return self.server.spec

    @property
    def knows_profiles(self) -> bool:
        """Whether the network is asked for a human profile."""
        return ENCODERS[self.spec.encoder].knows_profiles

    def check_profile(self, profile: str) -> None:
        """Refuse a profile that the network does not know.

        Raises:
            ValueError: one line.
        """
        with_profile(ENCODERS[self.spec.encoder], profile)

    def output(
        self, position: Position, profile: str = "", deadline_s: float = math.inf,
        interrupt: threading.Event | None = None,
    ) -> HumanOutput | None:  # fmt: skip
        """The network's outputs for a position; None if none came in time, or the network does not play the size.

        Args:
            profile: name of a human profile; empty = the default one.
            deadline_s, interrupt: as for :meth:`engine.search.symmetries.SymmetricEvaluation.outputs`.
        Raises:
            NetworkFailed: the network failed.
            ValueError: the network does not know the profile.
        """
        size = int(position.board.meta[META_SIZE])
        if not self.spec.plays(size):
            return None
        encoder = with_profile(ENCODERS[self.spec.encoder], profile)
        evaluation = SymmetricEvaluation(NetworkAccess(self.server, encoder))
        found = evaluation.outputs(position, deadline_s, interrupt, SYMMETRIES)
        if not found:
            return None
        listed = np.zeros(size * size + 1, np.uint16)
        listed = listed[: list_moves(position, listed)]
        table, policy = symmetry_table(size), np.zeros(size * size + 1)
        logits = np.stack([one.policy[0][table[symmetry]][listed] for symmetry, one in found.items()])
        policy[listed] = softmax(logits).mean(axis=0)
        heads, requests = self.spec.heads, list(found.values())
        value = float(np.mean([one.value[0] for one in requests])) if "value" in heads else None
        score = float(np.mean([one.score[0] for one in requests])) if "score" in heads else None
        ownership = requests[0].ownership[0].reshape(-1).copy() if "ownership" in heads else None
        return HumanOutput(policy, value, score, ownership)

    def warm_up(self, size: int) -> None:
        """Evaluate an empty board, so that kernels are compiled and the network is warm before a clock runs."""
        if self.spec.plays(size):
            self.output(new_position(size))

    def close(self) -> None:
        """End the server's threads."""
        self.server.close()


def merged(report: Report, explored: Report | None) -> list[MoveReport]:
    """The moves of a report with the values of a search of human moves added, weighted by visits.

    Visits, priors, order and variations stay those of ``report``; moves that only the other search has visited follow
    with 0 visits.
    """
    if explored is None:
        return report.moves
    more = {move.point: move for move in explored.moves if move.visits}
    found = [_joined(move, more.pop(move.point)) if move.point in more else move for move in report.moves]
    return found + [replace(move, visits=0, pv_visits=[0] * len(move.pv)) for move in more.values()]


def _joined(one: MoveReport, other: MoveReport) -> MoveReport:
    """A move's report with the mean value and score of both, weighted by visits."""
    if not one.visits:
        return replace(other, visits=0, prior=one.prior)
    share = other.visits / (one.visits + other.visits)
    value = one.value_stm + share * (other.value_stm - one.value_stm)
    score = one.score_stm
    if score is not None and other.score_stm is not None:
        score += share * (other.score_stm - score)
    return replace(one, value_stm=value, score_stm=score, lcb_stm=one.lcb_stm + value - one.value_stm)


def utility(move: MoveReport, size: int, score_weight: float) -> float:
    """Utility of a searched move for the side to move: value + score_weight * 2 / pi * arctan(lead / (2 N)).

    Args:
        size: N, the board size.
    """
    lead = 0.0 if move.score_stm is None else move.score_stm
    return move.value_stm + score_weight * 2.0 / math.pi * math.atan(lead / (SCORE_SCALE * size))


def move_weights(policy: np.ndarray, visits: np.ndarray, utilities: np.ndarray, options: HumanOptions) -> np.ndarray:
    """float64[A]: probabilities of the moves before temperature, steps 1 to 3 of the module's docstring.

    Args:
        policy: float64[A], the human policy of the allowed moves, 0 for others; the pass is last.
        visits: float64[A], the search's; their sum is above 0.
        utilities: float64[A]; nan = not searched.
    """
    searched = ~np.isnan(utilities)
    mean = utilities[searched].mean() if searched.any() else 0.0
    known = np.where(searched, utilities, mean)
    shifted = policy * np.exp((known - known[searched].max(initial=mean)) / options.human_lambda)
    searching = visits / visits.sum()
    if shifted.sum() <= 0.0:
        return np.asarray(searching)
    shifted /= shifted.sum()
    if options.human_ignore_pass and shifted[:-1].sum() > 0.0:
        shifted[:-1] *= (1.0 - searching[-1]) / shifted[:-1].sum()
        shifted[-1] = searching[-1]
    return np.asarray(searching + options.human_share * (shifted - searching))


def temperature(options: HumanOptions, n_moves: int, size: int) -> float:
    """The temperature after ``n_moves``: late + (early - late) * 0.5 ** (n_moves / half-life * 19 / N)."""
    late, early = options.human_temperature, options.human_temperature_early
    return late + (early - late) * math.pow(0.5, n_moves / options.human_halflife * 19.0 / size)


def cooled(weights: np.ndarray, temperature: float, only_below: float) -> np.ndarray:
    """float64[A]: probabilities of drawing each move.

    A probability p above ``only_below`` stays in proportion; one below becomes only_below * (p / only_below) ** (1 /
    temperature). With a temperature of nearly 0 and ``only_below`` 1 the likeliest move is certain.

    Args:
        weights: float64[A], 0 or more, with a sum above 0.
    """
    shares = weights / weights.sum()
    if temperature <= SHARPEST and only_below >= 1.0:
        return np.asarray(np.eye(len(shares))[int(shares.argmax())])
    threshold = min(shares.max(), max(only_below, 1e-50))
    below = (shares > 0.0) & (shares <= threshold)
    shares[below] = threshold * (shares[below] / threshold) ** (1.0 / max(temperature, SHARPEST))
    return np.asarray(shares / shares.sum())


def choose_human(
    human: HumanOutput, report: Report, explored: Report | None, is_allowed: Callable[[int], bool], n_moves: int,
    size: int, options: HumanOptions, rng: np.random.Generator,
) -> int:  # fmt: skip
    """Draw the move to play: a point or PASS.

    Args:
        report: of the search that decides on passing; has at least one move.
        explored: report of the search of human moves (:func:`merged`); None = there was none.
        is_allowed: whether a point, or PASS, may be played.
        n_moves: number of moves played.
    """
    allowed = [index for index in np.flatnonzero(human.policy) if is_allowed(int(point_of(index, size)))]
    count = len(human.policy)
    policy, visits, utilities = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    policy[allowed] = human.policy[allowed]
    moves = merged(report, explored)
    is_searched = any(move.visits for move in report.moves)
    for move in moves:
        index = int(index_of(move.point, size))
        visits[index] = move.visits if is_searched else move.prior
        if is_searched:
            utilities[index] = utility(move, size, options.human_score_utility)
    weights = move_weights(policy, visits, utilities, options)
    chances = cooled(weights, temperature(options, n_moves, size), options.human_only_below)
    return int(point_of(int(rng.choice(len(chances), p=chances)), size))
