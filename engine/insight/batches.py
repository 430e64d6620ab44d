"""Searches of a batch of positions, side by side on the network of a player."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import NamedTuple

from engine.go.position import Position
from engine.inference.server import NetworkFailed
from engine.insight.analyses import Analyses, Analysis, Job, Task, positions_at_once
from engine.play.player import Player
from engine.search.move_filter import MoveFilter
from engine.search.stoppers import SearchLimits

UNLIMITED = 1 << 50
"""Visits of a search that only seconds end"""


class Searched(NamedTuple):
    """A position of a batch that was searched."""

    number: int
    """index of the position in the batch"""
    analysis: Analysis


class Batch:
    """Positions to search."""

    def __init__(
        self, positions: Sequence[Position], filters: Sequence[MoveFilter], limits: SearchLimits,
        ownership: bool = False, wide_root_noise: float = 0.0,
    ) -> None:  # fmt: skip
        """Make a batch that waits to be searched.

        Args:
            positions: not changed while the batch is searched.
            filters: move filter of each position.
            limits: limits of the search of each position.
            ownership, wide_root_noise: as for :class:`engine.insight.analyses.Task` and its options.
        """
        self.positions, self.filters, self.limits = positions, filters, limits
        self.ownership, self.wide_root_noise = ownership, wide_root_noise
        self.ended: SimpleQueue[tuple[int, Analysis | str | None] | None] = SimpleQueue()
        """number of a position that has ended, with its analysis, None if it was not searched, or an error in one line;
        None = the batch is interrupted"""

    def interrupt(self) -> None:
        """End the batch early. Threads: any."""
        self.ended.put(None)


class Batches:
    """The threads that search batches. Threads: that of the player."""

    def __init__(self, player: Player) -> None:
        """Start the threads."""
        self._player = player
        self._analyses = Analyses(player.parts, player.server, positions_at_once(player.parts), player.human)

    def close(self) -> None:
        """End the threads, while no batch is searched. Threads: any."""
        self._analyses.close()

    def search(self, batch: Batch) -> Generator[Searched, None, None]:
        """Search all positions, each from an empty tree; after an interruption some are missing.

        Returns:
            iterator: the positions in the order in which their searches end.
        Raises:
            NetworkFailed: the network failed or does not answer.
        """
        server = self._player.server
        jobs = [self._job(batch, number) for number in range(len(batch.positions))]
        if server is not None:
            # Many searches of few leaves: their requests are merged.
            server.shared = True
        try:
            self._analyses.submit(jobs)
            yield from self._searched(batch, jobs)
        finally:
            self._analyses.end(jobs)  # those left if the caller stops reading; else all have ended
            if server is not None:
                server.shared = False

    def _job(self, batch: Batch, number: int) -> Job:
        limits, options = batch.limits, replace(self._player.search_options, wide_root_noise=batch.wide_root_noise)
        # From an empty tree, visits are playouts.
        visits = min(limits.visits or UNLIMITED, limits.playouts or UNLIMITED)
        position, moves = batch.positions[number], batch.filters[number]
        task = Task(position, options, visits, limits.soft_s, moves, ownership=batch.ownership)
        ended = batch.ended
        return Job(
            task, 0, lambda found, is_running: ended.put((number, found)), lambda reason: ended.put((number, reason))
        )

    def _searched(self, batch: Batch, jobs: list[Job]) -> Generator[Searched, None, None]:
        """Wait until all jobs have ended; an error or an interruption ends them early."""
        left, failure = len(jobs), ""
        while left:
            if (ended := batch.ended.get()) is None:
                self._analyses.end(jobs)
                continue
            number, found = ended
            left -= 1
            if isinstance(found, str):
                failure = failure or found
                self._analyses.end(jobs)
            elif found is not None:
                yield Searched(number, found)
        if failure:
            raise NetworkFailed(failure)
