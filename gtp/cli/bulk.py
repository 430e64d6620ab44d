"""``keima data play``, ``reached``, ``values`` and ``label``: bulk runs with common options and a progress bar."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.features.encoder import sample_inputs
from engine.go.rules import Rules, rules_from
from engine.inference.server import InferenceServer
from engine.nets.devices import torch_device
from engine.nets.on_device import load_network
from engine.records.archive import SHARD_FILE, holds_records
from engine.records.filters import Filters
from engine.records.games import shard_files
from engine.records.shards import MANIFEST, BuildOptions, build, read_manifest
from engine.selfplay.bulk import BulkJob, BulkPlay
from engine.selfplay.game_distribution import (
    GameDistribution,
    Komi,
    Shares,
    parse_share,
    read_komi,
    read_size,
    read_temperature,
)
from engine.selfplay.games import batches_for
from engine.selfplay.label_job import LabelJob, LabelOptions
from engine.selfplay.labelling import GAMES, Labelling, check_out
from engine.selfplay.plan import BulkOptions, OpenedPlan, Plan
from engine.selfplay.reached import ReachedPlan
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.values import ATTEMPTS, ValuePlan
from engine.system.executor import Execution, Job, StopOnSignal
from engine.system.files import alone_in
from engine.train.ranks import find_ranks, own_cores
from engine.train.teacher import Teacher
from gtp.cli import KeimaCommand
from gtp.cli.arguments import DEVICE, PATHS, THREADS, Whole, parsed
from gtp.cli.options import Decorator, ExecutorOptions, options_of, ray_options, with_options
from gtp.cli.terminal import RESUMES, bar, workers_for
from weights import files_of, find_network, identity

OUT = click.option("--out", required=True, type=click.Path(path_type=Path), help="output folder; a started run resumes")
AT_ONCE = {"cpu": 64, "gpu": 512}
"""Default batch size in games, by device: larger batches are hardly faster on the CPU and take longer to end"""
LABEL_AT_ONCE = {"cpu": 8, "gpu": 256}
"""Default batch size in positions, by device: larger batches are hardly faster on the CPU"""
CHUNK_TABLES, CHUNK_BATCHES = 4, 2
"""Size of a Ray actor's chunk of games and of labels, in batches: near the end of a chunk, batches are not full"""
PARTS = 10
"""Number of intervals of U, the number of the random move, in the report of missing positions"""


class Bulk(NamedTuple):
    """The machine, output folder and console of a bulk command."""

    out: Path
    device: torch.device
    threads: int
    """CPU threads of the networks; 0 = one a core"""
    at_once: int
    """batch size"""
    executor: ExecutorOptions
    console: Console
    stack: ExitStack
    """resources that are closed at the end of the command"""

    def say(self, *lines: str) -> None:
        """Print lines to standard error."""
        for line in lines:
            self.console.print(line, highlight=False)

    def execution(self, batches: int, job: Job, files: Mapping[str, Path]) -> Execution | None:
        """The execution of ``job`` by Ray actors, in chunks of ``batches`` batches; None without ``--ray``."""
        if not self.executor.ray:
            return None
        return Execution(self.executor.open(self.stack, batches * self.at_once), job, files)

    def run(self, total: int, count: Callable[[], int], stop: Callable[[], None],
            run: Callable[[Callable[[], None]], None]) -> None:  # fmt: skip
        """Show work under a progress bar; Ctrl-C and SIGTERM stop the work, which can be resumed.

        Args:
            count: returns the number of finished items out of ``total``.
            stop: makes ``run`` return soon.
            run: does the work; it calls its argument at intervals to update the bar.
        """
        columns = (MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
        with StopOnSignal(stop), bar(self.console, *columns) as progress:
            begun = count()
            task = progress.add_task("", total=total, completed=begun, rate="")

            def report() -> None:
                elapsed = progress.tasks[0].elapsed or 0
                rate = (count() - begun) / elapsed if elapsed else 0.0
                shown = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
                progress.update(task, completed=count(), rate=shown if rate else "")

            run(report)


def bulk_options(at_once: Mapping[str, int], what: str) -> Decorator:
    """Decorator: ``--out`` and the machine's options, which the command gets as ``bulk``, a :class:`Bulk`.

    Args:
        at_once: default of ``--at-once``, by device.
        what: unit of the batch size, in the plural.
    """
    usual = f"{at_once['cpu']} on the CPU, {at_once['gpu']} on a GPU"
    size_option = click.option("--at-once", "batch", type=Whole(1), show_default=usual, help=f"batch size, in {what}")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(
            out: Path, device: str, threads: int, batch: int | None, executor: ExecutorOptions, **rest: Any
        ) -> Any:
            with ExitStack() as stack:
                chosen = torch_device(device)
                size = batch or at_once["cpu" if chosen.type == "cpu" else "gpu"]
                return function(bulk=Bulk(out, chosen, threads, size, executor, Console(stderr=True), stack), **rest)

        return with_options(command, (OUT, DEVICE, THREADS, size_option, ray_options))

    return decorate


def share(metavar: str, read: Callable[[str], Any], *default: str, text: str, usual: str = "") -> dict[str, Any]:
    """Keyword arguments of :func:`click.option` for a repeatable option ``WHAT=SHARE``; a missing share is 1.

    Args:
        read: parses WHAT; raises ``ValueError``.
        text: help text.
        usual: the default as help shows it; empty = ``default``.
    """
    callback = parsed(partial(parse_share, read=read))
    return {"multiple": True, "callback": callback, "metavar": metavar, "default": default, "help": text,
            "show_default": usual or True}  # fmt: skip


def distribution_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--rules``, ``--komi`` and ``--temperature``, which the command gets as ``distribution``."""

    @wraps(function)
    def command(*, rules: Shares[Rules], komi: Shares[Komi], temperature: Shares[float], **rest: Any) -> Any:
        return function(distribution=GameDistribution(rules, komi, temperature), **rest)

    options: tuple[Decorator, ...] = (
        click.option("--rules", **share("NAME=SHARE", rules_from, "chinese", text="rule set (docs/rules.md)")),
        click.option("--komi", **share(
            "KOMI=SHARE", read_komi, "usual",
            text="komi: usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
        )),
        click.option("--temperature", **share("T=SHARE", read_temperature, "1", text="policy temperature")),
    )  # fmt: skip
    return with_options(command, options)


def play_in_bulk(bulk: Bulk, plan: Plan, names: Sequence[str], wanted: int, counts_positions: bool = False) -> BulkPlay:
    """Load networks and play games of a plan under a progress bar.

    Each process that torchrun started plays its share; the first one prints.

    Args:
        wanted: total number of games or, if ``counts_positions``, of positions.
    """
    ranks, device = find_ranks(bulk.device)
    bulk.console.quiet |= not ranks.is_first
    servers, identities = [], []
    files: dict[str, Path] = {}
    networks: list[tuple[str, ...]] = []
    for number, name in enumerate(names):
        path = find_network(name)
        paths = files_of(path)
        networks.append(tuple(f"{number}{k}-{one.name}" for k, one in enumerate(paths)))
        files |= dict(zip(networks[-1], paths, strict=True))
        # With Ray, this process needs the networks' shapes alone.
        loaded = load_network(path, "cpu" if bulk.executor.ray else str(device), sample_inputs)
        server = InferenceServer(loaded, threads=bulk.threads or own_cores(), max_batch=bulk.at_once)
        servers.append(bulk.stack.enter_context(server))
        identities.append(identity(path, loaded.spec.name))
    bulk.stack.enter_context(alone_in(bulk.out, f"-{ranks.rank}of{ranks.count}" if ranks.count > 1 else ""))
    play = BulkPlay(servers, plan, identities, bulk.out, ranks)
    bulk.stack.callback(play.close)
    execution = bulk.execution(CHUNK_TABLES, BulkJob(plan, tuple(networks), bulk.at_once), files)
    run, count = (play.run_positions, play.positions) if counts_positions else (play.run, lambda: play.games)
    run = partial(run, wanted, bulk.at_once, batches_for(servers[0]), execution=execution)
    bulk.run(play.part_of(wanted), count, play.stop, run)
    return play


@click.command("play", cls=KeimaCommand)
@click.argument("network")
@click.option("--opponent", metavar="NETWORK", help="another network; colors alternate from game to game")
@click.option("--games", default=10_000, type=Whole(1), help="number of games")
@click.option("--openings", type=PATHS, multiple=True, show_default="the empty board",
              help="shards of games to take openings from")  # fmt: skip
@click.option("--opening-moves", default=0, type=Whole(0), help="moves of each opening; 0 = all")
@distribution_options
@options_of(BulkOptions)
@bulk_options(AT_ONCE, "games")
def play_command(
    bulk: Bulk, network: str, opponent: str | None, games: int, openings: tuple[Path, ...], opening_moves: int,
    distribution: GameDistribution, **rest: float | str,
) -> None:  # fmt: skip
    """Let the policy of NETWORK play games without search, against itself or another network.

    Moves are drawn from the policy. Two networks play every opening twice, with colors swapped. The same command
    resumes a stopped run. Processes that torchrun starts share the games: torchrun --nproc-per-node GPUS --no-python --
    keima data play ...

    \b
        keima data play default --size 9 --games 20000 --out games-9
        keima data show games-9
    """
    if opening_moves and not openings:
        raise click.UsageError("--opening-moves needs --openings")
    options = BulkOptions(distribution, **rest)  # type: ignore[arg-type]
    names = (network, *([opponent] if opponent else []))
    count = len(names)
    plan = OpenedPlan(options, count, openings, opening_moves) if openings else Plan(options)
    play = play_in_bulk(bulk, plan, names, games)
    bulk.say(f"{play.games:,} games")
    if len(play.missing(games)):
        bulk.say(RESUMES)
        return
    facts = play.facts
    bulk.say(*(f"{count:,} ended by: {ending}" for ending, count in sorted(facts["endings"].items())))
    if facts["played_out"]:
        wrong = facts["wrongly_resigned"]
        bulk.say(
            f"{facts['played_out']:,} games were played out although one side could have resigned; resigning would "
            f"have been wrong in {wrong:,} ({wrong / facts['played_out']:.1%})"
        )


@click.command("reached", cls=KeimaCommand)
@click.argument("network")
@click.option("--positions", default=100_000, type=Whole(1), help="minimum number of positions")
@click.option("--draws", default=4, type=Whole(1, 64), help="positions kept of a full search: its root and tree nodes")
@options_of(
    SearchPlayOptions, "size", "rules", "komi", "visits", "fast_visits", "full_share", "seed",
    defaults={"visits": 40, "fast_visits": 1, "full_share": 0.05},
)  # fmt: skip
@click.option("--games-per-shard", default=80_000, type=Whole(1), help="games in a shard; each holds one position")
@bulk_options(AT_ONCE, "games")
def reached_command(
    bulk: Bulk, network: str, positions: int, draws: int, games_per_shard: int, **rest: float | str
) -> None:
    """Let NETWORK play games against itself by search, and keep positions of its search trees.

    Positions of games alone do not teach a network to evaluate the weak moves that a search tries. Each game of the
    shards leads to one position: label these with a stronger network, and train on the labels beside others. By default
    most moves are drawn from the policy, so that the positions come from many games, few of each.

    \b
        keima data reached default --size 9 --positions 200000 --out reached-9
        keima data label reached-9 --recorded 9 --network teacher.bin.gz --positions 200000 --out labels-reached-9
    """
    plan = ReachedPlan(SearchPlayOptions(**rest), draws, games_per_shard)  # type: ignore[arg-type]
    _play_positions(bulk, plan, network, positions)


def _play_positions(bulk: Bulk, plan: Plan, network: str, positions: int) -> None:
    """Play games until they give at least ``positions`` positions, and print how many games and positions there are."""
    play = play_in_bulk(bulk, plan, (network,), positions, counts_positions=True)
    bulk.say(f"{play.positions():,} positions of {play.games:,} games", *([RESUMES] if play.is_stopped else []))


@click.command("values", cls=KeimaCommand)
@click.argument("sl")
@click.argument("rl")
@click.option("--positions", default=100_000, type=Whole(1), help="number of positions")
@click.option("--whole-games", is_flag=True, help="keep all positions of games that RL plays alone, for comparison")
@click.option("--latest", default=0, type=Whole(0), help="largest U; 0 = 450 on 19x19, scaled by the board's points")
@distribution_options
@options_of(BulkOptions, "size", "passes", "dead_stones", "limit", "games_per_shard", "seed")
@bulk_options(AT_ONCE, "games")
def values_command(
    bulk: Bulk, sl: str, rl: str, positions: int, whole_games: bool, latest: int, distribution: GameDistribution,
    **rest: float | str,
) -> None:  # fmt: skip
    """Make positions for a value network by AlphaGo's method: one a game.

    The policy SL plays the moves before a ply U, drawn uniformly; move U is random; the policy RL plays the rest, and
    the position after the random move is kept with the result. With --whole-games RL plays all moves and every position
    is kept, as for the comparison in the paper: train on these with --positions-per-game 0.

    \b
        keima data values alphago-9-sl rl-9/network.safetensors --size 9 --positions 500000 --out values-9
        keima train value --games values-9 --validation held-out.npz.xz --size 9 --out value-9
    """
    if whole_games and latest:
        raise click.UsageError("--latest has no effect with --whole-games: there is no random move")
    options = BulkOptions(distribution, **rest)  # type: ignore[arg-type]
    if whole_games:
        _play_positions(bulk, Plan(options), rl, positions)
        return
    plan = ValuePlan(options, latest)
    play = play_in_bulk(bulk, plan, (sl, rl), positions)
    bulk.say(f"{play.games:,} positions")
    numbers = play.missing(positions)
    if play.is_stopped and len(numbers):
        bulk.say(RESUMES)
    elif len(numbers):
        missing = plan.random_plies(numbers)
        counts, edges = np.histogram(missing, PARTS, (1, plan.latest + 1))
        firsts = np.ceil(edges).astype(int).tolist()
        bulk.say(f"in {len(missing):,} of {play.part_of(positions):,} all {ATTEMPTS} games ended before move U:")
        for count, first, after in zip(counts.tolist(), firsts[:-1], firsts[1:], strict=True):
            if count:
                bulk.say(f"  U {first} to {after - 1}: {count:,}")


@click.command("label", cls=KeimaCommand)
@click.argument("sources", nargs=-1, type=PATHS)
@click.option("--network", required=True, metavar="NETWORK", help="network (name or file) that evaluates the positions")
@click.option("--positions", default=1_000_000, type=Whole(1), help="number of positions")
@click.option("--recorded", **share("SIZE=SHARE", read_size, text="board sizes of positions of SOURCES"))
@click.option("--self-play", **share(
    "SIZE=SHARE", read_size, text="board sizes of games that the network plays against itself without search"
))  # fmt: skip
@distribution_options
@options_of(LabelOptions)
@bulk_options(LABEL_AT_ONCE, "positions")
def label_command(
    bulk: Bulk, sources: tuple[Path, ...], network: str, positions: int, recorded: Shares[int],
    self_play: Shares[int], distribution: GameDistribution, **rest: int,
) -> None:  # fmt: skip
    """Let a network evaluate positions, and write its outputs as labels to train on.

    SOURCES are shards of games, SGF files, archives, or folders of these. Shares weight the kinds of positions:
    --self-play 9=2 --self-play 19=1 means two positions on 9x9 for each on 19x19. The same command resumes a stopped
    run.

    \b
        keima data label games/train --network teacher.bin.gz --out labels --recorded 19=1 --self-play 9=2
        keima train dual --games games/train --labels labels --validation games/validation.npz.xz --out run
    """
    if sources and not recorded:
        recorded = ((19, 1.0),)
    options = LabelOptions(recorded, self_play, distribution, **rest)
    path = find_network(network)
    bulk.stack.enter_context(alone_in(bulk.out))
    shards = _game_shards(sources, bulk.out, bulk.console)
    # With Ray, this process needs the network's shape alone.
    teacher = Teacher(load_network(path, "cpu" if bulk.executor.ray else str(bulk.device)), bulk.threads, bulk.at_once)
    bulk.stack.callback(teacher.close)
    labelling = Labelling(teacher, options, shards, identity(path, teacher.spec.name), bulk.out)
    bulk.stack.callback(labelling.close)
    networks = {f"network{k}-{file.name}": file for k, file in enumerate(files_of(path))}
    games = {f"games{k}-{file.name}": file for k, file in enumerate(shards)}
    job = LabelJob(options, tuple(networks), tuple(games), labelling.begun, bulk.at_once)
    execution = bulk.execution(CHUNK_BATCHES, job, networks | games)
    run = partial(labelling.run, positions, bulk.at_once, batches_for(teacher.server), execution=execution)
    bulk.run(positions, lambda: labelling.positions, labelling.stop, run)
    bulk.say(*(f"{count:,} positions of {kind}" for kind, count in labelling.counts.items()))
    if labelling.positions < positions:
        bulk.say("the games have no more positions" if labelling.is_exhausted else RESUMES)


def _game_shards(sources: tuple[Path, ...], out: Path, console: Console) -> list[Path]:
    """The files of the game shards at ``sources``; if one is no shard, all are first packed into ``games`` in ``out``.

    Raises:
        ValueError: a path is missing or has no games, or ``games`` was packed from other paths; one line.
    """
    if all(map(_is_packed, sources)):
        return shard_files(sources, None)
    folder = out / GAMES
    if not folder.is_dir():
        check_out(out)
        out.mkdir(parents=True, exist_ok=True)
        filters, workers = Filters(sizes=(), results="any"), workers_for(sources)
        options = BuildOptions(
            sources, filters, without=_held_out(sources), validation_share=0.0, test_share=0.0, workers=workers
        )
        with console.status("reading games"):
            build(options, folder, lambda found: None, lambda done, total: None)
    packed = [source["path"] for source in read_manifest(folder)["sources"]]
    if packed != [str(path) for path in sources]:
        raise ValueError(f"{folder}: packed from {', '.join(packed)}; choose another --out for other games")
    return shard_files([folder], None)


def _is_packed(path: Path) -> bool:
    """Whether all games at a path are in shards."""
    if not path.is_dir():
        return path.name.endswith(SHARD_FILE)
    return any(any(folder.glob(f"*{SHARD_FILE}")) for folder in (path, path / "train")) and not holds_records(path)


def _held_out(sources: tuple[Path, ...]) -> tuple[Path, ...]:
    """The validation and test shards in folders of ``keima data build`` at any depth below the sources."""
    found = [manifest.parent for path in sources if path.is_dir() for manifest in path.rglob(MANIFEST)]
    built = [folder for folder in found if (folder / "train").is_dir()]
    return tuple(file for folder in built for file in sorted(folder.glob(f"*{SHARD_FILE}")))
