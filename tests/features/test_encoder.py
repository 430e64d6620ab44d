"""What holds for every encoder: symmetries, keys, memory used again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.features.encoder import (
    ALPHAGO_POLICY,
    ALPHAGO_VALUE,
    ENCODERS,
    KATAGO,
    KEIMA,
    LEELA,
    ZERO,
    encode,
    key,
)
from engine.features.symmetry import SYMMETRIES, symmetry_steps, symmetry_table
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, WHITE
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL
from tests.features.twin import Game, encoded, random_game

ALL = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)


def test_names_and_ids_are_each_ones_own():
    assert [encoder.name for encoder in ENCODERS.values()] == list(ENCODERS)
    assert (ALPHAGO_POLICY.planes, ALPHAGO_VALUE.planes, ZERO.planes, LEELA.planes) == (48, 49, 17, 18)


@ALL
def test_symmetry_turns_every_plane(encoder):
    position = random_game(9, 70, 5).position
    planes = encoded(encoder, position).reshape(encoder.planes, -1)
    for symmetry in range(1, SYMMETRIES):
        image = encoded(encoder, position, symmetry).reshape(encoder.planes, -1)
        np.testing.assert_array_equal(image[:, symmetry_table(9)[symmetry][:-1]], planes, err_msg=f"{symmetry}")


@pytest.mark.parametrize("size", [2, 5, 19])
def test_steps_are_the_turns(size):
    for symmetry, table in enumerate(symmetry_table(size)):
        corner, down, right = symmetry_steps(size, symmetry)
        told = [corner + row * down + column * right for row in range(size) for column in range(size)]
        assert told == table[:-1].tolist()


@ALL
def test_what_memory_held_before_does_not_show(encoder):
    scratch = encoder.new_scratch(7)
    positions = [random_game(7, 10 * seed, seed).position for seed in range(8)]
    for position in positions:
        np.testing.assert_array_equal(encoded(encoder, position, 0, scratch), encoded(encoder, position))


@ALL
@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL]), st.booleans())
def test_equal_keys_mean_equal_input(encoder, seed, ko, suicide):
    """On so small a board everything comes again: stones with other ages, other histories, other moves forbidden."""
    rng = np.random.default_rng(seed)
    scratch, planes = encoder.new_scratch(3), np.empty((encoder.planes, 3, 3), np.float32)
    globals_ = np.empty(encoder.globals, np.float32)
    seen = {}
    for _ in range(3):
        game = Game(3, {}, int(rng.integers(1, 3)), ko, suicide)
        for _ in range(60):
            cells = [*sorted(game.legal_cells()), None]
            game.play(cells[rng.integers(len(cells))])
            encode(game.position, 0, scratch, planes, globals_)
            picture = planes.tobytes() + globals_.tobytes()
            assert seen.setdefault(int(key(game.position, scratch)), picture) == picture


KO_SHAPE = {(1, 1): BLACK, (2, 0): BLACK, (3, 1): BLACK, (1, 2): WHITE, (3, 2): WHITE, (2, 3): WHITE, (2, 2): BLACK}
TAKEN = {cell: color for cell, color in KO_SHAPE.items() if cell != (2, 2)} | {(2, 1): WHITE}
"""After White has taken the ko"""
PAIRS = {
    "who is to move": (
        lambda: played(Game(5, {(2, 2): BLACK}, BLACK)),
        lambda: played(Game(5, {(2, 2): BLACK}, WHITE)),
        ENCODERS,
    ),
    "order of moves": (
        lambda: played(Game(5), (0, 0), (4, 4), (2, 2)),
        lambda: played(Game(5), (2, 2), (4, 4), (0, 0)),
        ENCODERS,
    ),
    "the seventh move ago": (
        lambda: played(Game(5), (0, 0), (4, 4), *[None] * 6),
        lambda: played(Game(5, {(0, 0): BLACK, (4, 4): WHITE}), *[None] * 8),
        (ALPHAGO_POLICY.name, ALPHAGO_VALUE.name),
    ),
    "a ko": (
        lambda: played(Game(5, KO_SHAPE, WHITE), (2, 1)),
        lambda: Game(5, TAKEN, BLACK).position,
        ENCODERS,
    ),
    "a position before those that show": (
        lambda: played(Game(5, KO_SHAPE | {(3, 4): WHITE, (4, 3): WHITE}, WHITE, KO_POSITIONAL), (2, 1), *[None] * 8),
        lambda: played(Game(5, TAKEN | {(3, 4): WHITE, (4, 4): BLACK}, WHITE, KO_POSITIONAL), (4, 3), *[None] * 8),
        (KEIMA.name, ALPHAGO_POLICY.name, ALPHAGO_VALUE.name, KATAGO.name),
    ),
}
"""Two games each that end in the same stones, and the encoders whose input tells them apart"""


def played(game, *cells):
    """The position after some moves."""
    for cell in cells:
        game.play(cell)
    return game.position


@pytest.mark.parametrize("name", PAIRS)
def test_what_shows_in_the_planes_has_a_key_of_its_own(name):
    one, other, encoders = PAIRS[name]
    for encoder in (ENCODERS[word] for word in encoders):
        assert not np.array_equal(encoded(encoder, one()), encoded(encoder, other())), encoder.name
        scratch = encoder.new_scratch(int(one().board.meta[META_SIZE]))
        assert key(one(), scratch) != key(other(), scratch), encoder.name
