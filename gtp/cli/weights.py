"""``keima weights``: description, verification, search, download, conversion and averages of network files.

Torch is imported inside the subcommands that need it.
"""

import json
import math
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from engine.nets.files.header import Header, expected_input, recognise
from gtp.cli import KeimaGroup
from gtp.cli.arguments import AS_JSON, Number, parsed
from gtp.cli.terminal import INTERRUPTED, RESUMES, WIDTH, bar, new_table, say, show_text
from gtp.startup import calm_openmp
from weights import ENDINGS, FOLDER, downloaded, entries, files_of, find, find_network, players
from weights.downloads import SHA256, THIRD_PARTIES, Download, downloads, licence_text, name_for, stored_at
from weights.places import EVERY_DEPTH, Place, candidates, places

PACES = ((8 << 20, "fast on a processor"), (64 << 20, "slow on a processor"), (math.inf, "for a GPU"))
"""Pairs of a maximum file size in bytes (4 per parameter) and the speed of a network up to that size, in words"""
SHOWN = 240
"""Maximum number of characters shown of a value of a training record; longer values are cut"""
NETWORK = click.argument("network", metavar="NETWORK")
ASKED_BYTES = 100_000_000
"""Size of a download above which ``get`` asks first, in bytes"""


@click.group("weights", cls=KeimaGroup)
def weights_group() -> None:
    """Show, check, find, get, convert and average network files.

    NETWORK is the name of a shipped or downloaded network, such as default, or a file of Keima, KataGo or Leela Zero
    with any name.
    """


@weights_group.command("show")
@NETWORK
@AS_JSON
def show(network: str, as_json: bool) -> None:
    """Show the format, architecture, cost and training record of NETWORK.

    For a shipped player such as alphago-9, shows each of its networks, and its settings.
    """
    calm_openmp()
    found = [_described(path) for path in files_of(find_network(network))]
    player = players().get(network)
    settings = tomllib.loads(player.read_text(encoding="utf-8")) if player else {}
    if as_json:
        click.echo(json.dumps(found[0] if len(found) == 1 else {"settings": settings, "networks": found}))
        return
    if player:
        show_text(_as_table({"player": network, "file": str(player), "good for": _first_line(player)} | settings), "")
    for i, one in enumerate(found):
        show_text(*[""] * (i > 0), _as_table(_rows(one)))


def _described(path: Path) -> dict[str, Any]:
    """Describe a network file, as ``show --json`` prints it."""
    from engine.features.encoder import ENCODERS
    from engine.nets.files.read import describe

    found = describe(path)
    encoder = ENCODERS.get(found["encoder"])
    found["rules"] = encoder.rules if encoder else "unknown"
    found["good_for"] = _good_for(path, (found["sizes"][0], found["sizes"][1]))
    return found


def _rows(found: dict[str, Any]) -> dict[str, str]:
    """Name -> text of the rows that ``show`` prints, from a description by :func:`_described`."""
    low, high = found["sizes"]
    shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["shape"].items())
    board = f"{found['board']}x{found['board']}"
    rows = {
        "network": found["name"],
        "file": found["file"],
        "good for": found["good_for"],
        "format": f"{found['format']}, version {found['version']}, {_size(found['bytes'])}",
        "architecture": found["architecture"] + (f": {shape}" if shape else ""),
        "parameters": f"{found['parameters']:,}",
        "work": f"{found['multiply_adds'] / 1e6:,.1f} million multiply-adds a position on {board}",
        "input": f"{found['encoder']}: {found['planes']} planes, {found['globals']} global values",
        "output": ", ".join(found["heads"]),
        "boards": f"{low}x{low}" + (f" to {high}x{high}" if low < high else " alone"),
        "rules": found["rules"],
    }
    return rows | {f"training: {name}": _in_short(value) for name, value in found["training"].items()}


def _as_table(rows: dict[str, Any]) -> Table:
    """Table of names and values, one pair a line."""
    table = Table(box=None, show_header=False, pad_edge=False, collapse_padding=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


@weights_group.command("verify")
@NETWORK
@click.option("--device", default="auto", metavar="DEVICE",
              help="devices, separated by commas: auto, cpu, mps, cuda or cuda:N")  # fmt: skip
@AS_JSON
@click.pass_context
def verify_command(ctx: click.Context, /, network: str, device: str, as_json: bool) -> None:
    """Compare NETWORK's outputs on every device of this machine with float32 on the CPU.

    Evaluates sample positions on each device and on the CPU, in 32 and in 16 bits. Exit status 1 if an error is too
    large.
    """
    calm_openmp()
    from engine.features.encoder import sample_inputs
    from engine.nets.devices import choose_devices
    from engine.nets.files.read import read_network
    from engine.nets.on_device import board_sizes, symmetry_spread, verify

    read, spec, _ = read_network(find(network))
    devices = list(dict.fromkeys(["cpu", *choose_devices(device)]))
    with Console(stderr=True).status(f"evaluating {spec.name}"):
        checks = list(verify(read, spec, devices, sample_inputs))
        spread = symmetry_spread(read, spec, sample_inputs)
    if as_json:
        ways = [check._asdict() | {"is_close": check.is_close} for check in checks]
        click.echo(json.dumps({"name": spec.name, "ways": ways, "symmetry_spread": spread}))
    else:
        boards = " and ".join(f"{size}x{size}" for size in board_sizes(spec))
        table = new_table(
            "device", "numbers", *checks[0].errors, "", right=range(2, 2 + len(checks[0].errors)), folds=True
        )
        for check in checks:
            cells = (f"{error:.2g}" for error in check.errors.values())
            verdict = ("sound" if check.is_close else "ERROR TOO LARGE") + (", used for play" if check.plays else "")
            table.add_row(check.device, check.dtype, *cells, verdict)
        show_text(f"{spec.name} on {boards}: largest differences from plain float32 on the CPU\n", table)
        for head, value in spread.items():
            shown = f"{value:.1%}" if head == "win rate" else f"{value:.2f} points"
            show_text(f"The eight symmetries of a position differ in {head} by {shown} (standard deviation).")
    ctx.exit(0 if all(check.is_close for check in checks) else 1)


@weights_group.command("find")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@AS_JSON
def find_command(folders: tuple[Path, ...], as_json: bool) -> None:
    """List the networks on this machine.

    Searches FOLDERS and all folders below them; without FOLDERS the shipped networks, the downloaded ones and the usual
    places: this folder, folders of KataGo, KaTrain (also the installed package), Leela Zero, Lizzie, Sabaki and the
    like, and Downloads.
    Reads only the beginning of each file; the speed of a network is estimated from its size.
    """
    chosen = [Place(folder, EVERY_DEPTH) for folder in folders] or places()
    shipped = {FOLDER / entry.file: name for name, entry in entries().items()}
    found = [(*one, _use_of(one[0])) for one in _recognised(candidates(chosen))]
    if as_json:
        keys = ("file", "bytes", *Header._fields, "good_for")
        rows = (
            dict(zip(keys, (str(path), path.stat().st_size, *header, good_for), strict=True))
            for path, header, good_for in found
        )
        click.echo(json.dumps(list(rows)))
        return
    if not found:
        show_text("No networks in " + ", ".join(str(place.folder) for place in chosen))
        return
    table = new_table("format", "network", "size", "good for", "for --weights", right=(2,), folds=True)
    table.columns[-1].no_wrap = True
    for path, header, good_for in found:
        size = _size(path.stat().st_size)
        name = shipped.get(path) or _name_of_download(path) or str(path)
        table.add_row(f"{header.format} {header.version}", header.network, size, good_for, name)
    # Paths are for copying, so lines are not wrapped.
    show_text(table, width=WIDTH + max(len(str(path)) for path, *_ in found))
    if not folders:
        together = (f"{name} ({_first_line(path)})" for name, path in players().items())
        show_text("Players of several networks, also for --weights: " + ", ".join(together))


def _name_of_download(path: Path) -> str:
    """The name by which ``--weights`` finds a downloaded network; empty for any other file."""
    names = (path.name.removesuffix(ending) for ending in ENDINGS)
    return next((name for name in names if downloaded(name) == path), "")


def _sha256(text: str) -> str:
    """A SHA-256 as 64 hexadecimal digits in lower case."""
    if not SHA256.fullmatch(found := text.strip().lower()):
        raise ValueError(f"{text[:70]!r}: expected 64 hexadecimal digits.")
    return found


@weights_group.command("get")
@click.argument("name", metavar="[NAME]", default="")
@click.option("--url", default="", metavar="URL", help="address of another network file, stored as NAME")
@click.option("--sha256", default=None, metavar="HEX", callback=parsed(_sha256), help="checksum of the file at --url")
@click.option("--mirror", default="", metavar="URL", help="folder on another server that has the file by the same name")
@click.option("--yes", is_flag=True, help="answer yes: download more than 100 MB without a question")
@AS_JSON
def get_command(name: str, url: str, sha256: str | None, mirror: str, yes: bool, as_json: bool) -> None:
    """Download the network NAME; without NAME, list the networks that have one.

    --weights NAME then plays it. A download that breaks off is resumed by the same command. Length and SHA-256 are
    checked, and the file must be a network that Keima reads. Its licence is stored beside it. The environment variables
    https_proxy, http_proxy and no_proxy are followed.
    """
    known = downloads()
    if not (name or url):
        _list_downloads(known, as_json)
        return
    if sha256 and not url:
        raise click.UsageError("--sha256 belongs to --url: the checksums of listed networks are known.")
    if not url and name not in known:
        raise ValueError(f"no network {name!r} to download, expected {', '.join(known)}, or --url")
    wanted = Download(url, sha256=sha256 or "") if url else known[name]
    name = name_for(wanted, name)
    if url and name in known:
        raise ValueError(f"{name!r} is the name of a listed network, expected another one for --url")
    path = stored_at(name, wanted)
    _get(name, wanted.at(mirror) if mirror else wanted, path, yes)


def _get(name: str, wanted: Download, path: Path, is_agreed: bool) -> None:
    """Download a network unless it is there, write its licence beside it, and say how to play it."""
    from engine.nets.files.read import read_network
    from engine.system.download import Source, Watcher, download
    from engine.system.files import sha256_of, written_whole

    if there := downloaded(name):
        found = sha256_of(there)
        if wanted.sha256 in ("", found):
            show_text(f"already there: {there} (SHA-256 {found})")
            return
        if there != path or not wanted.sha256_from:
            raise ValueError(f"{there} is another file (SHA-256 {found}): delete it, or take another name")
    console = Console(stderr=True)
    progress = bar(console, DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn(), transient=True,
                   disable=not console.is_terminal)  # fmt: skip
    task = progress.add_task(name, total=None)

    def agree(size: int) -> None:
        if not is_agreed and not 0 < size <= ASKED_BYTES:
            _ask(f"download {_size(size) if size else 'a file of unknown size'} from {wanted.url}?")
        progress.start()

    def show(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total or None)

    source = Source(wanted.url, wanted.bytes, wanted.sha256)
    try:
        found = download(source, path, read_network, Watcher(agree, show, lambda text: say(progress.console, text)))
    except KeyboardInterrupt:
        progress.stop()
        say(console, f"interrupted: what has arrived is kept in {path}.part; {RESUMES}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        progress.stop()
    with written_whole(path.with_name(f"{name}.licence.txt")) as part:
        part.write_text(licence_text(wanted, found), encoding="utf-8")
    show_text(f"written: {path} ({_size(path.stat().st_size)}, {_trust(wanted, found)})")
    show_text(f"licence: {wanted.licence or 'not known'} ({name}.licence.txt beside it)")
    show_text(f"play it: keima gtp --weights {name}")


def _ask(question: str) -> None:
    """Ask a question on standard error; an answer other than yes ends the command."""
    try:
        is_agreed = click.confirm(question, err=True)
    except click.Abort:
        raise click.ClickException("nothing is downloaded without an answer; --yes answers the question") from None
    if not is_agreed:
        raise click.ClickException("nothing downloaded")


def _trust(wanted: Download, found: str) -> str:
    """What is known of a downloaded file's checksum."""
    if not wanted.sha256:
        return f"SHA-256 {found}, compared with nothing"
    return "SHA-256 as " + ("third parties published it" if wanted.sha256_from == THIRD_PARTIES else "expected")


def _list_downloads(known: dict[str, Download], as_json: bool) -> None:
    """Print the networks that ``get`` downloads by name."""
    if as_json:
        rows = [{"name": name} | vars(one) | {"file": str(downloaded(name) or "")} for name, one in known.items()]
        click.echo(json.dumps(rows))
        return
    table = new_table("name", "size", "good for", "licence", right=(1,), folds=True)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for name, one in known.items():
        size = _size(one.bytes) if one.bytes else "unknown"
        mark = " *" if one.sha256_from == THIRD_PARTIES else "  "
        good_for = one.description + "; on this machine" * bool(downloaded(name))
        table.add_row(name, size + mark, good_for, one.licence)
    show_text(table, "* The checksum was published by third parties; the others are those of files that were tested.")
    show_text("keima weights get NAME downloads one, --url URL any other.")


@weights_group.command("convert")
@NETWORK
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
def convert_command(network: str, target: Path) -> None:
    """Convert NETWORK to ONNX, or between Leela Zero's format and ours, and write it to FILE.

    Any network becomes an ONNX graph if FILE ends in .onnx (needs pip install onnx); its inputs are those of our
    encoders, its outputs our heads. A network of AlphaGo Zero's architecture for 19x19 (keima train dual --network
    alphago-zero) becomes one for Leela Zero if FILE ends in .txt or, compressed, in .gz. A Leela Zero network becomes
    one of ours if FILE ends in .safetensors.
    """
    calm_openmp()
    from engine.nets.files.read import ONNX, convert

    convert(find_network(network) if target.suffix == ONNX else find(network), target)
    show_text(f"written: {target} ({_size(target.stat().st_size)})")


@weights_group.command("average")
@NETWORK
@click.argument("other", metavar="NETWORK2")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--share", default=0.5, type=Number(0.0, 1.0), help="weight of NETWORK2 in the mean")
def average_command(network: str, other: str, target: Path, share: float) -> None:
    """Write the mean of the weights of NETWORK and NETWORK2 to FILE.

    For a network before and after further training: the mean often plays better than either, and forgets less of the
    first training than NETWORK2.
    """
    calm_openmp()
    from engine.nets.files.checkpoint import average

    average(find(network), find(other), target, share)
    show_text(f"written: {target} ({_size(target.stat().st_size)})")


def _first_line(player: Path) -> str:
    """The description of a player, the first line of its settings file."""
    return player.read_text(encoding="utf-8").partition("\n")[0].strip("# .")


def _use_of(path: Path) -> str:
    """What a network is good for, from the header of its file; empty if it is unknown. See :func:`_good_for`."""
    expected = expected_input(path)
    return _good_for(path, expected.sizes) if expected else ""


def _good_for(path: Path, sizes: tuple[int, int]) -> str:
    """What a network is good for: the description of a shipped or listed network, else board sizes and speed."""
    for entry in entries().values():
        if path == FOLDER / entry.file:
            return entry.description
    if found := downloads().get(_name_of_download(path)):
        return found.description
    low, high = sizes
    boards = f"boards of {low}x{low} to {high}x{high}" if low < high else f"{low}x{low}"
    bytes_ = path.stat().st_size
    return f"{boards}: {next(text for most, text in PACES if bytes_ <= most)}"


def _recognised(paths: Iterable[Path]) -> Iterator[tuple[Path, Header]]:
    """Yield the paths of files that begin with the header of a network, each with the header."""
    for path in paths:
        with suppress(ValueError):
            yield path, recognise(path)


def _size(count: int) -> str:
    """A number of bytes as text, in MiB."""
    return f"{count / 2**20:,.1f} MiB"


def _in_short(value: Any) -> str:
    """A value of a training record as one line of at most ``SHOWN`` characters and three dots."""
    if isinstance(value, dict):
        text = ", ".join(f"{name} {_in_short(item)}" for name, item in value.items())
    elif isinstance(value, list) and len(value) > 2:
        text = f"{value[0]} ... {value[-1]} ({len(value)})"
    else:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
