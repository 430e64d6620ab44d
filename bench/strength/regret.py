"""``python -m bench.strength.regret``: mean regret of moves that small searches choose, by values of deep searches.

A match measures an option in Elo, but needs a thousand games. Here all sides choose a move in the same positions. Where
they choose different moves, a deep search of the position after each move gives its value (-1 to 1). The *regret* of a
move is the best value of any side's move in the position minus its own value. Sides are compared position by position,
which removes most of the variance. Other GTP engines can be sides too. The deep search shares the errors of its
network; ``--judge`` names a stronger one for it.

Positions come from games sampled from the raw policy, one position a game, or from games of matches. Positions of one
game are not independent, so standard errors are clustered by game. Start at :func:`command`.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.match.folder import read_openings
from bench.match.gtp_client import EngineError, EngineRefused
from bench.strength.peer import Peer
from bench.strength.sides import Networks, Side, drawn_moves, side_from
from engine.config import SearchOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black
from engine.search.stoppers import SearchLimits
from gtp.cli import one_line_errors
from gtp.cli.terminal import new_table, progress_bar
from weights import DEFAULT

RULES = "tromp-taylor"
FOLDER = click.Path(file_okay=False, path_type=Path)
FEWEST, MOST = 0.08, 0.55
"""Smallest and largest number of moves before a position, as a share of the board's points"""


def moves_before(size: int) -> tuple[int, int]:
    """Range of the number of moves before a position: the first is included, the second excluded."""
    return round(FEWEST * size**2), round(MOST * size**2)


class Terms(NamedTuple):
    """Board size and komi of all positions."""

    size: int
    komi: float

    def game(self, moves: Sequence[int]) -> Game:
        """The game after some moves, given as points, Black's first."""
        game = Game(self.size, rules_named(RULES), self.komi)
        for point in moves:
            game.play(game.to_move, point)
        return game


class Move(NamedTuple):
    """A move in one of the positions."""

    position: int
    """index of the position"""
    point: int


class Regret(NamedTuple):
    """Regret of one side."""

    name: str
    of_positions: np.ndarray
    """float64[P]: regret in each position, as mean over the repeats"""
    same: float
    """share of moves that equal the first side's moves"""


class Examiner:
    """Lets sides choose moves in positions, and evaluates these moves by deep searches."""

    def __init__(self, networks: Networks, judge: Side, terms: Terms, at_once: int, on_done: Callable[[], None]):
        """Prepare the judge's searches.

        Args:
            judge: network, visits and options of the deep searches.
            at_once: concurrent searches.
            on_done: called after each search.
        """
        self._networks, self._judge, self._terms, self._at_once = networks, judge, terms, at_once
        self._on_done = on_done

    def drawn_positions(self, side: Side, count: int, seed: int) -> list[list[int]]:
        """The moves that lead to ``count`` positions, each of a game sampled from a side's raw policy."""
        found: dict[int, list[int]] = {}
        fewest, most = moves_before(self._terms.size)

        def draw(index: int) -> None:
            rng = np.random.default_rng((seed, index))
            moves = int(rng.integers(fewest, most))
            found[index] = drawn_moves(self._networks, side, self._terms.game(()), moves, rng)

        self._in_threads(draw, range(count))
        return [found[index] for index in range(count)]

    def choices(self, player: "Side | Peer", positions: Sequence[Sequence[int]], repeats: int) -> np.ndarray:
        """int64[P, R]: points that a player chooses in P positions, R times each, with an empty tree.

        The random seed of a side's search is the number of the repeat.
        """
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
        """Values of moves by deep searches, -1 to 1 for the player of the move."""
        found: dict[Move, float] = {}

        def evaluate(move: Move) -> None:
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

        self._in_threads(evaluate, moves)
        return found

    def _in_threads(self, task: Callable[[Any], None], items: Iterable[Any], at_once: int = 0) -> None:
        """Run a task for every item in ``at_once`` threads (0 = the default); raises the first exception."""
        with ThreadPoolExecutor(at_once or self._at_once) as pool:
            list(pool.map(task, items))


def disputed(chosen: Sequence[np.ndarray]) -> list[Move]:
    """All moves chosen in positions in which the chosen moves are not all equal.

    Args:
        chosen: int64[P, R] of each side: its moves, as points.
    """
    everything = [set(row) for row in np.concatenate(chosen, axis=1).tolist()]
    return [Move(i, point) for i, points in enumerate(everything) if len(points) > 1 for point in sorted(points)]


def regrets(names: Sequence[str], chosen: Sequence[np.ndarray], worth: dict[Move, float]) -> list[Regret]:
    """Regret of all sides.

    Args:
        chosen: int64[P, R] of each side: its moves, as points.
        worth: values of the moves from :func:`disputed`.
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
    """Positions from games, taken in turn.

    Returns:
        Moves that lead to ``count`` positions, and the number of each position's game.
    Raises:
        ValueError: no game is long enough.
    """
    rng = np.random.default_rng(seed)
    fewest, most = moves_before(size)
    games = [game for game in dict.fromkeys(map(tuple, games)) if len(game) > fewest + 1]
    if not games:
        raise ValueError(f"no game has more than {fewest + 1} moves")
    turns = [games[i % len(games)] for i in range(count)]
    # Without the last two moves, which may be passes.
    found = [list(game[: int(rng.integers(fewest, min(most, len(game) - 1)))]) for game in turns]
    return found, [i % len(games) for i in range(count)]


def error_of_mean(values: np.ndarray, games: Sequence[int]) -> float | None:
    """Standard error of a mean over positions, clustered by game; None if all positions are of one game.

    Args:
        values: float64[P].
        games: number of each position's game.
    Source: Liang and Zeger 1986, the variance that is robust to correlation within clusters.
    """
    _, numbers = np.unique(games, return_inverse=True)
    sums = np.bincount(numbers, weights=values - values.mean())
    count = len(sums)
    return float(np.sqrt((sums**2).sum() * count / (count - 1))) / len(values) if count > 1 else None


@click.command(context_settings={"show_default": True})
@click.argument("options", nargs=-1)
@click.option("--peer", "peers", multiple=True, help="command line of a GTP engine as a further side; repeatable")
@click.option("--weights", default=DEFAULT, help="network of sides without weights=")
@click.option("--visits", default=200, type=click.IntRange(2), help="visits a move of sides without visits=")
@click.option("--judge", default="", help="network of the deep searches; default: that of --weights", metavar="WEIGHTS")
@click.option("--deep", default=1000, type=click.IntRange(10), help="visits of the deep search that evaluates a move")
@click.option("--games", type=FOLDER, help="folder of SGFs with the positions; default: games sampled from the policy")
@click.option("--positions", default=200, type=click.IntRange(2), help="number of positions")
@click.option("--repeats", default=1, type=click.IntRange(1), help="searches of each side in each position")
@click.option("--size", default=9, type=click.IntRange(MIN_SIZE, MAX_SIZE), help="board size")
@click.option("--komi", default=7.0, help="komi, White's points")
@click.option("--seed", default=1, type=click.IntRange(0), help="random seed of the positions")
@click.option("--at-once", default=24, type=click.IntRange(1, 256), help="concurrent searches")
def command(options, peers, weights, visits, judge, deep, games, positions, repeats, size, komi, seed, at_once) -> None:
    """Print the mean regret of several sides: sets of OPTIONS, each an argument of OPTION=VALUE words, and GTP engines.

    All sides are compared with the first; one JSON line a side, and a table on standard error:

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
            progress.reset(task, description="evaluating", total=len(moves))
            found = regrets(names, chosen, examiner.worths(asked, moves))
    rows = [_row_of(regret, found[0], of_games) for regret in found]
    for row in rows:
        click.echo(json.dumps(row))
    console.print(_table(rows))


def _row_of(regret: Regret, first: Regret, games: Sequence[int]) -> dict[str, float | str | None]:
    """A side's line of JSON, as a dict; standard errors are None if all positions are of one game."""
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
    """The table of all sides' regrets."""
    table = new_table("side", "regret", "more than the first", "same move as the first", folds=True)
    for row in rows:
        table.add_row(
            row["name"], f"{row['regret']:.4f}{_within(row['error'])}",
            f"{row['more_than_first']:+.4f}{_within(row['error_of_difference'])}", f"{row['same_move']:.0%}",
        )  # fmt: skip
    return table


def _within(error: float | None) -> str:
    """A standard error as text, " +- 0.0012"; empty if it is None."""
    return "" if error is None else f" +- {error:.4f}"


if __name__ == "__main__":
    command()
