"""What Leela Zero itself says of networks that we wrote in its format, through its ``heatmap``."""

import os
import re
import subprocess

import numpy as np
import pytest
import torch

from engine.features.encoder import LEELA, encode
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.geometry import BLACK, on_board_points, to_vertex
from engine.go.position import META_TO_MOVE, legal_moves, new_position, play_move
from engine.go.rules import KO_POSITIONAL, RULE_KO
from engine.nets.architectures.registry import new_spec
from engine.nets.files.leela_zero import load_leela, save_leela
from tests.conftest import find_program
from tests.nets.models import network_of, toy

POSITIONS = 30
LIMIT_S = 300.0
PRINTED = re.compile(r"((?:(?: *\d+ ){19}\n){19})pass: (\d+)\nwinrate: ([\d.]+)")
TURNS = symmetry_table(19)
MOST_OFF = 2e-5
"""Beyond the printed digits: Leela Zero's own arithmetic (Winograd, float32) strays so far"""


def turn_of(symmetry):
    """Our symmetry that shows the network the board as one of Leela Zero's does; it counts rows from the bottom."""

    def seen(x, y):
        """Where the network's cell is on the board."""
        if symmetry & 4:
            x, y = y, x
        return 18 - x if symmetry & 2 else x, 18 - y if symmetry & 1 else y

    def index(x, y):
        return (18 - y) * 19 + x

    for ours in range(SYMMETRIES):
        if all(TURNS[ours][index(*seen(x, y))] == index(x, y) for x in range(19) for y in range(19)):
            return ours
    raise AssertionError("no such symmetry")


def played_and_encoded(symmetries):
    """Commands that play random games with a ``heatmap`` now and then, and planes and symmetry of each."""
    rng, scratch = np.random.default_rng(5), LEELA.new_scratch(19)
    points, legal = on_board_points(19), np.zeros(362, np.uint8)
    commands, planes = [], []
    for turn, symmetry in enumerate(symmetries):
        if turn % 10 == 0:
            position, length = new_position(19), 0
            position.rules[RULE_KO] = KO_POSITIONAL
            commands.append("clear_board")
        while length < turn % 10 * 37:
            color = int(position.meta[META_TO_MOVE])
            legal_moves(position, color, legal)
            here = np.flatnonzero(legal[:-1])
            point = int(points[rng.choice(here)]) if len(here) and rng.random() > 0.05 else 0
            play_move(position, point, color)
            commands.append(f"play {'b' if color == BLACK else 'w'} {to_vertex(point, 19)}")
            length += 1
        out = np.zeros((LEELA.planes, 19, 19), np.float32)
        encode(position, turn_of(symmetry), scratch, out, np.zeros(0, np.float32))
        planes.append(out)
        commands.append(f"heatmap {symmetry}" if symmetry else "heatmap")
    return commands, torch.from_numpy(np.stack(planes)), torch.zeros(len(planes), 0)


def heatmaps(path, commands, home):
    """What Leela Zero prints: thousandths of moves in policy order and of the pass, and the mover's win rate."""
    words = [find_program("leelaz"), *["--cpu-only", "--gtp", "--noponder", "--threads", "1", "--weights"], str(path)]
    text = "\n".join([*commands, "quit"]) + "\n"
    environment = os.environ | {"HOME": str(home)}
    ended = subprocess.run(words, input=text, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    assert "illegal" not in ended.stdout and "?" not in ended.stdout
    found = PRINTED.findall(ended.stderr)
    policy = np.array([[*map(int, board.split()), int(passed)] for board, passed, _ in found])
    return policy, np.array([float(value) for _, _, value in found])


def lively(architecture, **shape):
    """A network that prefers some moves and some positions, so that printed digits tell something."""
    _, planes, globals_ = played_and_encoded([0] * 10)
    model = toy(architecture, planes=18, value_hidden=256, size=19, **shape)
    with torch.no_grad():
        policy, value, *_ = model(planes, globals_)
        model.policy_out.weight *= 2.0 / policy.std(dim=1).mean()
        model.value_out.weight *= 0.8 / value.std()
        model.value_out.bias.copy_(-model(planes, globals_).value.mean() + model.value_out.bias)
    return model


def check(tmp_path, model, symmetries):
    """Write a network, ask Leela Zero and ourselves, and compare."""
    path = tmp_path / "network.txt"
    save_leela(path, model, new_spec(model, "made", LEELA.name))
    commands, planes, globals_ = played_and_encoded(symmetries)
    thousandths, win_rates = heatmaps(path, commands, tmp_path)
    assert len(thousandths) == len(symmetries)
    model, spec, _ = load_leela(path)
    output = network_of(model, spec, reduced=False).evaluate(planes, globals_)
    policy = output.policy.softmax(1).numpy()
    policy = np.stack([row[TURNS[turn_of(symmetry)]] for row, symmetry in zip(policy, symmetries, strict=True)])
    # Of points with a stone it prints 0 whatever the network says.
    is_empty = np.stack([_empty(row, turn_of(s)) for row, s in zip(planes.numpy(), symmetries, strict=True)])
    floor = np.where(is_empty, thousandths / 1000, policy)
    off = np.maximum(floor - policy, policy - floor - 0.001 * is_empty).max()
    value_off = np.abs((1 + output.value.numpy()) / 2 - win_rates).max() - 5e-7
    assert policy.max() > 0.1 and win_rates.std() > 0.1
    assert off < MOST_OFF and value_off < MOST_OFF


def _empty(planes, turn):
    """Which moves are to empty points or passes."""
    taken = (planes[0] + planes[8]).reshape(-1)
    return np.append(taken == 0, True)[TURNS[turn]]


@pytest.mark.clients("leelaz")
@pytest.mark.parametrize("architecture", ["alphago-zero", "elf-opengo"])
def test_leela_zero_says_the_same_of_a_small_network(architecture, tmp_path):
    check(tmp_path, lively(architecture, blocks=2, channels=16), [0] * POSITIONS)


@pytest.mark.clients("leelaz")
def test_leela_zero_turns_the_board_as_we_do(tmp_path):
    check(tmp_path, lively("alphago-zero", blocks=2, channels=16), list(range(8)) * 2)


@pytest.mark.slow
@pytest.mark.clients("leelaz")
def test_leela_zero_says_the_same_of_a_large_network(tmp_path):
    check(tmp_path, lively("alphago-zero", blocks=10, channels=128), [0] * POSITIONS)
