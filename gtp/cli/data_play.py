"""``keima data play``: games of policies without search, in bulk."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.selfplay.bulk import BulkJob, BulkPlay
from engine.selfplay.many_games import groups_for
from engine.selfplay.openings import OpenedPlan
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.variety import Variety
from engine.system.crew.job import Away
from engine.system.files import alone_in
from engine.train.ranks import find_ranks, own_cores
from gtp.cli.arguments import PATHS, Whole
from gtp.cli.bulk import GOES_ON, OUT_OPTION, Effort, effort_options, identity, run_with_bar, variety_options
from gtp.cli.crew import CrewOptions, ray_options
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import options_of
from gtp.cli.terminal import one_line_errors
from weights import files_of, find_network

AT_ONCE = {"cpu": 64, "gpu": 512}
"""Games of a group: on the CPU more are hardly faster, and the last of a run would be long in coming"""


CHUNK_TABLES = 4
"""Games that an actor gets at once, by those of a group: the last of a chunk leave seats empty"""


@click.command("play", cls=KeimaCommand)
@click.argument("network")
@click.option("--opponent", metavar="NETWORK", help="another network; colours alternate from game to game")
@OUT_OPTION
@click.option("--games", default=10_000, type=Whole(1), help="games in all")
@click.option(
    "--openings", type=PATHS, multiple=True, show_default="the empty board", help="shards of games to go on from"
)
@click.option("--opening-moves", default=0, type=Whole(0), help="moves to take of each opening; 0 = all")
@variety_options
@options_of(BulkOptions)
@effort_options(AT_ONCE, "games")
@ray_options
def play_command(
    network: str, opponent: str | None, out: Path, games: int, openings: tuple[Path, ...], opening_moves: int,
    variety: Variety, effort: Effort, crew: CrewOptions, **rest: float | str,
) -> None:  # fmt: skip
    """Let the policy of NETWORK play games against itself, or against another, a move an evaluation.

    Moves are drawn from the policy. Between two networks every opening is played twice, colours changed. A run that
    was stopped, in any way, goes on when the same command is given again. Processes that torchrun starts share out the
    games: torchrun --nproc-per-node GPUS --no-python -- keima ...

    \b
        keima data play default --size 9 --games 20000 --out games-9
        keima data show games-9
    """
    if opening_moves and not openings:
        raise click.UsageError("--opening-moves needs --openings to take them from")
    options = BulkOptions(variety, **rest)  # type: ignore[arg-type]
    console = Console(stderr=True)
    with one_line_errors(RuntimeError), ExitStack() as stack:
        names = (network, *([opponent] if opponent else []))
        count = len(names)
        plan = OpenedPlan(options, count, openings, opening_moves) if openings else Plan(options, count)
        play = play_in_bulk(stack, plan, names, out, games, effort, crew, console)
        _say_what_is_there(console, play, games)


def play_in_bulk(
    stack: ExitStack, plan: Plan, names: Sequence[str], out: Path, wanted: int, effort: Effort, crew: CrewOptions,
    console: Console, counts_positions: bool = False,
) -> BulkPlay:  # fmt: skip
    """Load networks and play a number of games of a plan, or of their positions, with a bar.

    ``stack`` closes what was opened. Of processes that torchrun started each plays its part, and the first one talks.
    """
    ranks, device = find_ranks(effort.device)
    console.quiet |= not ranks.is_first
    servers, identities = [], []
    files: dict[str, Path] = {}
    networks: list[tuple[str, ...]] = []
    for number, name in enumerate(names):
        path = find_network(name)
        paths = files_of(path)
        networks.append(tuple(f"{number}{k}-{one.name}" for k, one in enumerate(paths)))
        files |= dict(zip(networks[-1], paths, strict=True))
        # Where others play, the networks here only say what they can.
        loaded = load_network(path, "cpu" if crew.ray else device, sample_inputs)
        threads = effort.threads or own_cores()
        servers.append(stack.enter_context(InferenceServer(loaded, threads=threads, max_batch=effort.at_once)))
        identities.append(identity(path, loaded.spec.name))
    stack.enter_context(alone_in(out, f"-{ranks.rank}of{ranks.count}" if ranks.count > 1 else ""))
    play = BulkPlay(servers, plan, identities, out, ranks)
    stack.callback(play.close)
    away = None
    if crew.ray:
        job = BulkJob(plan, tuple(networks), effort.at_once)
        away = Away(crew.open(stack, CHUNK_TABLES * effort.at_once), job, files)
    run, count = (play.run_positions, play.positions) if counts_positions else (play.run, lambda: play.games)
    run = partial(run, wanted, effort.at_once, groups_for(servers[0]), away=away)
    run_with_bar(console, play.part_of(wanted), count, play.stop, run)
    return play


def _say_what_is_there(console: Console, play: BulkPlay, games: int) -> None:
    """How the run ended, and how its games did."""
    told = [f"{play.games:,} games"]
    if len(play.missing(games)):
        told.append(GOES_ON)
    else:
        facts = play.facts
        told += [f"{count:,} ended by: {ending}" for ending, count in sorted(facts["endings"].items())]
        if facts["played_out"]:
            told.append(
                f"{facts['played_out']:,} went on where one side had reason to resign, which would have been wrong in "
                f"{facts['wrongly_resigned']:,} ({facts['wrongly_resigned'] / facts['played_out']:.1%})"
            )
    for line in told:
        console.print(line, highlight=False)
