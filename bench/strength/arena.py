"""``python -m bench.strength.arena``: the engine against itself with other options, many games at once in one process.

Start at :func:`command`; :mod:`bench.strength.sides` says how many searches share a processor. What an option is worth
shows only in hundreds of games; :mod:`bench.strength.regret` tells more in less time, but not what it is worth in
games.

Games 1 and 2 begin with the same moves, drawn from the raw policy, and so on; the first side is Black in the odd ones.
Rules are Tromp-Taylor's, under which a search knows by itself what a pass is worth. Given up is what a player would
give up (:mod:`engine.play.resignation`).
"""

import multiprocessing
import queue
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.match.folder import MatchFolder
from bench.match.play import COLOR_LETTERS, GameRecord
from bench.match.summary import render, summarise, to_json
from bench.strength.sides import Networks, Side, drawn_moves, in_threads, side_from
from engine.config import PlayOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex, other, to_vertex
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black
from engine.play.clock import NO_CLOCK
from engine.play.resignation import Resignation
from engine.search.root import choose
from weights import DEFAULT_ALIAS

RULES = "tromp-taylor"
LONGEST = 3
"""Boards full of moves after which a game is counted as it stands"""
POLL_S = 0.2
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it"""


@dataclass(frozen=True)
class Arena:
    """All that the games of a match have in common."""

    first: Side
    second: Side
    size: int
    komi: float
    opening_moves: int
    seed: int

    def settings(self) -> dict[str, Any]:
        """As JSON values: what must not change between runs, and what the table wants to know."""
        return asdict(self) | {"rules": RULES, "time": asdict(NO_CLOCK)}


@dataclass(frozen=True)
class Pair:
    """Two games with one opening, colours changed, as far as they are missing."""

    index: int
    """Counted from 0: games ``2 * index + 1`` and ``2 * index + 2``"""
    missing: tuple[int, ...]
    """Numbers of games"""
    opening: tuple[int, ...] | None
    """Points of the other game's, if that is over. Drawn again they might differ: what the network says of a position
    depends on the symmetry in which the cache first met it."""


class Table:
    """Plays pairs of games of one arena; several threads may do so at once."""

    def __init__(self, arena: Arena, networks: Networks):
        self._arena, self._networks = arena, networks

    def play_pair(self, pair: Pair) -> list[GameRecord]:
        """Those games of a pair that are missing."""
        opening = pair.opening
        if opening is None:
            rng = np.random.default_rng((self._arena.seed, pair.index))
            opening = drawn_moves(self._networks, self._arena.first, self._game(), self._arena.opening_moves, rng)
        return [self._play(number, opening) for number in pair.missing]

    def _game(self) -> Game:
        return Game(self._arena.size, rules_named(RULES), self._arena.komi)

    def _play(self, number: int, opening: Sequence[int]) -> GameRecord:
        """One game from its opening to its end."""
        arena, game = self._arena, self._game()
        for point in opening:
            game.play(game.to_move, point)
        sides = {BLACK: arena.first, WHITE: arena.second}
        if number % 2 == 0:
            sides = {BLACK: arena.second, WHITE: arena.first}
        searches = {
            color: self._networks.search(side, 2 * (arena.seed + number) + color) for color, side in sides.items()
        }
        limits = PlayOptions()
        resignation = Resignation(limits.resign_below, limits.resign_count)
        names = {"first": arena.first.name, "second": arena.second.name}
        record = GameRecord(number, "black" if number % 2 else "white", names, [], len(opening), reason="score")
        lead = None
        while not game.is_over and game.n_moves < LONGEST * arena.size**2:
            color = game.to_move
            searches[color].set_position(game.position)
            report = searches[color].run(visits=sides[color].visits)
            if resignation.is_due(game, color, report.value_stm):
                record.reason, record.result = "resignation", f"{COLOR_LETTERS[other(color)]}+R"
                lead = 1.0 if color == WHITE else -1.0
                break
            game.play(color, choose(report))
        if lead is None:
            lead = float(final_score_black(game.position))
            record.result = f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0"
        winner = sides[BLACK if lead > 0 else WHITE]
        record.winner = "draw" if lead == 0 else "first" if winner is arena.first else "second"
        record.moves = [to_vertex(point, arena.size) for _, point in game.moves()]
        return record


def work(arena: Arena, pairs: Sequence[Pair], at_once: int, results: Any) -> None:
    """A process: plays pairs with one evaluator; puts records in a queue, and at the end None or why it ended."""
    try:
        with Networks((arena.first, arena.second)) as networks:
            table = Table(arena, networks)
            in_threads(lambda pair: [results.put(record) for record in table.play_pair(pair)], pairs, at_once)
        results.put(None)
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


def missing_pairs(arena: Arena, folder: MatchFolder, games: int) -> list[Pair]:
    """What is still to be played of the games 1 to ``games``."""
    missing = set(range(1, games + 1)) - folder.finished()
    openings = {
        (record.game - 1) // 2: tuple(from_vertex(vertex, arena.size) for vertex in record.moves[: record.opening])
        for record in folder.records
    }
    pairs = (
        Pair(index, tuple(sorted(missing & {2 * index + 1, 2 * index + 2})), openings.get(index))
        for index in range((games + 1) // 2)
    )
    return [pair for pair in pairs if pair.missing]


def play_match(arena: Arena, folder: MatchFolder, games: int, processes: int, at_once: int, progress: Progress) -> None:
    """Play what is missing of a match; every finished game goes to the folder.

    Raises:
        RuntimeError: a process could not go on; one line.
        KeyboardInterrupt: Ctrl-C; games in progress are dropped.
    """
    pairs = missing_pairs(arena, folder, games)
    task = progress.add_task("", total=games, completed=games - sum(len(pair.missing) for pair in pairs))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [
        context.Process(target=work, args=(arena, pairs[index::processes], at_once, results), daemon=True)
        for index in range(min(processes, len(pairs)))
    ]
    for worker in workers:
        worker.start()
    try:
        running = len(workers)
        while running:
            found = _next(results, workers)
            if isinstance(found, str):
                raise RuntimeError(found)
            if found is None:
                running -= 1
                continue
            folder.add(found, _replayed(arena, found))
            won = [sum(record.winner == role for record in folder.records) for role in ("first", "second")]
            progress.update(task, advance=1, description=f"{won[0]} : {won[1]}")
    finally:
        for worker in workers:
            worker.terminate()


def _next(results: Any, workers: Sequence[Any]) -> GameRecord | str | None:
    """What the next process has to say; a process that died says so by its silence."""
    while True:
        try:
            return results.get(timeout=POLL_S)
        except queue.Empty:
            if any(worker.exitcode for worker in workers):
                return "a process of the arena died"


def _replayed(arena: Arena, record: GameRecord) -> Game:
    """The game of a record."""
    game = Game(arena.size, rules_named(RULES), arena.komi)
    for vertex in record.moves:
        game.play(game.to_move, from_vertex(vertex, arena.size))
    return game


@click.command()
@click.option("--first", default="", help="options of one side, as OPTION=VALUE; visits, weights and name too")
@click.option("--second", default="", help="options of the other side")
@click.option("--weights", default=DEFAULT_ALIAS, show_default=True, help="network of a side that names none")
@click.option("--visits", default=200, show_default=True, type=click.IntRange(1), help="of a side that says nothing")
@click.option("--games", default=200, show_default=True, type=click.IntRange(1, 99999), help="games to play")
@click.option("--size", default=9, show_default=True, type=click.IntRange(2, 25), help="board size")
@click.option("--komi", default=7.0, show_default=True, help="White's points")
@click.option("--opening-moves", default=6, show_default=True, type=click.IntRange(0), help="drawn from the policy")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="of openings and searches")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 256), help="one a core is best")
@click.option("--at-once", default=16, show_default=True, type=click.IntRange(1, 256), help="games a process")
@click.option("--sgf", "folder", type=click.Path(file_okay=False, path_type=Path), help="folder; what is there goes on")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="file for all figures")
def command(first, second, weights, visits, games, size, komi, opening_moves, seed, processes, at_once, folder,
            json_path) -> None:  # fmt: skip
    """Let the engine play itself with other options, visits equal, and print win rate, interval and Elo difference.

    \b
        python -m bench.strength.arena --first "move-choice=lcb" --games 400 --processes 2 --sgf runs/lcb
    """
    try:
        sides = [side_from(text, weights, visits) for text in (first, second)]
        if sides[0].name == sides[1].name:
            sides = [replace(side, name=f"{side.name} ({role})") for side, role in zip(sides, ("1", "2"), strict=True)]
        arena = Arena(*sides, size, komi, opening_moves, seed)
        Game(size, rules_named(RULES), komi)
        kept = MatchFolder(folder, arena.settings())
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    status = _run(arena, kept, games, processes, at_once)
    summary = summarise(kept.records, arena.settings())
    click.echo(render(summary))
    if json_path:
        json_path.write_text(to_json(summary) + "\n", encoding="utf-8")
    if status:
        click.get_current_context().exit(status)


def _run(arena: Arena, folder: MatchFolder, games: int, processes: int, at_once: int) -> int:
    """Play with a live display on standard error; the exit status."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            play_match(arena, folder, games, processes, at_once, progress)
    except KeyboardInterrupt:
        console.print(f"interrupted after {len(folder.records)} games", highlight=False)
        return INTERRUPTED
    except RuntimeError as error:
        console.print(f"arena stopped: {error}", highlight=False, markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    command()
