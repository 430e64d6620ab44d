"""``keima match``: many games between two GTP engines, and the table of their results.

Start at :func:`run_match`. Threads of this process or actors of a Ray cluster play games, each with engines of its own
(:mod:`bench.match.job`); this process alone keeps the results, shows progress on standard error and writes files
(:mod:`bench.match.runner`). Games 1 and 2 share an opening, then 3 and 4, and so on; the first engine is Black in the
odd ones.
"""

import threading
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress

from bench.match.clocks import time_control
from bench.match.folder import MatchFolder
from bench.match.gtp_client import argument_words
from bench.match.job import POLL_S, Match, MatchJob, MatchWorker
from bench.match.openings import read_openings
from bench.match.play import GameSettings
from bench.match.record import GameRecord, read_record
from bench.match.runner import Scoreboard, kept, play_and_report
from bench.match.sprt import Hypotheses
from engine.config import SetupOptions
from engine.go.game import Game
from engine.go.geometry import to_vertex
from engine.go.rules import RULE_SETS, rules_named
from engine.system.crew.here import Here
from engine.system.crew.job import Away, Crew, Done, Opened
from engine.system.files import alone_in
from gtp.cli.arguments import Number, Whole, parsed
from gtp.cli.crew import CrewOptions, ray_options
from gtp.cli.help_style import KeimaCommand
from gtp.cli.terminal import one_line_errors, say


def run_match(
    match: Match, folder: MatchFolder, crew: Crew | None, at_once: int, sprt: Hypotheses | None, progress: Progress
) -> None:  # fmt: skip
    """Play what is missing of a match; every finished game goes to the folder.

    Args:
        crew: who plays; None = this process.
        at_once: games at once, of this process or of each actor of the crew.
        sprt: what a sequential test decides between; games in progress at its decision are dropped. None = no test.
    Raises:
        MatchError, EngineError: the match cannot go on.
        KeyboardInterrupt: Ctrl-C; games in progress are dropped, finished ones kept.
    """
    board, stopped = Scoreboard(progress, folder, match.games, sprt), threading.Event()
    numbers = takewhile(lambda _: not stopped.is_set(), board.missing)

    def on_move(number: int, moves: int) -> None:
        board.show(f"  game {number}, move {moves}")

    def take(done: Done) -> None:
        record = read_record(done[1])
        if board.keep(record):
            say(board.console, _one_line(record))
        if board.is_decided:
            stopped.set()

    with ExitStack() as stack:
        here = Opened(MatchWorker(match, stack, min(at_once, max(1, len(board.missing))), on_move))
        away = Away(crew, MatchJob(match, at_once), {}) if crew else Away(Here(), here, {})
        away.crew.work(away.job, away.files, numbers, take, stopped, lambda: None, POLL_S)


def _one_line(record: GameRecord) -> str:
    """A finished game in a line."""
    detail = f" ({record.detail})" if record.detail else ""
    outcome = {"draw": "draw", None: "no result"}.get(record.winner) or f"{record.names[record.winner or '']} wins"
    return f"game {record.game}: {outcome}, {record.result}, {len(record.moves)} moves, {record.reason}{detail}"


def _settings_of(match: Match) -> dict[str, Any]:
    """What must not change between runs of one match, as JSON values; the number of games may."""
    size = match.settings.size
    openings = [" ".join(to_vertex(point, size) for point in points) for points in match.openings]
    chosen = {"first": match.first, "second": match.second, "referee": match.referee, "openings": openings}
    return chosen | {"names": list(match.names)} | asdict(match.settings)


def _command_line(text: str) -> str:
    """An engine's command line, refused where it could not be started for its form."""
    argument_words(text)
    return text


COMMAND = parsed(_command_line)
RULES_HELP = (
    f"rules that decide what is legal: {', '.join(RULE_SETS)}; engines that know kata-set-rules or kgs-rules are told"
)
TIME_HELP = (
    "clock of each engine: S seconds a move, M+0 seconds in all, M+S/N (M s, then S s for every N moves), "
    "M+PxS (byo-yomi: M s, then P periods of S s) or M+Sf (Fischer: M s, and S s more after each move)"
)
HANDICAP_HELP = "stones that the first engine gives the other, which then has Black in all games"
OWN_NAME = "what it calls itself"
OPENINGS_HELP = "folder of SGFs or of shards of games; each opening is played twice, colours changed"


@click.command(cls=KeimaCommand)
@click.option(
    "--first",
    required=True,
    metavar="COMMAND",
    callback=COMMAND,
    help="command line of one engine; Black in the odd games",
)
@click.option("--second", required=True, metavar="COMMAND", callback=COMMAND, help="command line of the other")
@click.option("--games", default=10, type=Whole(1, 9999), help="games to play")
@click.option("--size", default=19, type=Whole(2, 25), help="board size")
@click.option("--komi", default=SetupOptions.komi, metavar="POINTS", help="White's points")
@click.option("--handicap", default=0, type=Whole(0), help=HANDICAP_HELP)
@click.option("--rules", default="chinese", metavar="NAME", callback=parsed(rules_named), help=RULES_HELP)
@click.option(
    "--time", callback=parsed(time_control), metavar="CLOCK", show_default="none, the engines decide", help=TIME_HELP
)
@click.option(
    "--referee",
    metavar="COMMAND",
    callback=COMMAND,
    help="command line of a third engine that decides legality and scores",
)
@click.option("--openings", type=click.Path(exists=True, file_okay=False, path_type=Path), help=OPENINGS_HELP)
@click.option("--opening-moves", default=0, type=Whole(0), help="moves to take of each opening; 0 = all")
@click.option("--max-moves", default=0, type=Whole(0), help="moves after which a game is scored; 0 = three boards full")
@click.option(
    "--patience", "patience_s", default=GameSettings.patience_s, type=Number(1), metavar="SECONDS",
    help="longest wait for an answer without a clock",
)  # fmt: skip
@click.option(
    "--tolerance", "tolerance_s", default=GameSettings.tolerance_s, type=Number(0), metavar="SECONDS",
    help="overstepping a clock that is forgiven",
)  # fmt: skip
@click.option("--first-name", metavar="NAME", show_default=OWN_NAME, help="what to call the first engine")
@click.option("--second-name", metavar="NAME", show_default=OWN_NAME, help="what to call the second engine")
@click.option(
    "--concurrency", default=1, type=Whole(1, 256),
    help="games at once, each with engines of its own; with --ray, of each actor",
)  # fmt: skip
@ray_options
@kept
def command(
    folder: Path | None, json_path: Path | None, sprt: Hypotheses | None, concurrency: int, crew: CrewOptions,
    **chosen: Any,
) -> None:  # fmt: skip
    """Let two GTP engines play a match, and print the Elo difference.

    The win rate and its 95% interval stand beside it, and how the games ended.

    The engines' own options, such as visits or level, go into their command lines:

    \b
        keima match --first "keima gtp --seconds 3" \\
                    --second "gnugo --mode gtp --level 10 --chinese-rules" \\
                    --size 9 --games 30 --sgf runs/gnugo-9x9
    """
    with ExitStack() as stack:
        with one_line_errors():
            match = _match_of(**chosen)
            if folder:
                stack.enter_context(alone_in(folder))
            found = MatchFolder(folder, _settings_of(match))
            is_away = crew.ray and found.missing(match.games)
            # A game may take hours: none waits at an actor while another has nothing to do.
            away = crew.open(stack, chunk=1, at_once=concurrency, waiting=0) if is_away else None
        play_and_report(found, json_path, sprt, partial(run_match, match, found, away, concurrency, sprt))


def _match_of(first, second, referee, games, openings, opening_moves, first_name, second_name, **settings) -> Match:
    """The match that the command's options ask for; ``settings`` are those of :class:`GameSettings`.

    Raises:
        ValueError: komi, handicap or openings cannot be used; one line.
    """
    rules, time = settings.pop("rules"), settings.pop("time") or GameSettings.time
    chosen = GameSettings(rules=rules.name, time=time, **settings)
    board = Game(chosen.size, rules, chosen.komi)
    if chosen.handicap and openings:
        raise ValueError("--handicap and --openings: expected one of them")
    if chosen.handicap:
        board.fixed_handicap(chosen.handicap)
    starts = read_openings(openings, chosen.size, opening_moves) if openings else ((),)
    return Match(first, second, referee, chosen, games, starts, (first_name, second_name))


if __name__ == "__main__":
    command()
