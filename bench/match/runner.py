"""What ``keima match`` and the arena share: games are kept one by one, the score is shown, the table printed."""

import threading
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench.match.folder import ROLES, GameRecord, MatchFolder, read_record
from bench.match.gtp_client import EngineError
from bench.match.play import POLL_S, MatchError
from bench.match.summary import Hypotheses, SequentialTest, render, summarise, to_json
from engine.system.executor import Done, Executor, Job
from engine.system.files import written_whole
from gtp.cli.arguments import NewFile
from gtp.cli.terminal import INTERRUPTED, progress_bar, say


class Scoreboard:
    """The bar of a match: how many games are over and who won them. Threads: any."""

    def __init__(self, progress: Progress, folder: MatchFolder, games: int, sprt: Hypotheses | None) -> None:
        self._test = SequentialTest(sprt, folder.records) if sprt else None
        self.missing = [] if self.is_decided else folder.missing(games)
        """numbers of the games to be played"""
        self._progress, self._folder = progress, folder
        self._task = progress.add_task("", total=games, completed=games - len(self.missing))

    @property
    def is_decided(self) -> bool:
        """Whether no further game is needed: a sequential test has accepted one of its hypotheses."""
        return self._test is not None and self._test.accepted is not None

    def play(self, executor: Executor, job: Job, numbers: Iterable[int], is_told: bool) -> None:
        """Play what is missing; every finished game goes to the folder, once.

        Args:
            job: pieces of work of which each comes to lines of ``games.jsonl``.
            numbers: of these pieces.
            is_told: whether a game is a line on standard error, too.
        Raises:
            MatchError, EngineError: the match cannot go on.
            KeyboardInterrupt: Ctrl-C; games in progress are dropped, finished ones kept, as at a test's decision.
        """
        stopped = threading.Event()

        def take(done: Done) -> None:
            record = read_record(done[1])
            is_new = self._folder.add(record)
            if is_new and self._test:
                self._test.add(record)
            self.show(finished=int(is_new))
            if is_new and is_told:
                say(self._progress.console, _one_line(record))
            if self.is_decided:
                stopped.set()

        executor.work(job, {}, takewhile(lambda _: not stopped.is_set(), numbers), take, stopped, lambda: None, POLL_S)

    def show(self, words: str = "", finished: int = 0) -> None:
        """Show the score and some words behind it; count games that have been finished."""
        won = [sum(record.winner == role for record in self._folder.records) for role in ROLES]
        ratio = f"  LLR {self._test.llr:+.2f}" if self._test else ""
        self._progress.update(self._task, description=f"{won[0]} : {won[1]}{ratio}{words}", advance=finished)


def _one_line(record: GameRecord) -> str:
    """A finished game in a line."""
    detail = f" ({record.detail})" if record.detail else ""
    outcome = {"draw": "draw", None: "no result"}.get(record.winner) or f"{record.names[record.winner or '']} wins"
    return f"game {record.game}: {outcome}, {record.result}, {len(record.moves)} moves, {record.reason}{detail}"


def play_and_report(
    folder: MatchFolder, games: int, json_path: Path | None, sprt: Hypotheses | None, play: Callable[[Scoreboard], None]
) -> None:
    """Play with a bar on standard error, then print the table; ends the click command that calls it.

    Args:
        json_path: file for the statistics; None = none.
        sprt: what a sequential test decides between; None = no test.
        play: calls :meth:`Scoreboard.play`.
    """
    console, status = Console(stderr=True), 0
    try:
        with progress_bar(console) as progress:
            play(Scoreboard(progress, folder, games, sprt))
    except KeyboardInterrupt:
        hint = "; the same command goes on" if folder.is_kept else ""
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
    """What ``--sprt`` says."""
    try:
        return Hypotheses(*elo) if elo else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def kept(command: Callable) -> Callable:
    """Decorator: the options that say where games and statistics go, and when enough have been played."""
    sgf_help = "folder for SGFs and results; a match in it resumes"
    folder = click.Path(file_okay=False, path_type=Path)
    test_help = "stop as soon as one of two Elo differences of the first player is accepted, with 5% errors"
    command = click.option("--sprt", nargs=2, type=float, metavar="ELO0 ELO1", callback=_hypotheses, help=test_help)(
        command
    )
    command = click.option("--json", "json_path", type=NewFile(), help="file for the statistics as JSON")(command)
    return click.option("--sgf", "folder", type=folder, help=sgf_help)(command)
