"""``python -m bench.strength.endings``: how often the engine scores finished games correctly.

The last board of each game is scored as by ``final_score`` and ``final_status_list``. Games that were counted are
compared with their records (winner and margin); with a referee, a GTP engine, the status of every stone is compared
with the referee's. Games come from a shard (:mod:`engine.records.games`) or from SGF files. ``--show`` draws every
disagreement: dead stones are small letters, neutral points ``?``, points in seki ``s``, stones on whose status engine
and referee disagree ``*``.

Start at :func:`command`.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from bench.match.gtp_client import EngineError, EngineRefused, GtpClient
from bench.match.play import lead_black
from bench.speed.figures import print_figure
from engine.config import PlayOptions, SearchOptions
from engine.go.geometry import BLACK, COLUMNS, EMPTY, from_vertex, on_board_points, to_sgf
from engine.go.scoring import area_owner, remove_dead, result_text
from engine.go.seki import seki_points
from engine.go.sgf import read_sgf
from engine.play.factory import shipped_tables
from engine.play.life_and_death import EndEstimate, chains_with
from engine.play.player import Player
from engine.records.games import Games, read_games
from gtp.cli import one_line_errors
from weights import DEFAULT, find_network

WHOLE_GROUP = 8.0
"""Smallest error of the margin, in points, that means a misjudged group instead of one or two missed moves"""
LIMIT_S = 300.0
"""Longest wait for an answer of the referee"""


class Finished(NamedTuple):
    """A finished game."""

    name: str
    data: bytes
    """SGF"""
    lead_black: float | None
    """Black's lead by the record's final score, in points; None = the game was not counted"""


class Scored(NamedTuple):
    """A game scored by the engine and the referee."""

    game: Finished
    estimate: EndEstimate
    seconds: float
    """duration of the engine's estimate"""
    stones: int
    """number of stones on the board"""
    disputed: list[int]
    """points of stones that are dead or in seki for the engine alone or for the referee alone"""
    referee_score: str
    """the referee's answer to ``final_score``; empty without a referee"""


def from_shard(path: Path, count: int, seed: int) -> Iterator[Finished]:
    """Random games of a shard that were counted under territory scoring.

    Raises:
        ValueError: not a shard of games.
    """
    games = read_games(path)
    usable = np.flatnonzero(~np.isnan(games.margin) & games.territory & games.starts_even() & ~np.isnan(games.komi))
    for row in np.sort(np.random.default_rng(seed).permutation(usable)[:count]).tolist():
        yield Finished(f"{path.name}:{row}", _as_sgf(games, row), float(games.margin[row] * games.result[row]))


def _as_sgf(games: Games, row: int) -> bytes:
    """A game of a shard as SGF, under Japanese rules."""
    size = int(games.size[row])
    points = [*on_board_points(size).tolist(), 0]
    moves = games.moves[games.offsets[row] : games.offsets[row + 1]].tolist()
    text = "".join(f";{'BW'[n % 2]}[{to_sgf(points[move], size)}]" for n, move in enumerate(moves))
    return f"(;GM[1]FF[4]SZ[{size}]RU[Japanese]KM[{games.komi[row]:g}]{text})".encode()


def from_files(paths: tuple[Path, ...]) -> Iterator[Finished]:
    """Games of SGF files and of folders of them, without those won by resignation, time or forfeit.

    Raises:
        ValueError: a file is not SGF; one line naming it.
    """
    for path in paths:
        for file in sorted(path.rglob("*.sgf")) if path.is_dir() else [path]:
            data = file.read_bytes()
            try:
                result = read_sgf(data).result
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from error
            lead = lead_black(result)
            if lead is not None or result[1:2] != "+":
                yield Finished(str(file), data, lead)


def score_game(player: Player, referee: GtpClient | None, game: Finished, folder: Path) -> Scored:
    """Score one game by the engine and, if given, by the referee.

    Args:
        folder: for the SGF file that the referee loads.
    Raises:
        EngineError: the referee failed.
        ValueError: the game cannot be replayed; one line naming it.
    """
    try:
        player.load_sgf(game.data)
    except ValueError as error:
        raise ValueError(f"{game.name}: {error}") from error
    began_s = time.perf_counter()
    estimate = player.estimate_end()
    seconds = time.perf_counter() - began_s
    board = player.game.position.board
    stones = int(np.count_nonzero(board.color[on_board_points(player.game.size)] != EMPTY))
    disputed, score = set(), ""
    if referee is not None:
        file = folder / "game.sgf"
        file.write_bytes(game.data)
        referee.ask(f"loadsgf {file}", LIMIT_S)
        for status in ("dead", "seki"):
            theirs = referee.ask(f"final_status_list {status}", LIMIT_S).split()
            ours = {point for chain in chains_with(status, player.game.position, estimate.dead) for point in chain}
            disputed |= {from_vertex(vertex, player.game.size) for vertex in theirs} ^ ours
        score = referee.ask("final_score", LIMIT_S)
    return Scored(game, estimate, seconds, stones, sorted(disputed), score)


def drawing(player: Player, found: Scored) -> str:
    """The board of the player's game as text; see the module's docstring for the signs."""
    size, position = player.game.size, player.game.position
    dead, cleared = set(found.estimate.dead), remove_dead(position, found.estimate.dead)
    owner = np.zeros(size * size, np.int8)
    area_owner(cleared.board, owner)
    in_seki = seki_points(cleared.board)
    rows = ["   " + " ".join(COLUMNS[:size])]
    signs = []
    for index, point in enumerate(on_board_points(size).tolist()):
        color = position.board.color[point]
        sign = "." if owner[index] else "?"
        if color != EMPTY:
            sign = "X" if color == BLACK else "O"
            sign = sign.lower() if point in dead else "*" if point in found.disputed else sign
        signs.append("s" if in_seki[index] and color == EMPTY and owner[index] else sign)
    for row in range(size):
        rows.append(f"{size - row:2d} " + " ".join(signs[row * size : (row + 1) * size]))
    return "\n".join(rows)


def is_wrong(found: Scored) -> bool:
    """Whether the record or the referee disagrees with the engine."""
    lead = found.game.lead_black
    return bool(found.disputed) or (lead is not None and lead != found.estimate.lead_black)


def describe(found: Scored) -> str:
    """A game and its scores by engine, record and referee in one line."""
    parts = [found.game.name, f"ours {result_text(found.estimate.lead_black)}"]
    if found.game.lead_black is not None:
        parts.append(f"record {result_text(found.game.lead_black)}")
    if found.referee_score:
        parts += [f"referee {found.referee_score}", f"{len(found.disputed)} of {found.stones} stones disputed"]
    return ", ".join(parts)


def print_figures(scored: list[Scored], has_referee: bool) -> None:
    """Print the agreement with records and referee in percent, and the median time of scoring."""
    counted = [(v.estimate.lead_black, v.game.lead_black) for v in scored if v.game.lead_black is not None]
    print_figure("endings/games", [len(scored)], "games")
    if counted:
        ours, record = np.array(counted).T
        print_figure("endings/winner", [100 * float(np.mean(np.sign(ours) == np.sign(record)))], "% as recorded")
        print_figure("endings/margin", [100 * float(np.mean(ours == record))], "% as recorded")
        miscounted = int(np.count_nonzero(np.abs(ours - record) >= WHOLE_GROUP))
        print_figure("endings/groups", [miscounted], f"games off by {WHOLE_GROUP:g} points or more")
    if has_referee:
        disputed, stones = sum(len(v.disputed) for v in scored), sum(v.stones for v in scored)
        if stones:
            print_figure("endings/stones", [100 * (1 - disputed / stones)], "% as the referee has them")
        print_figure("endings/boards", [100 * statistics.mean(not v.disputed for v in scored)], "% without dispute")
    print_figure("endings/time", [1000 * statistics.median(v.seconds for v in scored)], "ms")


@click.command(help=__doc__.split("\n\n")[1].replace("\n", " "))
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--games", "shard", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="a shard of games")
@click.option("--count", default=300, type=click.IntRange(1), help="number of games to draw from the shard")
@click.option("--seed", default=1, type=click.IntRange(0), help="random seed of the games drawn from the shard")
@click.option("--weights", default=DEFAULT, help="network of the engine; none = rollouts alone")
@click.option("--referee", help="command line of a GTP engine to compare the status of stones with")
@click.option("--show", is_flag=True, help="print every disagreement with a diagram")
def command(
    files: tuple[Path, ...], shard: Path | None, count: int, seed: int, weights: str, referee: str | None, show: bool
) -> None:
    if not files and shard is None:
        raise click.ClickException("nothing to score, expected SGF files, folders or --games SHARD")
    with one_line_errors(EngineError, EngineRefused), ExitStack() as stack:
        games = [*from_files(files), *(from_shard(shard, count, seed) if shard else ())]
        player = Player(SearchOptions(), PlayOptions(), None if weights == "none" else find_network(weights))
        stack.callback(player.close)
        client = stack.enter_context(GtpClient(referee)) if referee else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shipped_tables()
        scored = []
        for game in games:
            scored.append(score_game(player, client, game, folder))
            if show and is_wrong(scored[-1]):
                click.echo(describe(scored[-1]) + "\n" + drawing(player, scored[-1]) + "\n", err=True)
    if scored:
        print_figures(scored, client is not None)


if __name__ == "__main__":
    command()
