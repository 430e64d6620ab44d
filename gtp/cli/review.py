"""``keima review``: games analysed move by move, and what people and their programs read of it."""

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.config import SearchOptions, SetupOptions
from engine.go.rules import rules_from
from engine.insight.review.games import Source, game_to_review, sources
from engine.insight.review.losses import KINDS, THRESHOLDS
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.running import AnalysedGame, GameAnalyser, subject_of
from engine.insight.review.writing import INDEX, IndexEntry, ReviewOutputs, write_index, write_review
from engine.pictures.drawing import check_png
from engine.system.executor import StopOnSignal
from engine.system.files import alone_in
from gtp import startup
from gtp.cli.arguments import PATHS, Number, Whole, parsed
from gtp.cli.bulk import RESUMES, identity
from gtp.cli.options import GroupedCommand, Player, options_of, player_from, settings_option
from gtp.cli.play import show_bar
from gtp.cli.terminal import INTERRUPTED, bar, one_line_errors
from gtp.startup import load_analysing
from weights import files_of

KEPT = ".analysis"
"""Folder of what has been analysed, in the folder of reviews"""
VISITS = 100


def thresholds_of(text: str) -> tuple[float, ...]:
    """Where the kinds of moves begin, as five numbers with commas between.

    Raises:
        ValueError: not five, or they do not rise.
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    count = len(KINDS) - 1
    rises = all(0 < low <= high < math.inf for low, high in pairwise(values))
    if len(values) != count or not rises:
        raise ValueError(f"expected {count} losses in points that rise, as 0.2,0.6,1.2,4,10, not {text!r}")
    return values


@click.command("review", cls=GroupedCommand)
@click.argument("games", nargs=-1, required=True, type=PATHS)
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder for the reviews")
@click.option("--visits", type=Whole(2), show_default=f"{VISITS}, or no limit with --seconds", help="visits a position")
@click.option("--seconds", default=0.0, type=Number(0, 86400), metavar="SECONDS", help="time a position; 0 = no limit")
@click.option("--thresholds", callback=parsed(thresholds_of), metavar="A,B,C,D,E",
              show_default=",".join(f"{lost:g}" for lost in THRESHOLDS["points"]),
              help=f"points lost from which a move counts as {', '.join(KINDS[1:])}")  # fmt: skip
@click.option("--lines", default=1, type=Whole(0, 5), help="variations in the SGF for each mistake")
@click.option("--katrain/--no-katrain", default=True,
              help="analyses in the SGF for KaTrain to load; most of the file's size")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="also write all numbers as NAME.json")
@click.option("--svg", is_flag=True, help="also write graphs and diagrams as NAME-PART.svg")
@click.option("--png", is_flag=True, help="also write graphs and diagrams as NAME-PART.png; needs matplotlib")
@settings_option(SearchOptions, SetupOptions)
@options_of(SetupOptions, "weights", "device", "rules", "komi")
@options_of(SearchOptions)
@click.pass_context
def review(
    ctx: click.Context, /, games: tuple[Path, ...], out: Path, visits: int | None, seconds: float,
    thresholds: tuple[float, ...] | None, lines: int, katrain: bool, as_json: bool, svg: bool, png: bool,
    config: Path | None, **values: Any,
) -> None:  # fmt: skip
    """Review games: say what each move cost and what was better.

    Every position is analysed. GAMES are SGF files, archives, or folders of such. Each game gets a page for the browser
    and an SGF file with graphs, marks, comments and variations; several games get an index. A stopped review resumes
    when the same command is given again.

    \b
        keima review my-game.sgf --out reviews
        keima review games/ --out reviews --visits 400 --json
    """
    console = Console(stderr=True, highlight=False)
    with one_line_errors(RuntimeError):
        if png:
            check_png()
        means_visits = VISITS if visits is None and not seconds else visits or 0
        wanted = ReviewOutputs(as_json, svg, png, lines, katrain)
        player = player_from(ctx, config, values)
        names = "+".join(file.name.split(".")[0] for file in files_of(player.network))
        means = AnalysisSettings(names, means_visits, seconds)
        refused: list[str] = []

        def refuse(name: str, problem: str) -> None:
            refused.append(name)
            console.print(f"{name}: {problem}", markup=False, soft_wrap=True)

        with console.status("reading games"):
            found = list(sources(games, out, refuse))
        for source in found:
            if source.record.unknown_rules:
                problem = (
                    f"no rules are called {source.record.unknown_rules!r}: reviewed under {player.setup.rules} rules"
                )
                console.print(f"{source.name}: {problem}", markup=False, soft_wrap=True)
        if not found:
            raise click.ClickException("there is no game to review")
        run = Run(out, found, means, wanted, thresholds, player)
        startup.bar = show_bar
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


class Run:
    """All games of one command."""

    def __init__(
        self, out: Path, found: list[Source], means: AnalysisSettings, wanted: ReviewOutputs,
        thresholds: tuple[float, ...] | None, player: Player,
    ) -> None:  # fmt: skip
        """Ready to :meth:`analyse`.

        Args:
            thresholds: losses where kinds of moves begin; None = the usual ones.
            player: its rules and komi are those of games without any.
        """
        self._out, self._found, self._means, self._wanted, self._thresholds = out, found, means, wanted, thresholds
        self._player = player
        self._fingerprint = identity(player.network, "")["sha256"] if player.network else ""
        self._entries: list[IndexEntry] = []
        self._done = 0

    def analyse(self, running: GameAnalyser, console: Console) -> bool:
        """Analyse with a bar, and write each game once it is finished; returns whether all were."""
        total = sum(len(source.record.moves) + 1 for source in self._found)
        columns = (MofNCompleteColumn(), TextColumn("positions"), TimeElapsedColumn(), TimeRemainingColumn())
        with StopOnSignal(running.stop), bar(console, *columns, disable=not console.is_terminal) as progress:
            task = progress.add_task("reviewing", total=total)

            def count() -> None:
                self._done += 1
                progress.update(task, completed=self._done)

            def finish(work: AnalysedGame) -> None:
                self._finish(work)
                progress.update(task, completed=self._done)
                if not console.is_terminal:
                    console.print(f"{work.name}: {self._done} of {total} positions", markup=False)

            is_finished = running.run(self._works(), count, finish)
        if len(self._found) > 1:
            write_index(self._out, self._entries)
        return is_finished

    @property
    def pages(self) -> list[Path]:
        """The pages to open."""
        return [self._out / INDEX] if len(self._found) > 1 else [self._out / entry.page for entry in self._entries]

    def _works(self) -> Iterator[AnalysedGame]:
        """The games, each replayed when its turn comes."""
        setup = self._player.setup
        for source in self._found:
            game = game_to_review(source.record, rules_from(setup.rules), setup.komi)
            subject = subject_of(game, self._means, self._fingerprint, self._player.search)
            work = AnalysedGame(source.name, game, self._out / KEPT, subject)
            self._done += len(work.game.positions) - len(work.missing)
            yield work

    def _finish(self, work: AnalysedGame) -> None:
        """Write a game's review."""
        work.close()
        made = review_of(work.name, work.game, work.turns, self._means, self._thresholds)
        source = next(source for source in self._found if source.name == work.name)
        self._entries.append(write_review(self._out, made, source.tree(), self._wanted))
