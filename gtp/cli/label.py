"""``keima data label``: positions judged by a network, as shards of labels to train on."""

import hashlib
import shutil
import signal
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.config.declaration import core_count
from engine.nets.on_device import choose_device, load_network
from engine.records.archive import SHARD_FILE, disk_bytes
from engine.records.duplicates import OPENING
from engine.records.filters import Filters
from engine.records.games import join, shard_files, write_games
from engine.records.gather import gather
from engine.selfplay.labelling import GAMES, PARTIAL_GAMES, Labelling, LabelOptions, check_out
from engine.selfplay.variety import Variety, parse_share, read_komi, read_rules, read_temperature
from engine.train.teacher import Teacher
from weights import find_network

SMALL_BYTES = 4 << 20
"""Less than this is read before worker processes would have started."""
PATHS = click.Path(exists=True, path_type=Path)
AT_ONCE = {"cpu": 8, "gpu": 256}
"""Positions a batch: a processor is no faster with more"""
GAMES_PER_PART = 20000


class Share(click.ParamType):
    """``WHAT=SHARE``."""

    name = "WHAT=SHARE"

    def __init__(self, read: Any):
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return value if isinstance(value, tuple) else parse_share(value, self._read)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("label", context_settings={"show_default": True})
@click.argument("sources", nargs=-1, type=PATHS)
@click.option("--network", required=True, help="network (name or file) that judges the positions")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="folder to make, or to go on with")
@click.option("--positions", default=1_000_000, type=click.IntRange(1), help="positions in all")
@click.option(
    "--recorded", multiple=True, type=Share(int), metavar="SIZE=SHARE", help="board sizes of positions of SOURCES"
)
@click.option(
    "--self-play", multiple=True, type=Share(int), metavar="SIZE=SHARE",
    help="board sizes of games that the network plays against itself, a move an evaluation",
)  # fmt: skip
@click.option("--rules", multiple=True, type=Share(read_rules), default=("chinese",), metavar="NAME=SHARE")
@click.option(
    "--komi", multiple=True, type=Share(read_komi), default=("usual",), metavar="KOMI=SHARE",
    help="usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
)  # fmt: skip
@click.option(
    "--temperature", multiple=True, type=Share(read_temperature), default=("1",), metavar="T=SHARE",
    help="of the policy in self-played games",
)  # fmt: skip
@click.option("--every", default=12, type=click.IntRange(1), help="take one position in this many of a recorded game")
@click.option("--moves", default=12, type=click.IntRange(1, 64), help="most probable moves kept of a position")
@click.option("--positions-per-shard", default=80000, type=click.IntRange(1))
@click.option("--seed", default=1, type=click.IntRange(0))
@click.option("--device", default="auto", help="auto, cpu or cuda")
@click.option("--threads", default=0, type=click.IntRange(0), help="processors the network takes; 0 = all")
@click.option("--at-once", type=click.IntRange(1), help="positions a batch; 8 on a processor, 256 on a GPU")
def label_command(
    sources, network, out, positions, recorded, self_play, rules, komi, temperature, device, threads, at_once, **rest
) -> None:
    """Let a network judge positions, and write what it says as labels to train on.

    SOURCES are shards of games, SGF files, archives, or folders of such. A share says how much of all positions is of a
    kind: --self-play 9=2 --self-play 19=1 means two of 9x9 for each of 19x19. A run that was stopped, in any way, goes
    on when the same command is given again.

    \b
        keima data label games/train --network teacher.bin.gz --out labels --recorded 19=1 --self-play 9=2
        keima train dual --games games/train --labels labels --validation games/validation.npz.xz --out run
    """
    if sources and not recorded:
        recorded = ((19, 1.0),)
    options = LabelOptions(recorded, self_play, Variety(rules, komi, temperature), **rest)
    console = Console(stderr=True)
    try:
        found = find_network(network)
        chosen = choose_device(device)
        files = _game_shards(sources, out, console)
        digest = hashlib.sha256()
        for path in found if isinstance(found, tuple) else (found,):
            digest.update(path.read_bytes())
        teacher = Teacher(load_network(found, chosen), threads)
        try:
            identity = {"name": teacher.spec.name, "sha256": digest.hexdigest()}
            labelling = Labelling(teacher, options, files, identity, out)
            batch = at_once or AT_ONCE["cpu" if chosen.type == "cpu" else "gpu"]
            _run(labelling, positions, batch, (threads or core_count()) + 1, console)
        finally:
            teacher.close()
    except (ValueError, OSError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error


def _run(labelling: Labelling, positions: int, at_once: int, threads: int, console: Console) -> None:
    """Label with a bar; Ctrl-C and SIGTERM end it with everything kept."""

    def stop(*_: object) -> None:
        labelling.stop()

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=positions, completed=labelling.positions, rate="")
        begun = labelling.positions

        def report() -> None:
            elapsed = progress.tasks[0].elapsed or 0
            rate = f"{(labelling.positions - begun) / elapsed:.0f}/s" if elapsed else ""
            progress.update(task, completed=labelling.positions, rate=rate)

        try:
            labelling.run(positions, at_once, threads, report)
        finally:
            labelling.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
    for kind, count in labelling.counts.items():
        console.print(f"{count:,} positions of {kind}", highlight=False)
    if labelling.positions < positions:
        text = "the games hold no more" if labelling.is_exhausted else "the same command goes on from here"
        console.print(text, highlight=False)


def _game_shards(sources: tuple[Path, ...], out: Path, console: Console) -> list[Path]:
    """Shards of games as they are; other sources are packed into the folder ``games`` of the output first."""
    if all(path.name.endswith(SHARD_FILE) or (path.is_dir() and _holds_shards(path)) for path in sources):
        return shard_files(sources, None)
    folder = out / GAMES
    if folder.is_dir():
        return shard_files([folder], None)
    check_out(out)
    partial = out / PARTIAL_GAMES
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    waiting, count, parts = [], 0, 0
    filters = Filters(sizes=(), results="any")
    with console.status("reading games"):
        workers = 1 if sum(map(disk_bytes, sources)) < SMALL_BYTES else core_count()
        for found in gather(sources, filters, OPENING, workers):
            if found.games is not None:
                waiting.append(found.games)
                count += len(found.games.size)
            if count >= GAMES_PER_PART:
                write_games(partial / f"games-{parts:03}{SHARD_FILE}", join(waiting))
                waiting, count, parts = [], 0, parts + 1
    if waiting:
        write_games(partial / f"games-{parts:03}{SHARD_FILE}", join(waiting))
    if not any(partial.iterdir()):
        raise ValueError(f"no game was found in {', '.join(map(str, sources))}")
    partial.rename(folder)
    return shard_files([folder], None)


def _holds_shards(folder: Path) -> bool:
    """Whether a folder is one of packed shards."""
    return any(folder.glob(f"*{SHARD_FILE}")) or any((folder / "train").glob(f"*{SHARD_FILE}"))
