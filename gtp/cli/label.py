"""``keima data label``: positions evaluated by a network, as shards of labels to train on."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from engine.nets.on_device import load_network
from engine.records.archive import SHARD_FILE, holds_records
from engine.records.filters import Filters
from engine.records.games import shard_files
from engine.records.shards import MANIFEST, BuildOptions, build, read_manifest
from engine.selfplay.label_job import LabelJob
from engine.selfplay.label_options import LabelOptions
from engine.selfplay.labelling import GAMES, Labelling, check_out
from engine.selfplay.many_games import groups_for
from engine.selfplay.variety import Shares, Variety, read_size
from engine.system.crew.job import Away
from engine.system.files import alone_in
from engine.train.teacher import Teacher
from gtp.cli.arguments import PATHS, Whole
from gtp.cli.bulk import GOES_ON, OUT_OPTION, Effort, effort_options, identity, run_with_bar, share, variety_options
from gtp.cli.crew import CrewOptions, ray_options
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import options_of
from gtp.cli.terminal import one_line_errors, workers_for
from weights import NetworkPath, files_of, find_network

AT_ONCE = {"cpu": 8, "gpu": 256}
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
@effort_options(AT_ONCE, "positions")
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
        _run(labelling, positions, effort, groups_for(teacher.server), away, console)


def _away(
    stack: ExitStack, crew: CrewOptions, labelling: Labelling, options: LabelOptions, network: NetworkPath,
    shards: list[Path], at_once: int,
) -> Away:  # fmt: skip
    """Ray's actors, and what they need."""
    networks = {f"network{k}-{path.name}": path for k, path in enumerate(files_of(network))}
    games = {f"games{k}-{path.name}": path for k, path in enumerate(shards)}
    job = LabelJob(options, tuple(networks), tuple(games), labelling.begun, at_once)
    return Away(crew.open(stack, CHUNK_BATCHES * at_once), job, networks | games)


def _run(
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
