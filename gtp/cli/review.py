"""``keima review``: analyses of games move by move, as pages, SGF, JSON and pictures."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.config import SearchOptions, SetupOptions
from engine.insight.review.games import Source, free_page, sources
from engine.insight.review.index import INDEX, IndexEntry, write_index
from engine.insight.review.losses import KINDS, THRESHOLDS
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.running import KEPT, VISITS, AnalysedGame, GameAnalyser, game_to_analyse, names_of
from engine.insight.review.writing import ReviewOutputs, write_review
from engine.pictures.drawing import check_png
from engine.system.executor import StopOnSignal
from engine.system.files import alone_in
from gtp.cli.arguments import PATHS, Number, Whole, parsed
from gtp.cli.options import GroupedCommand, Player, options_of, player_from, settings_option
from gtp.cli.terminal import INTERRUPTED, RESUMES, bar, say
from gtp.startup import load_analysing

FOLDER = "reviews"
"""Name of the folder of reviews beside the first game, without --out"""
HIDDEN = {"device", *(item.name for item in fields(SearchOptions))}
"""Options that ``--help`` does not list, since they are those of ``keima gtp``"""


def thresholds_of(text: str) -> tuple[float, ...]:
    """Parse the minimum losses of the five move classes, in points, from numbers separated by commas.

    Raises:
        ValueError: not five positive numbers in ascending order.
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    count = len(KINDS) - 1
    rises = all(0 < low <= high < math.inf for low, high in pairwise(values))
    if len(values) != count or not rises:
        raise ValueError(f"thresholds {text!r}, expected {count} rising losses in points such as 0.2,0.6,1.2,4,10")
    return values


@click.command("review", cls=GroupedCommand)
@click.argument("games", nargs=-1, required=True, type=PATHS)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              show_default=f"{FOLDER}, beside the first game",
              help="folder for the reviews; other files in it stay")  # fmt: skip
@click.option("--visits", type=Whole(2), show_default=f"{VISITS}, or no limit with --seconds", help="visits a position")
@click.option("--seconds", default=0.0, type=Number(0, 86400), metavar="SECONDS", help="time a position; 0 = no limit")
@click.option("--thresholds", callback=parsed(thresholds_of), metavar="A,B,C,D,E",
              show_default=",".join(f"{lost:g}" for lost in THRESHOLDS["points"]),
              help=f"smallest losses, in points, of the move classes {', '.join(KINDS[1:])}")  # fmt: skip
@click.option("--lines", default=1, type=Whole(0, 5), help="variations in the SGF for each inaccuracy or worse")
@click.option("--katrain/--no-katrain", default=True,
              help="analyses in the SGF for KaTrain, most of the file's size")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="write all numbers as NAME.json too")
@click.option("--svg", is_flag=True, help="write graphs and diagrams as NAME-PART.svg too")
@click.option("--png", is_flag=True, help="write graphs and diagrams as NAME-PART.png too; needs matplotlib")
@settings_option(SearchOptions, SetupOptions)
@options_of(SetupOptions, "weights", "device", "rules", "komi", hidden=HIDDEN)
@options_of(SearchOptions, hidden=HIDDEN)
@click.pass_context
def review(
    ctx: click.Context, /, games: tuple[Path, ...], out: Path | None, visits: int | None, seconds: float,
    thresholds: tuple[float, ...] | None, lines: int, katrain: bool, as_json: bool, svg: bool, png: bool,
    config: Path | None, **values: Any,
) -> None:  # fmt: skip
    """Review games: say what each move cost and what was better.

    Every position is analysed. GAMES are SGF files, archives, or folders of these. Each game gets a page for the
    browser and an SGF file with graphs, marks, comments and variations; several games get an index. The same command
    resumes a stopped review. Options of the search and the device are accepted as by keima gtp (docs/options.md).

    \b
        keima review my-game.sgf
        keima review games/ --out reviews --visits 400 --json
    """
    console = Console(stderr=True, highlight=False)
    out = out or beside(games[0])
    if png:
        check_png()
    means_visits = VISITS if visits is None and not seconds else visits or 0
    wanted = ReviewOutputs(as_json, svg, png, lines, katrain)
    player = player_from(ctx, config, values)
    means = AnalysisSettings(names_of(player.network), means_visits, seconds)
    refused: list[str] = []

    def refuse(name: str, problem: str) -> None:
        refused.append(name)
        say(console, f"{name}: {problem}")

    with console.status("reading games"):
        found = list(sources(games, out, refuse))
    for source in found:
        if source.record.unknown_rules:
            rules = f"unknown rules {source.record.unknown_rules!r}: reviewed under {player.setup.rules} rules"
            say(console, f"{source.name}: {rules}")
    if not found:
        raise click.ClickException("no game to review, expected SGF files, archives or folders of these")
    run = Run(out, found, means, wanted, thresholds, player)
    try:
        (out / KEPT).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{out}: {error.strerror or error}; expected a folder to write into, see --out") from error
    with alone_in(out / KEPT):
        loaded = load_analysing(player.search, player.network, player.setup.device)
        running = GameAnalyser(loaded.analyses, player.search, means, loaded.at_once)
        try:
            is_finished = run.analyse(running, console)
        finally:
            loaded.analyses.close()
    for path in run.pages:
        click.echo(path)
    if not is_finished:
        console.print(RESUMES)
        ctx.exit(INTERRUPTED)
    if refused:
        ctx.exit(1)


def beside(game: Path) -> Path:
    """The folder of reviews for games at a path: beside a file, in a folder."""
    return (game if game.is_dir() else game.parent) / FOLDER


@dataclass
class Run:
    """The reviews of one command's games."""

    out: Path
    found: list[Source]
    means: AnalysisSettings
    wanted: ReviewOutputs
    thresholds: tuple[float, ...] | None
    """minimum losses of the move classes, in points; None = the defaults"""
    player: Player
    """its settings give rules and komi to games that name none"""
    entries: list[IndexEntry] = field(default_factory=list)
    """entries of the index, one per finished review"""
    done: int = 0
    """number of positions analysed"""

    def analyse(self, running: GameAnalyser, console: Console) -> bool:
        """Analyse the games under a progress bar; write each review once its game is done.

        Returns:
            bool: all games are done.
        """
        total = sum(len(source.record.moves) + 1 for source in self.found)
        columns = (MofNCompleteColumn(), TextColumn("positions"), TimeElapsedColumn(), TimeRemainingColumn())
        with StopOnSignal(running.stop), bar(console, *columns, disable=not console.is_terminal) as progress:
            task = progress.add_task("reviewing", total=total)

            def count() -> None:
                self.done += 1
                progress.update(task, completed=self.done)

            def finish(work: AnalysedGame) -> None:
                self._finish(work)
                progress.update(task, completed=self.done)
                if not console.is_terminal:
                    say(console, f"{work.name}: {self.done} of {total} positions")

            is_finished = running.run(self._works(), count, finish)
        if len(self.found) > 1:
            write_index(self.index, self.entries)
        return is_finished

    @property
    def pages(self) -> list[Path]:
        """Paths of the pages to open: the index, or with a single game its page."""
        return [self.index] if len(self.found) > 1 else [self.out / entry.page for entry in self.entries]

    @property
    def index(self) -> Path:
        """Path of the index."""
        return free_page(self.out, INDEX)

    def _works(self) -> Iterator[AnalysedGame]:
        """Yield the games to analyse, each replayed when it is asked for; counts positions analysed before as done."""
        setup, network, search = self.player.setup, self.player.network, self.player.search
        for source in self.found:
            work = game_to_analyse(source, self.out, setup.rules, setup.komi, self.means, network, search)
            self.done += len(work.game.positions) - len(work.missing)
            yield work

    def _finish(self, work: AnalysedGame) -> None:
        """Write the review of an analysed game, and add it to the index's entries."""
        work.close()
        made = review_of(work.name, work.game, work.turns, self.means, self.thresholds)
        source = next(source for source in self.found if source.name == work.name)
        self.entries.append(write_review(self.out, made, source.tree(), self.wanted))
