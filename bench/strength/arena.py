"""``python -m bench.strength.arena``: a match of the engine against itself with other options, many games at once.

Start at :func:`command`; the searches of a process share one inference server (:mod:`bench.strength.sides`). The Elo of
an option takes hundreds of games; :mod:`bench.strength.regret` compares options in less time, but not in Elo.

Games 1 and 2 share an opening sampled from the raw policy, as do 3 and 4, and so on; the first side is Black in odd
games. Rules are Tromp-Taylor's, under which a search evaluates passes correctly without further help. Sides resign by
:class:`engine.play.move_plan.Resignation`. Results, files and the table are those of ``keima match``.
"""

import multiprocessing
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import click
import numpy as np

from bench.match.folder import ROLES, GameRecord, MatchFolder, record_line
from bench.match.play import MatchError
from bench.match.runner import Scoreboard, kept, play_and_report
from bench.strength.sides import Networks, Side, drawn_moves, side_from
from engine.config import PlayOptions
from engine.go.game import Game
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE, from_vertex, other, to_vertex
from engine.go.points import color_letter
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black, result_text
from engine.play.clock import NO_CLOCK
from engine.play.move_plan import Resignation
from engine.search.choosing import choose
from engine.search.stoppers import SearchLimits
from engine.system.executor import Done, Files, Job, LocalExecutor
from engine.system.files import alone_in, sha256_of
from gtp.cli import one_line_errors
from weights import DEFAULT, files_of, find_network

RULES = "tromp-taylor"
SIDE_HELP = "options of the first side, as OPTION=VALUE words; also visits=, weights=, name="
LONGEST = 3
"""Length at which a game is scored as it stands, as a multiple of the board's points"""


@dataclass(frozen=True)
class Arena:
    """Settings that are the same for all games of a match."""

    first: Side
    second: Side
    size: int
    komi: float
    opening_moves: int
    seed: int

    def settings(self) -> dict[str, Any]:
        """JSON values for the folder of the match: settings that must not change, and those that the table needs."""
        networks = {
            role: [sha256_of(path) for path in files_of(find_network(side.weights))]
            for role, side in zip(ROLES, (self.first, self.second), strict=True)
        }
        return asdict(self) | {"rules": RULES, "time": asdict(NO_CLOCK), "networks": networks}


@dataclass(frozen=True)
class Pair:
    """Two games of one opening with colours swapped, of which one or both are still to be played."""

    missing: tuple[int, ...]
    """numbers of the games still to be played"""
    opening: tuple[int, ...] | None
    """points of the pair's opening, if one of its games is finished; None = to be drawn. Drawn again it might differ,
    since the network's output depends on the symmetry under which the cache first evaluated a position."""


def missing_pairs(arena: Arena, folder: MatchFolder, missing: Sequence[int]) -> dict[int, Pair]:
    """Pairs with missing games, by number: pair N, from 0, has the games ``2 * N + 1`` and ``2 * N + 2``."""
    openings = {
        (record.game - 1) // 2: tuple(from_vertex(vertex, arena.size) for vertex in record.moves[: record.opening])
        for record in folder.records
    }
    by_pair = groupby(missing, lambda number: (number - 1) // 2)
    return {index: Pair(tuple(numbers), openings.get(index)) for index, numbers in by_pair}


@dataclass(frozen=True)
class PairsJob:
    """A job whose items are pairs of games. See :class:`engine.system.executor.Job`."""

    arena: Arena
    pairs: dict[int, Pair]
    at_once: int

    def open(self, stack: ExitStack, files: Files, cores: int) -> "PairPlayer":
        """Load the networks in this process and make a worker."""
        return PairPlayer(self, stack.enter_context(Networks((self.arena.first, self.arena.second))))


class PairPlayer:
    """Plays pairs of games of one arena concurrently. See :class:`engine.system.executor.Worker`."""

    def __init__(self, job: PairsJob, networks: Networks):
        self.threads = job.at_once
        self._arena, self._pairs, self._networks = job.arena, job.pairs, networks

    def do(self, numbers: Iterator[int], stopped: threading.Event) -> Iterator[Done]:
        """Yield a line of ``games.jsonl`` for each missing game. See :meth:`engine.system.executor.Worker.do`."""
        for index in numbers:
            pair = self._pairs[index]
            opening: Sequence[int] | None = pair.opening
            if opening is None:
                rng = np.random.default_rng((self._arena.seed, index))
                opening = drawn_moves(self._networks, self._arena.first, self._game(), self._arena.opening_moves, rng)
            for number in pair.missing:
                record = self._play(number, opening)
                if stopped.is_set():
                    return
                yield [index], record_line(record).encode()

    def _game(self) -> Game:
        return Game(self._arena.size, rules_named(RULES), self._arena.komi)

    def _play(self, number: int, opening: Sequence[int]) -> GameRecord:
        """Play one game."""
        arena, game = self._arena, self._game()
        for point in opening:
            game.play(game.to_move, point)
        names = {"first": arena.first.name, "second": arena.second.name}
        record = GameRecord(number, "black" if number % 2 else "white", names, [], len(opening), reason="score")
        sides = {color: arena.first if record.role(color) == "first" else arena.second for color in (BLACK, WHITE)}
        searches = {
            color: self._networks.search(side, 2 * (arena.seed + number) + color) for color, side in sides.items()
        }
        resignation = Resignation()
        while not game.is_over and game.n_moves < LONGEST * arena.size**2:
            color = game.to_move
            searches[color].set_position(game.position)
            report = searches[color].run(SearchLimits(visits=sides[color].visits))
            if resignation.is_due(game, color, report.value_stm, PlayOptions()):
                record.reason = "resignation"
                record.decide(other(color), f"{color_letter(other(color))}+R")
                break
            game.play(color, choose(report))
        else:
            lead = float(final_score_black(game.position))
            record.decide((BLACK if lead > 0 else WHITE) if lead else None, result_text(lead))
        record.moves = [to_vertex(point, arena.size) for _, point in game.moves()]
        return record


class Processes:
    """Executor with child processes, each of which does a fixed share of the items.

    See :class:`engine.system.executor.Executor`.
    """

    def __init__(self, count: int):
        self._count = count

    def work(
        self, job: Job, files: Files, numbers: Iterator[int], take: Callable[[Done], None], stopped: threading.Event,
        report: Callable[[], None], every_s: float = 1.0,
    ) -> None:  # fmt: skip
        """See :meth:`engine.system.executor.Executor.work`.

        Raises:
            MatchError: a process failed or died; one line.
        """
        context, items = multiprocessing.get_context("spawn"), list(numbers)
        results = context.Queue()
        shares = [items[i :: self._count] for i in range(min(self._count, len(items)))]
        processes = [context.Process(target=_work, args=(job, share, results), daemon=True) for share in shares]
        for process in processes:
            process.start()
        try:
            while not stopped.is_set():
                # Before the queue: when a process has ended, all its results are in the queue.
                statuses = {process.exitcode for process in processes}
                try:
                    # Short waits: an endless one cannot be interrupted on Windows.
                    found = results.get(timeout=every_s)
                except queue.Empty:
                    if statuses - {None, 0}:
                        raise MatchError("a process of the arena died") from None
                    if None not in statuses:
                        return
                    continue
                if isinstance(found, Exception):
                    raise found
                take(found)
        finally:
            for process in processes:
                process.terminate()


def _work(job: Job, numbers: list[int], results: Any) -> None:
    """Main function of a child process: put its results into the queue, and a MatchError if it fails."""
    parent, stopped = multiprocessing.parent_process(), threading.Event()

    def end_with_parent() -> None:
        if parent is not None and not parent.is_alive():
            stopped.set()

    try:
        LocalExecutor().work(job, {}, iter(numbers), results.put, stopped, end_with_parent)
    except Exception as error:
        results.put(MatchError(f"{type(error).__name__}: {error}"))


def _words(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str:
    """Callback that joins the words of a side, since its option may be repeated."""
    return " ".join(given)


@click.command(context_settings={"show_default": True})
@click.option("--first", multiple=True, callback=_words, show_default=False, help=SIDE_HELP)
@click.option("--second", multiple=True, callback=_words, show_default=False, help="options of the second side")
@click.option("--weights", default=DEFAULT, help="network of sides without weights=")
@click.option("--visits", default=200, type=click.IntRange(1), help="visits a move of sides without visits=")
@click.option("--games", default=200, type=click.IntRange(1, 99999), help="games to play")
@click.option("--size", default=9, type=click.IntRange(MIN_SIZE, MAX_SIZE), help="board size")
@click.option("--komi", default=7.0, help="komi, White's points")
@click.option("--opening-moves", default=6, type=click.IntRange(0), help="opening moves, sampled from the raw policy")
@click.option("--seed", default=1, type=click.IntRange(0), help="random seed of openings and searches")
@click.option("--processes", default=1, type=click.IntRange(1, 256), help="number of processes; one a core is fastest")
@click.option("--at-once", default=16, type=click.IntRange(1, 256), help="concurrent games of each process")
@kept
def command(first, second, weights, visits, games, processes, at_once, folder, json_path, sprt, **conditions) -> None:
    """Let the engine play itself with other options at equal visits; print win rate and Elo with 95% intervals.

    \b
        python -m bench.strength.arena --first "move-choice=visits" --games 400 --processes 2 --sgf runs/visits
    """
    with ExitStack() as stack:
        with one_line_errors():
            one, two = (side_from(text, weights, visits) for text in (first, second))
            if replace(one, name=two.name) == two:
                click.echo("the two sides differ in their names alone", err=True)
            if one.name == two.name:
                one, two = replace(one, name=f"{one.name} (1)"), replace(two, name=f"{two.name} (2)")
            arena = Arena(one, two, **conditions)
            Game(arena.size, rules_named(RULES), arena.komi)
            if folder:
                stack.enter_context(alone_in(folder))
            found = MatchFolder(folder, arena.settings())

        def play(board: Scoreboard) -> None:
            pairs = missing_pairs(arena, found, board.missing)
            board.play(Processes(processes), PairsJob(arena, pairs, at_once), pairs, prints_games=False)

        play_and_report(found, games, json_path, sprt, play)


if __name__ == "__main__":
    command()
