"""What happens before the first move: a greeting, and loading with its progress on standard error."""

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SetupOptions
from weights import DEFAULT, NetworkPath

if TYPE_CHECKING:
    from subprocess import Popen

    from numba.core.event import RecordingListener

    from engine.config import SearchOptions
    from engine.inference.server import InferenceServer
    from engine.insight.analyses import Analyses
    from engine.play.early import EarlySession
    from engine.play.factory import Loader
    from engine.play.player import Player

OPENMP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""torch's threads sleep when they wait. By default they spin, and beside the search's own threads that was measured
to slow the network up to 130 times."""
LOOK_S = 0.2
"""Between two looks whether anything is being compiled"""
LINES_S = 5.0
"""Between two lines of progress where standard error is no terminal"""


bar: Callable[[Callable[[], tuple[int, int]], threading.Event], None] | None = None
"""Shows people at a terminal how much is compiled: given what counts (done, total), it returns once the event is set.
The command line puts it here; None = lines in any case."""


@dataclass(frozen=True)
class PlayerSettings:
    """What a player is made of; see :class:`engine.play.player.Player`."""

    setup: SetupOptions
    play: PlayOptions
    search: SearchOptions
    network: NetworkPath | None
    """what ``setup.weights`` means: a file, or policy and value network; None = rollouts alone"""
    load: "Loader | None" = None
    """as for :func:`engine.play.factory.load_parts`"""


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


def load_player(settings: PlayerSettings, begin: "Callable[[EarlySession], None]" = lambda early: None) -> "Player":
    """Import what plays, load the network and use everything once; shows what takes long.

    Kernels that no earlier start has compiled are compiled by several processes. What is needed only where a game ends
    comes last, in the background.

    Threads: the one that loads, not the one that answers commands; endings are loaded in a third.

    Args:
        begin: given what keeps the game until there is a player, before anything heavy is imported.
    Raises:
        ValueError: a setting cannot be used; one clear line.
    """
    from engine.nets.files.header import expected_input
    from engine.play.early import EarlySession

    setup, expected = settings.setup, expected_input(settings.network)
    # A network that was named plays, or nothing does.
    any_size = setup.weights == DEFAULT
    if any_size or settings.network is None or expected:
        sizes = None if any_size or expected is None else expected.sizes
        begin(EarlySession(setup.size, setup.rules, setup.komi, settings.play.lag, sizes))
    with compiling_ahead(expected.encoder if expected else "") as ahead:
        from engine.play.player import Player

        ahead.compile_first()
        place = (settings.network, setup.device, setup.size, setup.rules, setup.komi)
        player = Player(settings.search, settings.play, *place, any_size=any_size, load=settings.load)
        player.warm_up()
    # What has been loaded stays: a collection that walks all of it would stop a search for tenths of a second.
    gc.collect()
    gc.freeze()
    player.fallback_loaded.clear()
    threading.Thread(target=_load_endings, args=(ahead, player), name="endings", daemon=True).start()
    return player


def _load_endings(ahead: "Ahead", player: "Player") -> None:
    """Load what is called where a game ends or the network is late; a helper may still be compiling it."""
    from engine.play.ahead import load_later
    from engine.system import jit

    try:
        load_later(ahead.encoder, ahead.helpers)
    finally:
        player.load_fallback()
    with contextlib.suppress(OSError):  # Another process may be tidying the cache at this moment.
        jit.mark_warm()


class Ahead(NamedTuple):
    """Kernels that are compiled before they are needed, for one network."""

    encoder: str
    """the network's; empty = there is none"""
    is_needed: bool
    """no earlier start has compiled them all"""
    helpers: "list[Popen[bytes]]"
    """processes that compile beside this one"""

    def compile_first(self) -> None:
        """Compile what the first move waits for and no helper is at, and wait for theirs."""
        from engine.play import ahead

        if self.is_needed:
            ahead.compile_kernels(self.encoder, ahead.FIRST)


@contextlib.contextmanager
def compiling_ahead(encoder: str) -> Iterator[Ahead]:
    """Let several processes compile what no earlier start has, and show it on standard error while the block runs.

    The block imports what searches, calls :meth:`Ahead.compile_first`, and uses everything once.

    Args:
        encoder: of the network; empty = there is none, and this process compiles what it meets.
    """
    calm_openmp()
    from engine.play import ahead

    is_needed = bool(encoder and ahead.missing(encoder))
    helpers = ahead.start_helpers(encoder) if is_needed else []
    with compile_progress(encoder if is_needed else ""):
        yield Ahead(encoder, is_needed, helpers)


@contextlib.contextmanager
def compile_progress(encoder: str = "", names: tuple[str, ...] = ()) -> Iterator[None]:
    """Show on standard error what has been compiled while the block runs; nothing if nothing has to be.

    Threads: any; the progress is shown by a thread of its own, which has ended when the block has.

    Args:
        encoder: kernels are being compiled ahead for networks with this one; empty = this process compiles what it
            meets.
        names: of :data:`engine.play.ahead.KERNELS`, those that count; none = what the first move waits for.
    """
    from numba.core import event

    seen, finished = event.RecordingListener(), threading.Event()
    with event.install_listener("numba:compile", seen):
        watcher = threading.Thread(target=_watch, args=(seen, encoder, names, finished), name="progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


def _watch(seen: "RecordingListener", encoder: str, names: tuple[str, ...], finished: threading.Event) -> None:
    """Wait for the first kernel that is not on disk, then show progress to the end."""
    while not (encoder or seen.buffer):
        if finished.wait(LOOK_S):
            return
    show = bar if bar is not None and sys.stderr.isatty() else _show_lines
    show(partial(_counts, seen, encoder, names), finished)


def _counts(seen: "RecordingListener", encoder: str, names: tuple[str, ...]) -> tuple[int, int]:
    """How much has been compiled, and of how much: kernels compiled ahead, or kernels of the modules loaded by now."""
    if encoder:
        from engine.play import ahead

        names = names or ahead.FIRST
        return len(names) - len(ahead.missing(encoder, names)), len(names)
    from numba.core.dispatcher import Dispatcher

    done = sum(found.is_end for _, found in list(seen.buffer))
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    kernels = {id(item) for module in modules for item in list(vars(module).values()) if isinstance(item, Dispatcher)}
    return done, max(len(kernels), done)


def _show_lines(counts: Callable[[], tuple[int, int]], finished: threading.Event) -> None:
    """For logs: a line now and then."""
    print("compiling kernels, once for this machine: half a minute to some minutes", file=sys.stderr, flush=True)
    told = -1
    while not finished.wait(LINES_S):
        done, total = counts()
        if done != told:
            print(f"compiling kernels (once) {done}/{total}", file=sys.stderr, flush=True)
        told = done


WARM_UP_SIZE, WARM_UP_VISITS = 9, 8


class Analysing(NamedTuple):
    """Ready to analyse."""

    analyses: "Analyses"
    server: "InferenceServer | None"
    """None = there is no network"""
    at_once: int
    """positions side by side"""


def load_analysing(options: "SearchOptions", network: NetworkPath | None, device: str,
                   at_once: int = 0) -> Analysing:  # fmt: skip
    """Import what analyses, load the network, and use everything once; shows what takes long.

    Args:
        network: None = rollouts alone.
        at_once: positions searched side by side; 0 = as many as the device wants.
    Raises:
        ValueError: a setting cannot be used; one clear line.
    """
    from engine.nets.files.header import expected_input

    expected = expected_input(network)
    with compiling_ahead(expected.encoder if expected else "") as ahead:
        from engine.insight.analyses import Analyses, positions_at_once
        from engine.play.factory import load_parts, new_server

        ahead.compile_first()
        parts = load_parts(options, network, device)
        server = new_server(parts, shared=True)
        count = positions_at_once(parts, at_once)
        analyses = Analyses(parts, server, count)
        analyses.warm_up(server.spec.max_size if server else WARM_UP_SIZE, WARM_UP_VISITS)
    return Analysing(analyses, server, count)
