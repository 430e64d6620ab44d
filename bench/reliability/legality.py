"""Legal moves and captures compared with GNU Go's, over random and recorded games.

GNU Go has a simple ko and forbids suicide. Under the same rules both programs must agree after every move on the legal
moves of both colours and on the stones captured by each. All commands of a case are sent to one process at once,
without waiting for answers.
"""

import subprocess
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.reliability.campaign import Outcome, Part
from bench.strength.endings import from_files, from_shard
from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, on_board_points, to_vertex
from engine.go.points import color_word
from engine.go.position import legal_moves
from engine.go.rules import Rules
from engine.go.sgf import read_sgf
from engine.system.programs import find_gnugo

PART = Part(
    title="Legal moves and captures, random and real games, against GNU Go (simple ko)",
    unit="positions",
    wanted="1,000,000 positions, 0 differences",
    limit_s=1800.0,
)
POSITIONS = 2000
"""Number of positions of a case"""
RANDOM_CASES, REAL_CASES = 300, 200
SIZES = (5, 7, 9, 13, 19)
LENGTH = 1.6
"""Maximum number of moves of a random game, as a multiple of the board's points"""
PASSES = 0.02
RULES = Rules("as GNU Go")
GNU_GO = find_gnugo()
SHOWN = 5
"""Maximum number of differences in the report of a case"""

GAMES, SHARE = 20, 200
"""Recorded games of a case: GAMES random games of a shard, or every SHARE-th game of a folder"""

Moves = list[tuple[int, int]]
"""Moves as pairs of colour and point"""
Script = list[tuple[str, str | None]]
"""GTP commands and the answers expected; None = any answer"""


def random_moves(size: int, seed: int) -> Iterator[tuple[int, int]]:
    """Colours and points of a random game of legal moves."""
    game, rng = Game(size, RULES), np.random.default_rng(seed)
    points, mask = on_board_points(size), np.empty(size * size + 1, np.uint8)
    for _ in range(int(LENGTH * size * size)):
        legal_moves(game.position, game.to_move, mask)
        choices = points[mask[:-1] == 1]
        point = int(rng.choice(choices)) if len(choices) and rng.random() > PASSES else PASS
        yield game.to_move, point
        game.play(game.to_move, point)


def script_of(size: int, moves: Moves) -> Script:
    """GTP commands that replay a game and ask after each move for legal moves and captures of both colours."""
    game = Game(size, RULES)
    script: Script = [(f"boardsize {size}", None), ("clear_board", None)]
    vertices, mask = np.array([to_vertex(int(p), size) for p in on_board_points(size)]), np.empty(size**2 + 1, np.uint8)
    for color, point in moves:
        game.play(color, point)
        script.append((f"play {color_word(color)} {to_vertex(point, size)}", ""))
        for side in (BLACK, WHITE):
            name = color_word(side)
            legal_moves(game.position, side, mask)
            script.append((f"all_legal {name}", " ".join(vertices[mask[:-1] == 1])))
            script.append((f"captures {name}", str(game.captures(side))))
    return script


def ask(commands: list[str], *options: str) -> list[str]:
    """GNU Go's answers to GTP commands, fewer if it ended early."""
    text = "\n".join([*commands, "quit", ""])
    command = [GNU_GO, "--mode", "gtp", *options]
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PART.limit_s)
    return [answer.rstrip() for answer in run.stdout.split("\n\n")[: len(commands)]]


def compare(script: Script, *options: str) -> list[str]:
    """Differences between the answers of GNU Go and those expected.

    Args:
        options: GNU Go's options.
    """
    answers = ask([command for command, _ in script], *options)
    if len(answers) < len(script):
        return [f"GNU Go gave {len(answers)} answers to {len(script)} commands"]
    faults = []
    for number, ((command, expected), answer) in enumerate(zip(script, answers, strict=True)):
        if expected is not None and answer != f"= {expected}".rstrip():
            played = [before for before, _ in script[:number] if not before.startswith(("all_legal", "captures"))]
            faults.append(f"{command}: {answer!r}, expected {expected!r}, after {'; '.join(played)}")
    return faults[:SHOWN]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cases of random and of recorded games; without ``--games`` all cases are of random games."""
    campaign = metafunc.config.option.campaign
    n_real = (2 if campaign["quick"] else REAL_CASES) if campaign["games"] else 0
    n_random = (4 if campaign["quick"] else RANDOM_CASES + REAL_CASES) - n_real
    counts = {"random": n_random, "real": n_real}
    cases = [(kind, seed, POSITIONS) for kind, number in counts.items() for seed in range(number)]
    metafunc.parametrize(("kind", "seed", "amount"), cases)


@pytest.mark.skipif(not GNU_GO, reason="GNU Go")
def test_games(kind: str, seed: int, amount: int, campaign: dict[str, Any], outcome: Outcome) -> None:
    """Compare the first ``amount`` positions of a case's games."""
    script: Script = []
    left = amount
    for size, moves in _real_games(Path(campaign["games"]), seed) if kind == "real" else _random_games(seed):
        script += script_of(size, moves[:left])
        left = max(0, left - len(moves))
        if not left:
            break
    outcome.amount = amount - left
    outcome.faults += compare(script)


def _random_games(seed: int) -> Iterator[tuple[int, Moves]]:
    """Sizes and moves of an endless sequence of random games."""
    for number in count():
        size = SIZES[(seed + number) % len(SIZES)]
        yield size, list(random_moves(size, 1000 * seed + number))


def _real_games(source: Path, seed: int) -> Iterator[tuple[int, Moves]]:
    """Sizes and moves of ``GAMES`` games of a shard, or of every ``SHARE``-th game of a folder."""
    in_shard = source.is_file()
    for game in from_shard(source, GAMES, seed) if in_shard else islice(from_files((source,)), seed, None, SHARE):
        record = read_sgf(game.data)
        if not (record.black or record.white) and record.size <= max(SIZES):
            yield record.size, record.moves
