"""Games of levels against other programs, the anchors of their scale, for :mod:`bench.strength.levels`.

A level draws its moves here as in play (:func:`engine.play.levels.drawn`), but passes when its search does and never
resigns. The other program speaks GTP, scores the finished game, and may resign. Start at :func:`play_anchor`.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from bench.match.gtp_client import EngineRefused, GtpClient
from bench.strength.level_games import KOMI, SMALL, SMALL_KOMI, Result
from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, to_vertex
from engine.go.points import color_letter
from engine.go.random import seed_state
from engine.go.rules import rules_named
from engine.go.scoring import final_score_black, result_text
from engine.inference.server import InferenceServer
from engine.play.levels import drawn
from engine.search.level_choice import Level
from engine.search.search import Search
from engine.search.stoppers import SearchLimits

RULES = "chinese"
LIMIT_S = 600.0
"""Longest wait for an answer of the other program"""
LONGEST = 3
"""Length at which a game is scored as it stands, as a multiple of the board's points"""


@dataclass(frozen=True)
class Anchor:
    """A program of known strength: its name in tables, and its command line."""

    name: str
    command: str


def play_anchor(server: InferenceServer, size: int, level: Level, anchor: Anchor, start: int, games: int) -> Result:
    """Play games of a level against an anchor at once, by their numbers; the level has Black in even-numbered ones.

    Returns:
        Result: of the level.
    Raises:
        EngineError: the other program failed.
        EngineRefused: it refused a command; if it refuses to score, the game is scored as it stands.
    """

    def play(number: int) -> int:
        search = Search(SearchOptions(threads=1, seed=1), server, ENCODERS[server.spec.encoder])
        with closing(search), closing(GtpClient(anchor.command)) as client:
            lead = _play(search, size, level, client, number)
        return 1 if lead == 0 else 0 if lead > 0 else 2

    with ThreadPoolExecutor(games) as pool:
        found = list(pool.map(play, range(start, start + games)))
    return Result(*(found.count(kind) for kind in range(3)))


def _play(search: Search, size: int, level: Level, client: GtpClient, number: int) -> float:
    """Play one game; returns the level's lead in points, or 1 if the other program resigned."""
    komi = SMALL_KOMI if size <= SMALL else KOMI
    game, color, state = Game(size, rules_named(RULES), komi), (BLACK, WHITE)[number % 2], seed_state(number, 2)
    for command in (f"boardsize {size}", "clear_board", f"komi {komi}"):
        client.ask(command, LIMIT_S)
    while not game.is_over and game.n_moves < LONGEST * size**2:
        letter = color_letter(game.to_move)
        if game.to_move != color:
            answer = client.ask(f"genmove {letter}", LIMIT_S).strip().lower()
            if answer == "resign":
                return 1.0
            game.play(game.to_move, from_vertex(answer, size))
            continue
        search.clear()
        position = search.set_position(game.position)
        report = search.run(SearchLimits(visits=level.visits))
        point = drawn(report, position, level, state) if report.moves else PASS
        client.ask(f"play {letter} {to_vertex(point, size)}", LIMIT_S)
        game.play(game.to_move, point)
    try:
        answer = client.ask("final_score", LIMIT_S).strip()
    except EngineRefused:
        answer = result_text(final_score_black(game.position))
    sign = 1.0 if answer.startswith(color_letter(color).upper()) else -1.0
    return 0.0 if answer.startswith("0") else sign * float(answer.split("+")[1].split()[0])
