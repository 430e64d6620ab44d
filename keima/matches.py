"""Matches between two networks, with the win rate, the Elo difference and their intervals."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike

from engine.evaluation.elo import elo_difference, wilson_interval
from engine.selfplay.search_match import MatchPlayer, match_here, match_options, play_match
from engine.selfplay.search_options import SearchPlayOptions
from keima.network import Network

AT_ONCE = 32
"""Maximum number of games in a batch"""


@dataclass(frozen=True)
class MatchResult:
    """The result of a match, from the view of the first network; a draw is half a win."""

    won: int
    """games that the first network won"""
    drawn: int
    """games without a winner"""
    lost: int
    """games that the second network won"""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.won + self.drawn + self.lost

    @property
    def score(self) -> float:
        """Share of the points that the first network got, 0 to 1."""
        return (self.won + 0.5 * self.drawn) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the expected score (Wilson)."""
        return wilson_interval(self.won + 0.5 * self.drawn, self.games)

    @property
    def elo(self) -> float:
        """Elo difference of the networks; infinite if one won all games."""
        return elo_difference(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95% interval of the Elo difference."""
        low, high = self.interval
        return elo_difference(low), elo_difference(high)

    def __str__(self) -> str:
        (low, high), (least, most) = self.interval, self.elo_interval
        return (
            f"{self.won} won, {self.drawn} drawn, {self.lost} lost: {self.score:.0%} [{low:.0%}, {high:.0%}], "
            f"Elo {self.elo:+.0f} [{least:+.0f}, {most:+.0f}]"
        )


def match(
    first: "Network | str | PathLike[str]", second: "Network | str | PathLike[str]", *, games: int = 100, size: int = 9,
    visits: int | tuple[int, int] = 32, komi: float = 7.0, rules: str = "tromp-taylor", seed: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> MatchResult:  # fmt: skip
    """Play a match between two networks; many games are played at once, each network has Black in half of them.

    Moves of the opening are drawn from the visits, so that games differ; games are played out and counted by area.
    Interrupted by Ctrl-C, the match is lost.

    Args:
        first, second: networks, or names or files of networks.
        games: number of games.
        size: board size.
        visits: visits of each search, or those of the first and of the second network; 1 = moves are drawn from the
            policy.
        komi: White's points, a multiple of 0.5.
        rules: a rule set with area scoring.
        seed: seed of all random numbers.
        on_progress: called about twice a second with the number of finished games and of all games.
    Raises:
        ValueError: a network or an argument cannot be used; one line.
        RuntimeError: a network failed; one line.
    """
    if games < 1:
        raise ValueError(f"games is {games}, expected 1 or more")
    of_first, of_second = (visits, visits) if isinstance(visits, int) else visits
    if min(of_first, of_second) < 1:
        raise ValueError(f"visits is {visits}, expected 1 or more")
    options = match_options(SearchPlayOptions(size=size, rules=rules, komi=komi), seed)
    stopped = threading.Event()
    report = on_progress or (lambda finished, all_: None)
    with ExitStack() as stack:
        opened = [one if isinstance(one, Network) else stack.enter_context(Network(one)) for one in (first, second)]
        players = [MatchPlayer(one._server, count) for one, count in zip(opened, (of_first, of_second), strict=True)]
        stack.callback(stopped.set)
        outcome = play_match(
            match_here(players, options, games, AT_ONCE), games, stopped, lambda finished: report(finished, games)
        )
    assert outcome is not None, "nothing stopped the match"
    report(games, games)
    return MatchResult(*outcome)
