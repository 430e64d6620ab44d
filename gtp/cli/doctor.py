"""``keima doctor``: whether everything that playing needs works on this machine, and what to do where it does not.

Every check is a generator of findings, run one after the other; an unexpected failure is itself a
finding. Whatever is heavy is imported inside the checks, since a broken installation is what they look for.
"""

import importlib.metadata
import json
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.nets.files.header import expected_input
from engine.system.files import sha256_of
from gtp import startup
from gtp.cli.help_style import KeimaCommand
from gtp.cli.options import network_of, options_from, options_of, settings_option, with_player
from gtp.cli.progress import compile_ahead, compile_bar
from gtp.cli.settings import read_settings
from gtp.cli.shadowing import FIX, HOME, shadows
from gtp.cli.shadowing import PACKAGES as OURS
from gtp.startup import PlayerSettings, calm_openmp, load_player
from weights import FOLDER, NetworkPath, entries, files_of, find_network, players

WELL, NOTE, WRONG = "well", "note", "WRONG"
OLDEST_PYTHON = (3, 11)
PACKAGES = ("torch", "numba", "numpy", "safetensors", "sgfmill", "click", "rich", "filelock")
INSTALL = "install again: pip install -c constraints.txt . in a virtual environment"
SEARCH_S = 2.0
SLOW = 20.0
"""Visits a second below which something is probably not as it should be"""
WIDTH = 100
"""Widest table"""


class Finding(NamedTuple):
    """What one look has shown."""

    what: str
    verdict: str
    """``WELL``; ``NOTE`` = it plays, but could do better; ``WRONG``"""
    text: str
    fix: str = ""
    """what to do about it"""


Check = Callable[[], Iterator[Finding]]


@click.command(cls=KeimaCommand)
@settings_option(SetupOptions)
@options_of(SetupOptions, "weights", "device", "size")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table")
@click.pass_context
def doctor(ctx: click.Context, /, config: Path | None, weights: str, device: str, size: int, as_json: bool) -> None:
    """Check that everything works here, and say what to fix.

    Looks at versions, packages of others under our names, devices, the folder of compiled kernels, the settings file
    and the network, compares what the network computes with plain float32, and searches two seconds. Exit status 1 if
    something is wrong.
    """
    startup.bar = compile_bar
    calm_openmp()
    network = None
    checks: list[Check] = [_versions, _packages, _devices, _kernels, partial(_settings_file, config)]
    try:
        values = read_settings(config) if config is not None else {}
        values = with_player(ctx, values | {"weights": weights, "device": device, "size": size})
        setup, search = options_from(SetupOptions, values), options_from(SearchOptions, values)
        network = network_of(ctx, config, setup.weights)
    except ValueError as error:
        told = Finding("network", WRONG, str(error))
        checks.append(lambda: iter([told]))
    else:
        for file in files_of(network):
            checks += [partial(_file, file), partial(_self_test, file, device)]
        # Two seconds to the end, on the board as it begins.
        play = PlayOptions(seconds=SEARCH_S)
        checks.append(partial(_search, PlayerSettings(setup, play, search, network)))
    # First, and by itself: it shows a bar.
    found = list(_guarded(partial(_compiled, network))) if network else []
    with Console(stderr=True).status("looking"):
        found += [finding for check in checks for finding in _guarded(check)]
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in found]))
    else:
        _show(found)
    ctx.exit(1 if any(finding.verdict == WRONG for finding in found) else 0)


def _guarded(check: Check) -> Iterator[Finding]:
    """A check's findings; whatever ends it is one of them."""
    name = (check.func if isinstance(check, partial) else check).__name__.strip("_").replace("_", " ")
    try:
        yield from check()
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        yield Finding(name, WRONG, text, INSTALL if isinstance(error, ImportError) else "")


def _versions() -> Iterator[Finding]:
    yield Finding("Keima", WELL, __version__)
    python = f"{platform.python_version()}, {platform.platform()}"
    is_old = sys.version_info < OLDEST_PYTHON
    yield Finding("Python", WRONG if is_old else WELL, python, "install Python 3.11 or newer" if is_old else "")
    for name in PACKAGES:
        try:
            yield Finding(name, WELL, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, WRONG, "missing", INSTALL)


def _packages() -> Iterator[Finding]:
    found = list(shadows())
    for text in found:
        yield Finding("packages", WRONG, text, FIX)
    if not found:
        yield Finding("packages", WELL, f"{', '.join(OURS)} from {HOME}")


def _devices() -> Iterator[Finding]:
    from engine.nets.compute.devices import found_devices
    from engine.nets.on_device import choose_devices

    found = found_devices()
    for name, text in found.items():
        yield Finding(name, WELL, text)
    chosen = ", ".join(str(device) for device in choose_devices())
    is_unseen = len(found) == 1 and shutil.which("nvidia-smi")
    fix = "an NVIDIA driver is here but torch sees no GPU: install torch's CUDA build, as pytorch.org says"
    yield Finding("device auto", NOTE if is_unseen else WELL, chosen, fix if is_unseen else "")


def _kernels() -> Iterator[Finding]:
    from engine.system.jit import CACHE_VARIABLE, FOLDER, cache_root

    fix = f"make {cache_root()} writable, or set {CACHE_VARIABLE} to a folder that is"
    if FOLDER is None:
        yield Finding("kernel cache", WRONG, "no folder can be written: every start compiles for minutes", fix)
    elif not FOLDER.is_relative_to(cache_root()):
        yield Finding("kernel cache", NOTE, f"{FOLDER}, which may be cleared at any time", fix)
    else:
        yield Finding("kernel cache", WELL, f"{FOLDER}, writable")


def _compiled(network: NetworkPath) -> Iterator[Finding]:
    from engine.play import ahead

    begin, expected = time.perf_counter(), expected_input(network)
    if expected is None:
        return
    compile_ahead(expected.encoder)
    seconds = time.perf_counter() - begin
    # Networks with another input have kernels of their own.
    files = {name: FOLDER / entry.file for name, entry in entries().items()}
    shipped = {name: expected_input(files.get(name) or find_network(name)) for name in (*files, *players())}
    alike = [name for name, one in shipped.items() if one and one.encoder == expected.encoder]
    waiting = [name for name, one in shipped.items() if one and ahead.missing(one.encoder)]
    text = f"compiled in {seconds:.0f} s" if seconds >= 1.0 else "compiled"
    text += f" for the input {expected.encoder}" + (f" ({', '.join(alike)})" if alike else "")
    if waiting:
        text += f"; not yet for {', '.join(waiting)}: these compile some more when they start"
    yield Finding("kernels", WELL, text)


def _settings_file(path: Path | None) -> Iterator[Finding]:
    count = len(read_settings(path)) if path is not None else 0
    yield Finding("settings file", WELL, "none" if path is None or not path.exists() else f"{path}, {count} options")


def _file(path: Path) -> Iterator[Finding]:
    from engine.nets.files.describe import describe

    found = describe(path)
    digest = sha256_of(path)
    shipped = {entry.file: entry.sha256 for entry in entries().values()}
    low, high = found["sizes"]
    kind = f"{found['name']} ({found['format']}), boards {low} to {high}, {found['bytes'] / 2**20:.1f} MiB"
    text = f"{kind}, SHA-256 {digest[:16]}"
    is_damaged = path.parent == FOLDER and shipped.get(path.name, digest) != digest
    fix = f"{path} is not the file that was shipped: get it again"
    yield Finding("network", WRONG if is_damaged else WELL, text, fix if is_damaged else "")


def _self_test(path: Path, device: str) -> Iterator[Finding]:
    from engine.features.encoder import sample_inputs
    from engine.nets.compute.verify import verify
    from engine.nets.files.read import read_network
    from engine.nets.on_device import choose_devices

    model, spec, _ = read_network(path)
    fix = "update the device's driver and torch, or play with --device cpu"
    for chosen in choose_devices(device):
        playing = [check for check in verify(model, spec, [chosen], sample_inputs) if check.plays]
        if not playing:
            yield Finding(f"self-test {chosen}", WRONG, "computes the network wrongly: the CPU plays", fix)
        for check in playing:
            errors = ", ".join(f"{head} {error:.2g}" for head, error in check.errors.items())
            text = f"{check.dtype} against plain float32: {errors} at most"
            yield Finding(f"self-test {chosen}", *((WELL, text) if check.is_close else (WRONG, text, fix)))


def _search(settings: PlayerSettings) -> Iterator[Finding]:
    from engine.go.geometry import BLACK, to_vertex

    player = load_player(settings)
    try:
        move = player.genmove(BLACK)
        report = player.last_genmove_report
        assert report is not None, "two seconds of search"
        speed = report.playouts_this_run / report.seconds
        text = f"{speed:.0f} visits/s for {report.seconds:.1f} s on {player.game.size}x{player.game.size}"
        text += f", move {to_vertex(move, player.game.size)}"
    finally:
        player.close()
    is_slow = speed < SLOW
    yield Finding("search", NOTE if is_slow else WELL, text, "try keima benchmark" if is_slow else "")


def _show(found: list[Finding]) -> None:
    """For people."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in Finding._fields[:3]:
        table.add_column(overflow="fold")
    colors = {WELL: "green", NOTE: "yellow", WRONG: "red"}
    for finding in found:
        table.add_row(finding.what, f"[{colors[finding.verdict]}]{finding.verdict}[/]", escape(finding.text))
    console = Console(highlight=False, width=min(Console().width, WIDTH))
    console.print(table)
    for finding in found:
        if finding.fix:
            console.print(f"{finding.what}: {finding.fix}", markup=False, soft_wrap=True)
    wrong = sum(finding.verdict == WRONG for finding in found)
    console.print(f"{wrong} of {len(found)} found wrong." if wrong else "Everything works.")
