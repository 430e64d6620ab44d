"""Levels of play by name, from ``20k`` to ``5d`` and ``max``: what the table in ``weights/levels.toml`` says of them.

The table is data, measured and written by ``python -m bench.strength.levels``. It holds for one network, by checksum,
and for boards of the sizes listed; the nearest of them gives the levels of other boards that the network plays. The
module :mod:`engine.search.level_choice` draws the moves. Start at :func:`settings_of`.
"""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from engine.config import ADAPTIVE, FULL, RANKS, PlayOptions
from engine.config.declaration import no_branch
from engine.go.board import META_SIZE
from engine.go.geometry import index_of, point_of
from engine.go.position import Position
from engine.search.level_choice import FULL_STRENGTH, Level, draw_by_level, new_level_scratch
from engine.search.report import Report
from engine.system.files import sha256_of
from weights import LEVELS, NetworkPath, files_of

FIRST = "10k"
"""Level of the adaptive opponent's first game"""
STREAK = 2
"""Equal results in a row after which the adaptive opponent changes its level by a rank"""
NETWORK_SIZES = (7, 19)
"""Smallest and largest board on which there are levels"""
RESIGN_BELOW, RESIGN_COUNT = -0.98, 5
"""At a level, moves are hopeless below this value, and this many in a row are given up at the earliest"""
DECIDED = 0.5
"""Value, of either sign, from which a game counts as won or lost"""
RESIGN_AFTER, RESIGN_BEHIND = 0.4, 0.11
"""Moves played and points behind, as shares of the board's points, before which no level resigns (KataGo's human
configuration: 40 points on 19x19)"""


@dataclass(frozen=True)
class Entry:
    """A level in the table."""

    settings: Level
    elo: float
    """above the anchor"""
    low: float
    """95% interval of ``elo``"""
    high: float


@dataclass(frozen=True)
class Table:
    """The table of levels."""

    scale: str
    """server and year of the ranks"""
    network: str
    """name of the network that the levels hold for"""
    sha256: str
    boards: dict[int, dict[str, Entry]]
    """by board size: name -> level, the weakest first"""


@cache
def table() -> Table:
    """The shipped table.

    Raises:
        ValueError: the file is missing or damaged; one line.
    """
    try:
        found = tomllib.loads(LEVELS.read_text(encoding="utf-8"))
        boards = {int(size): {one["name"]: _entry(one) for one in levels} for size, levels in found["board"].items()}
        return Table(found["scale"], found["network"], found["sha256"], boards)
    except OSError as error:
        raise ValueError(f"{LEVELS}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{LEVELS}: not a table of levels ({error})") from error


def _entry(one: dict[str, Any]) -> Entry:
    kinds = Level.__annotations__
    settings = Level(**{name: kinds[name](one[name]) for name in Level._fields})
    return Entry(settings, float(one["elo"]), float(one["low"]), float(one["high"]))


def _board(size: int) -> int:
    """The board size whose levels hold for a board size: the nearest in the table; 0 = none does."""
    smallest, largest = NETWORK_SIZES
    if not smallest <= size <= largest:
        return 0
    return min(table().boards, key=lambda one: (abs(one - size), one))


def names(size: int) -> tuple[str, ...]:
    """Names of the levels on a board size, the weakest first; the last is ``max``."""
    return (*table().boards.get(_board(size), ()), FULL)


def described(name: str, size: int) -> str:
    """A level with its scale for people, such as ``10k (OGS 2026, 9x9)``.

    Args:
        name: one of :func:`names`, or ``auto``.
    """
    if name == FULL:
        return f"{FULL} (full strength)"
    if name == ADAPTIVE:
        return f"{ADAPTIVE} (changes by a rank after {STREAK} equal results in a row)"
    measured = _board(size)
    where = f"{size}x{size}" if measured == size else f"{size}x{size}, measured on {measured}x{measured}"
    return f"{name} ({table().scale}, {where})"


def nearest(name: str, size: int) -> str:
    """The level of a board size that is nearest to a rank; ``max`` where there are no levels.

    Args:
        name: a rank, or ``max``.
    """
    there = names(size)
    if name != FULL and name not in RANKS:
        raise no_branch("level", name)
    if name in there or len(there) == 1:
        return name if name in there else FULL
    return min(there[:-1], key=lambda one: abs(_rank(one) - _rank(name)))


def _rank(name: str) -> int:
    """A rank as a number, 1d being 0 and 1k -1."""
    return int(name[:-1]) - 1 if name.endswith("d") else -int(name[:-1])


def settings_of(name: str, size: int) -> Level:
    """The settings of the level :func:`nearest` to a name; ``FULL_STRENGTH`` for ``max``, those of :data:`FIRST` for
    ``auto``."""
    name = nearest(FIRST if name == ADAPTIVE else name, size)
    return FULL_STRENGTH if name == FULL else table().boards[_board(size)][name].settings


def check_network(name: str, network: NetworkPath | None) -> None:
    """Refuse a level with a network that the table does not hold for.

    Raises:
        ValueError: another network; one line.
    """
    expected = table()
    if name != FULL and [_sha256(path) for path in files_of(network)] != [expected.sha256]:
        given = "none" if network is None else "+".join(path.name for path in files_of(network))
        raise ValueError(
            f"level {name} was measured with the network {expected.network} (sha256 {expected.sha256[:12]}...), "
            f"not {given}: expected --weights {expected.network}, or --level {FULL}"
        )


@cache
def _sha256(path: Any) -> str:
    """Checksum of a network's file, read once."""
    return sha256_of(path)


def drawn(report: Report, position: Position, level: Level, state: np.ndarray) -> int:
    """Draw the move of a level, a point or PASS, from the report of a search of its visits.

    Args:
        report: has at least one move.
        position: the report's.
        state: uint64[4], random state.
    """
    size = int(position.board.meta[META_SIZE])
    scratch, priors = new_level_scratch(size), np.zeros(size * size + 1)
    scratch.losses[:] = 0.0
    searched = [move for move in report.moves if move.visits]
    leads = [_lead(move.score_stm) for move in searched]
    for move in searched or report.moves:
        priors[index_of(move.point, size)] = max(move.prior, 1e-9)
    for move, lead in zip(searched, leads, strict=True):
        scratch.losses[index_of(move.point, size)] = max(leads) - lead
    return int(point_of(draw_by_level(position, priors, scratch.losses, level, scratch, state), size))


def _lead(score_stm: float | None) -> float:
    assert score_stm is not None, "levels hold for a network with a score head"
    return score_stm


def limits(options: PlayOptions, level: Level) -> PlayOptions:
    """The options of a move at a level: its visits in place of other limits. Unchanged at full strength."""
    if not level.visits:
        return options
    return replace(options, visits=level.visits, seconds=0.0, policy_only=False, early_stop=False)


def resigning(options: PlayOptions) -> PlayOptions:
    """The options for resigning at a level: later than at full strength."""
    below, count = min(options.resign_below, RESIGN_BELOW), max(options.resign_count, RESIGN_COUNT)
    return replace(options, resign_below=below, resign_count=count)


def is_far_behind(n_moves: int, lead: float | None, size: int) -> bool:
    """Whether a level may resign: late in the game and far behind.

    Args:
        lead: points, for the side that may resign; None = unknown.
    """
    behind = math.inf if lead is None else -lead
    return n_moves >= RESIGN_AFTER * size**2 and behind >= RESIGN_BEHIND * size**2


def is_decided(value: float, n_moves: int, size: int) -> bool:
    """Whether a game that ends without a result counts for the adaptive opponent: late, and by its search clear.

    Args:
        value: of the opponent's latest move, -1 to 1.
    """
    return n_moves >= RESIGN_AFTER * size**2 and abs(value) >= DECIDED


def next_level(level: str, results: Sequence[bool], size: int) -> str:
    """The adaptive opponent's level for its next game: a rank up after ``STREAK`` losses in a row, down after wins.

    Args:
        level: of the latest game.
        results: whether the opponent won, of all games so far in their order.
    """
    ranks = names(size)[:-1]
    latest = list(results[-STREAK:])
    if level not in ranks or len(latest) < STREAK or len(set(latest)) > 1:
        return level
    at = ranks.index(level) + (-1 if latest[0] else 1)
    return ranks[max(0, min(at, len(ranks) - 1))]


class Adaptive:
    """The adaptive opponent: its level, and the results of its games so far. Threads: one caller."""

    def __init__(self, level: str = FIRST) -> None:
        self.level = level
        self.results: list[bool] = []
        """whether the opponent won, in the order of the games"""

    def note(self, won: bool, size: int) -> str:
        """Take the result of a game; returns one line that tells the next game's level."""
        self.results.append(won)
        before, self.level = self.level, next_level(nearest(self.level, size), self.results, size)
        result = "won" if won else "lost"
        change = "stays" if self.level == nearest(before, size) else "becomes"
        return f"level {ADAPTIVE}: Keima {result}, its level {change} {described(self.level, size)}"
