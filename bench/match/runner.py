"""What ``keima match`` and the arena share: results come in one by one, the score is shown, the table printed.

A runner starts threads or processes that put a :class:`bench.match.record.GameRecord` for each game into a queue, or
the exception that ends the match, and takes them with :func:`receive` in the thread that owns the folder.
"""

import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from bench.match.folder import MatchFolder
from bench.match.gtp_client import EngineError
from bench.match.play import MatchError
from bench.match.record import ROLES, GameRecord
from bench.match.summary import render, summarise, to_json
from bench.terminal import progress_bar, say
from gtp.cli.terminal import INTERRUPTED

POLL_S = 0.2


class Scoreboard:
    """The bar of a match: how many games are over and who won them. Threads: any."""

    def __init__(self, progress: Progress, folder: MatchFolder, games: int) -> None:
        self.missing = folder.missing(games)
        """numbers of the games to be played"""
        self.console = progress.console
        self._progress, self._folder = progress, folder
        self._task = progress.add_task("", total=games, completed=games - len(self.missing))

    def show(self, words: str = "", finished: int = 0) -> None:
        """Show the score and some words behind it; count games that have been finished."""
        won = [sum(record.winner == role for record in self._folder.records) for role in ROLES]
        self._progress.update(self._task, description=f"{won[0]} : {won[1]}{words}", advance=finished)


def receive(
    results: Any, folder: MatchFolder, board: Scoreboard, check: Callable[[], None] = lambda: None
) -> Iterator[GameRecord]:
    """Keep the missing games as they finish, and give each record out.

    Args:
        results: a queue of threads or of processes, of records and exceptions.
        check: called while nothing comes; raises if nothing can come any more.
    Raises:
        Exception: what a worker put into the queue.
    """
    for _ in board.missing:
        record = _next(results, check)
        folder.add(record)
        board.show(finished=1)
        yield record


def _next(results: Any, check: Callable[[], None]) -> GameRecord:
    """The next record; short waits, since a wait without end cannot be interrupted on Windows."""
    while True:
        try:
            found = results.get(timeout=POLL_S)
        except queue.Empty:
            check()
            continue
        if isinstance(found, Exception):
            raise found
        return found


def play_and_report(folder: MatchFolder, json_path: Path | None, play: Callable[[Progress], None]) -> None:
    """Play with a bar on standard error, then print the table; ends the click command that calls it.

    Args:
        json_path: file for the figures; None = none.
        play: plays what is missing.
    """
    console, status = Console(stderr=True), 0
    try:
        with progress_bar(console) as progress:
            play(progress)
    except KeyboardInterrupt:
        hint = "; the same command goes on" if folder.is_kept else ""
        say(console, f"interrupted after {len(folder.records)} games{hint}")
        status = INTERRUPTED
    except (MatchError, EngineError, OSError) as error:
        say(console, f"match stopped: {error}")
        status = 1
    summary = summarise(folder.records, folder.settings)
    click.echo(render(summary))
    if json_path:
        json_path.write_text(to_json(summary) + "\n", encoding="utf-8")
    click.get_current_context().exit(status)


def kept(command: Callable) -> Callable:
    """Decorator: the options that say where games and figures go."""
    sgf_help = "folder for SGFs and results; a match found there goes on"
    folder, file = click.Path(file_okay=False, path_type=Path), click.Path(dir_okay=False, path_type=Path)
    command = click.option("--json", "json_path", type=file, help="file for all figures as JSON")(command)
    return click.option("--sgf", "folder", type=folder, help=sgf_help)(command)
