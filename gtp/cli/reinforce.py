"""``keima train reinforce``: a policy network that improves by playing."""

from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.nets.on_device import choose_device, load_network
from engine.selfplay.reinforce import Reinforce, ReinforceOptions
from engine.selfplay.variety import Variety
from engine.system.files import alone_in
from engine.system.signals import StopOnSignal
from engine.train.ranks import join_ranks
from gtp.cli.bulk import GOES_ON, OUT_OPTION, identity, machine_options, variety_options
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import options_of
from gtp.cli.terminal import bar, one_line_errors
from weights import find, find_network

SHOWN = ("win_rate/start", "win_rate/newest", "win_rate/pool")
"""Metrics of matches, told in a line of their own"""


@click.command("reinforce", cls=KeimaCommand)
@click.argument("network")
@OUT_OPTION
@click.option(
    "--baseline", metavar="NETWORK", show_default="nothing", help="network whose value is taken off the rewards"
)
@variety_options
@options_of(ReinforceOptions)
@machine_options
def reinforce_command(
    network: str, out: Path, baseline: str | None, variety: Variety, device: str, threads: int, **rest: float | str
) -> None:
    """Improve the policy of NETWORK by games against its earlier selves, as AlphaGo did (REINFORCE).

    A run that was stopped, in any way, goes on as if it had not been when the same command is given again. Processes
    that torchrun starts share out games and gradient: torchrun --nproc-per-node GPUS --no-python -- keima ...

    \b
        keima train reinforce alphago-9-sl --size 9 --updates 2000 --pool-every 100 --out rl-9
    """
    options = ReinforceOptions(variety, **rest)  # type: ignore[arg-type]
    with one_line_errors(RuntimeError), ExitStack() as stack, StopOnSignal() as stop:
        (ranks, chosen), start = join_ranks(choose_device(device, threads)), find(network)
        stack.push(lambda kind, *_: ranks.leave(kind is not None))
        console = Console(stderr=True, quiet=not ranks.is_first)
        if ranks.is_first:
            stack.enter_context(alone_in(out))
        known = None
        if baseline:
            path = find_network(baseline)
            loaded = load_network(path, chosen)
            if "value" not in loaded.spec.heads:
                raise ValueError(f"network {loaded.spec.name} has no value to be a baseline")
            known = loaded, identity(path, loaded.spec.name)
        run = Reinforce(start, identity(start, start.stem), options, out, chosen, known, threads, ranks)
        console.print(run.learner.said, highlight=False)
        columns = (MofNCompleteColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn())
        with bar(console, *columns) as progress:
            task = progress.add_task("updates", total=options.updates, completed=run.learner.step, note="")

            def report(step: int, metrics: dict[str, float]) -> None:
                note = f"entropy {metrics['entropy']:.2f}, {metrics['games_per_s']:.1f} games/s"
                progress.update(task, completed=step, note=note)
                if told := [f"{name} {metrics[name]:.1%}" for name in SHOWN if name in metrics]:
                    console.print(f"update {step}: {', '.join(told)}", highlight=False)

            run.run(lambda: stop.asked, report)
        if run.learner.step < options.updates:
            console.print(GOES_ON, highlight=False)
