"""``keima data reached``: positions that searches reach, for a stronger network to label."""

from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from engine.selfplay.reached import ReachedPlan
from engine.selfplay.search_options import SearchPlayOptions
from gtp.cli.arguments import Whole
from gtp.cli.bulk import GOES_ON, OUT_OPTION, Effort, effort_options
from gtp.cli.crew import CrewOptions, ray_options
from gtp.cli.data_play import AT_ONCE, play_in_bulk
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import options_of
from gtp.cli.terminal import one_line_errors


@click.command("reached", cls=KeimaCommand)
@click.argument("network")
@OUT_OPTION
@click.option("--positions", default=100_000, type=Whole(1), help="positions, at least")
@click.option("--draws", default=4, type=Whole(1, 64), help="positions of a full search: its root, and of its tree")
@options_of(
    SearchPlayOptions, "size", "rules", "komi", "visits", "fast_visits", "full_share", "seed",
    defaults={"visits": 40, "fast_visits": 1, "full_share": 0.05},
)  # fmt: skip
@click.option("--games-per-shard", default=80_000, type=Whole(1), help="in all shards but the last; one a position")
@effort_options(AT_ONCE, "games")
@ray_options
def reached_command(
    network: str, out: Path, positions: int, draws: int, games_per_shard: int, effort: Effort, crew: CrewOptions,
    **rest: float | str,
) -> None:  # fmt: skip
    """Let NETWORK play games against itself by search, and keep positions of its searches.

    Positions of games alone do not teach a network to judge the weak moves that a search tries. The shards hold games
    that lead to one position each: label them with a stronger network, and learn from those labels beside others. By
    default most moves are drawn from the policy, so that positions come of many games, few of each.

    \b
        keima data reached default --size 9 --positions 200000 --out reached-9
        keima data label reached-9 --recorded 9 --network teacher.bin.gz --positions 200000 --out labels-reached-9
    """
    console = Console(stderr=True)
    with one_line_errors(RuntimeError), ExitStack() as stack:
        plan = ReachedPlan(SearchPlayOptions(**rest), draws, games_per_shard)  # type: ignore[arg-type]
        play = play_in_bulk(stack, plan, (network,), out, positions, effort, crew, console, counts_positions=True)
        told = f"{play.positions():,} positions"
        console.print(f"{told}; {GOES_ON}" if play.is_stopped else told, highlight=False)
