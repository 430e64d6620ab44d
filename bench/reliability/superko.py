"""Legal moves and captures under every rule set, superko included, compared with a reference implementation.

In random games on small boards, where positions repeat, the legal moves of both colours, the stones and the captures
after every move must equal those of :mod:`bench.reliability.rules_twin`.
"""

import numpy as np
import pytest

from bench.reliability.campaign import Outcome, Part
from bench.reliability.rules_twin import Twin
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, on_board_points, other, to_vertex
from engine.go.position import META_BUTTON_TAKER, legal_moves
from engine.go.rules import RULE_SETS, Rules

PART = Part(
    title="Legal moves and captures under all rule sets, superko too, against a slow twin",
    unit="positions",
    wanted="50,000 positions, 0 differences",
)
POSITIONS = 250
"""Number of positions of a case"""
CASES_A_RULE_SET = 20
SIZES = (2, 3, 4, 5, 7, 9)
LENGTH = 6
"""Maximum number of moves of a game, as a multiple of the board's points, so that small boards fill up several times"""
PASSES = 0.02


def differences(game: Game, twin: Twin, points: np.ndarray) -> list[str]:
    """Differences between the game and its twin; empty = none."""
    size, flags, found = game.size, [(game.rules.ko, game.rules.suicide)], []
    mask = np.empty(size * size + 1, np.uint8)
    for color in (BLACK, WHITE):
        legal_moves(game.position, color, mask)
        ours = {divmod(int(index), size) for index in np.flatnonzero(mask[:-1])}
        if ours != (theirs := twin.legal_cells(color, flags)[0]):
            found.append(f"legal for colour {color}: {sorted(ours ^ theirs)} in one of the two only")
        if (taken := game.captures(color)) != (lost := twin.lost[other(color)]):
            found.append(f"captures of colour {color}: {taken}, expected {lost}")
    colors = game.position.board.color[points]
    stones = {divmod(index, size): int(colors[index]) for index in np.flatnonzero(colors != EMPTY).tolist()}
    return found if stones == twin.stones else [*found, "the stones differ"]


def play_beside_twin(size: int, rules: Rules, seed: int, most: int) -> tuple[int, list[str]]:
    """Play one random game of at most ``most`` moves, up to the first difference.

    Returns:
        (int, list[str]): positions compared, and differences.
    """
    game, twin, rng = Game(size, rules), Twin(size), np.random.default_rng(seed)
    points, mask = on_board_points(size), np.empty(size * size + 1, np.uint8)
    for number in range(min(most, LENGTH * size * size)):
        legal_moves(game.position, game.to_move, mask)
        choices = np.flatnonzero(mask[:-1])
        index = int(rng.choice(choices)) if len(choices) and rng.random() > PASSES else -1
        twin.play(divmod(index, size) if index >= 0 else None, game.to_move)
        if rules.button and index < 0 and not game.position.meta[META_BUTTON_TAKER]:
            # A position without the button differs from all earlier ones, so these cannot recur.
            del twin.situations[:-1]
        game.play(game.to_move, int(points[index]) if index >= 0 else PASS)
        if found := differences(game, twin, points):
            line = " ".join(to_vertex(point, size) for _, point in game.moves())
            return number + 1, [f"{rules.name}, {size}x{size}: {one}, after {line}" for one in found]
    return min(most, LENGTH * size * size), []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``CASES_A_RULE_SET`` cases of every rule set; in the quick campaign one of each."""
    seeds = range(1 if metafunc.config.option.campaign["quick"] else CASES_A_RULE_SET)
    cases = [(name, seed, POSITIONS) for seed in seeds for name in RULE_SETS]
    metafunc.parametrize(("rules", "seed", "amount"), cases)


def test_games(rules: str, seed: int, amount: int, outcome: Outcome) -> None:
    """Compare ``amount`` positions of random games under one rule set."""
    left, number = amount, 0
    while left > 0:
        size = SIZES[(seed + number) % len(SIZES)]
        done, found = play_beside_twin(size, RULE_SETS[rules], 1000 * seed + number, left)
        left, number, outcome.faults = left - done, number + 1, outcome.faults + found
