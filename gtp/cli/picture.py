"""``keima picture``: pictures of a position as a network and a search see it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.go.sgf import read_sgf
from engine.insight.position_pictures import FIGURE_5, KINDS, LAYERS, picture
from engine.pictures.drawing import check_png, png, stand_alone
from engine.play.player import Player
from engine.system.files import written_whole
from gtp.cli.arguments import PATHS, Whole
from gtp.cli.options import GroupedCommand, options_of, player_from, settings_option
from gtp.cli.review import HIDDEN

VISITS = 800
SUFFIXES = (".svg", ".png")


def out_for(game: Path, kinds: tuple[str, ...]) -> Iterator[Path]:
    """The files beside a game that its pictures are written to without ``--out``."""
    return (game.with_name(f"{game.stem}-{kind}.svg") for kind in kinds)


@click.command("picture", cls=GroupedCommand)
@click.argument("game", type=PATHS)
@click.option("--kind", "kinds", multiple=True, default=(FIGURE_5,), type=click.Choice(KINDS),
              help="kind of picture; the option may be given several times")  # fmt: skip
@click.option(
    "--move", type=Whole(0), show_default="the last one", metavar="N", help="number of moves before the position"
)
@click.option("--visits", default=VISITS, type=Whole(1), help="visits of the search")
@click.option("--layer", default="", metavar="NAME", help=f"layer of the network to draw, for --kind {LAYERS}; "
              "a wrong name lists all")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), show_default="GAME-KIND.svg",
              help="file of a single picture, .svg or .png; PNG needs matplotlib")  # fmt: skip
@settings_option(SearchOptions, SetupOptions)
@options_of(SetupOptions, "weights", "device", "rules", "komi", hidden=HIDDEN)
@options_of(SearchOptions, hidden=HIDDEN)
@click.pass_context
def command(
    ctx: click.Context, /, game: Path, kinds: tuple[str, ...], move: int | None, visits: int, layer: str,
    out: Path | None, config: Path | None, **values: Any,
) -> None:  # fmt: skip
    """Draw a position of a game as a network and a search see it.

    The kinds: the panels of AlphaGo's Figure 5 are value (the network's win rate after every move), q and q-rollouts
    (mean values of the search by network and by rollouts), policy, visits and pv (principal variation); figure5 has all
    six. ownership is the expected owner of each point, layers the channels of one of the network's layers. GAME is an
    SGF file. Options of the search and the device are accepted as by keima gtp (docs/options.md).

    \b
        keima picture game.sgf --move 60
        keima picture game.sgf --kind policy --weights alphago-9 --out policy.png
    """
    if out is not None and len(kinds) > 1:
        raise ValueError(f"--out is one file, {len(kinds)} pictures are wanted, expected one --kind")
    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{out}: expected a file name that ends in {' or '.join(SUFFIXES)}")
    if out is not None and out.suffix.lower() == ".png":
        check_png()
    chosen = player_from(ctx, config, values)
    setup, console = chosen.setup, Console(stderr=True, highlight=False)
    data = game.read_bytes()
    with console.status("loading"):
        size = read_sgf(data, 0).size
        player = Player(chosen.search, PlayOptions(), chosen.network, setup.device, size, setup.rules, setup.komi,
                        any_size=True)  # fmt: skip
    with closing(player):
        player.load_sgf(data, move)
        if move is not None and player.game.n_moves < move:
            raise ValueError(f"{game}: move {move} of a game of {player.game.n_moves} moves")
        for kind, path in zip(kinds, [out] if out is not None else out_for(game, kinds), strict=True):
            with console.status(f"{kind} after {player.game.n_moves} moves"):
                drawn = picture(player, kind, visits, layer)
            with written_whole(path) as part:
                part.write_bytes(png(drawn) if path.suffix.lower() == ".png" else stand_alone(drawn).encode())
            click.echo(path)
