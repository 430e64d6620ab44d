"""A small GTP engine for tests of the match runner: random legal moves, and every bad habit on request.

Run as ``python tests/data/gtp_engine.py [HABIT] [--seed N] [--passes-after N]``. Habits: crash, garble, hang, illegal,
refuse, resign, noise, liar (claims every score for itself), faint (ends when it is asked for the score), leaver (ends
when it has told it), deaf (does not even start).
"""

import argparse
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # Its games are short: to load kernels takes longer than to play without.

from engine.go.board import is_eye
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, on_board_points, to_vertex
from engine.go.scoring import final_score_black, result_text

COLORS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
COMMANDS = ("name", "version", "list_commands", "boardsize", "clear_board", "komi", "get_komi", "fixed_handicap",
            "play", "genmove", "final_score", "quit")  # fmt: skip
HABIT_MOVE = 3
"""Move of its own at which a bad habit shows"""


class Engine:
    """Plays random legal moves that fill no eye of its own."""

    def __init__(self, habit: str, seed: int, passes_after: int) -> None:
        self.habit = habit
        self.random = random.Random(seed)
        self.passes_after = passes_after
        self.game = Game(9)
        self.own_moves = 0
        self.color = BLACK

    def answer(self, words: list[str]) -> str:
        """Text of the answer to one command; ValueError and KeyError are refusals."""
        match words:
            case ["name"]:
                return "Random"
            case ["version"]:
                return "1"
            case ["list_commands"]:
                return "\n".join(COMMANDS)
            case ["boardsize", size]:
                self.game.new(int(size))
            case ["clear_board"]:
                self.game.new(self.game.size)
                self.own_moves = 0
            case ["get_komi"]:
                return f"{self.game.komi:g}"
            case ["komi", komi]:
                self.game.set_komi(float(komi))
            case ["fixed_handicap", count]:
                points = self.game.fixed_handicap(int(count))
                return " ".join(to_vertex(point, self.game.size) for point in points)
            case ["play", color, vertex]:
                if self.habit == "refuse" and self.game.n_moves >= HABIT_MOVE:
                    raise ValueError("illegal move")
                self.game.play(COLORS[color], from_vertex(vertex, self.game.size))
            case ["genmove", color]:
                return self.genmove(COLORS[color])
            case ["final_score"] if self.habit == "liar":
                return "B+99" if self.color == BLACK else "W+99"
            case ["final_score"] if self.habit == "faint":
                sys.exit("cannot count that far")
            case ["final_score"]:
                return result_text(final_score_black(self.game.position))
            case ["quit"]:
                pass
            case _:
                raise ValueError("unknown command")
        return ""

    def genmove(self, color: int) -> str:
        self.color = color
        self.own_moves += 1
        if self.own_moves == HABIT_MOVE:
            bad = self.misbehave()
            if bad:
                return bad
        points = [int(point) for point in on_board_points(self.game.size)]
        self.random.shuffle(points)
        move = PASS
        if self.own_moves <= self.passes_after:
            board = self.game.position.board
            move = next((p for p in points if self.game.is_legal(color, p) and not is_eye(board, p, color)), PASS)
        self.game.play(color, move)
        return to_vertex(move, self.game.size)

    def misbehave(self) -> str:
        """Do what the habit asks for; the vertex to answer, if any."""
        if self.habit == "crash":
            sys.exit("a sudden end")
        if self.habit == "hang":
            time.sleep(600)
        if self.habit == "garble":
            print("=999 D4\n", flush=True)
        if self.habit == "illegal":
            return to_vertex(self.game.moves()[-1][1], self.game.size)
        return "resign" if self.habit == "resign" else ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("habit", nargs="?", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes-after", type=int, default=1000)
    options = parser.parse_args()
    if options.habit == "deaf":
        sys.exit("will not start")
    engine = Engine(options.habit, options.seed, options.passes_after)
    for line in sys.stdin:
        number, *words = line.split()
        if options.habit == "noise":
            print("thinking aloud")
        try:
            print(f"={number} {engine.answer(words)}\n", flush=True)
        except (ValueError, KeyError) as error:
            print(f"?{number} {error}\n", flush=True)
        if words == ["quit"]:
            return
        if options.habit == "leaver" and words == ["final_score"]:
            time.sleep(0.05)  # Long enough for the match to take it for alive.
            return


if __name__ == "__main__":
    main()
