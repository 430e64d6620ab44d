"""Analysing games position by position: one queue for all games, so that batches stay full from one to the next."""

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from engine.config import SearchOptions
from engine.go.position import META_TO_MOVE
from engine.insight.analyses import Analyses, Analysis, Job, Task
from engine.insight.review.game import GameToReview
from engine.insight.review.review import Means
from engine.insight.review.store import Store
from engine.insight.review.turns import Turn, turn_of

MANY_VISITS = 1 << 30
"""Where seconds alone limit a search"""
LOOK_S = 0.2
"""Between two looks whether the run is to end"""


@dataclass
class Work:
    """A game whose positions are analysed."""

    name: str
    game: GameToReview
    store: Store

    @property
    def missing(self) -> list[int]:
        """Numbers of the turns that are not yet analysed."""
        return [n for n in range(len(self.game.positions)) if n not in self.store.turns]

    @property
    def turns(self) -> list[Turn]:
        """All turns, once they are there."""
        return [self.store.turns[n] for n in range(len(self.game.positions))]


def subject_of(game: GameToReview, means: Means, fingerprint: str, options: SearchOptions) -> dict[str, object]:
    """All that a game's numbers depend on, as a store wants it.

    Args:
        fingerprint: of the network's files.
    """
    played = repr((game.size, game.start, game.first, game.played)).encode()
    return {
        "game": hashlib.sha256(played).hexdigest(), "rules": repr(game.rules), "komi": game.komi,
        "network": fingerprint, "visits": means.visits, "seconds": means.seconds, "options": repr(options),
    }  # fmt: skip


class Running:
    """Analyses games. Threads: one calls what is public; ``stop`` any."""

    def __init__(self, analyses: Analyses, options: SearchOptions, means: Means, at_once: int,
                 on_turn: Callable[[Work], None]) -> None:  # fmt: skip
        """Ready to :meth:`run`.

        Args:
            at_once: positions that the analyses search side by side.
            on_turn: called after each position that was analysed, by any thread, one at a time.
        """
        self._analyses, self._options, self._means = analyses, options, means
        self._at_once, self._on_turn = at_once, on_turn
        self.on_wait: Callable[[], None] = lambda: None
        """called now and then by the thread that runs"""
        self._changed = threading.Condition()
        self._waiting: dict[int, int] = {}
        """positions not yet analysed, by game"""
        self._is_stopped = False
        self._failure = ""

    def stop(self) -> None:
        """Let :meth:`run` return soon; it is seen within :data:`LOOK_S`, so that a signal's handler needs no lock."""
        self._is_stopped = True

    def run(self, works: Iterable[Work], on_done: Callable[[Work], None]) -> bool:
        """Analyse what is missing of games, in their order; returns whether all were finished.

        The next game begins when fewer positions wait than are searched side by side.

        Args:
            on_done: called with each game whose turns are all there, in order, by the calling thread.
        Raises:
            RuntimeError: the network failed; one line.
        """
        begun: list[Work] = []
        for work in works:
            begun.append(work)
            self._submit(work)
            if not self._wait(begun, on_done, self._at_once):
                return False
        return self._wait(begun, on_done, 0)

    def _wait(self, begun: list[Work], on_done: Callable[[Work], None], most: int) -> bool:
        """Wait until at most ``most`` positions wait; False = stopped. Finished games are handed on and forgotten."""
        while True:
            self.on_wait()
            with self._changed:
                if self._failure:
                    raise RuntimeError(self._failure)
                if self._is_stopped:
                    return False
                is_first_done = bool(begun) and not self._waiting.get(id(begun[0]), 0)
                if not is_first_done:
                    if sum(self._waiting.values()) <= most:
                        return True
                    self._changed.wait(LOOK_S)
                    continue
            work = begun.pop(0)
            self._waiting.pop(id(work), None)
            on_done(work)

    def _submit(self, work: Work) -> None:
        """Queue what is missing of a game."""
        missing = work.missing
        with self._changed:
            self._waiting[id(work)] = len(missing)
        # Searches run side by side, so that each is slower than one alone would be.
        seconds = self._means.seconds * max(1, min(self._at_once, len(missing)))
        jobs = []
        for n in missing:
            task = Task(
                work.game.positions[n], self._options, self._means.visits or MANY_VISITS, seconds, ownership=True
            )
            jobs.append(Job(task, 0, partial(self._tell, work, n), self._fail))
        self._analyses.submit(jobs)

    def _tell(self, work: Work, n: int, found: Analysis | None, goes_on: bool) -> None:
        """A position is analysed."""
        if goes_on or self._is_stopped:
            return
        if found is None:
            self._fail("a position could not be analysed")
            return
        steps, to_move = work.game.steps, int(work.game.positions[n].meta[META_TO_MOVE])
        turn = turn_of(n, to_move, found, steps[n].point if n < len(steps) else None)
        with self._changed:
            work.store.add(turn)
            self._waiting[id(work)] -= 1
            self._on_turn(work)
            self._changed.notify_all()

    def _fail(self, reason: str) -> None:
        with self._changed:
            self._failure = self._failure or reason
            self._changed.notify_all()
