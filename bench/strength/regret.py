"""``python -m bench.strength.regret``: what the moves of small searches cost, as a deep search sees it.

Matches measure what an option is worth, but need a thousand games. Here all sides choose in the same positions, and
where they differ, a deep search of the position after each move says what that is worth (-1 to 1). A side's *regret* is
what its moves are worth less than the best that any side chose. Sides are compared position by position, which removes
most of the variance. Other GTP engines can be sides too, as they are configured. Errors of the network that its own
deep search shares are not seen; a stronger network may judge.

Positions come from games drawn from the raw policy, one of each, or from games of matches. Several of one game are not
independent: errors are those of means over games. Start at :func:`command`.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.match.folder import read_openings
from bench.match.gtp_client import START_S, EngineError, EngineRefused, GtpClient
from bench.match.play import tell_rules
from bench.strength.sides import Networks, Side, drawn_moves, side_from
from engine.config import SearchOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, to_vertex
from engine.go.notation import color_word
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black
from engine.search.stoppers import SearchLimits
from gtp.cli import one_line_errors
from gtp.cli.terminal import new_table, progress_bar
from weights import DEFAULT

RULES = "tromp-taylor"
FOLDER = click.Path(file_okay=False, path_type=Path)
LIMIT_S = 300.0
"""Longest wait for another engine's answer"""
FEWEST, MOST = 0.08, 0.55
"""Moves before a position, as shares of the board's points"""


def moves_before(size: int) -> tuple[int, int]:
    """The fewest moves before a position, and one more than the most."""
    return round(FEWEST * size**2), round(MOST * size**2)


class Terms(NamedTuple):
    """What all positions have in common."""

    size: int
    komi: float

    def game(self, moves: Sequence[int]) -> Game:
        """The game after these points, Black's first."""
        game = Game(self.size, rules_named(RULES), self.komi)
        for point in moves:
            game.play(game.to_move, point)
        return game


class Move(NamedTuple):
    """A move in one of the positions."""

    position: int
    """its index"""
    point: int


class Regret(NamedTuple):
    """What one side's choices cost."""

    name: str
    of_positions: np.ndarray
    """float64[P]"""
    same: float
    """share of its moves that are the first side's"""


class Peer:
    """An engine in a process of its own; use as a context manager."""

    def __init__(self, line: str, rules: str, size: int, komi: float):
        """Start it by its command line.

        Raises:
            EngineError, EngineRefused: it cannot be started, or does not play on such a board.
            ValueError: no command line.
        """
        self._line, self._size = line, size
        self._client = GtpClient(line)
        try:
            self._forgets = self._client.lists("clear_cache", START_S)
            for command in (f"boardsize {size}", f"komi {komi:g}"):
                self._ask(command)
            tell_rules(rules, partial(self._client.lists, limit_s=LIMIT_S), self._ask)
        except Exception:
            self._client.close()
            raise

    def move(self, moves: Sequence[int]) -> int:
        """The point it plays after these moves, Black's first, searched from nothing where it can be told to forget.

        Raises:
            EngineError: it broke down.
            EngineRefused: it refused a move of the game, or answered with none.
        """
        self._ask("clear_board")
        if self._forgets:
            self._ask("clear_cache")
        for i, point in enumerate(moves):
            self._ask(f"play {color_word((BLACK, WHITE)[i % 2])} {to_vertex(point, self._size)}")
        answer = self._ask(f"genmove {color_word((BLACK, WHITE)[len(moves) % 2])}")
        try:
            return from_vertex(answer, self._size)
        except ValueError as error:
            raise EngineRefused(f"{self._line}: {answer!r}, expected a move; it must not resign") from error

    def _ask(self, command: str) -> str:
        return self._client.ask(command, LIMIT_S)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class Examiner:
    """Has sides choose in positions, and judges their moves."""

    def __init__(self, networks: Networks, judge: Side, terms: Terms, at_once: int, on_done: Callable[[], None]):
        """``on_done`` is called after each search."""
        self._networks, self._judge, self._terms, self._at_once = networks, judge, terms, at_once
        self._on_done = on_done

    def drawn_positions(self, side: Side, count: int, seed: int) -> list[list[int]]:
        """The moves to ``count`` positions, from games drawn from a side's raw policy."""
        found: dict[int, list[int]] = {}
        fewest, most = moves_before(self._terms.size)

        def draw(index: int) -> None:
            rng = np.random.default_rng((seed, index))
            moves = int(rng.integers(fewest, most))
            found[index] = drawn_moves(self._networks, side, self._terms.game(()), moves, rng)

        self._in_threads(draw, range(count))
        return [found[index] for index in range(count)]

    def choices(self, player: "Side | Peer", positions: Sequence[Sequence[int]], repeats: int) -> np.ndarray:
        """int64[P, R]: a player's moves, searched from nothing, a side's with other random numbers each time."""
        chosen = np.zeros((len(positions), repeats), np.int64)

        def choose(cell: tuple[int, int]) -> None:
            moves = positions[cell[0]]
            if isinstance(player, Peer):
                chosen[cell] = player.move(moves)
            else:
                search = self._networks.search(player, cell[1])
                search.set_position(self._terms.game(moves).position)
                chosen[cell] = search.run(SearchLimits(visits=player.visits)).moves[0].point
            self._on_done()

        self._in_threads(choose, np.ndindex(*chosen.shape), 1 if isinstance(player, Peer) else self._at_once)
        return chosen

    def worths(self, positions: Sequence[Sequence[int]], moves: Sequence[Move]) -> dict[Move, float]:
        """What moves are worth to who plays them."""
        found: dict[Move, float] = {}

        def judge(move: Move) -> None:
            game = self._terms.game(positions[move.position])
            color = game.to_move
            game.play(color, move.point)
            if game.is_over:
                lead = float(final_score_black(game.position))
                found[move] = float(np.sign(lead if color == BLACK else -lead))
            else:
                search = self._networks.search(self._judge, 0)
                search.set_position(game.position)
                found[move] = -search.run(SearchLimits(visits=self._judge.visits)).value_stm
            self._on_done()

        self._in_threads(judge, moves)
        return found

    def _in_threads(self, task: Callable[[Any], None], items: Iterable[Any], at_once: int = 0) -> None:
        """Do a task for every item, some side by side; the first failure, which is raised, cancels those not begun."""
        with ThreadPoolExecutor(at_once or self._at_once) as pool:
            list(pool.map(task, items))


def disputed(chosen: Sequence[np.ndarray]) -> list[Move]:
    """The moves of positions in which not all chose the same.

    Args:
        chosen: int64[P, R] of each side.
    """
    everything = [set(row) for row in np.concatenate(chosen, axis=1).tolist()]
    return [Move(i, point) for i, points in enumerate(everything) if len(points) > 1 for point in sorted(points)]


def regrets(names: Sequence[str], chosen: Sequence[np.ndarray], worth: dict[Move, float]) -> list[Regret]:
    """What the choices of all sides cost.

    Args:
        chosen: int64[P, R] of each side.
        worth: of all moves that are disputed.
    """
    best: dict[int, float] = {}
    for (i, _), value in worth.items():
        best[i] = max(value, best.get(i, -1.0))
    found = []
    for name, points in zip(names, chosen, strict=True):
        costs = np.zeros(points.shape)
        for i, k in np.ndindex(*points.shape):
            if i in best:
                costs[i, k] = best[i] - worth[Move(i, int(points[i, k]))]
        found.append(Regret(name, costs.mean(axis=1), float((points == chosen[0]).mean())))
    return found


def positions_of(games: Sequence[Sequence[int]], size: int, count: int, seed: int) -> tuple[list[list[int]], list[int]]:
    """The moves to ``count`` positions, from different games taken in turn, and the number of each one's game.

    Raises:
        ValueError: no game is long enough.
    """
    rng = np.random.default_rng(seed)
    fewest, most = moves_before(size)
    games = [game for game in dict.fromkeys(map(tuple, games)) if len(game) > fewest + 1]
    if not games:
        raise ValueError(f"no game there has more than {fewest + 1} moves")
    turns = [games[i % len(games)] for i in range(count)]
    # The last two moves may end a game.
    found = [list(game[: int(rng.integers(fewest, min(most, len(game) - 1)))]) for game in turns]
    return found, [i % len(games) for i in range(count)]


def error_of_mean(values: np.ndarray, games: Sequence[int]) -> float | None:
    """Standard error of a mean over positions of which several may be of one game; None where all are of one.

    Args:
        values: float64[P].
        games: the number of each one's game.
    Source: Liang and Zeger 1986, the variance that is robust to correlation within clusters.
    """
    _, numbers = np.unique(games, return_inverse=True)
    sums = np.bincount(numbers, weights=values - values.mean())
    count = len(sums)
    return float(np.sqrt((sums**2).sum() * count / (count - 1))) / len(values) if count > 1 else None


@click.command(context_settings={"show_default": True})
@click.argument("options", nargs=-1)
@click.option("--peer", "peers", multiple=True, help="command line of a GTP engine that chooses too; may be repeated")
@click.option("--weights", default=DEFAULT, help="network of a side that names none")
@click.option("--visits", default=200, type=click.IntRange(2), help="of a side that says nothing")
@click.option("--judge", default="", help="network that judges the moves; the sides' if not given", metavar="WEIGHTS")
@click.option("--deep", default=1000, type=click.IntRange(10), help="visits of the search that judges a move")
@click.option("--games", type=FOLDER, help="folder of SGFs to take positions from; else they are drawn from the policy")
@click.option("--positions", default=200, type=click.IntRange(2), help="to choose in")
@click.option("--repeats", default=1, type=click.IntRange(1), help="choices of a side in each position")
@click.option("--size", default=9, type=click.IntRange(2, 25), help="board")
@click.option("--komi", default=7.0, help="White's points")
@click.option("--seed", default=1, type=click.IntRange(0), help="of the positions")
@click.option("--at-once", default=24, type=click.IntRange(1, 256), help="searches side by side")
def command(options, peers, weights, visits, judge, deep, games, positions, repeats, size, komi, seed, at_once) -> None:
    """Print what the moves of small searches lose against each other, for several sets of OPTIONS, each given as
    OPTION=VALUE words, and for other engines.

    The first set is what the others are compared with; one JSON line each, and a table on standard error:

    \b
        python -m bench.strength.regret "" "move-choice=visits" "virtual-loss=1 visits-per-leaf=0"
    """
    with one_line_errors(EngineError, EngineRefused):
        sides = [side_from(text, weights, visits) for text in options or ("",)]
        judging = side_from("name=judge", judge or weights, deep)
        judging = replace(judging, options=SearchOptions(threads=1, batch=4))
        terms = Terms(size, komi)
        terms.game(())
        played = read_openings(games, size, 0) if games else None
        names = [*(side.name for side in sides), *peers]
        console = Console(stderr=True)
        with Networks([judging, *sides]) as networks, progress_bar(console) as progress:
            task = progress.add_task("choosing", total=len(names) * positions * repeats)
            examiner = Examiner(networks, judging, terms, at_once, lambda: progress.advance(task))
            if played is None:
                asked, of_games = examiner.drawn_positions(sides[0], positions, seed), list(range(positions))
            else:
                asked, of_games = positions_of(played, size, positions, seed)
            chosen = [examiner.choices(side, asked, repeats) for side in sides]
            for line in peers:
                with Peer(line, RULES, size, komi) as peer:
                    chosen.append(examiner.choices(peer, asked, repeats))
            moves = disputed(chosen)
            progress.reset(task, description="judging", total=len(moves))
            found = regrets(names, chosen, examiner.worths(asked, moves))
    rows = [_row_of(regret, found[0], of_games) for regret in found]
    for row in rows:
        click.echo(json.dumps(row))
    console.print(_table(rows))


def _row_of(regret: Regret, first: Regret, games: Sequence[int]) -> dict[str, float | str | None]:
    """A side's numbers; errors are standard errors over the games, None where there is one alone."""
    costs, more = regret.of_positions, regret.of_positions - first.of_positions
    error, of_difference = (error_of_mean(values, games) for values in (costs, more))
    return {
        "name": regret.name,
        "regret": round(float(costs.mean()), 5),
        "error": None if error is None else round(error, 5),
        "more_than_first": round(float(more.mean()), 5),
        "error_of_difference": None if of_difference is None else round(of_difference, 5),
        "games": len(set(games)),
        "same_move": round(regret.same, 3),
    }


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    """For people."""
    table = new_table("side", "regret", "more than the first", "same move as the first", folds=True)
    for row in rows:
        table.add_row(
            row["name"], f"{row['regret']:.4f}{_within(row['error'])}",
            f"{row['more_than_first']:+.4f}{_within(row['error_of_difference'])}", f"{row['same_move']:.0%}",
        )  # fmt: skip
    return table


def _within(error: float | None) -> str:
    """An error behind a number; nothing where it is not known."""
    return "" if error is None else f" +- {error:.4f}"


if __name__ == "__main__":
    command()
