"""``keima play``: a game against Keima in the browser."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.system import user_folder
from gtp.cli.arguments import Whole
from gtp.cli.options import GroupedCommand, options_from, options_of, player_from, settings_option
from gtp.startup import PlayerSettings, calm_openmp, load_player

if TYPE_CHECKING:
    from engine.play.player import Player

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PASSWORD_VARIABLE = "KEIMA_PASSWORD"
COMMANDLINE = click.core.ParameterSource.COMMANDLINE


@click.command(cls=GroupedCommand)
@settings_option(SetupOptions, PlayOptions, SearchOptions)
@click.option("--browser/--no-browser", default=True, help="open the page in the browser")
@click.option("--port", default=0, type=Whole(0, 65535), help="port of the page; 0 = 8361, or the next free one")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS",
              help="address to listen on; others than 127.0.0.1 need --password")  # fmt: skip
@click.option("--password", default=None, envvar=PASSWORD_VARIABLE, metavar="PASSWORD",
              help=f"password that other machines are asked for; better given as ${PASSWORD_VARIABLE}")  # fmt: skip
@options_of(SetupOptions)
@options_of(PlayOptions)
@options_of(SearchOptions)
@click.pass_context
def play(
    ctx: click.Context, /, config: Path | None, browser: bool, port: int, host: str, password: str | None, **values: Any
) -> None:
    """Play a game in the browser.

    The page is served on this machine alone unless --host says otherwise. Games are kept in the user's data folder,
    move by move.
    """
    # Tests pass a loader of networks (engine.play.factory.Loader) as the context's object.
    if host not in LOOPBACK and not password:
        raise click.UsageError(f"--host {host} serves other machines, expected --password or ${PASSWORD_VARIABLE}")
    calm_openmp()
    from gtp.web.app import App, Served
    from gtp.web.connections import Server, host_names, listen
    from gtp.web.guard import Guard, new_token

    chosen = player_from(ctx, config, values)
    options = options_from(PlayOptions, chosen.values)
    # A seed for all of the program's searches: another one would begin the tree anew.
    search = chosen.search.seeded()
    settings = PlayerSettings(chosen.setup, options, search, chosen.network, ctx.obj, any_size=True)

    def load(say: Callable[[str], None]) -> "Player":
        say("loading the network")

        def count(done: int, total: int) -> None:
            say(f"compiling kernels {done} of {total}, once" if done < total else "")

        return load_player(settings, on_counts=count, for_page=True)

    words = {"size": chosen.setup.size, "rules": chosen.setup.rules, "komi": chosen.setup.komi, "level": options.level}
    given = {name: value for name, value in words.items() if ctx.get_parameter_source(name) is COMMANDLINE}
    app = App(Served(user_folder("data"), chosen.setup, options, search, chosen.network, load, given))
    socket = listen(host, port)
    port, token = socket.getsockname()[1], new_token()
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/?token={token}"
    server = Server(Guard(app.starlette(), host_names(host, port), token, password or ""), app.hub.close)
    click.echo(address)
    sys.stdout.flush()
    if browser:
        threading.Thread(target=_open, args=(address,), name="browser", daemon=True).start()
    server.run(sockets=[socket])
    app.close()
    sys.stdout.flush()
    # Threads that import, compile or search must neither delay the exit nor crash in it.
    os._exit(0)


def _open(address: str) -> None:
    """Open the page in the user's browser, if there is one."""
    import webbrowser

    webbrowser.open(address)
