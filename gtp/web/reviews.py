"""Reviews of the user's games, made in the background one at a time: the pages of ``keima review``."""

import base64
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import SearchOptions
from engine.insight.review.games import sources
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.running import KEPT, VISITS, GameAnalyser, game_to_analyse, names_of
from engine.insight.review.writing import ReviewOutputs, served, write_review
from engine.system import one_line
from engine.system.files import alone_in
from gtp.startup import load_analysing
from gtp.web.games import ID
from weights import NetworkPath

CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Policy of a review's page, whose styles and scripts are in it: the scripts by their hashes"""


@dataclass
class ReviewSettings:
    """Who reviews, and under which rules if a game names none."""

    folder: Path
    """folder of the reviews"""
    search: SearchOptions
    network: NetworkPath | None
    device: str
    rules: str
    komi: float


class Reviews:
    """At most one review is being made. Threads: one caller; a thread of its own makes the review."""

    def __init__(self, settings: ReviewSettings, tell: Callable[[str, dict[str, Any]], None]) -> None:
        """Prepare; nothing is reviewed yet.

        Args:
            tell: takes a game's id and the state of its review for the page; any thread.
        """
        self._settings, self._tell = settings, tell
        self._thread: threading.Thread | None = None
        self._analyser: GameAnalyser | None = None

    def start(self, name: str, path: Path) -> dict[str, Any]:
        """Begin the review of a game, which resumes if it was stopped before; returns its state.

        Args:
            name: the game's id.
            path: its file, which is read now and not changed.
        Raises:
            ValueError: another review is being made, or the game cannot be reviewed; one line.
        """
        if self._thread is not None and self._thread.is_alive():
            raise ValueError("a review is being made, expected to wait for its end")
        problems: list[str] = []
        found = list(sources([path], self._settings.folder, lambda _, problem: problems.append(problem)))
        if not found:
            raise ValueError(f"the game cannot be reviewed: {problems[0] if problems else 'it has no moves'}")
        self._thread = threading.Thread(target=self._make, args=(name, found[0]), name="review", daemon=True)
        self._thread.start()
        return _state("running", "loading the network")

    def stop(self) -> None:
        """Stop a review, which keeps what it has analysed."""
        if self._analyser is not None:
            self._analyser.stop()

    def page(self, name: str, address: str) -> tuple[bytes, str] | None:
        """The page of a game's review, and its content security policy; None = there is none.

        Args:
            address: path that analyses the moves that a reader tries.
        """
        path = self._settings.folder / f"{name}.html"
        if not ID.fullmatch(name) or not path.is_file():
            return None
        data = served(path.read_text(encoding="utf-8"), address).encode()
        scripts = [part.partition(b"</script>")[0] for part in data.split(b"<script>")[1:]]
        hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
        return data, CSP.format(scripts=" ".join(f"'sha256-{one}'" for one in hashes) or "'none'")

    def _make(self, name: str, source: Any) -> None:
        try:
            with alone_in(self._settings.folder / KEPT):
                self._tell(name, self._reviewed(name, source))
        except Exception as error:
            self._tell(name, _state("failed", one_line(error)))

    def _reviewed(self, name: str, source: Any) -> dict[str, Any]:
        """Analyse a game and write its page; returns the state of the review at the end."""
        settings = self._settings
        means = AnalysisSettings(names_of(settings.network), VISITS, 0.0)
        work = game_to_analyse(
            source, settings.folder, settings.rules, settings.komi, means, settings.network, settings.search
        )
        loaded = load_analysing(settings.search, settings.network, settings.device)
        self._analyser = analyser = GameAnalyser(loaded.analyses, settings.search, means, loaded.at_once)
        total = len(work.game.positions)

        def count() -> None:
            self._tell(name, _state("running", f"position {total - len(work.missing)} of {total}"))

        try:
            if not analyser.run([work], count, lambda done: done.close()):
                return _state("none", "stopped")
        finally:
            loaded.analyses.close()
        made = review_of(name, work.game, work.turns, means)
        write_review(settings.folder, made, source.tree(), ReviewOutputs(False, False, False, 1, True))
        return _state("done", f"{total - 1} moves reviewed", f"/review/{name}")


def _state(state: str, text: str, url: str | None = None) -> dict[str, Any]:
    """The state of a review as the page shows it."""
    return {"state": state, "text": text, "url": url}
