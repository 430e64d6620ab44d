"""``python -m bench.strength.levels --out RUN``: measure the levels of play, and write their table anew.

A level is a point on one path of settings, from moves drawn nearly alike to a search of some hundred visits
(:data:`PATH`). For each board size:

1. the rungs of the path play their neighbours, those with a search as far as the ranks go, and rungs near it GNU Go;
2. Elo of all players follows by Bradley and Terry's model, and each rank's place on the path by its Elo;
3. on 19x19 the weaker of two levels four ranks apart takes four stones;
4. the rungs near it play another anchor, if one is given, and the levels two ranks apart play each other: with these
   games the Elo is computed again, and the table is written: of ranks at the bottom that their games do not tell
   apart, only the strongest is a level.

Every block of games is on the disk once it is played (``RUN/9/games.jsonl``), so the same command continues after any
end; the places of levels, once found, stay (``RUN/9/places.json``). Several processes may play boards of different
sizes. docs/levels.md describes the scale. Start at :func:`command`.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console

from bench.strength.level_anchors import Anchor, play_anchor
from bench.strength.level_games import Block, Result, play_block
from engine.config import RANKS
from engine.evaluation.elo import Rated, rated, wilson_interval
from engine.features.encoder import sample_inputs
from engine.inference.server import InferenceServer
from engine.nets.on_device import load_network
from engine.pictures.charts import interval_chart, side_by_side
from engine.pictures.drawing import stand_alone
from engine.search.level_choice import Level
from engine.system.files import alone_in, sha256_of, written_whole
from engine.system.run_folder import add_line, read_lines
from gtp.cli import one_line_errors
from gtp.cli.terminal import progress_bar, say
from weights import DEFAULT, LEVELS, find

PATH = (
    Level(1, 8.0, 0.0005, 1.0, 1.0),
    Level(1, 4.0, 0.002, 1.0, 1.0),
    Level(1, 2.8, 0.004, 1.0, 1.0),
    Level(1, 2.0, 0.01, 1.0, 0.9),
    Level(1, 1.5, 0.015, 1.0, 0.8),
    Level(1, 1.15, 0.025, 1.0, 0.6),
    Level(1, 0.85, 0.05, 1.0, 0.4),
    Level(1, 0.6, 0.08, 1.0, 0.3),
    Level(1, 0.35, 0.1, 1.0, 0.1),
    Level(4, 0.35, 0.1, 1.0, 0.0),
    Level(8, 0.35, 0.1, 1.0, 0.0),
    Level(16, 0.35, 0.1, 1.0, 0.0),
    Level(32, 0.35, 0.1, 1.0, 0.0),
    Level(64, 0.2, 0.2, 0.5, 0.0),
)
"""Rungs of the path, the weakest first"""
MIDDLE = 6
"""Index of the rung that an anchor meets first"""
BEYOND = 50.0
"""Elo by which the rungs with a search go beyond the strongest rank"""
SIZES = (9, 13, 19)
RUNG_GAMES = {9: 60, 13: 40, 19: 24}
"""Games of a rung against the next one, half as many of one with a search"""
LEVEL_GAMES = {9: 200, 13: 100, 19: 60}
"""Games of levels two ranks apart"""
NO_SEARCH_GAMES = {9: 200, 13: 200, 19: 120}
"""Games of such levels where the stronger has no search: they differ the least"""
ANCHOR_CHUNK = 4
"""Games against an anchor at once"""
ANCHOR_GAMES = {9: 30, 13: 36, 19: 24}
"""Games of an anchor"""
CHUNK = {9: 60, 13: 20, 19: 12}
"""Games of a block, after which a run continues"""
GNU_GO, GNU_GO_COMMAND = "GNU Go 3.8, level 10", "gnugo --mode gtp --level 10 --chinese-rules"
PACHI = "Pachi 12.84, 1000 playouts"
SCALE, BASE, GROWTH = "OGS 2026", 525.0, 23.15
"""Server and year of the ranks; its rating is ``BASE * exp(rank / GROWTH)``, rank 30 being 1d"""
GNU_GO_RANK = 19
"""Rank of GNU Go on that scale: 11k"""
HANDICAP_SIZE, HANDICAP, HANDICAP_GAMES = 19, 4, 100
PLACES = "places.json"
CACHE_MIB = 256
ENDS = ("elo", "low", "high")
SEEN, TIED = 2, 3
"""Difference in ranks of levels that play each other; every (SEEN * TIED)-th level also plays its nearest rung"""


def elo_of(name: str) -> float:
    """Elo of a rank above GNU Go's, on the scale."""
    rank = 30 + int(name[:-1]) - 1 if name.endswith("d") else 30 - int(name[:-1])
    return BASE * (math.exp(rank / GROWTH) - math.exp(GNU_GO_RANK / GROWTH))


def at(place: float) -> Level:
    """The level at a place on the path: rung ``i`` at ``i``, between two rungs the mean of their settings, for all but
    the locality of their logarithms."""
    low = min(int(place), len(PATH) - 2)
    share = place - low
    one, two = (np.array(rung, float) for rung in PATH[low : low + 2])
    visits, temperature, least, points, _ = np.exp((1 - share) * np.log(one + 1e-12) + share * np.log(two + 1e-12))
    locality = (1 - share) * one[4] + share * two[4]
    rounded = (float(f"{value:.4g}") for value in (temperature, least, points, locality))
    return Level(round(visits), *rounded)


def text_of(player: Level | str) -> str:
    """A player's name in ratings."""
    return player if isinstance(player, str) else " ".join(f"{value:g}" for value in player)


@dataclass(frozen=True)
class Played:
    """A block of games that was played: of two levels, or of a level and an anchor, whose name is ``second``."""

    size: int
    first: Level
    second: Level | str
    handicap: int
    start: int
    result: Result

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(self.result)


def read_played(line: bytes) -> Played:
    """Parse a line of ``games.jsonl``."""
    found = json.loads(line)
    second = found["second"]
    return Played(
        found["size"], Level(*found["first"]), second if isinstance(second, str) else Level(*second),
        found["handicap"], found["start"], Result(*found["result"]),
    )  # fmt: skip


class Games:
    """All games of a run on one board, kept in a folder. Threads: one caller."""

    def __init__(self, folder: Path, server: InferenceServer | None, console: Console) -> None:
        """Open the folder's games, to play more of them if there is a server.

        Raises:
            ValueError: the file is damaged; one line.
        """
        self._path, self._server, self._console = folder / "games.jsonl", server, console
        self.played = read_lines(self._path, read_played, "block of games")

    def count(self, size: int, first: Level, second: Level | str, handicap: int = 0) -> int:
        """Number of games played of a pair."""
        return sum(
            one.games
            for one in self.played
            if (one.size, one.first, one.second, one.handicap) == (size, first, second, handicap)
        )

    def play(self, size: int, first: Level, second: Level | Anchor, games: int, handicap: int = 0) -> None:
        """Play a pair until it has ``games`` games; those that stand are kept."""
        assert self._server is not None, "opened to read"
        key = second.name if isinstance(second, Anchor) else second
        chunk = ANCHOR_CHUNK if isinstance(second, Anchor) else CHUNK[size]
        with progress_bar(self._console) as progress:
            task = progress.add_task(f"{size}x{size}: {text_of(first)} - {text_of(key)}", total=games)
            while (start := self.count(size, first, key, handicap)) < games:
                progress.update(task, completed=start)
                number = min(chunk, games - start)
                if isinstance(second, Anchor):
                    result = play_anchor(self._server, size, first, second, start, number)
                else:
                    result = play_block(self._server, Block(size, first, second, handicap, start, number))
                self._add(Played(size, first, key, handicap, start, result))

    def _add(self, one: Played) -> None:
        line = {
            "size": one.size, "first": one.first, "second": one.second, "handicap": one.handicap, "start": one.start,
            "result": one.result,
        }  # fmt: skip
        add_line(self._path, json.dumps(line))
        self.played.append(one)
        names, score = f"{text_of(one.first)} - {text_of(one.second)}", " : ".join(map(str, one.result))
        say(self._console, f"{one.size}x{one.size}, handicap {one.handicap}, {names}  {score}")

    def wins(self, size: int) -> dict[tuple[str, str], float]:
        """Wins between players on a board, without handicap games; a draw is half a win for each."""
        found: dict[tuple[str, str], float] = {}
        for one in self.played:
            if one.size != size or one.handicap:
                continue
            pair, half = (text_of(one.first), text_of(one.second)), 0.5 * one.result.drawn
            found[pair] = found.get(pair, 0.0) + one.result.won + half
            found[pair[::-1]] = found.get(pair[::-1], 0.0) + one.result.lost + half
        return found

    def ratings(self, size: int, reference: str = GNU_GO) -> dict[str, Rated]:
        """Elo above a player of all players on a board whom a chain of games connects with GNU Go, by :func:`text_of`;
        empty before GNU Go's first game."""
        wins, near = self.wins(size), {GNU_GO}
        while len(near) < len(near := near | {name for pair in wins if near & {*pair} for name in pair}):
            pass
        wins = {pair: count for pair, count in wins.items() if pair[0] in near}
        return {one.name: one for one in rated(wins, reference)} if wins else {}


def play_rungs(games: Games, size: int, top: float = math.inf) -> None:
    """The rungs of the path against their neighbours: those without a search or, given the highest Elo that levels
    need, those with one as far as that."""
    for strong in range(1, len(PATH)):
        has_search = PATH[strong].visits > 1
        if has_search and (top == math.inf or games.ratings(size)[text_of(PATH[strong - 1])].elo > top):
            break
        games.play(size, PATH[strong], PATH[strong - 1], RUNG_GAMES[size] // (2 if has_search else 1))


def play_anchor_games(games: Games, size: int, anchor: Anchor, count: int) -> None:
    """An anchor against the rungs near its strength: the next games are against the rung that is nearest so far."""
    while (done := sum(games.count(size, rung, anchor.name) for rung in PATH)) < count:
        elo = {one.name: one.elo for one in rated(games.wins(size))}
        rung = PATH[MIDDLE]
        if anchor.name in elo:
            known = [one for one in PATH if text_of(one) in elo]
            rung = min(known, key=lambda one: abs(elo[text_of(one)] - elo[anchor.name]))
        games.play(size, rung, anchor, games.count(size, rung, anchor.name) + min(ANCHOR_CHUNK, count - done))


def places(games: Games, size: int, folder: Path, keeps: bool = True) -> dict[str, float]:
    """The place on the path of each rank that it reaches.

    Those that are in the folder stay; stronger ranks are added once rungs reach them.

    Args:
        keeps: whether to write the places into the folder.
    """
    path = folder / PLACES
    placed: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = games.ratings(size)
    rungs = [i for i, rung in enumerate(PATH) if text_of(rung) in found]
    # Sampling may put a rung below the one before it.
    elo = np.maximum.accumulate([found[text_of(PATH[i])].elo for i in rungs])
    last = list(placed)[-1] if placed else ""
    for name in RANKS[RANKS.index(last) + 1 if last else 0 :]:
        place = float(np.interp(elo_of(name), elo, rungs))
        if elo[0] <= elo_of(name) <= elo[-1] and place > placed.get(last, -1.0):
            placed[name] = place
    if keeps:
        with written_whole(path) as part:
            part.write_text(json.dumps(placed, indent=1) + "\n", encoding="utf-8")
    return placed


def play_size(games: Games, size: int, folder: Path, anchors: Sequence[Anchor]) -> None:
    """All games on a board."""
    play_rungs(games, size)
    play_anchor_games(games, size, anchors[0], ANCHOR_GAMES[size])
    play_rungs(games, size, elo_of(RANKS[-1]) + BEYOND)
    placed = places(games, size, folder)
    levels = {name: at(place) for name, place in placed.items()}
    if size == HANDICAP_SIZE:
        chain = list(pairs(list(levels), HANDICAP))
        for strong, weak in chain:
            games.play(size, levels[weak], levels[strong], HANDICAP_GAMES // len(chain), HANDICAP)
    for anchor in anchors[1:]:
        play_anchor_games(games, size, anchor, ANCHOR_GAMES[size])
    # Levels play rungs too, so that a chain of games connects them with the anchors.
    for name in list(levels)[:: SEEN * TIED]:
        games.play(size, levels[name], PATH[round(placed[name])], RUNG_GAMES[size])
    for strong, weak in pairs(list(levels), SEEN):
        count = (NO_SEARCH_GAMES if levels[strong].visits == 1 else LEVEL_GAMES)[size]
        games.play(size, levels[strong], levels[weak], count)


def pairs(names: Sequence[str], apart: int) -> Iterator[tuple[str, str]]:
    """Pairs of ranks, the stronger first, in a chain."""
    chain = list(names)[::apart]
    return zip(chain[1:], chain, strict=False)


def measured(games: Games, size: int, placed: dict[str, float]) -> dict[str, Rated]:
    """Elo of each level with its interval: its own if it has played, else between the rungs and levels beside it."""
    found = games.ratings(size)
    players = {float(i): rung for i, rung in enumerate(PATH)} | {place: at(place) for place in placed.values()}
    known = {place: found[text_of(one)] for place, one in sorted(players.items()) if text_of(one) in found}

    def between(place: float, end: str) -> float:
        return float(np.interp(place, list(known), [getattr(one, end) for one in known.values()]))

    return {name: Rated(name, *(between(place, end) for end in ENDS)) for name, place in placed.items()}


class Board(NamedTuple):
    """The results on a board."""

    games: Games
    levels: dict[str, Level]
    """all places that were measured, the weakest first"""
    elo: dict[str, Rated]
    lowest: str
    """the weakest rank in the table: :func:`lowest_told_apart`"""

    def in_table(self) -> dict[str, Level]:
        """The levels from ``lowest`` on."""
        names = [*self.levels]
        return {name: self.levels[name] for name in names[names.index(self.lowest) :]}


def lowest_told_apart(games: Games, size: int, levels: dict[str, Level]) -> str:
    """The weakest rank that differs from the one two ranks above, by the interval of all games of the board; the
    weakest of all before these games."""
    known = games.ratings(size)
    for strong, weak in pairs(list(levels), SEEN):
        one, other = text_of(levels[strong]), text_of(levels[weak])
        if not {one, other} <= known.keys() or games.ratings(size, other)[one].low > 0.0:
            return weak
    return [*levels][-1]


def write_table(path: Path, sha256: str, boards: dict[int, Board]) -> None:
    """Write the table of levels, which :mod:`engine.play.levels` reads."""
    lines = [
        "# Levels of play by board size, the weakest first: written by python -m bench.strength.levels, told in",
        f"# docs/levels.md. Elo above {GNU_GO}, with 95% intervals.",
        f'scale = "{SCALE}"',
        f'network = "{DEFAULT}"',
        f'sha256 = "{sha256}"',
        "",
        "[board]",
    ]
    for size, board in boards.items():
        lines.append(f"{size} = [")
        for name, level in board.in_table().items():
            words = ", ".join(f"{field} = {value:g}" for field, value in zip(Level._fields, level, strict=True))
            one = board.elo[name]
            lines.append(
                f'    {{ name = "{name}", {words}, elo = {one.elo:.0f}, low = {one.low:.0f}, high = {one.high:.0f} }},'
            )
        lines.append("]")
    with written_whole(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def report(boards: dict[int, Board]) -> Iterator[str]:
    """The results for people, as tables of Markdown."""
    for size, board in boards.items():
        games, levels, elo, _ = board
        yield f"\n{size}x{size}\n"
        yield "| level | Elo wanted | Elo | against two ranks below |\n|---|---|---|---|"
        below = dict(pairs(list(levels), SEEN))
        for name, level in levels.items():
            one, against = elo[name], ""
            rank = name if name in board.in_table() else f"({name})"
            if name in below:
                against = _score(games, size, level, levels[below[name]], 0)
            yield f"| {rank} | {elo_of(name):+.0f} | {one.elo:+.0f} [{one.low:+.0f}, {one.high:+.0f}] | {against} |"
        for name, one in games.ratings(size).items():
            if name.startswith("Pachi"):
                count = sum(block.games for block in games.played if block.size == size and block.second == name)
                yield f"| {name} | | {one.elo:+.0f} [{one.low:+.0f}, {one.high:+.0f}] | {count} games |"
    if HANDICAP_SIZE in boards:
        games, levels = boards[HANDICAP_SIZE][:2]
        yield f"\n| takes {HANDICAP} stones | from | score |\n|---|---|---|"
        for strong, weak in pairs(list(levels), HANDICAP):
            yield f"| {weak} | {strong} | {_score(games, HANDICAP_SIZE, levels[weak], levels[strong], HANDICAP)} |"


def _score(games: Games, size: int, first: Level, second: Level, handicap: int) -> str:
    """Games won, drawn and lost of a pair, and the win rate with its interval; empty without games."""
    found = [
        one.result
        for one in games.played
        if (one.size, one.first, one.second, one.handicap) == (size, first, second, handicap)
    ]
    won, drawn, lost = (sum(result[i] for result in found) for i in range(3))
    count = won + drawn + lost
    if not count:
        return ""
    low, high = wilson_interval(won + 0.5 * drawn, count)
    return f"{won}, {drawn}, {lost}: {(won + 0.5 * drawn) / count:.0%} [{low:.0%}, {high:.0%}]"


def draw_picture(path: Path, boards: dict[int, Board]) -> None:
    """Draw the levels' Elo with intervals, one chart a board."""
    charts = []
    for size, board in boards.items():
        rows = [(name, *(getattr(board.elo[name], end) for end in ENDS)) for name in [*board.in_table()][::-SEEN]]
        charts.append(interval_chart(f"{size}x{size}", rows, f"Elo above {GNU_GO}, 95% interval"))
    with written_whole(path) as part:
        part.write_text(stand_alone(side_by_side(charts)), encoding="utf-8")


@click.command(context_settings={"show_default": True})
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="folder of the run")
@click.option("--sizes", default="9,13,19", help="sizes of the boards to play on; empty = play no more")
@click.option("--gnugo", default=GNU_GO_COMMAND, help="command line of GNU Go")
@click.option("--pachi", default="", help="command line of Pachi; empty = without this anchor")
@click.option("--table", default=LEVELS, type=click.Path(dir_okay=False, path_type=Path), help="the table to write")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="SVG file of the levels' Elo")
def command(out: Path, sizes: str, gnugo: str, pachi: str, table: Path, picture: Path | None) -> None:
    """Measure the levels of play, write their table, and print the results as tables of Markdown."""
    console, network = Console(stderr=True), find(DEFAULT)
    anchors = [Anchor(GNU_GO, gnugo), *([Anchor(PACHI, pachi)] if pachi else [])]
    with one_line_errors():
        for size in map(int, sizes.split(",") if sizes else ()):
            folder = out / str(size)
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as stack:
                stack.enter_context(alone_in(folder))
                loaded = load_network(network, "cpu", sample_inputs)
                server = stack.enter_context(InferenceServer(loaded, CACHE_MIB, threads=1))
                play_size(Games(folder, server, console), size, folder, anchors)
        boards: dict[int, Board] = {}
        for size in SIZES:
            games = Games(out / str(size), None, console)
            if games.ratings(size):
                found = places(games, size, out / str(size), keeps=False)
                levels = {name: at(place) for name, place in found.items()}
                elo, lowest = measured(games, size, found), lowest_told_apart(games, size, levels)
                boards[size] = Board(games, levels, elo, lowest)
        write_table(table, sha256_of(network), boards)
        if picture:
            draw_picture(picture, boards)
        for line in report(boards):
            click.echo(line)


if __name__ == "__main__":
    command()
