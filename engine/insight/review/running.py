"""Analysing games position by position: one queue for all games, so that batches stay full from one to the next.

What has been analysed of a game is kept in a file, so that a review that was killed resumes.
"""

import hashlib
import json
import queue
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.config import SearchOptions
from engine.go.position import META_TO_MOVE
from engine.insight.analyses import Analyses, Analysis, Job, Task
from engine.insight.review.games import GameToReview
from engine.insight.review.review import Means
from engine.insight.review.turns import Turn, from_line, to_line, turn_of

FORMAT = 1
MANY_VISITS = 1 << 30
"""Where seconds alone limit a search"""
LOOK_S = 0.2
"""Between two looks whether the run is to end"""


def subject_of(game: GameToReview, means: Means, fingerprint: str, options: SearchOptions) -> dict[str, object]:
    """All that a game's numbers depend on, as :class:`Work` wants it.

    Args:
        fingerprint: of the network's files.
    """
    record, first = game.record, int(game.positions[0].meta[META_TO_MOVE])
    played = repr((record.size, game.colors(0), first, game.played)).encode()
    return {
        "game": hashlib.sha256(played).hexdigest(), "rules": repr(game.rules), "komi": game.komi,
        "network": fingerprint, "visits": means.visits, "seconds": means.seconds, "options": repr(options),
    }  # fmt: skip


class Work:
    """A game whose positions are analysed, and its file of lines.

    The first line says what is analysed and how; the others are turns, in any order. A last line that is not whole is
    dropped. A file whose first line says something else is begun anew. Several games may have one file, where a game
    is reviewed twice in one run: each appends whole lines.
    """

    def __init__(self, name: str, game: GameToReview, folder: Path, subject: Mapping[str, object]) -> None:
        """Open the file that belongs to the game and what it is analysed with, and read what is there.

        Args:
            subject: of :func:`subject_of`.
        Raises:
            OSError: it cannot be read or written.
        """
        self.name, self.game = name, game
        first = json.dumps({"format": FORMAT, **subject}, sort_keys=True).encode("ascii")
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{hashlib.sha256(first).hexdigest()[:24]}.jsonl"
        self._found: dict[int, Turn] = {}
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
        sound = [first]
        with suppress(ValueError):
            for line in lines[1:-1] if lines[:1] == [first] else ():
                turn = from_line(line.decode("ascii"))
                self._found[turn.number] = turn
                sound.append(line)
        if lines != [*sound, b""]:
            self.path.write_bytes(b"".join(line + b"\n" for line in sound))
        self._file = self.path.open("ab")

    @property
    def missing(self) -> list[int]:
        """Numbers of the turns that are not yet analysed."""
        return [n for n in range(len(self.game.positions)) if n not in self._found]

    @property
    def turns(self) -> list[Turn]:
        """All turns, once they are there."""
        return [self._found[n] for n in range(len(self.game.positions))]

    def add(self, number: int, found: Analysis) -> None:
        """Keep a turn; it is in the hands of the system when this returns."""
        steps, to_move = self.game.steps, int(self.game.positions[number].meta[META_TO_MOVE])
        played = steps[number].point if number < len(steps) else None
        self._found[number] = turn_of(number, to_move, found, played)
        self._file.write(to_line(self._found[number]).encode("ascii") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Running:
    """Analyses games. Threads: one calls what is public; ``stop`` any."""

    def __init__(self, analyses: Analyses, options: SearchOptions, means: Means, at_once: int) -> None:
        """Ready to :meth:`run`.

        Args:
            at_once: positions that the analyses search side by side.
        """
        self._analyses, self._options, self._means, self._at_once = analyses, options, means, at_once
        self._found: queue.SimpleQueue[tuple[Work, int, Analysis] | str] = queue.SimpleQueue()
        """positions as they are analysed, or why one is not"""
        self._is_stopped = False

    def stop(self) -> None:
        """Let :meth:`run` return soon; it is seen within :data:`LOOK_S`, so that a signal's handler needs no lock."""
        self._is_stopped = True

    def run(self, works: Iterable[Work], on_turn: Callable[[], None], on_done: Callable[[Work], None]) -> bool:
        """Analyse what is missing of games, in their order; returns whether all were finished.

        The next game begins when fewer positions wait than are searched side by side.

        Args:
            on_turn: called after each position that was analysed, by the calling thread.
            on_done: called with each game whose turns are all there, in order, likewise.
        Raises:
            RuntimeError: the network failed; one line.
        """
        begun: deque[Work] = deque()
        for work in works:
            begun.append(work)
            self._submit(work)
            if not self._wait(begun, self._at_once, on_turn, on_done):
                return False
        return self._wait(begun, 0, on_turn, on_done)

    def _wait(self, begun: deque[Work], most: int, on_turn: Callable[[], None],
              on_done: Callable[[Work], None]) -> bool:  # fmt: skip
        """Wait until at most ``most`` positions wait; False = stopped. Finished games are handed on and forgotten."""
        while not self._is_stopped:
            while begun and not begun[0].missing:
                on_done(begun.popleft())
            if sum(len(work.missing) for work in begun) <= most:
                return True
            with suppress(queue.Empty):
                found = self._found.get(timeout=LOOK_S)
                if isinstance(found, str):
                    raise RuntimeError(found)
                work, number, analysis = found
                work.add(number, analysis)
                on_turn()
        return False

    def _submit(self, work: Work) -> None:
        """Queue what is missing of a game."""
        missing, visits = work.missing, self._means.visits or MANY_VISITS
        # Searches run side by side, so that each is slower than one alone would be.
        seconds = self._means.seconds * max(1, min(self._at_once, len(missing)))
        tasks = [Task(work.game.positions[n], self._options, visits, seconds, ownership=True) for n in missing]
        self._analyses.submit([
            Job(task, 0, partial(self._tell, work, n), self._found.put) for n, task in zip(missing, tasks, strict=True)
        ])  # fmt: skip

    def _tell(self, work: Work, n: int, found: Analysis | None, goes_on: bool) -> None:
        """A position is analysed; called by any thread."""
        if not goes_on:
            self._found.put("a position could not be analysed" if found is None else (work, n, found))
