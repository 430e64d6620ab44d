"""Filters that choose games for training, and count the games that each filter removes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.config.declaration import Checked, check, no_branch, option
from engine.go.geometry import MAX_SIZE, MIN_SIZE, WHITE
from engine.records.games import COUNTED, MAX_MOVES, RESIGNED, Games
from engine.records.sgf_values import rank_text, read_day, read_rank


@dataclass(frozen=True)
class Filters(Checked):
    """Requirements that a game must meet. A game with unknown rank, date or komi fails a filter on that value."""

    sizes: tuple[int, ...] = option((19,), "board size to keep; repeatable", flag="size", low=MIN_SIZE, high=MAX_SIZE)
    """board sizes to keep; empty = all"""
    max_handicap: int = option(0, "largest number of handicap stones; 0 = even games only", low=0, high=255)
    setups: bool = option(False, "keep games that begin from a set-up position")
    results: str = option(
        "decided", "results to keep: decided = with a winner, finished = by counting or resignation, not on time or by "
        "forfeit, counted = by counting alone",
        choices=("any", "decided", "finished", "counted"),
    )  # fmt: skip
    min_moves: int = option(1, "smallest number of moves of a game", low=1, high=MAX_MOVES)
    max_moves: int = option(MAX_MOVES, "largest number of moves of a game", low=1, high=MAX_MOVES)
    resigned_after: float = option(
        0.0, "smallest number of moves of a resigned game, as a share of the board's points: 0.5 leaves out games that "
        "were resigned in the middle game", low=0.0, high=2.0,
    )  # fmt: skip
    min_rank: int = option(
        0, "lowest rank of either player: 3k, 6d, 1p; professionals rank above amateurs", read=read_rank, unit="RANK"
    )
    """lowest rank of either player, coded as in ``Games.rank_black``; 0 = any"""
    date_from: int = option(
        0, "first date of a game: 2016, 2016-12 or 2016-12-29", flag="from", read=read_day, unit="DATE"
    )
    """first date to keep, yyyymmdd with 00 for an omitted month or day; 0 = any"""
    date_to: int = option(
        0, "last date of a game, included: 2016, 2016-12 or 2016-12-29", flag="to", read=read_day, unit="DATE"
    )
    """last date to keep, yyyymmdd with 00 for an omitted month or day: then to the end of the year or month; 0 = any"""
    komi: tuple[float, float] | None = None
    """lowest and highest komi to keep; None = any"""

    def __post_init__(self) -> None:
        check(self)
        if self.min_moves > self.max_moves:
            raise ValueError(f"no game has at least {self.min_moves} and at most {self.max_moves} moves")
        if self.date_from and self.date_to and self.date_from > _last_day(self.date_to):
            raise ValueError(f"no date is in the range from {self.date_from} to {self.date_to}")
        if self.komi and not self.komi[0] <= self.komi[1]:
            raise ValueError(f"no komi is in the range from {self.komi[0]:g} to {self.komi[1]:g}")

    def apply(self, games: Games) -> tuple[np.ndarray, dict[str, int]]:
        """Whether each game passes all filters (bool[G]), and by filter, in order, how many games it removed."""
        keep, removed = np.ones(len(games.size), bool), {}
        for name, passes in self._tests(games):
            removed[name] = int((keep & ~passes).sum())
            keep &= passes
        return keep, removed

    def _tests(self, games: Games) -> Iterator[tuple[str, np.ndarray]]:
        """Every active filter: the reason for which it removes games, and whether each game passes (bool[G])."""
        length = np.diff(games.offsets)
        is_even = games.starts_even()
        has_stones = np.diff(games.setup_offsets) > 0
        is_handicap = has_stones & (games.first == WHITE) & (games.handicap == np.diff(games.setup_offsets))
        if self.sizes:
            yield f"board size not {', '.join(map(str, self.sizes))}", np.isin(games.size, self.sizes)
        if not self.setups:
            yield "begins from another position", is_even | is_handicap
        yield f"handicap over {self.max_handicap}", games.handicap <= self.max_handicap
        if self.results in ("decided", "finished", "counted"):
            yield "no winner", games.result != 0
            if self.results == "counted":
                yield "not won by counting", games.ending == COUNTED
            if self.results == "finished":
                yield "won otherwise than by counting or resignation", np.isin(games.ending, (COUNTED, RESIGNED))
        elif self.results != "any":
            raise no_branch("results", self.results)
        if self.min_moves > 1:
            yield f"fewer than {self.min_moves} moves", length >= self.min_moves
        if self.max_moves < MAX_MOVES:
            yield f"more than {self.max_moves} moves", length <= self.max_moves
        if self.resigned_after:
            is_early = (games.ending == RESIGNED) & (length < self.resigned_after * games.size**2)
            yield f"resigned before {self.resigned_after:g} of the board's points", ~is_early
        if self.min_rank:
            least = np.minimum(games.rank_black, games.rank_white)
            is_known = (games.rank_black != 0) & (games.rank_white != 0)
            yield f"a rank unknown or below {rank_text(self.min_rank)}", is_known & (least >= self.min_rank)
        if self.date_from:
            yield f"date unknown or before {self.date_from}", games.date >= self.date_from
        if self.date_to:
            yield f"date unknown or after {self.date_to}", (games.date > 0) & (games.date <= _last_day(self.date_to))
        if self.komi:
            low, high = self.komi
            yield f"komi unknown or not {low:g} to {high:g}", (games.komi >= low) & (games.komi <= high)


def _last_day(date: int) -> int:
    """Upper bound (yyyymmdd) of the days of a date, whose month or day may be 00 = omitted."""
    return date + (9999 if date % 10000 == 0 else 99 if date % 100 == 0 else 0)
