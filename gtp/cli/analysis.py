"""``keima analysis``: KataGo's JSON analysis engine, with KataGo's command line and our options."""

import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine import __version__
from engine.config import SearchOptions, SessionOptions, SetupOptions
from engine.config.profiles import NO_PROFILE
from engine.nets.files.header import expected_input
from gtp.cli.arguments import Whole
from gtp.cli.options import GroupedCommand, Player, options_of, player_from, settings_option
from gtp.cli.settings import with_whole_paths
from gtp.info import described
from gtp.json.settings import AT_START, FALSE, Settings, override, read_config, read_pairs
from gtp.log import start_log
from gtp.session import IN, OUT, LineLog, LineReader, Output, read_input
from gtp.startup import load_analysing
from weights import NetworkPath

if TYPE_CHECKING:
    from gtp.json.engine import JsonEngine

STARTED = "Started, ready to begin handling requests"
"""KataGo's words, for which clients wait"""
FAILED = 2
"""Exit status of a failed start; not 1, which KaTrain takes for a stop that it asked for"""
MAX_LINE = 1 << 24
"""Maximum length of an input line, in bytes"""
QUIT_S = 1.0
"""Maximum time, in seconds, to write the last answers under ``-quit-without-waiting``"""
MOST_POSITIONS = 16384
PROFILE = "humanSLProfile"
RANDOMIZE = "nnRandomize"
"""KataGo's setting of random symmetries; false = none, so that searches are reproducible"""


class AnalysisCommand(GroupedCommand):
    """A command that reports wrong options in KataGo's words and exits with status ``FAILED``."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except click.ClickException as error:
            _say_uncaught(error.format_message())
            raise click.exceptions.Exit(FAILED) from error


def _say_uncaught(reason: str) -> None:
    """Print the reason of a failed start in KataGo's words, which clients show."""
    print(f"Uncaught exception: {' '.join(reason.split())}", file=sys.stderr, flush=True)


@click.command(cls=AnalysisCommand, context_settings={"help_option_names": ["-h", "--help", "-help"]})
@click.option("-config", "configs", multiple=True, metavar="FILE", help="KataGo's config file; repeatable")
@click.option("-model", metavar="FILE", help="network file, same as --weights")
@click.option("-human-model", metavar="FILE", help="human network, same as --human-weights")
@click.option(
    "-override-config",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="settings in KataGo's names; repeatable",
)
@click.option(
    "-analysis-threads", "--at-once", type=Whole(1, MOST_POSITIONS), show_default="16, before a GPU 64",
    help="number of positions searched in parallel, at most one for 16 MiB of --memory",
)  # fmt: skip
@click.option(
    "-quit-without-waiting", "quits_at_once", is_flag=True, help="drop unanswered queries at the end of input"
)
@click.option("--visits", default=Settings.visits, type=Whole(1), help="visits of queries without maxVisits")
@click.version_option(__version__, "-version", "--version", prog_name="Keima", help="show the version and exit")
@settings_option(SearchOptions, SetupOptions, SessionOptions)
@options_of(SetupOptions, "weights", "human_weights", "device")
@options_of(SearchOptions)
@options_of(SessionOptions, "log_file")
@click.pass_context
def analysis(
    ctx: click.Context, /, configs: tuple[str, ...], model: str | None, human_model: str | None,
    overrides: tuple[str, ...], at_once: int | None, quits_at_once: bool, visits: int, config: Path | None,
    **values: Any,
) -> None:  # fmt: skip
    """Analyse positions: speak KataGo's JSON protocol on standard input and output.

    \b
        echo '{"id":"1","moves":[],"rules":"chinese","komi":7.5,"boardXSize":9,"boardYSize":9,"maxVisits":50}' \\
          | keima analysis

    Options with one dash are KataGo's, so the command lines of its clients work unchanged; KataGo's settings without a
    counterpart in Keima have no effect.
    """
    output = Output()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    values |= {"weights": model or values["weights"], "human_weights": human_model or values["human_weights"]}
    try:
        player = player_from(ctx, config, values)
        log_file = with_whole_paths(player.values, Path.cwd())["log_file"]
        log = start_log(Path(log_file)) if log_file else None
        given = {key: value for name in configs for key, value in read_config(Path(name)).items()}
        given |= {key: value for text in overrides for key, value in read_pairs(text).items()}
        settings = _start_settings(Settings(player.search, visits), _without_profile(player, given))
        if at_once and "numAnalysisThreads" in given:
            raise ValueError("numAnalysisThreads is in the config: -analysis-threads cannot be given too")
        at_once = at_once or _count(given, "numAnalysisThreads", 0, MOST_POSITIONS)
        sender = Sender(output, log.note if log else None)
        engine = load_engine(settings, player.network, player.setup.device, at_once, sender, player.human)
    except Exception as error:
        _say_uncaught(str(error))
        os._exit(FAILED)
    print(STARTED, file=sys.stderr, flush=True)
    for line in _lines():
        if log is not None:
            log.note(IN, line)
        sender.await_room()
        engine.take(line)
    if quits_at_once:
        engine.close()
        sender.finish(QUIT_S)
    else:
        engine.finish()
        sender.finish()
    os._exit(0)


def _without_profile(player: Player, given: dict[str, str]) -> dict[str, str]:
    """KataGo's settings without a human profile that no network knows; a line on standard error says so."""
    networks = [network for network in (player.network, player.human) if network is not None]
    known = [expected.encoder for network in networks if (expected := expected_input(network))]
    if given.get(PROFILE, "") in NO_PROFILE or any("-human" in encoder for encoder in known):
        return given
    print(f"keima: {PROFILE} {given[PROFILE]} is ignored: no network of human play is given", file=sys.stderr)
    return {key: text for key, text in given.items() if key != PROFILE}


def _start_settings(settings: Settings, given: dict[str, str]) -> Settings:
    """The default settings of queries, from KataGo's config files and command line.

    Raises:
        ValueError: a value that its key does not accept.
    """
    if given.get(RANDOMIZE, "true").lower() in FALSE:
        settings = replace(settings, search=replace(settings.search, random_symmetry=False, root_symmetries="1"))
    settings = override(settings, {key: text for key, text in given.items() if key not in AT_START})
    warns = given.get("warnUnusedFields", "true").lower() not in FALSE
    return replace(settings, warns=warns, pv_length=_count(given, "analysisPVLen", settings.pv_length, 100))


def _count(given: dict[str, str], key: str, default: int, most: int) -> int:
    """The value of a setting, an integer from 1 to ``most``; ``default`` if the setting is not given.

    Raises:
        ValueError: another value.
    """
    if key not in given:
        return default
    text = given[key]
    if not text.isdecimal() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise ValueError(f"Key '{key}' must be in the range 1 to {most}, but is {text[:40]!r}")
    return int(text)


def _lines() -> Iterator[str]:
    """Lines of standard input; a line longer than ``MAX_LINE`` is cut, and so answered by an error."""
    reader = LineReader(MAX_LINE)
    while data := read_input():
        yield from (line.decode("utf-8", "replace") for line in reader.feed(data))
    if reader.rest:
        yield reader.rest.decode("utf-8", "replace")


STATUS_UNREAD = 1
MOST_UNREAD = 1 << 26
"""Maximum number of unread characters of answers; above it, queries wait and reports during searches are dropped"""


def load_engine(settings: Settings, network: NetworkPath | None, device: str, at_once: int,
                sender: "Sender", human: NetworkPath | None = None) -> "JsonEngine":  # fmt: skip
    """Load an engine that sends its answers by ``sender``.

    Args:
        settings: default settings of queries.
        network: this and the rest as for :func:`gtp.startup.load_analysing`, which raises the same errors.
    """
    loaded = load_analysing(settings.search, network, device, at_once, human)
    from gtp.json.engine import JsonEngine

    models = described(network, loaded.server)
    if loaded.human is not None:
        models += described(human, loaded.human.server)
    return JsonEngine(loaded.analyses, settings, sender, models, sender.is_full)


class Sender:
    """Writes lines to the client in a thread of its own; the process ends when the client no longer reads.

    A client may send all its queries before it reads an answer, so answers wait in a queue while queries are read, but
    at most ``MOST_UNREAD`` characters of them.
    """

    def __init__(self, output: Output, log: LineLog | None = None) -> None:
        """Start the writing thread.

        Args:
            log: called with every line in the writing thread, before the line is written.
        """
        self._output, self._log = output, log
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """lines to write; None = the end"""
        self._n_unread, self._changed = 0, threading.Condition()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def __call__(self, text: str) -> None:
        """Queue a line for the client and return at once. Threads: any."""
        self._count(len(text))
        self._lines.put(text)

    def is_full(self) -> bool:
        """Whether more than ``MOST_UNREAD`` characters are unread. Threads: any."""
        return self._n_unread > MOST_UNREAD

    def await_room(self) -> None:
        """Wait until the sender is not full. Threads: any."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full())

    def _count(self, characters: int) -> None:
        """Add ``characters`` to the number of unread ones, and wake those who wait for room."""
        with self._changed:
            self._n_unread += characters
            self._changed.notify_all()

    def finish(self, timeout_s: float | None = None) -> None:
        """Wait until all lines are written, at most ``timeout_s`` (None = no limit); no line may be sent afterwards."""
        self._lines.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        """Write queued lines until :meth:`finish`; end the process if the client no longer reads.

        Threads: the writing thread.
        """
        while (text := self._lines.get()) is not None:
            if self._log is not None:
                self._log(OUT, text)
            try:
                self._output.write(text)
            except OSError:
                print("keima: the client no longer reads the answers", file=sys.stderr, flush=True)
                os._exit(STATUS_UNREAD)
            self._count(-len(text))
