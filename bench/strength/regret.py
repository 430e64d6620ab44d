"""``python -m bench.strength.regret``: what the moves of small searches cost, as a deep search sees it.

Matches measure what an option is worth, but need a thousand games. Here every option searches the same positions, and
its *regret* is how much less the move it chose is worth than the best one, in value (-1 to 1) by a deep search of the
same network. Options are compared position by position, which removes most of the variance: differences of a fifth of
the regret show in three hundred positions. Errors of the network that a deep search shares are not seen.

Positions come from games drawn from the raw policy. Start at :func:`command`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.strength.sides import Networks, Side, drawn_moves, in_threads, side_from
from engine.config import SearchOptions
from engine.go.game import Game
from engine.go.position import META_TO_MOVE, Position
from engine.go.rules import rules_named
from engine.search.limits import SearchLimits
from engine.search.move_filter import EVERY_MOVE, MoveFilter, only
from gtp.cli.terminal import one_line_errors
from weights import DEFAULT

RULES = "tromp-taylor"
FEWEST, MOST = 0.08, 0.5
"""Moves before a position, as shares of the board's points"""
SURE = 0.04
"""Share of the deep search's visits from which on its value of a move counts"""
AGAIN = 0.2
"""Visits, as a share of the deep search's, that a move gets of its own where it had fewer"""


class Problem(NamedTuple):
    """A position and what the deep search found."""

    position: Position
    values: dict[int, float]
    """of its well-visited moves, for the side to move; grows as others are chosen"""
    best: float


class Regret(NamedTuple):
    """What one side's choices cost."""

    side: Side
    of_positions: np.ndarray
    """float64[P]"""
    top_share: float
    """mean share of the visits that the chosen move has"""


class Examiner:
    """Searches positions side by side, with every side's options and with the deep search's."""

    def __init__(self, networks: Networks, deep: Side, at_once: int):
        self._networks, self._deep, self._at_once = networks, deep, at_once

    def problems(self, count: int, size: int, komi: float, seed: int) -> list[Problem]:
        """``count`` positions, searched deeply."""
        found: dict[int, Problem] = {}

        def add(index: int) -> None:
            rng = np.random.default_rng((seed, index))
            game = Game(size, rules_named(RULES), komi)
            moves = int(rng.integers(round(FEWEST * size**2), round(MOST * size**2)))
            drawn_moves(self._networks, self._deep, game, moves, rng)
            report = self._run(self._deep, game.position, self._deep.visits, index)
            least = SURE * self._deep.visits
            values = {move.point: move.value_stm for move in report.moves if move.visits >= least}
            if values:
                found[index] = Problem(game.position, values, max(values.values()))

        in_threads(add, range(count), self._at_once)
        return [found[index] for index in sorted(found)]

    def examine(self, side: Side, problems: Sequence[Problem], repeats: int) -> Regret:
        """What a side's choices cost; each position is searched ``repeats`` times with other random numbers."""
        costs, shares = np.zeros((len(problems), repeats)), np.zeros((len(problems), repeats))

        def search(cell: tuple[int, int]) -> None:
            problem = problems[cell[0]]
            report = self._run(side, problem.position, side.visits, cell[1])
            chosen = report.moves[0]
            costs[cell] = problem.best - self._value(problem, chosen.point)
            shares[cell] = chosen.visits / report.visits

        in_threads(search, [(i, k) for i in range(len(problems)) for k in range(repeats)], self._at_once)
        return Regret(side, costs.mean(axis=1), float(shares.mean()))

    def _value(self, problem: Problem, point: int) -> float:
        """A move's value by the deep search, made now where it had hardly looked at it."""
        if point not in problem.values:
            visits = max(2, round(AGAIN * self._deep.visits))
            report = self._run(
                self._deep, problem.position, visits, 0, only(int(problem.position.meta[META_TO_MOVE]), [point])
            )
            problem.values[point] = report.moves[0].value_stm
        return problem.values[point]

    def _run(self, side: Side, position: Position, visits: int, seed: int, moves: MoveFilter = EVERY_MOVE):
        """One search from nothing."""
        search = self._networks.search(side, seed)
        search.set_position(position)
        return search.run(SearchLimits(visits=visits), moves)


@click.command(context_settings={"show_default": True})
@click.argument("options", nargs=-1)
@click.option("--weights", default=DEFAULT, help="network of a side that names none")
@click.option("--visits", default=200, type=click.IntRange(2), help="of a side that says nothing")
@click.option("--deep", default=1500, type=click.IntRange(10), help="visits of the deep search")
@click.option("--positions", default=200, type=click.IntRange(2), help="to search")
@click.option("--repeats", default=2, type=click.IntRange(1), help="searches of each position")
@click.option("--size", default=9, type=click.IntRange(2, 25), help="board")
@click.option("--komi", default=7.0, help="White's points")
@click.option("--seed", default=1, type=click.IntRange(0), help="of the positions")
@click.option("--at-once", default=24, type=click.IntRange(1, 256), help="searches side by side")
def command(options, weights, visits, deep, positions, repeats, size, komi, seed, at_once) -> None:
    """Print what small searches lose against a deep one, for several sets of OPTIONS, each given as OPTION=VALUE words.

    The first set is what the others are compared with; one JSON line each, and a table on standard error:

    \b
        python -m bench.strength.regret "" "move-choice=visits" "virtual-loss=1 visits-per-leaf=0"
    """
    with one_line_errors():
        sides = [side_from(text, weights, visits) for text in options or ("",)]
        examiner_side = replace(side_from("name=deep", weights, deep), options=SearchOptions(threads=1, batch=4))
        Game(size, rules_named(RULES), komi)
        with Networks([examiner_side, *sides]) as networks:
            examiner = Examiner(networks, examiner_side, at_once)
            click.echo(f"searching {positions} positions deeply", err=True)
            problems = examiner.problems(positions, size, komi, seed)
            found, rows = [], []
            for side in sides:
                click.echo(f"searching them with {side.name}", err=True)
                found.append(examiner.examine(side, problems, repeats))
                rows.append(_row_of(found[-1], found[0]))
                click.echo(json.dumps(rows[-1]))
    Console(stderr=True).print(_table(rows))


def _row_of(regret: Regret, first: Regret) -> dict[str, float | str]:
    """A side's numbers; errors are standard errors over the positions."""
    costs, count = regret.of_positions, len(regret.of_positions)
    more = costs - first.of_positions
    return {
        "name": regret.side.name,
        "regret": round(float(costs.mean()), 5),
        "error": round(float(costs.std()) / count**0.5, 5),
        "more_than_first": round(float(more.mean()), 5),
        "error_of_difference": round(float(more.std()) / count**0.5, 5),
        "top_share": round(regret.top_share, 3),
    }


def _table(rows: list[dict]) -> Table:
    """For people."""
    table = Table()
    for heading in ("options", "regret", "more than the first", "visits of the chosen move"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row["name"], f"{row['regret']:.4f} +- {row['error']:.4f}",
            f"{row['more_than_first']:+.4f} +- {row['error_of_difference']:.4f}", f"{row['top_share']:.0%}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    command()
