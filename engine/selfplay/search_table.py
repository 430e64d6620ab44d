"""Games by search side by side: what a table of them holds; :mod:`engine.selfplay.search_steps` plays on it."""

from typing import NamedTuple

import numpy as np

from engine.features.symmetry import symmetry_table
from engine.go.geometry import cell_count
from engine.go.position import Position, new_position
from engine.search.forest import new_forest
from engine.search.leaves import MAX_DEPTH, Batch
from engine.search.selection import Tuning
from engine.search.tree import Tree
from engine.selfplay.boards import Boards, new_boards
from engine.selfplay.drawn_positions import DrawnPositions, new_drawn_positions
from engine.selfplay.table import EMPTY_SEAT

FULL, FAST, EARLY = range(3)
"""Searches: that give a row; that only find a move; of the root alone, whose move the policy draws"""
HANDED_OVER = 255
"""In place of how a game ended: it goes on, by the network of the other colour"""
WINDOW = 8
"""Most moves in a row whose values resignation looks at"""
DECIDED = 0.9
"""A game is decided while the latest values of both sides are all beyond this, for the same one (KataGo)"""


class SearchConduct(NamedTuple):
    """How games are searched and end; the same for all games of a table. See :class:`SearchPlayOptions`."""

    limit: int
    visits: int
    fast_visits: int
    full_share: float
    decided_share: float
    noise: float
    concentration: float
    policy_temperature: float
    forced: float
    temperature: float
    final_temperature: float
    half_life: float
    resign_below: float
    """value for the side to move; below -1 nothing is"""
    resign_count: int
    keeps_tree: bool
    candidates: int
    """moves that sequential halving begins with; 0 = PUCT"""
    sigma_scale: float
    seed: int
    """of the symmetries that positions are shown under"""
    sensible_moves: int
    """moves at the start of a game that must be sensible ones, with a pass only where there is none"""
    hands_over: bool = False
    """a game stops after each of its moves, for another network to go on"""
    draws: int = 0
    """positions that are drawn from the tree of each full search"""


class SearchTable(NamedTuple):
    """S seats for games of one size; A = N*N + 1, CAP = most moves of a game."""

    boards: Boards
    forest: Tree
    leaves: Batch
    numbers: np.ndarray
    """int64[S]: the games; EMPTY_SEAT = none"""
    states: np.ndarray
    """uint64[S, 4]: random states"""
    request_row: np.ndarray
    """int64[S]: row of the request that the leaf in flight waits for; -1 = none"""
    kind: np.ndarray
    """int64[S]: FULL, FAST or EARLY, of the search that is under way"""
    is_prepared: np.ndarray
    """uint8[S]: 1 = noise and the like have been given to its root"""
    early: np.ndarray
    """int64[S]: moves at the start of the game that the policy draws"""
    quits: np.ndarray
    """int64[S]: 1 where hopeless games are resigned, 0 where they are played out"""
    resigner: np.ndarray
    """int64[S]: the colour that first had reason to resign; 0 = neither"""
    recent: np.ndarray
    """float32[S, 2, WINDOW]: values of the latest searches, for the colour (Black first) that moved; 1 = none yet"""
    n_searched: np.ndarray
    """int64[S, 2]: searches by colour, so that the next value replaces the oldest"""
    lowest: np.ndarray
    """float32[S, 2]: by colour the least of what its values in a row never exceeded: resigned below any higher one"""
    n_rows: np.ndarray
    """int64[S]: rows of the game so far"""
    row_ply: np.ndarray
    """int32[S, CAP]: the row's position is the one after this number of moves"""
    row_policy: np.ndarray
    """uint16[S, CAP, A]: policy target, in any unit"""
    row_value: np.ndarray
    """float32[S, CAP]: value of the search, for the side to move"""
    row_surprise: np.ndarray
    """float32[S, CAP]: Kullback-Leibler divergence of the target from the network's prior, in nats"""
    priors: np.ndarray
    """float64[S, A]: the network's priors at the root"""
    base: np.ndarray
    """float64[S, A]: of sequential halving, as in :mod:`engine.search.halving`"""
    left: np.ndarray
    """uint8[S, A]: likewise"""
    goal: np.ndarray
    """int64[S, 2]: likewise: visits at the end of the round; moves drawn"""
    drawn: DrawnPositions


class Work(NamedTuple):
    """What a thread works on; all of it is overwritten."""

    position: Position
    filter: np.ndarray
    """uint8[1, L]: 1 = the root may choose the point"""
    policy: np.ndarray
    """float64[A]"""
    noise: np.ndarray
    """float64[A]"""
    symmetries: np.ndarray
    """int16[8, A]: :func:`engine.features.symmetry.symmetry_table`; this is only read"""


def new_search_table(size: int, seats: int, capacity: int, visits: int, draws: int = 0) -> SearchTable:
    """A table without games, with room for ``capacity`` moves a game and ``visits`` and ``draws`` a search."""
    moves = size * size + 1
    forest, leaves = new_forest(size, seats, visits)
    return SearchTable(
        boards=new_boards(size, seats, capacity),
        forest=forest,
        leaves=leaves,
        numbers=np.full(seats, EMPTY_SEAT, np.int64),
        states=np.zeros((seats, 4), np.uint64),
        request_row=np.full(seats, -1, np.int64),
        kind=np.zeros(seats, np.int64),
        is_prepared=np.zeros(seats, np.uint8),
        early=np.zeros(seats, np.int64),
        quits=np.zeros(seats, np.int64),
        resigner=np.zeros(seats, np.int64),
        recent=np.ones((seats, 2, WINDOW), np.float32),
        n_searched=np.zeros((seats, 2), np.int64),
        lowest=np.ones((seats, 2), np.float32),
        n_rows=np.zeros(seats, np.int64),
        row_ply=np.zeros((seats, capacity), np.int32),
        row_policy=np.zeros((seats, capacity, moves), np.uint16),
        row_value=np.zeros((seats, capacity), np.float32),
        row_surprise=np.zeros((seats, capacity), np.float32),
        priors=np.zeros((seats, moves)),
        base=np.zeros((seats, moves)),
        left=np.zeros((seats, moves), np.uint8),
        goal=np.zeros((seats, 2), np.int64),
        drawn=new_drawn_positions(seats, draws * capacity),
    )


def new_work(size: int, capacity: int) -> Work:
    """Memory for a thread that plays games of up to ``capacity`` moves."""
    moves = size * size + 1
    every_move = np.ones((1, cell_count(size)), np.uint8)
    position = new_position(size, capacity + MAX_DEPTH + 1)
    return Work(position, every_move, np.zeros(moves), np.zeros(moves), symmetry_table(size))


def new_tuning(c_puct: float, fpu_reduction: float, score_weight: float = 0.0) -> Tuning:
    """Selection by the network's values, and its scores where they count, one leaf at a time."""
    return Tuning(
        c_puct=c_puct, c_puct_growth=0.0, fpu_reduction=fpu_reduction, score_weight=score_weight, rollout_weight=0.0,
        virtual_visits=1, virtual_loss=0.0, expand_after=0, is_plain=score_weight == 0.0,
    )  # fmt: skip
