"""``keima match``: many games between two GTP engines, and the table they add up to.

Start at :func:`run_match`. Worker threads play games, each with engines of its own; the calling thread alone keeps the
results, shows progress on standard error and writes files. Games 1 and 2 share an opening, then 3 and 4, and so on;
the first engine is Black in the odd ones.
"""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.match.clocks import time_control
from bench.match.folder import MatchFolder
from bench.match.gtp_client import EngineError, EngineRefused, GtpClient, argument_words
from bench.match.play import GameRecord, GameSettings, MatchError, play_game
from bench.match.summary import render, summarise, to_json
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, to_vertex
from engine.go.rules import RULE_SETS, rules_named
from engine.go.sgf import read_sgf

POLL_S = 0.2
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it"""


@dataclass(frozen=True)
class Match:
    """Who plays whom, and how."""

    first: str
    second: str
    referee: str | None
    settings: GameSettings
    games: int
    openings: tuple[tuple[int, ...], ...] = ((),)
    names: tuple[str | None, str | None] = (None, None)
    """what to call the engines; None = what they call themselves"""

    def opening(self, game: int) -> tuple[int, ...]:
        """Points of the opening of a game, counted from 1."""
        return self.openings[(game - 1) // 2 % len(self.openings)]


class Worker(threading.Thread):
    """Plays games, one after the other, with its own engines; restarts an engine that broke down.

    Results, or the exception that ends the match, go into ``results``; ``stop`` may be called from any thread.
    """

    def __init__(self, match: Match, games: queue.SimpleQueue, results: queue.SimpleQueue, on_move: Callable) -> None:
        super().__init__(daemon=True)
        self._match, self._games, self._results, self._on_move = match, games, results, on_move
        self._engines: dict[str, GtpClient] = {}
        self._lock = threading.Lock()
        self._stopped = False

    def run(self) -> None:
        try:
            while True:
                self._results.put(self._play(self._games.get_nowait()))
        except queue.Empty:
            pass
        except Exception as error:
            self._results.put(error)
        finally:
            for engine in self._engines.values():
                engine.close()

    def stop(self) -> None:
        """Kill the engines, which ends the game in progress; start no more."""
        with self._lock:
            self._stopped = True
            for engine in self._engines.values():
                engine.kill()

    def _play(self, number: int) -> tuple[GameRecord, Game]:
        """Play the game of a number, counted from 1."""
        match = self._match
        first = self._engine("first", match.first)
        second = self._engine("second", match.second)
        referee = self._engine("referee", match.referee) if match.referee else None
        is_black = number % 2 == 1 and not match.settings.handicap
        names = {"first": match.names[0] or _name_of(first), "second": match.names[1] or _name_of(second)}
        if names["first"] == names["second"]:
            names = {role: f"{name} ({role})" for role, name in names.items()}
        record = GameRecord(number, "black" if is_black else "white", names, [])
        players = {BLACK: first, WHITE: second} if is_black else {BLACK: second, WHITE: first}
        opening = match.opening(number)
        game = play_game(record, players, referee, match.settings, opening, lambda moves: self._on_move(number, moves))
        if self._stopped:
            raise MatchError("stopped")
        return record, game

    def _engine(self, role: str, command: str) -> GtpClient:
        """The engine of a role, started anew if it is not running."""
        with self._lock:
            if self._stopped:
                raise MatchError("stopped")
            engine = self._engines.get(role)
            if engine is None or not engine.is_alive:
                if engine is not None:
                    engine.kill()
                self._engines[role] = engine = GtpClient(command)
            return engine


def run_match(match: Match, folder: MatchFolder, concurrency: int, progress: Progress) -> None:
    """Play what is missing of a match; every finished game goes to the folder.

    Raises:
        MatchError, EngineError: the match cannot go on.
        KeyboardInterrupt: Ctrl-C; games in progress are dropped, finished ones kept.
    """
    done = folder.finished()
    games: queue.SimpleQueue[int] = queue.SimpleQueue()
    missing = [number for number in range(1, match.games + 1) if number not in done]
    for number in missing:
        games.put(number)
    task = progress.add_task("", total=match.games, completed=match.games - len(missing))
    on_move = _reporter(progress, task, folder)
    results: queue.SimpleQueue[tuple[GameRecord, Game] | Exception] = queue.SimpleQueue()
    workers = [Worker(match, games, results, on_move) for _ in range(min(concurrency, len(missing)))]
    for worker in workers:
        worker.start()
    try:
        for _ in missing:
            result = _next(results)
            if isinstance(result, Exception):
                raise result
            folder.add(*result)
            progress.advance(task)
            progress.console.print(_one_line(result[0]), highlight=False, markup=False, soft_wrap=True)
    except BaseException:
        for worker in workers:
            worker.stop()
        raise
    finally:
        for worker in workers:
            worker.join()


def _next(results: queue.SimpleQueue) -> Any:
    """The next result; short waits, since a wait without end cannot be interrupted on Windows."""
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=POLL_S)


def _reporter(progress: Progress, task: Any, folder: MatchFolder) -> Callable[[int, int], None]:
    """What workers call after every move: shows the score and where the game stands."""

    def on_move(number: int, moves: int) -> None:
        won = [sum(record.winner == role for record in folder.records) for role in ("first", "second")]
        progress.update(task, description=f"{won[0]} : {won[1]}  game {number}, move {moves}")

    return on_move


def _one_line(record: GameRecord) -> str:
    """A finished game in a line."""
    detail = f" ({record.detail})" if record.detail else ""
    winner = {"first": record.names["first"], "second": record.names["second"], "draw": "nobody"}.get(
        record.winner, "?"
    )
    return f"game {record.game}: {winner} wins, {record.result}, {len(record.moves)} moves, {record.reason}{detail}"


def _name_of(engine: GtpClient) -> str:
    """What an engine calls itself."""
    answers = []
    for question in ("name", "version"):
        with suppress(EngineRefused):
            answers.append(engine.ask(question, GameSettings.patience_s))
    return " ".join(" ".join(answers).split()) or engine.command


def read_openings(path: Path, size: int, most_moves: int) -> tuple[tuple[int, ...], ...]:
    """The first moves of every SGF in a folder, in the order of the file names.

    Args:
        most_moves: moves to take of each; 0 = all.
    Raises:
        ValueError: no SGF there, or one that is no even game on this board from Black's first move on.
    """
    files = sorted(path.glob("*.sgf"))
    if not files:
        raise ValueError(f"{path}: no file *.sgf in this folder")
    return tuple(_opening(file, size, most_moves) for file in files)


def _opening(file: Path, size: int, most_moves: int) -> tuple[int, ...]:
    """The first moves of one file, Black's first and the colours in turn."""
    try:
        found = read_sgf(file.read_bytes())
        moves = found.to_game().moves()[: most_moves or None]
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    in_turn = all(color == (BLACK, WHITE)[i % 2] for i, (color, _) in enumerate(moves))
    if found.size != size or found.black or found.white or not in_turn:
        raise ValueError(f"{file}: expected an even game on {size}x{size} with Black to begin")
    return tuple(point for _, point in moves)


def _settings_of(match: Match) -> dict[str, Any]:
    """What must not change between runs of one match, as JSON values; the number of games may."""
    size = match.settings.size
    openings = [" ".join(to_vertex(point, size) for point in points) for points in match.openings]
    chosen = {"first": match.first, "second": match.second, "referee": match.referee, "openings": openings}
    return chosen | {"names": list(match.names)} | asdict(match.settings)


def _parse(read: Callable[[str], Any]) -> Callable[..., Any]:
    """A click callback from a function that raises ValueError."""

    def callback(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def _command_line(text: str) -> str:
    """An engine's command line, refused where it could not be started for its form."""
    argument_words(text)
    return text


COMMAND = _parse(_command_line)
RULES_HELP = (
    f"rules that decide what is legal: {', '.join(RULE_SETS)}; engines that know kata-set-rules or kgs-rules are told"
)
TIME_HELP = (
    "clock of each engine: S seconds a move, M+0 seconds in all, M+S/N (M s, then S s for every N moves), "
    "M+PxS (byo-yomi: M s, then P periods of S s) or M+Sf (Fischer: M s, and S s more after each move);  "
    "[default: none, the engines decide]"
)


@click.command()
@click.option("--first", required=True, callback=COMMAND, help="command line of one engine; Black in the odd games")
@click.option("--second", required=True, callback=COMMAND, help="command line of the other")
@click.option("--games", default=10, show_default=True, type=click.IntRange(1, 9999), help="games to play")
@click.option("--size", default=19, show_default=True, type=click.IntRange(2, 25), help="board size")
@click.option("--komi", default=7.5, show_default=True, help="White's points")
@click.option(
    "--handicap",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="stones that the first engine gives the other, which then has Black in all games",
)
@click.option("--rules", default="chinese", show_default=True, callback=_parse(rules_named), help=RULES_HELP)
@click.option("--time", "clock", callback=_parse(time_control), help=TIME_HELP)
@click.option("--referee", callback=COMMAND, help="command line of a third engine that judges legality and scores")
@click.option(
    "--sgf",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="folder for SGFs and results; a match found there goes on",
)
@click.option(
    "--openings",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="folder of SGFs; each opening is played twice, colours changed",
)
@click.option(
    "--opening-moves",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="moves to take of each opening; 0 = all",
)
@click.option(
    "--max-moves",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="moves after which a game is scored; 0 = three boards full",
)
@click.option(
    "--patience",
    default=GameSettings.patience_s,
    show_default=True,
    type=click.FloatRange(1),
    help="longest wait for an answer without a clock, s",
)
@click.option(
    "--tolerance",
    default=GameSettings.tolerance_s,
    show_default=True,
    type=click.FloatRange(0),
    help="overstepping a clock that is forgiven, s",
)
@click.option("--first-name", help="what to call the first engine  [default: what it calls itself]")
@click.option("--second-name", help="what to call the second engine  [default: what it calls itself]")
@click.option(
    "--concurrency",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="games at once, each with engines of its own",
)
@click.option(
    "--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="file for all figures as JSON"
)
def command(first, second, games, size, komi, handicap, rules, clock, referee, folder, openings, opening_moves,
            max_moves, patience, tolerance, first_name, second_name, concurrency, json_path) -> None:  # fmt: skip
    """Play a match between two GTP engines and print win rate, its 95% interval and the Elo difference.

    The engines' own options, such as visits or level, belong into their command lines:

    \b
        keima match --first "keima gtp --seconds 3" \\
                    --second "gnugo --mode gtp --level 10 --chinese-rules" \\
                    --size 9 --games 30 --sgf runs/gnugo-9x9
    """
    time = clock or GameSettings.time
    settings = GameSettings(size, komi, rules.name, time, tolerance, patience, max_moves, handicap)
    try:
        board = Game(size, rules, komi)
        if handicap and openings:
            raise ValueError("--handicap and --openings: expected one of them")
        if handicap:
            board.fixed_handicap(handicap)
        starts = read_openings(openings, size, opening_moves) if openings else ((),)
        match = Match(first, second, referee, settings, games, starts, (first_name, second_name))
        kept = MatchFolder(folder, _settings_of(match))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    status = _run(match, kept, concurrency)
    summary = summarise(kept.records, _settings_of(match))
    click.echo(render(summary))
    if json_path:
        json_path.write_text(to_json(summary) + "\n", encoding="utf-8")
    if status:
        click.get_current_context().exit(status)


def _run(match: Match, folder: MatchFolder, concurrency: int) -> int:
    """Run with a live display on standard error; the exit status."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            run_match(match, folder, concurrency, progress)
    except KeyboardInterrupt:
        hint = "; the same command goes on" if folder.is_kept else ""
        console.print(f"interrupted after {len(folder.records)} games{hint}", highlight=False)
        return INTERRUPTED
    except (MatchError, EngineError, OSError) as error:
        console.print(f"match stopped: {error}", highlight=False, markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    command()
