"""Before the first move: a greeting, and loading of the player with progress on standard error."""

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SetupOptions
from weights import DEFAULT, NetworkPath

if TYPE_CHECKING:
    from subprocess import Popen

    from numba.core.event import RecordingListener

    from engine.inference.server import InferenceServer
    from engine.insight.analyses import Analyses
    from engine.play.early import EarlySession
    from engine.play.factory import Loader
    from engine.play.human import HumanNetwork
    from engine.play.player import Player

OPENMP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Environment variables that make torch's waiting threads sleep. By default these threads spin, which was measured to
slow the network up to 130 times beside the search's own threads."""
LOOK_S = 0.2
"""Seconds between two checks whether kernels are being compiled"""
LINES_S = 5.0
"""Seconds between two lines of progress if standard error is not a terminal"""


@dataclass(frozen=True)
class PlayerSettings:
    """The settings of a player; see :class:`engine.play.player.Player`."""

    setup: SetupOptions
    play: PlayOptions
    search: SearchOptions
    network: NetworkPath | None
    """network of ``setup.weights``: a file, or a policy and a value network; None = rollouts alone"""
    load: "Loader | None" = None
    """loads a network on a device, as for :func:`engine.play.factory.load_parts`; None = the usual loader"""
    human: NetworkPath | None = None
    """human network of ``setup.human_weights``; None = none"""
    any_size: bool = False
    """rollouts alone play the board sizes that the network does not play, as with the default network"""


def greet() -> None:
    """Tell a person at a terminal which commands to type and how to add the engine to a GUI."""
    program = Path(sys.argv[0])
    # Not resolved: a link in a folder of programs is the better path to show.
    path = sys.executable if program.suffix == ".py" else os.path.abspath(program)  # noqa: PTH100
    command = f'"{path}"' if " " in path else path
    if program.suffix == ".py":
        command += " -m gtp.cli"
    print(f"Keima {__version__} speaks GTP. Type for example: genmove b, showboard, help, quit.", file=sys.stderr)
    print(f"To play in a GUI such as Sabaki or GoGui, add this as an engine: {command} gtp", file=sys.stderr)


def calm_openmp() -> None:
    """Make torch's waiting threads sleep; to be called before torch is imported."""
    for name, value in OPENMP.items():
        os.environ.setdefault(name, value)


def load_player(
    settings: PlayerSettings,
    begin: "Callable[[EarlySession], None]" = lambda early: None,
    on_counts: "Callable[[int, int], None] | None" = None,
    freezes: bool = True,
    for_page: bool = False,
) -> "Player":
    """Import the player's modules, load the network, and warm up search and network, with progress on standard error.

    Kernels that no earlier start has compiled are compiled by several processes. Kernels of the end of a game and of
    the fallback network are loaded last, in the background.

    Threads: called in a loading thread, not the command thread; a third thread loads what is loaded last.

    Args:
        begin: called, before heavy imports, with the session that keeps the game until the player is loaded.
        on_counts: gets the progress of compilation instead of standard error, as in :func:`compile_progress`.
        freezes: garbage collections ignore the objects that exist afterwards; only for processes that are an engine and
            nothing else.
        for_page: the kernels of levels and of help on the page of ``keima play`` are compiled next, before the others,
            with their progress to ``on_counts``, while the player plays.
    Raises:
        ValueError: a setting cannot be used; one line.
    """
    from engine.nets.files.header import expected_input
    from engine.play.early import EarlySession

    setup, expected = settings.setup, expected_input(settings.network)
    # Only the default network is replaced on boards that it does not play.
    any_size = setup.weights == DEFAULT or settings.any_size
    if any_size or settings.network is None or expected:
        sizes = None if any_size or expected is None else expected.sizes
        begin(EarlySession(setup.size, setup.rules, setup.komi, settings.play.lag, sizes))
    with compiling_ahead(expected.encoder if expected else "", on_counts, for_page) as ahead:
        # Imported objects stay: collections while they are made, and later ones that visit them, would take a tenth of
        # the time until the first move.
        if freezes:
            gc.disable()
        try:
            from engine.play.player import Player
        finally:
            if freezes:
                gc.freeze()
                gc.enable()
        ahead.compile_first()
        place = (settings.network, setup.device, setup.size, setup.rules, setup.komi)
        player = Player(settings.search, settings.play, *place, any_size=any_size, load=settings.load,
                        human=settings.human)  # fmt: skip
        player.warm_up()
    if freezes:
        # Loaded objects stay: a garbage collection that visits them all would stop a search for tenths of a second.
        gc.collect()
        gc.freeze()
    player.fallback_loaded.clear()
    endings = threading.Thread(target=_load_endings, args=(ahead, player, on_counts), name="endings", daemon=True)
    endings.start()
    return player


def _load_endings(ahead: "Ahead", player: "Player", on_counts: "Callable[[int, int], None] | None") -> None:
    """Load the kernels of the page, of the end of a game, and then the network's fallback.

    Helpers may still be compiling the kernels.
    """
    from engine.play.ahead import PAGE, load_later, missing
    from engine.system import jit

    try:
        if ahead.for_page and on_counts is not None and missing(ahead.encoder, PAGE):
            with compile_progress(ahead.encoder, PAGE, on_counts):
                load_later(ahead.encoder, PAGE)
            on_counts(len(PAGE), len(PAGE))
        load_later(ahead.encoder, helpers=ahead.helpers)
    finally:
        player.load_fallback()
    with contextlib.suppress(OSError):  # Another process may be tidying the cache at this moment.
        jit.mark_warm()


class Ahead(NamedTuple):
    """Compilation of a network's kernels ahead of their use."""

    encoder: str
    """the network's encoder; empty = no network"""
    is_needed: bool
    """some kernels of the first move have not been compiled by an earlier start"""
    helpers: "list[Popen[bytes]]"
    """processes that compile in parallel"""
    for_page: bool = False
    """as for :func:`load_player`"""

    def compile_first(self) -> None:
        """Compile the kernels of the first move, shared with the helpers, and wait for them."""
        from engine.play import ahead

        if self.is_needed:
            ahead.compile_kernels(self.encoder, ahead.FIRST)


@contextlib.contextmanager
def compiling_ahead(
    encoder: str, on_counts: "Callable[[int, int], None] | None" = None, for_page: bool = False
) -> Iterator[Ahead]:
    """Context manager: processes compile missing kernels while the block runs, with progress on standard error.

    The block imports the search, calls :meth:`Ahead.compile_first`, and warms up search and network.

    Args:
        encoder: the network's encoder; empty = no network, and this process compiles kernels as it calls them.
        on_counts: as for :func:`compile_progress`.
        for_page: as for :func:`load_player`.
    """
    calm_openmp()
    from engine.play import ahead

    is_needed = bool(encoder and ahead.missing(encoder, ahead.FIRST))
    at_once = ahead.FIRST + ahead.PAGE if for_page else ahead.FIRST
    helpers = ahead.start_helpers(encoder, at_once) if encoder and ahead.missing(encoder) else []
    with compile_progress(encoder if is_needed else "", ahead.FIRST, on_counts):
        yield Ahead(encoder, is_needed, helpers, for_page)


@contextlib.contextmanager
def compile_progress(
    encoder: str = "", names: tuple[str, ...] = (), on_counts: "Callable[[int, int], None] | None" = None
) -> Iterator[None]:
    """Context manager: show the progress of compilation on standard error; nothing if no kernel is compiled.

    Threads: any; a thread of its own shows the progress and ends with the block.

    Args:
        encoder: encoder whose kernels are being compiled ahead; empty = this process compiles kernels as it calls them.
        names: names of :data:`engine.play.ahead.KERNELS` to count, of ``encoder``.
        on_counts: gets the numbers of compiled kernels and of all kernels instead of standard error.
    """
    from numba.core import event

    seen, finished = event.RecordingListener(), threading.Event()
    with event.install_listener("numba:compile", seen):
        arguments = (seen, encoder, names, finished, on_counts)
        watcher = threading.Thread(target=_watch, args=arguments, name="progress", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()


def _watch(
    seen: "RecordingListener", encoder: str, names: tuple[str, ...], finished: threading.Event,
    on_counts: "Callable[[int, int], None] | None",
) -> None:  # fmt: skip
    """Wait until a kernel is compiled instead of loaded, then show the progress until ``finished`` is set."""
    while not (encoder or seen.buffer):
        if finished.wait(LOOK_S):
            return
    counts = partial(_counts, seen, encoder, names)
    if on_counts is not None:
        while not finished.wait(LOOK_S):
            on_counts(*counts())
    elif sys.stderr.isatty():
        from gtp.cli.terminal import compile_bar

        compile_bar(counts, finished)
    else:
        _show_lines(counts, finished)


def _counts(seen: "RecordingListener", encoder: str, names: tuple[str, ...]) -> tuple[int, int]:
    """Numbers of compiled kernels and of all kernels.

    With an encoder these are the kernels compiled ahead, else the kernels of the modules loaded so far.
    """
    if encoder:
        from engine.play import ahead

        return len(names) - len(ahead.missing(encoder, names)), len(names)
    from numba.core.dispatcher import Dispatcher

    done = sum(found.is_end for _, found in list(seen.buffer))
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    kernels = {id(item) for module in modules for item in list(vars(module).values()) if isinstance(item, Dispatcher)}
    return done, max(len(kernels), done)


def _show_lines(counts: Callable[[], tuple[int, int]], finished: threading.Event) -> None:
    """Print a line of progress at intervals, for logs."""
    print("compiling kernels, once for this machine: half a minute to some minutes", file=sys.stderr, flush=True)
    printed = -1
    while not finished.wait(LINES_S):
        done, total = counts()
        if done != printed:
            print(f"compiling kernels (once) {done}/{total}", file=sys.stderr, flush=True)
        printed = done


def compile_ahead(encoder: str) -> None:
    """Compile all kernels of play with networks of one encoder that no earlier start has compiled, on all cores."""
    from engine.play import ahead

    if not ahead.missing(encoder):
        return
    helpers = ahead.start_helpers(encoder)
    with compile_progress(encoder, tuple(ahead.KERNELS)):
        ahead.compile_kernels(encoder)
        for helper in helpers:
            helper.wait()


WARM_UP_SIZE, WARM_UP_VISITS = 9, 8


class Analysing(NamedTuple):
    """What :func:`load_analysing` loads to analyse many positions in parallel."""

    analyses: "Analyses"
    server: "InferenceServer | None"
    """evaluates the network; None = no network"""
    at_once: int
    """number of positions searched in parallel"""
    human: "HumanNetwork | None" = None
    """human network beside the main one"""


def load_analysing(options: SearchOptions, network: NetworkPath | None, device: str, at_once: int = 0,
                   human: NetworkPath | None = None) -> Analysing:  # fmt: skip
    """Import the search, load the network, and warm up both search and network, with progress on standard error.

    Args:
        network: None = rollouts alone.
        at_once: number of positions searched in parallel; 0 = the device's default.
        human: human network beside the main one; None = none.
    Raises:
        ValueError: a setting cannot be used; one line.
    """
    from engine.nets.files.header import expected_input

    expected = expected_input(network)
    with compiling_ahead(expected.encoder if expected else "") as ahead:
        from engine.insight.analyses import Analyses, positions_at_once
        from engine.play.factory import load_parts, new_server
        from engine.play.human import HumanNetwork

        ahead.compile_first()
        beside = HumanNetwork(human, device) if human is not None else None
        if beside is not None:
            beside.check_profile(options.human_profile)
            beside.warm_up(WARM_UP_SIZE)
            options = replace(options, human_profile="")
        parts = load_parts(options, network, device)
        server = new_server(parts, shared=True)
        count = positions_at_once(parts, at_once)
        analyses = Analyses(parts, server, count, beside)
        analyses.warm_up(server.spec.max_size if server else WARM_UP_SIZE, WARM_UP_VISITS)
    return Analysing(analyses, server, count, beside)


if __name__ == "__main__":
    from engine.nets.files.header import expected_input
    from weights import find_network

    if expected := expected_input(find_network(DEFAULT)):
        compile_ahead(expected.encoder)
