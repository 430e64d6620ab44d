"""``python -m bench.strength.level_habits``: what no person would do, counted in games of levels against themselves.

Each move of each game is looked at, with the network's ownership of the position before it (:func:`faults`). The same
counts of games between people, if a folder of SGFs is given, say what is usual. Start at :func:`command`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from bench.strength.level_games import RULES, Block, finished_games
from engine.features.encoder import ENCODERS, sample_inputs
from engine.go.board import META_SIZE, Board, is_eye, play
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, index_of, point_of
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, with_capacity
from engine.go.rules import rules_named
from engine.go.sgf import read_sgf, write_sgf
from engine.inference.server import InferenceServer
from engine.insight.raw_outputs import PositionQuery
from engine.nets.on_device import load_network
from engine.play.levels import names, settings_of
from gtp.cli import one_line_errors
from weights import DEFAULT, find

SURE = 0.95
"""Ownership of the network from which territory is sure"""
BIG = 3
"""Stones of a chain in atari that is worth saving"""
EARLY = 10
"""Length of the opening in moves: in it, a move on the first two lines away from all stones counts as absurd"""
OPEN, OPEN_SHARE = 0.5, 0.1
"""A point is open if the network's ownership is less sure than this; share of open points with which a pass is too
early"""
FAULTS = ("self-atari", "eye filled", "own territory", "atari ignored", "edge in the opening", "pass too early")
"""Names of the counts, in the order of the table"""


def faults(position: Position, point: int, reply: int, ownership_black: np.ndarray) -> Iterator[str]:
    """Yield the names of what no person would do.

    * *self-atari*: the move leaves a chain of two or more own stones in atari, of which none was before, and captures
      nothing;
    * *eye filled*: it fills an own single-point eye and captures nothing;
    * *own territory*: the point is surely the player's already by the network, with no opposing stone within two lines;
    * *atari ignored*: a chain of ``BIG`` or more own stones in atari could be saved, was not, and is captured at once;
    * *edge in the opening*: one of the first ``EARLY`` moves on the first two lines, four or more from every stone;
    * *pass too early*: many points are open. (A pass too late shows as own territory filled.)

    Args:
        position: before the move.
        point, reply: the move and the opponent's next one.
        ownership_black: float[N*N], the network's, before the move.
    """
    board, size, color = position.board, int(position.board.meta[META_SIZE]), int(position.meta[META_TO_MOVE])
    if point == PASS:
        if (np.abs(ownership_black) < OPEN).mean() > OPEN_SHARE:
            yield "pass too early"
        return
    after = with_capacity(position, int(position.meta[META_N_MOVES]) + 2).board
    captured = play(after, point, color)
    own = ownership_black[index_of(point, size)] * (1.0 if color == BLACK else -1.0) >= SURE
    is_eyed = is_eye(board, point, color)
    beside = {int(board.head[one]) for one in _beside(point, size) if board.color[one] == color}
    was_in_atari = any(board.libs[head] == 1 for head in beside)
    head = after.head[point]
    if not captured and not was_in_atari and after.stones[head] > 1 and after.libs[head] == 1:
        yield "self-atari"
    if is_eyed and not captured:
        yield "eye filled"
    elif own and not captured and not _is_near(board, point, BLACK + WHITE - color, 2, size):
        yield "own territory"
    if _is_ignored(board, after, color, reply, size):
        yield "atari ignored"
    row, column = divmod(index_of(point, size), size)
    line = 1 + min(row, column, size - 1 - row, size - 1 - column)
    stones = any(_is_near(board, point, one, 3, size) for one in (BLACK, WHITE))
    if position.meta[META_N_MOVES] < EARLY and line <= 2 and not stones:
        yield "edge in the opening"


def _beside(point: int, size: int) -> tuple[int, int, int, int]:
    return point - size - 1, point - 1, point + 1, point + size + 1


def _is_near(board: Board, point: int, color: int, lines: int, size: int) -> bool:
    """Whether a stone of a colour is within some lines of a point."""
    row, column = divmod(index_of(point, size), size)
    return any(
        board.color[point_of(r * size + c, size)] == color
        for r in range(max(0, row - lines), min(size, row + lines + 1))
        for c in range(max(0, column - lines), min(size, column + lines + 1))
    )


def _is_ignored(board: Board, after: Board, color: int, reply: int, size: int) -> bool:
    """Whether the reply captures a big chain that was in atari before the move and could have been extended."""
    if reply == PASS or after.color[reply] != EMPTY:
        return False
    for one in _beside(reply, size):
        if board.color[one] != color or after.color[one] != color:
            continue
        head = board.head[one]
        if board.stones[head] >= BIG and board.libs[head] == 1 and after.libs[after.head[one]] == 1:
            spaces = sum(board.color[two] == EMPTY for two in _beside(int(board.lib_sum[head]), size))
            if spaces >= 2:
                return True
    return False


def count_faults(server: InferenceServer, games: list[Game]) -> Counter[str]:
    """Numbers of faults in games, and of ``moves``."""
    encoder, found = ENCODERS[server.spec.encoder], Counter[str]()
    for game in games:
        replayed = Game(game.size, game.rules, game.komi)
        moves = game.moves()
        for i, (color, point) in enumerate(moves):
            position = replayed.position
            ownership = PositionQuery(server, encoder, position).outputs().ownership_black
            assert ownership is not None, "the default network has ownership"
            reply = moves[i + 1][1] if i + 1 < len(moves) else PASS
            found["moves"] += 1
            found.update(faults(position, point, reply, ownership))
            replayed.play(color, point)
    return found


def games_of(server: InferenceServer, size: int, name: str, count: int) -> list[Game]:
    """Games of a level against itself."""
    level, made = settings_of(name, size), []
    for finished in finished_games(server, Block(size, level, level, 0, 0, count)):
        ends = finished.games.offsets
        for i in range(len(finished.games.size)):
            game = Game(size, rules_named(RULES), float(finished.games.komi[i]))
            for index in finished.games.moves[ends[i] : ends[i + 1]].tolist():
                game.play(game.to_move, int(point_of(index, size)))
            made.append(game)
    return made


@click.command(context_settings={"show_default": True})
@click.option("--size", default=9, type=click.IntRange(7, 19), help="board size")
@click.option("--levels", default="", help="levels as NAME,NAME; empty = four from the weakest to the strongest")
@click.option("--games", default=10, type=click.IntRange(1), help="games of each level against itself")
@click.option(
    "--people", type=click.Path(exists=True, file_okay=False, path_type=Path), help="folder of SGFs of people"
)
@click.option("--sgf", type=click.Path(file_okay=False, path_type=Path), help="folder for the games of the levels")
def command(size: int, levels: str, games: int, people: Path | None, sgf: Path | None) -> None:
    """Count what no person would do, in games of levels against themselves; print a table of Markdown."""
    with one_line_errors():
        there = names(size)[:-1]
        chosen = levels.split(",") if levels else [there[round(i * (len(there) - 1) / 3)] for i in range(4)]
        click.echo(f"| {size}x{size} | games | moves | {' | '.join(FAULTS)} |\n|---{'|---' * (2 + len(FAULTS))}|")
        with InferenceServer(load_network(find(DEFAULT), "cpu", sample_inputs), 64, threads=1) as server:
            for name in chosen:
                played = games_of(server, size, name, games)
                _show(name, played, count_faults(server, played))
                for i, game in enumerate(played) if sgf else ():
                    assert sgf is not None
                    sgf.mkdir(parents=True, exist_ok=True)
                    (sgf / f"{size}-{name}-{i}.sgf").write_text(write_sgf(game, name, name), encoding="utf-8")
            if people:
                recorded = [one for path in sorted(people.glob("*.sgf"))[:games] if (one := _read(path, size))]
                _show("people", recorded, count_faults(server, recorded))


def _read(path: Path, size: int) -> Game | None:
    """A recorded game; None on another board."""
    record = read_sgf(path.read_bytes())
    return record.to_game(rules_named(RULES), 7.5) if record.size == size else None


def _show(name: str, games: list[Game], found: Counter[str]) -> None:
    click.echo(f"| {name} | {len(games)} | {found['moves']} | {' | '.join(str(found[one]) for one in FAULTS)} |")


if __name__ == "__main__":
    command()
