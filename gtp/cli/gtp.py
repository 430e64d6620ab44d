"""``keima gtp``: a player from options and settings, and its session with a GTP client."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from engine import __version__
from engine.config import PlayOptions, SearchOptions, SessionOptions, SetupOptions
from engine.system import whole_line, with_kind
from gtp.cli.options import GroupedCommand, options_from, options_of, player_from, settings_option
from gtp.cli.settings import KINDS, render, user_file, with_whole_paths
from gtp.commands import COMMANDS
from gtp.host import Host
from gtp.line_editing import line_editor
from gtp.log import OWN, Log, start_log
from gtp.session import Output, Session, read_input
from gtp.startup import PlayerSettings, greet, load_player

HISTORY = "history"
"""Name of the file that keeps the lines typed at a terminal"""


@click.command(cls=GroupedCommand)
@settings_option(*KINDS)
@click.option("--print-config", is_flag=True, help="print a complete settings file with the current values and exit")
@options_of(SetupOptions)
@options_of(PlayOptions)
@options_of(SearchOptions)
@options_of(SessionOptions)
@click.pass_context
def gtp(ctx: click.Context, /, config: Path | None, print_config: bool, **values: Any) -> None:
    """Play: speak GTP on standard input and output.

    The client's clock limits the time of a move; without a clock --seconds and --visits do.
    """
    # Tests pass a loader of networks (engine.play.factory.Loader) as the context's object.
    try:
        player = player_from(ctx, config, values)
        values = with_whole_paths(player.values, Path.cwd())
        play = options_from(PlayOptions, values)
        if print_config:
            # Bytes, since TOML is UTF-8 in any locale.
            click.echo(render(values).encode(), nl=False)
            return
        output = Output()
        log = start_log(Path(values["log_file"])) if values["log_file"] else None
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if sys.stdin is not None and sys.stdin.isatty():
        greet()
    if ctx.default_map:
        print(f"settings from {config}", file=sys.stderr)
    editor = line_editor(_history_file())
    settings = PlayerSettings(player.setup, play, player.search, player.network, ctx.obj, player.human)
    status = converse(settings, output, log, values["name"], editor.read if editor else read_input)
    if editor:
        editor.close()
    if log:
        log.note(OWN, f"process {os.getpid()} ended with status {status}")
    # Threads that import, compile or wait for input must neither delay the exit nor crash in it.
    os._exit(status)


def _history_file() -> Path | None:
    """Path of the file that keeps typed lines, beside the user's settings file; None = no home folder."""
    with suppress(RuntimeError):
        return user_file().with_name(HISTORY)
    return None


def converse(
    settings: PlayerSettings, output: Output, log: Log | None, name: str, read: Callable[[], bytes] = read_input
) -> int:
    """Run a session, which begins while the player is being loaded; returns the exit status.

    Args:
        read: as for :class:`gtp.session.Session`.
    """
    host = Host(COMMANDS, name)
    session = Session(COMMANDS, host, output, log.note if log else None, read)

    def load() -> None:
        try:
            host.provide(load_player(settings, host.begin))
            # KataGo's words, for which LizGoban waits.
            print(f"Keima {__version__}: GTP ready", file=sys.stderr, flush=True)
        except Exception as error:
            session.fail(with_kind(error, whole_line(error)))

    threading.Thread(target=load, name="load", daemon=True).start()
    return session.run()
