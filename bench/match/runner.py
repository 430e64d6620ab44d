"""Runs a match for ``keima match`` and the arena: writes the records, shows the score, and prints the table."""

import threading
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench.match.folder import ROLES, GameRecord, MatchFolder, read_record
from bench.match.gtp_client import EngineError
from bench.match.play import MatchError
from bench.match.summary import Hypotheses, SequentialTest, render, summarise, to_json
from engine.system.executor import Done, Executor, Job
from engine.system.files import written_whole
from gtp.cli.arguments import NewFile
from gtp.cli.terminal import INTERRUPTED, progress_bar, say

POLL_S = 0.2


class Scoreboard:
    """Progress bar of a match: finished games and who won them. Threads: any."""

    def __init__(self, progress: Progress, folder: MatchFolder, games: int, sprt: Hypotheses | None) -> None:
        self._test = SequentialTest(sprt, folder.records) if sprt else None
        self.missing = [] if self.is_decided else folder.missing(games)
        """numbers of the games to be played"""
        self._progress, self._folder = progress, folder
        self._task = progress.add_task("", total=games, completed=games - len(self.missing))

    @property
    def is_decided(self) -> bool:
        """Whether the sequential test has accepted a hypothesis, so that no further game is needed."""
        return self._test is not None and self._test.accepted is not None

    def play(self, executor: Executor, job: Job, numbers: Iterable[int], prints_games: bool) -> None:
        """Play the missing games; every finished game is added to the folder once.

        When the sequential test accepts a hypothesis, or at Ctrl-C, games in progress are dropped.

        Args:
            job: its results are lines of ``games.jsonl``.
            numbers: the job's items to run, by their numbers.
            prints_games: whether to print a line on standard error for each finished game.
        Raises:
            MatchError: an engine refused the settings, the referee failed, or a process died.
            EngineError: an engine does not start.
            KeyboardInterrupt: Ctrl-C.
        """
        stopped = threading.Event()

        def take(done: Done) -> None:
            record = read_record(done[1])
            is_new = self._folder.add(record)
            if is_new and self._test:
                self._test.add(record)
            self.show(finished=int(is_new))
            if is_new and prints_games:
                say(self._progress.console, _one_line(record))
            if self.is_decided:
                stopped.set()

        executor.work(job, {}, takewhile(lambda _: not stopped.is_set(), numbers), take, stopped, lambda: None, POLL_S)

    def show(self, words: str = "", finished: int = 0) -> None:
        """Update the score, the text after it and the number of games.

        Args:
            words: text after the score.
            finished: games that ended since the last call.
        """
        won = [sum(record.winner == role for record in self._folder.records) for role in ROLES]
        ratio = f"  LLR {self._test.llr:+.2f}" if self._test else ""
        self._progress.update(self._task, description=f"{won[0]} : {won[1]}{ratio}{words}", advance=finished)


def _one_line(record: GameRecord) -> str:
    """A finished game as a line of text."""
    detail = f" ({record.detail})" if record.detail else ""
    outcome = {"draw": "draw", None: "no result"}.get(record.winner) or f"{record.names[record.winner or '']} wins"
    return f"game {record.game}: {outcome}, {record.result}, {len(record.moves)} moves, {record.reason}{detail}"


def play_and_report(
    folder: MatchFolder, games: int, json_path: Path | None, sprt: Hypotheses | None, play: Callable[[Scoreboard], None]
) -> None:
    """Play with a progress bar on standard error, then print the table and exit the click command that calls this.

    Args:
        json_path: file for the statistics; None = no file.
        sprt: hypotheses of the sequential test; None = no test.
        play: calls :meth:`Scoreboard.play` of the scoreboard that it gets.
    """
    console, status = Console(stderr=True), 0
    try:
        with progress_bar(console) as progress:
            play(Scoreboard(progress, folder, games, sprt))
    except KeyboardInterrupt:
        hint = "; the same command resumes" if folder.is_kept else ""
        say(console, f"interrupted after {len(folder.records)} games{hint}")
        status = INTERRUPTED
    except (MatchError, EngineError, OSError, RuntimeError) as error:
        say(console, f"match stopped: {error}")
        status = 1
    summary = summarise(folder.records, folder.settings, sprt)
    click.echo(render(summary))
    if json_path:
        try:
            json_path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(json_path) as part:
                part.write_text(to_json(summary) + "\n", encoding="utf-8")
        except OSError as error:
            say(console, f"--json: {error}")
            status = status or 1
    click.get_current_context().exit(status)


def _hypotheses(ctx: click.Context, param: click.Parameter, elo: tuple[float, float] | None) -> Hypotheses | None:
    """Callback of ``--sprt``: its two numbers as :class:`Hypotheses`; a usage error if they are invalid."""
    try:
        return Hypotheses(*elo) if elo else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def kept(command: Callable) -> Callable:
    """Decorator that adds the options ``--sgf``, ``--json`` and ``--sprt``."""
    sgf_help = "folder for SGFs and results; a match found there is resumed"
    folder = click.Path(file_okay=False, path_type=Path)
    test_help = "sequential test: stop when ELO0 or ELO1 is accepted as the first player's Elo difference, 5% errors"
    command = click.option("--sprt", nargs=2, type=float, metavar="ELO0 ELO1", callback=_hypotheses, help=test_help)(
        command
    )
    command = click.option("--json", "json_path", type=NewFile(), help="file for the statistics as JSON")(command)
    return click.option("--sgf", "folder", type=folder, help=sgf_help)(command)
