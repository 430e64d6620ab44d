"""``keima match``: many games between two GTP engines, and the table of their results.

Threads of this process or actors of a Ray cluster play the games, each with its own engines (:mod:`bench.match.play`);
this process collects the results, shows progress on standard error and writes the files (:mod:`bench.match.runner`).
Games 1 and 2 share an opening, as do 3 and 4, and so on; the first engine is Black in odd games.
"""

from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from bench.match.clocks import time_control
from bench.match.folder import MatchFolder, read_openings
from bench.match.gtp_client import argument_words
from bench.match.play import GameSettings, Match
from bench.match.runner import Scoreboard, kept, play_and_report
from bench.match.summary import Hypotheses
from engine.config import SetupOptions
from engine.go.game import Game
from engine.go.geometry import MAX_SIZE, MIN_SIZE, to_vertex
from engine.go.rules import RULE_SETS, rules_named
from engine.system.executor import LocalExecutor
from engine.system.files import alone_in
from gtp.cli import KeimaCommand
from gtp.cli.arguments import Number, Whole, parsed
from gtp.cli.options import ExecutorOptions, ray_options


def _settings_of(match: Match) -> dict[str, Any]:
    """Settings that must be the same in every run of a match, as JSON values; the number of games may differ."""
    size = match.settings.size
    openings = [" ".join(to_vertex(point, size) for point in points) for points in match.openings]
    chosen = {"first": match.first, "second": match.second, "referee": match.referee, "openings": openings}
    return chosen | {"names": list(match.names)} | asdict(match.settings)


def _command_line(text: str) -> str:
    """An engine's command line; raises ValueError if it is empty or has an open quotation."""
    argument_words(text)
    return text


COMMAND = parsed(_command_line)
RULES_HELP = f"rules of the games: {', '.join(RULE_SETS)}; sent to engines that list kata-set-rules or kgs-rules"
TIME_HELP = (
    "clock of each engine: S seconds a move, M+0 seconds in all, M+S/N (M s, then S s for every N moves), "
    "M+PxS (byo-yomi: M s, then P periods of S s) or M+Sf (Fischer: M s, and S s more after each move)"
)
HANDICAP_HELP = "handicap stones that the first engine gives; the second is then Black in all games"
OWN_NAME = "its answers to name and version"
OPENINGS_HELP = "folder of SGFs or of shards of games; each opening is played twice, with colours swapped"


@click.command(cls=KeimaCommand)
@click.option(
    "--first",
    required=True,
    metavar="COMMAND",
    callback=COMMAND,
    help="command line of the first engine, which is Black in odd games",
)
@click.option("--second", required=True, metavar="COMMAND", callback=COMMAND, help="command line of the second engine")
@click.option("--games", default=10, type=Whole(1, 9999), help="games to play")
@click.option("--size", default=19, type=Whole(MIN_SIZE, MAX_SIZE), help="board size")
@click.option("--komi", default=SetupOptions.komi, metavar="POINTS", help="komi, White's points")
@click.option("--handicap", default=0, type=Whole(0), help=HANDICAP_HELP)
@click.option("--rules", default="chinese", metavar="NAME", callback=parsed(rules_named), help=RULES_HELP)
@click.option("--time", callback=parsed(time_control), metavar="CLOCK", show_default="no clock", help=TIME_HELP)
@click.option(
    "--referee",
    metavar="COMMAND",
    callback=COMMAND,
    help="command line of a third engine, which decides on legality and scores the games",
)
@click.option("--openings", type=click.Path(exists=True, file_okay=False, path_type=Path), help=OPENINGS_HELP)
@click.option("--opening-moves", default=0, type=Whole(0), help="length of the openings, in moves; 0 = whole games")
@click.option(
    "--max-moves", default=0, type=Whole(0),
    help="moves after which a game is scored; 0 = three times the board's points",
)  # fmt: skip
@click.option(
    "--patience", "patience_s", default=GameSettings.patience_s, type=Number(1), metavar="SECONDS",
    help="longest wait for an answer that no clock limits",
)  # fmt: skip
@click.option(
    "--tolerance", "tolerance_s", default=GameSettings.tolerance_s, type=Number(0), metavar="SECONDS",
    help="time by which a player may overstep its clock without losing",
)  # fmt: skip
@click.option("--first-name", metavar="NAME", show_default=OWN_NAME, help="name of the first engine in the results")
@click.option("--second-name", metavar="NAME", show_default=OWN_NAME, help="name of the second engine in the results")
@click.option(
    "--concurrency", default=1, type=Whole(1, 256),
    help="concurrent games, each with its own engines; with --ray, for each actor",
)  # fmt: skip
@ray_options
@kept
def command(
    folder: Path | None, json_path: Path | None, sprt: Hypotheses | None, concurrency: int, executor: ExecutorOptions,
    **chosen: Any,
) -> None:  # fmt: skip
    """Let two GTP engines play a match, and print the Elo difference.

    The table also has the win rate, 95% intervals, and how the games ended.

    Options of the engines, such as visits or level, belong in their command lines:

    \b
        keima match --first "keima gtp --seconds 3" \\
                    --second "gnugo --mode gtp --level 10 --chinese-rules" \\
                    --size 9 --games 30 --sgf runs/gnugo-9x9
    """
    with ExitStack() as stack:
        match = _match_of(at_once=concurrency, **chosen)
        if folder:
            stack.enter_context(alone_in(folder))
        found = MatchFolder(folder, _settings_of(match))
        is_remote = executor.ray and found.missing(match.games)
        # A game may take hours: none waits at an actor while another has nothing to do.
        remote = executor.open(stack, chunk=1, at_once=concurrency, waiting=0) if is_remote else None

        def play(board: Scoreboard) -> None:
            def on_move(number: int, moves: int) -> None:
                board.show(f"  game {number}, move {moves}")

            # No more threads than games.
            few = replace(match, at_once=min(concurrency, max(1, len(board.missing))), on_move=on_move)
            board.play(remote or LocalExecutor(), match if remote else few, board.missing, prints_games=True)

        play_and_report(found, match.games, json_path, sprt, play)


def _match_of(
    first, second, referee, games, openings, opening_moves, first_name, second_name, at_once, **settings
) -> Match:
    """A match from the command's options.

    Args:
        openings: folder of games, or None.
        settings: fields of :class:`GameSettings`; ``rules`` as :class:`engine.go.rules.Rules`, ``time`` may be None.
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
    return Match(first, second, referee, chosen, games, starts, (first_name, second_name), at_once)


if __name__ == "__main__":
    command()
