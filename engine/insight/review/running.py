"""Analysis of games position by position, with one queue for all games, so that batches stay full between games.

Analysed positions are stored in a file for each game, so that a killed review resumes.
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
from engine.go.rules import rules_from
from engine.insight.analyses import Analyses, Analysis, Job, Task
from engine.insight.review.games import GameToReview, Source, game_to_review
from engine.insight.review.review import AnalysisSettings
from engine.insight.review.turns import Turn, from_line, to_line, turn_of
from weights import NetworkPath, files_of, identity

FORMAT = 1
VISITS = 100
"""Visits a position without other limits"""
KEPT = ".analysis"
"""Name of the folder of analyses, within the folder of reviews"""
MANY_VISITS = 1 << 30
"""Visit limit of searches that are limited by seconds alone"""
LOOK_S = 0.2
"""Interval at which :meth:`GameAnalyser.run` checks whether it is stopped"""


def subject_of(
    game: GameToReview, settings: AnalysisSettings, fingerprint: str, options: SearchOptions
) -> dict[str, object]:
    """Everything that the analyses of a game depend on, as the first line of an :class:`AnalysedGame`'s file.

    Args:
        fingerprint: hash of the network's files.
    """
    record, first = game.record, int(game.positions[0].meta[META_TO_MOVE])
    played = repr((record.size, game.colors(0), first, game.played)).encode()
    return {
        "game": hashlib.sha256(played).hexdigest(), "rules": repr(game.rules), "komi": game.komi,
        "network": fingerprint, "visits": settings.visits, "seconds": settings.seconds, "options": repr(options),
    }  # fmt: skip


class AnalysedGame:
    """A game, the turns analysed so far, and the file that stores these turns.

    The first line of the file is the subject (:func:`subject_of`); the other lines are turns, in any order. A damaged
    line and all lines after it are dropped; a file with another first line is overwritten. If a run reviews a game
    twice, both objects append complete lines to the same file.
    """

    def __init__(self, name: str, game: GameToReview, folder: Path, subject: Mapping[str, object]) -> None:
        """Open the file for a subject, and read the turns that it already stores.

        Args:
            subject: from :func:`subject_of`.
        Raises:
            OSError: the file cannot be read or written.
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
        """Numbers of the turns that are not analysed yet."""
        return [n for n in range(len(self.game.positions)) if n not in self._found]

    @property
    def turns(self) -> list[Turn]:
        """All turns in order; none may be missing."""
        return [self._found[n] for n in range(len(self.game.positions))]

    def add(self, number: int, found: Analysis) -> None:
        """Add a turn, and write its line; once this returns, a crash of this process does not lose it."""
        steps, to_move = self.game.steps, int(self.game.positions[number].meta[META_TO_MOVE])
        played = steps[number].point if number < len(steps) else None
        self._found[number] = turn_of(number, to_move, found, played)
        self._file.write(to_line(self._found[number]).encode("ascii") + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def game_to_analyse(
    source: Source, folder: Path, rules: str, komi: float, settings: AnalysisSettings, network: NetworkPath | None,
    options: SearchOptions,
) -> AnalysedGame:  # fmt: skip
    """A game of a record, with what was analysed of it before.

    Args:
        folder: of the reviews.
        rules, komi: of games that name none.
    Raises:
        OSError: the file of analyses cannot be read or written.
    """
    game = game_to_review(source.record, rules_from(rules), komi)
    fingerprint = identity(network, "")["sha256"] if network else ""
    return AnalysedGame(source.name, game, folder / KEPT, subject_of(game, settings, fingerprint, options))


def names_of(network: NetworkPath | None) -> str:
    """Names of a network's files, without their extensions."""
    return "+".join(file.name.split(".")[0] for file in files_of(network))


class GameAnalyser:
    """Analyses all positions of games. Threads: one caller; any thread may call ``stop``."""

    def __init__(self, analyses: Analyses, options: SearchOptions, settings: AnalysisSettings, at_once: int) -> None:
        """Prepare reviews by these analyses.

        Args:
            at_once: number of positions that ``analyses`` searches concurrently.
        """
        self._analyses, self._options, self._settings, self._at_once = analyses, options, settings, at_once
        self._found: queue.SimpleQueue[tuple[AnalysedGame, int, Analysis] | str] = queue.SimpleQueue()
        """analysed positions, or the text of an error"""
        self._is_stopped = False

    def stop(self) -> None:
        """Let :meth:`run` return within about :data:`LOOK_S`; takes no lock, so a signal handler may call it."""
        self._is_stopped = True

    def run(
        self, games: Iterable[AnalysedGame], on_turn: Callable[[], None], on_done: Callable[[AnalysedGame], None]
    ) -> bool:
        """Analyse the missing turns of games in order; returns False if it was stopped.

        The next game begins once no more turns are missing than are searched concurrently.

        Args:
            on_turn: called in this thread after each analysed position.
            on_done: called in this thread with each finished game, in order.
        Raises:
            RuntimeError: the network failed; one line.
        """
        begun: deque[AnalysedGame] = deque()
        for game in games:
            begun.append(game)
            self._submit(game)
            if not self._wait(begun, self._at_once, on_turn, on_done):
                return False
        return self._wait(begun, 0, on_turn, on_done)

    def _wait(self, begun: deque[AnalysedGame], most: int, on_turn: Callable[[], None],
              on_done: Callable[[AnalysedGame], None]) -> bool:  # fmt: skip
        """Wait until at most ``most`` turns of the begun games are missing; returns False if stopped.

        Args:
            begun: games in order; finished ones are removed and passed to ``on_done``.
        """
        while not self._is_stopped:
            while begun and not begun[0].missing:
                on_done(begun.popleft())
            if sum(len(game.missing) for game in begun) <= most:
                return True
            with suppress(queue.Empty):
                found = self._found.get(timeout=LOOK_S)
                if isinstance(found, str):
                    raise RuntimeError(found)
                game, number, analysis = found
                game.add(number, analysis)
                on_turn()
        return False

    def _submit(self, game: AnalysedGame) -> None:
        """Submit the searches for the missing turns of a game."""
        missing, visits = game.missing, self._settings.visits or MANY_VISITS
        # Concurrent searches share the machine, so the time of each is multiplied by their number.
        seconds = self._settings.seconds * max(1, min(self._at_once, len(missing)))
        tasks = [Task(game.game.positions[n], self._options, visits, seconds, ownership=True) for n in missing]
        self._analyses.submit([
            Job(task, 0, partial(self._on_report, game, n), self._found.put)
            for n, task in zip(missing, tasks, strict=True)
        ])  # fmt: skip

    def _on_report(self, game: AnalysedGame, n: int, found: Analysis | None, is_during_search: bool) -> None:
        """Queue the analysis of turn ``n`` for :meth:`run` once its search has ended. Threads: any."""
        if not is_during_search:
            self._found.put("a position could not be analysed" if found is None else (game, n, found))
