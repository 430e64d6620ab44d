"""What happens before the first move: a greeting, and loading with its progress on standard error."""

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SetupOptions
from weights import DEFAULT_ALIAS

if TYPE_CHECKING:
    from numba.core.event import RecordingListener

    from engine.player import Player

OPENMP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""torch's threads sleep when they wait. By default they spin, and beside the search's own threads that was measured
to slow the network up to 130 times."""
BAR_S = 0.2
"""Between two updates of the progress bar"""
LINES_S = 5.0
"""Between two lines of progress where standard error is no terminal"""


@dataclass(frozen=True)
class Settings:
    """What a player is made of; see :class:`engine.player.Player`."""

    setup: SetupOptions
    play: PlayOptions
    search: SearchOptions
    network: Path | tuple[Path, Path] | None
    """what ``setup.weights`` means: a file, or policy and value network; None = rollouts alone"""


def greet() -> None:
    """Tell a person at a terminal what to type here and what to give to a client."""
    program = Path(sys.argv[0])
    # Not resolved: a link in a folder of programs is the better address.
    path = sys.executable if program.suffix == ".py" else os.path.abspath(program)  # noqa: PTH100
    command = f'"{path}"' if " " in path else path
    if program.suffix == ".py":
        command += " -m gtp.cli"
    print(f"Keima {__version__} speaks GTP. Type for example: genmove b, showboard, help, quit.", file=sys.stderr)
    print(f"To play in a GUI such as Sabaki or GoGui, add this as an engine: {command} gtp", file=sys.stderr)


def calm_openmp() -> None:
    """Let torch's threads sleep; to be called before torch is imported."""
    for name, value in OPENMP.items():
        os.environ.setdefault(name, value)


def load_player(settings: Settings) -> "Player":
    """Import what plays, load the network and use everything once; shows what takes long.

    Raises:
        ValueError: a setting cannot be used; one clear line.
    """
    calm_openmp()
    from engine import jit

    with compile_progress():
        from engine.player import Player

        setup = settings.setup
        place = (settings.network, setup.device, setup.size, setup.rules, setup.komi)
        # Whoever names a network wants that network or nothing.
        player = Player(settings.search, settings.play, *place, any_size=setup.weights == DEFAULT_ALIAS)
        player.warm_up()
    # What has been loaded stays: a collection that walks all of it would stop a search for tenths of a second.
    gc.collect()
    gc.freeze()
    with contextlib.suppress(OSError):  # Another process may be tidying the cache at this moment.
        jit.mark_warm()
    return player


@contextlib.contextmanager
def compile_progress() -> Iterator[None]:
    """Show on standard error how many kernels have been compiled while the block runs; nothing if none has to be."""
    from numba.core import event

    seen, finished = event.RecordingListener(), threading.Event()
    with event.install_listener("numba:compile", seen):
        watcher = threading.Thread(target=_watch, args=(seen, finished), name="progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


def _watch(seen: "RecordingListener", finished: threading.Event) -> None:
    """Wait for the first kernel that is not on disk, then show progress to the end."""
    while not seen.buffer:
        if finished.wait(BAR_S):
            return
    if sys.stderr.isatty():
        _show_bar(seen, finished)
    else:
        _show_lines(seen, finished)


def _counts(seen: "RecordingListener") -> tuple[int, int, str]:
    """Kernels compiled, kernels there are among the modules loaded by now, and the name of the latest."""
    from numba.core.dispatcher import Dispatcher

    done = [found.data["dispatcher"].py_func for _, found in list(seen.buffer) if found.is_end]
    done = [function for function in done if function.__module__.startswith("engine.")]
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    kernels = {id(item) for module in modules for item in list(vars(module).values()) if isinstance(item, Dispatcher)}
    name = f"{done[-1].__module__}.{done[-1].__name__}" if done else ""
    return len(done), max(len(kernels), len(done)), name


def _show_bar(seen: "RecordingListener", finished: threading.Event) -> None:
    """For people: a bar that moves."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("compiling kernels (once)"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[name]}"), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", name="")
        while not finished.wait(BAR_S):
            done, total, name = _counts(seen)
            bar.update(task, completed=done, total=total, name=name)


def _show_lines(seen: "RecordingListener", finished: threading.Event) -> None:
    """For logs: a line now and then."""
    print("compiling kernels, once for this machine; this takes a minute or two", file=sys.stderr, flush=True)
    while not finished.wait(LINES_S):
        done, total, name = _counts(seen)
        print(f"compiling kernels (once) {done}/{total}: {name}", file=sys.stderr, flush=True)
