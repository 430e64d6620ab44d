"""``keima data values``: positions for a value network, one a game or all of whole games."""

from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from engine.selfplay.bulk import BulkPlay
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.values import ATTEMPTS, ValuePlan
from engine.selfplay.variety import Variety
from gtp.cli.arguments import Whole
from gtp.cli.bulk import GOES_ON, OUT_OPTION, Effort, effort_options, variety_options
from gtp.cli.crew import CrewOptions, ray_options
from gtp.cli.data_play import AT_ONCE, play_in_bulk
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import options_of
from gtp.cli.terminal import one_line_errors

PARTS = 10
"""Parts of the range of U whose missing positions are told apart"""


@click.command("values", cls=KeimaCommand)
@click.argument("sl")
@click.argument("rl")
@OUT_OPTION
@click.option("--positions", default=100_000, type=Whole(1), help="positions in all")
@click.option("--whole-games", is_flag=True, help="all positions of games that RL plays alone, to compare with")
@click.option("--latest", default=0, type=Whole(0), help="largest U; 0 = 450 on 19x19, in proportion")
@variety_options
@options_of(BulkOptions, "size", "passes", "dead_stones", "limit", "games_per_shard", "seed")
@effort_options(AT_ONCE, "games")
@ray_options
def values_command(
    sl: str, rl: str, out: Path, positions: int, whole_games: bool, latest: int, variety: Variety, effort: Effort,
    crew: CrewOptions, **rest: float | str,
) -> None:  # fmt: skip
    """Make positions for a value network, as AlphaGo's were made: one a game.

    The policy SL plays the moves before a ply U, each U as probable; move U is random; the policy RL plays the rest,
    and the position after the random move is kept with the result. With --whole-games RL plays all moves and every
    position is kept, as for the comparison in the paper: learn from them with --positions-per-game 0.

    \b
        keima data values alphago-9-sl rl-9/network.safetensors --size 9 --positions 500000 --out values-9
        keima train value --games values-9 --validation held-out.npz.xz --size 9 --out value-9
    """
    if whole_games and latest:
        raise click.UsageError("--latest is about the random move, which --whole-games leaves out")
    options = BulkOptions(variety, **rest)  # type: ignore[arg-type]
    console = Console(stderr=True)
    with one_line_errors(RuntimeError), ExitStack() as stack:
        if whole_games:
            plan = Plan(options, 1)
            play = play_in_bulk(stack, plan, (rl,), out, positions, effort, crew, console, counts_positions=True)
            console.print(f"{play.positions():,} positions of {play.games:,} games", highlight=False)
            if play.is_stopped:
                console.print(GOES_ON, highlight=False)
            return
        values = ValuePlan(options, latest)
        play = play_in_bulk(stack, values, (sl, rl), out, positions, effort, crew, console)
        console.print(f"{play.games:,} positions", highlight=False)
        if len(play.missing(positions)):
            _say_what_is_missing(console, play, values, positions)


def _say_what_is_missing(console: Console, play: BulkPlay, plan: ValuePlan, positions: int) -> None:
    """Where games were over before their random move, or that the run was stopped."""
    if play.is_stopped:
        console.print(GOES_ON, highlight=False)
        return
    missing = plan.random_plies(play.missing(positions))
    counts, edges = np.histogram(missing, PARTS, (1, plan.latest + 1))
    console.print(
        f"in {len(missing):,} of {play.part_of(positions):,} all {ATTEMPTS} games were over before move U:",
        highlight=False,
    )
    for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        if count:
            console.print(f"  U {int(np.ceil(low))} to {int(np.ceil(high)) - 1}: {count:,}", highlight=False)
