"""What the commands that make data in bulk share: options of what differs from game to game, and a run with a bar."""

import hashlib
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
from engine.nets.on_device import choose_device, load_network
from engine.records.archive import SHARD_FILE, holds_records
from engine.records.filters import Filters
from engine.records.games import shard_files
from engine.records.shards import MANIFEST, BuildOptions, build, read_manifest
from engine.selfplay.bulk import BulkPlay
from engine.selfplay.bulk_job import BulkJob
from engine.selfplay.label_job import LabelJob
from engine.selfplay.label_options import LabelOptions
from engine.selfplay.labelling import GAMES, Labelling, check_out
from engine.selfplay.many_games import groups_for
from engine.selfplay.openings import OpenedPlan
from engine.selfplay.plan import BulkOptions, Plan
from engine.selfplay.reached import ReachedPlan
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.values import ATTEMPTS, ValuePlan
from engine.selfplay.variety import Komi, Shares, Variety, parse_share, read_komi, read_size, read_temperature
from engine.system.crew.job import Away
from engine.system.files import alone_in
from engine.system.signals import StopOnSignal
from engine.train.ranks import find_ranks, own_cores
from engine.train.teacher import Teacher
from gtp.cli import KeimaCommand
from gtp.cli.arguments import PATHS, Whole, parsed
from gtp.cli.options import CrewOptions, Decorator, options_of, ray_options, with_options
from gtp.cli.terminal import bar, one_line_errors, workers_for
from weights import NetworkPath, files_of, find_network

GOES_ON = "the same command goes on from here"
OUT_OPTION = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="folder to make, or to go on with"
)


class Effort(NamedTuple):
    """What a run may use."""

    device: torch.device
    threads: int
    """processors that networks take; 0 = all"""
    at_once: int
    """rows of a batch"""


def share(metavar: str, read: Callable[[str], Any], *default: str, text: str, usual: str = "") -> dict[str, Any]:
    """What the options ``WHAT=SHARE`` have in common: several may be given, a share left out is 1.

    Args:
        usual: what holds where none is given, in words; empty = the default says it.
    """
    callback = parsed(partial(parse_share, read=read))
    return {"multiple": True, "callback": callback, "metavar": metavar, "default": default, "help": text,
            "show_default": usual or True}  # fmt: skip


def variety_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--rules``, ``--komi`` and ``--temperature``, which the command gets as ``variety``."""

    @wraps(function)
    def command(*, rules: Shares[Rules], komi: Shares[Komi], temperature: Shares[float], **rest: Any) -> Any:
        return function(variety=Variety(rules, komi, temperature), **rest)

    options: tuple[Decorator, ...] = (
        click.option("--rules", **share("NAME=SHARE", rules_from, "chinese", text="rules (docs/rules.md)")),
        click.option("--komi", **share(
            "KOMI=SHARE", read_komi, "usual",
            text="komi: usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
        )),
        click.option("--temperature", **share("T=SHARE", read_temperature, "1", text="temperature of the policy")),
    )  # fmt: skip
    return with_options(command, options)


def machine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: ``--device`` and ``--threads``."""
    options = (
        click.option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or mps"),
        click.option("--threads", default=0, type=Whole(0), help="processors that networks take; 0 = all"),
    )
    return with_options(function, options)


def effort_options(at_once: Mapping[str, int], what: str) -> Decorator:
    """Decorator: ``--device``, ``--threads`` and ``--at-once``, which the command gets as ``effort``.

    Args:
        at_once: by default, by device.
        what: a batch is of.
    """
    usual = f"{at_once['cpu']} on a processor, {at_once['gpu']} on a GPU"

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*, device: str, threads: int, **rest: Any) -> Any:
            with one_line_errors():
                chosen = choose_device(device)
            batch = rest.pop("at_once") or at_once["cpu" if chosen.type == "cpu" else "gpu"]
            return function(effort=Effort(chosen, threads, batch), **rest)

        return machine_options(
            click.option("--at-once", type=Whole(1), show_default=usual, help=f"{what} of a batch")(command)
        )

    return decorate


def identity(path: NetworkPath, name: str) -> dict[str, str]:
    """What data say of the network that made them: its name and the SHA-256 of its file, or of both of its files."""
    digest = hashlib.sha256()
    for file in files_of(path):
        digest.update(file.read_bytes())
    return {"name": name, "sha256": digest.hexdigest()}


def run_with_bar(
    console: Console, total: int, count: Callable[[], int], stop: Callable[[], None],
    run: Callable[[Callable[[], None]], None],
) -> None:  # fmt: skip
    """Run something that counts its work, with a bar; Ctrl-C and SIGTERM end it with everything kept.

    Args:
        count: how much of the total is done.
        stop: ends the run soon.
        run: called with a function that it calls now and then.
    """
    columns = (MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with StopOnSignal(stop), bar(console, *columns) as progress:
        begun = count()
        task = progress.add_task("", total=total, completed=begun, rate="")

        def report() -> None:
            elapsed = progress.tasks[0].elapsed or 0
            rate = (count() - begun) / elapsed if elapsed else 0.0
            shown = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s"
            progress.update(task, completed=count(), rate=shown if rate else "")

        run(report)


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


LABEL_AT_ONCE = {"cpu": 8, "gpu": 256}
"""Positions a batch: more are hardly faster on the CPU"""
CHUNK_BATCHES = 2
"""Games that an actor of Ray gets at once, by positions of a batch: the last of a chunk leave seats empty"""


@click.command("label", cls=KeimaCommand)
@click.argument("sources", nargs=-1, type=PATHS)
@click.option("--network", required=True, metavar="NETWORK", help="network (name or file) that evaluates the positions")
@OUT_OPTION
@click.option("--positions", default=1_000_000, type=Whole(1), help="positions in all")
@click.option("--recorded", **share("SIZE=SHARE", read_size, text="board sizes of positions of SOURCES"))
@click.option("--self-play", **share(
    "SIZE=SHARE", read_size, text="board sizes of games that the network plays against itself, a move an evaluation"
))  # fmt: skip
@variety_options
@options_of(LabelOptions)
@effort_options(LABEL_AT_ONCE, "positions")
@ray_options
def label_command(
    sources: tuple[Path, ...], network: str, out: Path, positions: int, recorded: Shares[int], self_play: Shares[int],
    variety: Variety, effort: Effort, crew: CrewOptions, **rest: int,
) -> None:  # fmt: skip
    """Let a network evaluate positions, and write its outputs as labels to train on.

    SOURCES are shards of games, SGF files, archives, or folders of such. A share says how much of all positions is of a
    kind: --self-play 9=2 --self-play 19=1 means two of 9x9 for each of 19x19. A run that was stopped, in any way, goes
    on when the same command is given again.

    \b
        keima data label games/train --network teacher.bin.gz --out labels --recorded 19=1 --self-play 9=2
        keima train dual --games games/train --labels labels --validation games/validation.npz.xz --out run
    """
    if sources and not recorded:
        recorded = ((19, 1.0),)
    options = LabelOptions(recorded, self_play, variety, **rest)
    console = Console(stderr=True)
    with one_line_errors(RuntimeError), ExitStack() as stack:
        found = find_network(network)
        stack.enter_context(alone_in(out))
        files = _game_shards(sources, out, console)
        # Where others label, the network here only says what it can.
        teacher = Teacher(load_network(found, "cpu" if crew.ray else effort.device), effort.threads, effort.at_once)
        stack.callback(teacher.close)
        labelling = Labelling(teacher, options, files, identity(found, teacher.spec.name), out)
        stack.callback(labelling.close)
        away = _away(stack, crew, labelling, options, found, files, effort.at_once) if crew.ray else None
        _run_labelling(labelling, positions, effort, groups_for(teacher.server), away, console)


def _away(
    stack: ExitStack, crew: CrewOptions, labelling: Labelling, options: LabelOptions, network: NetworkPath,
    shards: list[Path], at_once: int,
) -> Away:  # fmt: skip
    """Ray's actors, and what they need."""
    networks = {f"network{k}-{path.name}": path for k, path in enumerate(files_of(network))}
    games = {f"games{k}-{path.name}": path for k, path in enumerate(shards)}
    job = LabelJob(options, tuple(networks), tuple(games), labelling.begun(), at_once)
    return Away(crew.open(stack, CHUNK_BATCHES * at_once), job, networks | games)


def _run_labelling(
    labelling: Labelling, positions: int, effort: Effort, groups: int, away: Away | None, console: Console
) -> None:
    """Label with a bar, and say what there is at the end."""
    run = partial(labelling.run, positions, effort.at_once, groups, away=away)
    run_with_bar(console, positions, lambda: labelling.positions, labelling.stop, run)
    for kind, count in labelling.counts.items():
        console.print(f"{count:,} positions of {kind}", highlight=False)
    if labelling.positions < positions:
        text = "the games hold no more" if labelling.is_exhausted else GOES_ON
        console.print(text, highlight=False)


def _game_shards(sources: tuple[Path, ...], out: Path, console: Console) -> list[Path]:
    """Shards of games as they are; if there are other sources, all are packed into ``games`` of the output first.

    Raises:
        ValueError: a path is missing or holds no games, or ``games`` was packed from other paths.
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
        raise ValueError(f"{folder}: packed from {', '.join(packed)}; for other games, name another --out")
    return shard_files([folder], None)


def _is_packed(path: Path) -> bool:
    """Whether all games at a path lie in shards that can be read where they are."""
    if not path.is_dir():
        return path.name.endswith(SHARD_FILE)
    return any(any(folder.glob(f"*{SHARD_FILE}")) for folder in (path, path / "train")) and not holds_records(path)


def _held_out(sources: tuple[Path, ...]) -> tuple[Path, ...]:
    """The shards to measure on that lie in folders made by ``keima data build``, wherever below the sources."""
    found = [manifest.parent for path in sources if path.is_dir() for manifest in path.rglob(MANIFEST)]
    built = [folder for folder in found if (folder / "train").is_dir()]
    return tuple(file for folder in built for file in sorted(folder.glob(f"*{SHARD_FILE}")))
