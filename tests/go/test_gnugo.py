"""Legal moves and captures compared with GNU Go's over random games.

GNU Go has a simple ko and forbids suicide; the games here are played under the same rules, so both must agree on
every move. All commands of a game set go to one process at once: a question and its answer never wait for each other.
"""

import subprocess

import numpy as np
import pytest

from engine.go.game import Game
from engine.go.geometry import BLACK, PASS, WHITE, on_board_points, to_vertex
from engine.go.position import legal_moves
from engine.go.rules import Rules

COLOR_NAMES = {BLACK: "black", WHITE: "white"}


def random_game(size: int, moves: int, every: int, random: np.random.Generator) -> list[tuple[str, set[str] | None]]:
    """GTP commands of one random game with the answers expected; None where any will do.

    After every move the captures of the mover are asked for, after every ``every``-th the legal moves of both colours.
    """
    game, script = Game(size, Rules("as GNU Go")), [(f"boardsize {size}", None), ("clear_board", None)]
    mask = np.empty(size * size + 1, np.uint8)
    points = on_board_points(size)
    for n in range(moves):
        color = game.to_move
        legal_moves(game.position, color, mask)
        choices = points[mask[:-1] == 1]
        point = int(random.choice(choices)) if len(choices) and random.random() > 0.02 else PASS
        game.play(color, point)
        script.append((f"play {COLOR_NAMES[color]} {to_vertex(point, size)}", set()))
        script.append((f"captures {COLOR_NAMES[color]}", {str(game.captures(color))}))
        if n % every == every - 1:
            for side in (BLACK, WHITE):
                legal_moves(game.position, side, mask)
                vertices = {to_vertex(int(p), size) for p in points[mask[:-1] == 1]}
                script.append((f"all_legal {COLOR_NAMES[side]}", vertices))
    return script


def compare(gnugo: str, script: list[tuple[str, set[str] | None]]) -> None:
    """Run the script through GNU Go; every answer, its words taken as a set, must be the one expected."""
    commands = "\n".join([command for command, _ in script] + ["quit", ""])
    run = subprocess.run([gnugo, "--mode", "gtp"], input=commands, capture_output=True, text=True, timeout=500)
    answers = run.stdout.split("\n\n")
    assert len(answers) > len(script)
    for (command, expected), answer in zip(script, answers, strict=False):
        assert answer.startswith("="), (command, answer)
        assert expected is None or set(answer[1:].split()) == expected, command


@pytest.mark.clients("gnugo")
@pytest.mark.parametrize(
    ("size", "games", "moves", "every"),
    [(5, 200, 80, 1), (9, 200, 160, 4), (13, 200, 300, 10), (19, 200, 480, 20)],
)
def test_random_games_agree_with_gnu_go(gnugo, size, games, moves, every):
    random = np.random.default_rng(size)
    script = [line for _ in range(games) for line in random_game(size, moves, every, random)]
    compare(gnugo, script)
