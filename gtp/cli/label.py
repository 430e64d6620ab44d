"""``keima data label``: positions evaluated by a network, as shards of labels to train on."""

import hashlib
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from engine.config.declaration import core_count
from engine.go.rules import Rules, rules_from
from engine.nets.on_device import choose_device, load_network
from engine.records.archive import SHARD_FILE
from engine.records.filters import Filters
from engine.records.games import shard_files
from engine.records.shards import BuildOptions, build
from engine.selfplay.labelling import GAMES, Labelling, LabelOptions, check_out
from engine.selfplay.variety import Komi, Shares, Variety, parse_share, read_komi, read_temperature
from engine.train.teacher import Teacher
from gtp.cli.options import options_of
from gtp.cli.terminal import PATHS, bar, one_line_errors, parsed, workers_for
from weights import find_network

AT_ONCE = {"cpu": 8, "gpu": 256}
"""Positions a batch: more are hardly faster on the CPU"""


def _share(metavar: str, read: Callable[[str], Any], *default: str, text: str = "") -> dict[str, Any]:
    """What the options ``WHAT=SHARE`` have in common: several may be given, a share left out is 1."""
    callback = parsed(partial(parse_share, read=read))
    return {"multiple": True, "callback": callback, "metavar": metavar, "default": default, "help": text}


@click.command("label", context_settings={"show_default": True})
@click.argument("sources", nargs=-1, type=PATHS)
@click.option("--network", required=True, help="network (name or file) that evaluates the positions")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="folder to make, or to go on with")
@click.option("--positions", default=1_000_000, type=click.IntRange(1), help="positions in all")
@click.option("--recorded", **_share("SIZE=SHARE", int, text="board sizes of positions of SOURCES"))
@click.option("--self-play", **_share(
    "SIZE=SHARE", int, text="board sizes of games that the network plays against itself, a move an evaluation"
))  # fmt: skip
@click.option("--rules", **_share("NAME=SHARE", rules_from, "chinese"))
@click.option("--komi", **_share(
    "KOMI=SHARE", read_komi, "usual",
    text="usual (7 or 7.5 by area, a point less by territory), a number, or a range: 5.5..9.5",
))  # fmt: skip
@click.option("--temperature", **_share("T=SHARE", read_temperature, "1", text="of the policy in self-played games"))
@options_of(LabelOptions)
@click.option("--device", default="auto", help="auto, cpu or cuda")
@click.option("--threads", default=0, type=click.IntRange(0), help="processors the network takes; 0 = all")
@click.option("--at-once", type=click.IntRange(1), help="positions a batch; 8 on a processor, 256 on a GPU")
def label_command(
    sources: tuple[Path, ...], network: str, out: Path, positions: int, recorded: Shares[int], self_play: Shares[int],
    rules: Shares[Rules], komi: Shares[Komi], temperature: Shares[float], device: str, threads: int,
    at_once: int | None, **rest: int,
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
    options = LabelOptions(recorded, self_play, Variety(rules, komi, temperature), **rest)
    console = Console(stderr=True)
    with one_line_errors(RuntimeError), ExitStack() as stack:
        found = find_network(network)
        chosen = choose_device(device)
        files = _game_shards(sources, out, console)
        digest = hashlib.sha256()
        for path in found if isinstance(found, tuple) else (found,):
            digest.update(path.read_bytes())
        teacher = Teacher(load_network(found, chosen), threads)
        stack.callback(teacher.close)
        identity = {"name": teacher.spec.name, "sha256": digest.hexdigest()}
        labelling = Labelling(teacher, options, files, identity, out)
        batch = at_once or AT_ONCE["cpu" if chosen.type == "cpu" else "gpu"]
        _run(labelling, positions, batch, (threads or core_count()) + 1, console)


def _run(labelling: Labelling, positions: int, at_once: int, threads: int, console: Console) -> None:
    """Label with a bar; Ctrl-C and SIGTERM end it with everything kept."""

    def stop(*_: object) -> None:
        labelling.stop()

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    columns = (MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with bar(console, *columns) as progress:
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
    if not folder.is_dir():
        check_out(out)
        out.mkdir(parents=True, exist_ok=True)
        filters, workers = Filters(sizes=(), results="any"), workers_for(sources)
        options = BuildOptions(sources, filters, validation_share=0.0, test_share=0.0, workers=workers)
        with console.status("reading games"):
            build(options, folder, lambda found: None, lambda done, total: None)
    return shard_files([folder], None)


def _holds_shards(folder: Path) -> bool:
    """Whether a folder is one of packed shards."""
    return any(folder.glob(f"*{SHARD_FILE}")) or any((folder / "train").glob(f"*{SHARD_FILE}"))
