"""``keima doctor``: checks of an installation, with a fix for each problem.

A check is a generator of findings; an exception that it raises becomes a finding too. Heavy modules are imported inside
the checks, so that a broken installation is reported.
"""

import importlib.metadata
import json
import platform
import shutil
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
from engine.config import PlayOptions, SetupOptions
from engine.nets.files.header import expected_input
from engine.system import whole_line
from engine.system.files import sha256_of
from gtp.cli import FIX, HOME, OURS, KeimaCommand, shadows
from gtp.cli.arguments import AS_JSON
from gtp.cli.options import options_of, player_from, settings_option
from gtp.cli.settings import read_settings
from gtp.startup import PlayerSettings, calm_openmp, compile_ahead, load_player
from weights import FOLDER, NetworkPath, entries, files_of, find_network, players

WELL, NOTE, WRONG = "well", "note", "WRONG"
PACKAGES = ("torch", "numba", "numpy", "safetensors", "sgfmill", "click", "rich", "filelock", "platformdirs", "tomlkit")
INSTALL = "install again: pip install -c constraints.txt . in a virtual environment"
SEARCH_S = 2.0
SLOW = 20.0
"""Search speed, in visits per second, below which something is probably wrong"""
WIDTH = 100
"""Maximum width of the table, in characters"""


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    verdict: str
    """``WELL``; ``NOTE`` = play works, but could be better; ``WRONG``"""
    text: str
    fix: str = ""
    """how to fix it"""


def judged(what: str, text: str, is_well: bool, fix: str, otherwise: str = WRONG) -> Finding:
    """The finding of a check: ``WELL`` if ``is_well``, else ``otherwise`` with a fix."""
    return Finding(what, WELL, text) if is_well else Finding(what, otherwise, text, fix)


Check = Callable[[], Iterator[Finding]]


@click.command(cls=KeimaCommand)
@settings_option(SetupOptions)
@options_of(SetupOptions, "weights", "device", "size")
@AS_JSON
@click.pass_context
def doctor(ctx: click.Context, /, config: Path | None, weights: str, device: str, size: int, as_json: bool) -> None:
    """Check that everything works here, and say what to fix.

    Checks versions, conflicting packages, devices, the kernel cache, the settings file and the network, compares the
    network's outputs with float32 on the CPU, and searches for two seconds. Exit status 1 if something is wrong.
    """
    calm_openmp()
    network = None
    checks: list[Check] = [_versions, _packages, _devices, _kernels, partial(_settings_file, config)]
    try:
        values = read_settings(config) if config is not None else {}
        player = player_from(ctx, config, values | {"weights": weights, "device": device, "size": size})
        network = player.network
    except ValueError as error:
        failed = Finding("network", WRONG, str(error))
        checks.append(lambda: iter([failed]))
    else:
        for file in files_of(network):
            checks += [partial(_file, file), partial(_self_test, file, device)]
        settings = PlayerSettings(player.setup, PlayOptions(seconds=SEARCH_S), player.search, network)
        checks.append(partial(_search, settings))
    # First, since it shows a bar of its own.
    found = list(_guarded(partial(_compiled, network))) if network else []
    with Console(stderr=True).status("looking"):
        found += [finding for check in checks for finding in _guarded(check)]
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in found]))
    else:
        _show(found)
    ctx.exit(1 if any(finding.verdict == WRONG for finding in found) else 0)


def _guarded(check: Check) -> Iterator[Finding]:
    """Yield the findings of a check; an exception that it raises becomes a last finding."""
    name = (check.func if isinstance(check, partial) else check).__name__.strip("_").replace("_", " ")
    try:
        yield from check()
    except Exception as error:
        text = f"{type(error).__name__}: {whole_line(error)}"
        yield Finding(name, WRONG, text, INSTALL if isinstance(error, ImportError) else "")


def _versions() -> Iterator[Finding]:
    yield Finding("Keima", WELL, __version__)
    yield Finding("Python", WELL, f"{platform.python_version()}, {platform.platform()}")
    for name in PACKAGES:
        try:
            yield Finding(name, WELL, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, WRONG, "missing", INSTALL)


def _packages() -> Iterator[Finding]:
    found = [Finding("packages", WRONG, text, FIX) for text in shadows()]
    yield from found or [Finding("packages", WELL, f"{', '.join(OURS)} from {HOME}")]


def _devices() -> Iterator[Finding]:
    from engine.nets.devices import choose_devices, found_devices

    found = found_devices()
    for name, text in found.items():
        yield Finding(name, WELL, text)
    chosen = ", ".join(choose_devices())
    is_unseen = len(found) == 1 and shutil.which("nvidia-smi") is not None
    fix = "an NVIDIA driver is installed but torch sees no GPU: install torch's CUDA build, as pytorch.org says"
    yield judged("device auto", chosen, not is_unseen, fix, NOTE)


def _kernels() -> Iterator[Finding]:
    from engine.system.jit import CACHE_VARIABLE, FOLDER, cache_root

    fix = f"make {cache_root()} writable, or set {CACHE_VARIABLE} to a folder that is"
    if FOLDER is None:
        yield Finding("kernel cache", WRONG, "no writable folder: every start compiles for minutes", fix)
    else:
        is_own = FOLDER.is_relative_to(cache_root())
        text = f"{FOLDER}, {'writable' if is_own else 'which may be cleared at any time'}"
        yield judged("kernel cache", text, is_own, fix, NOTE)


def _compiled(network: NetworkPath) -> Iterator[Finding]:
    from engine.play import ahead

    begin, expected = time.perf_counter(), expected_input(network)
    if expected is None:
        return
    compile_ahead(expected.encoder)
    seconds = time.perf_counter() - begin
    # Each encoder has kernels of its own.
    files = {name: FOLDER / entry.file for name, entry in entries().items()}
    shipped = {name: expected_input(files.get(name) or find_network(name)) for name in (*files, *players())}
    alike = [name for name, one in shipped.items() if one and one.encoder == expected.encoder]
    waiting = [name for name, one in shipped.items() if one and ahead.missing(one.encoder)]
    text = f"compiled in {seconds:.0f} s" if seconds >= 1.0 else "compiled"
    text += f" for the input {expected.encoder}" + (f" ({', '.join(alike)})" if alike else "")
    if waiting:
        text += f"; not yet for {', '.join(waiting)}, which compile more kernels at their first start"
    yield Finding("kernels", WELL, text)


def _settings_file(path: Path | None) -> Iterator[Finding]:
    count = len(read_settings(path)) if path is not None else 0
    yield Finding("settings file", WELL, "none" if path is None or not path.exists() else f"{path}, {count} options")


def _file(path: Path) -> Iterator[Finding]:
    from engine.nets.files.read import describe

    found = describe(path)
    digest = sha256_of(path)
    shipped = {entry.file: entry.sha256 for entry in entries().values()}
    low, high = found["sizes"]
    kind = f"{found['name']} ({found['format']}), boards {low} to {high}, {found['bytes'] / 2**20:.1f} MiB"
    text = f"{kind}, SHA-256 {digest[:16]}"
    is_damaged = path.parent == FOLDER and shipped.get(path.name, digest) != digest
    yield judged("network", text, not is_damaged, f"{path} is not the shipped file: install it again")


def _self_test(path: Path, device: str) -> Iterator[Finding]:
    from engine.features.encoder import sample_inputs
    from engine.nets.devices import choose_devices
    from engine.nets.files.read import read_network
    from engine.nets.on_device import verify

    network, spec, _ = read_network(path)
    fix = "update the device's driver and torch, or play with --device cpu"
    for chosen in choose_devices(device):
        playing = [check for check in verify(network, spec, [chosen], sample_inputs) if check.plays]
        if not playing:
            yield Finding(f"self-test {chosen}", WRONG, "wrong outputs of the network: the CPU is used instead", fix)
        for check in playing:
            errors = ", ".join(f"{head} {error:.2g}" for head, error in check.errors.items())
            text = f"{check.dtype} against plain float32: {errors} at most"
            yield judged(f"self-test {chosen}", text, check.is_close, fix)


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
    yield judged("search", text, speed >= SLOW, "try keima benchmark", NOTE)


def _show(found: list[Finding]) -> None:
    """Print the findings as a table, then their fixes."""
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
    console.print(f"{wrong} of {len(found)} checks failed." if wrong else "Everything works.")
