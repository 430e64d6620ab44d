"""The keima-2 planes against a slow twin that knows nothing of chains kept up to date."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.features import keima
from engine.features.encoder import KEIMA, KEIMA_1, encode, key
from engine.features.symmetry import INVERSE, SYMMETRIES, apply_symmetry, symmetry_table
from engine.go.board import META_KO_COLOR, META_KO_POINT
from engine.go.geometry import BLACK, PASS, WHITE, from_vertex, index_of, on_board_points
from engine.go.position import META_N_MOVES, META_TO_MOVE, is_legal_move, legal_moves, new_position, play_move
from engine.go.rules import (
    KO_POSITIONAL,
    KO_SIMPLE,
    RULE_KO,
    RULE_KOMI_X2,
    RULE_SCORING,
    RULE_SUICIDE,
    SCORING_TERRITORY,
)
from tests.features.twin import ladders


def encoded(position, symmetry=0, encoder=KEIMA):
    """Planes and globals of a position."""
    size = int(position.board.meta[0])
    planes = np.full((encoder.planes, size, size), 7, np.float32)
    globals_ = np.full(encoder.globals, 7, np.float32)
    encode(position, symmetry, encoder.new_scratch(size), planes, globals_)
    return planes, globals_


def random_position(size, moves, seed, ko_rule=KO_SIMPLE, suicide=0, passes=0.02, capacity=0):
    """A position after random legal moves."""
    rng = np.random.default_rng(seed)
    position = new_position(size, capacity)
    position.rules[RULE_KO] = ko_rule
    position.rules[RULE_SUICIDE] = suicide
    position.rules[RULE_KOMI_X2] = int(rng.integers(-15, 16))
    out = np.zeros(size * size + 1, np.uint8)
    points = on_board_points(size)
    for _ in range(moves):
        color = int(position.meta[META_TO_MOVE])
        legal_moves(position, color, out)
        choices = points[out[:-1] == 1]
        point = PASS if len(choices) == 0 or rng.random() < passes else int(rng.choice(choices))
        play_move(position, point, color)
    return position


class Stones:
    """Plain sets of stones with flood fill: the twin's whole knowledge of the game."""

    def __init__(self, position):
        size = int(position.board.meta[0])
        self.stride = size + 1
        self.color = {int(p): int(position.board.color[p]) for p in on_board_points(size)}

    def around(self, point):
        steps = (-self.stride, -1, 1, self.stride)
        return [point + step for step in steps if point + step in self.color]

    def chain(self, point):
        """(stones, liberties) of the chain at a point."""
        mine, stones, front = self.color[point], {point}, [point]
        while front:
            for beside in self.around(front.pop()):
                if self.color[beside] == mine and beside not in stones:
                    stones.add(beside)
                    front.append(beside)
        return stones, {b for s in stones for b in self.around(s) if self.color[b] == 0}

    def after(self, point, color):
        """(captured, size of the new chain, its liberties) of a legal move."""
        self.color[point] = color
        taken = set()
        for beside in self.around(point):
            if self.color[beside] == 3 - color:
                stones, liberties = self.chain(beside)
                if not liberties:
                    taken |= stones
        for stone in taken:
            self.color[stone] = 0
        stones, liberties = self.chain(point)
        for stone in taken:
            self.color[stone] = 3 - color
        self.color[point] = 0
        return len(taken), len(stones), len(liberties)

    def is_eye(self, point, color):
        if any(self.color[beside] != color for beside in self.around(point)):
            return False
        steps = (-self.stride - 1, -self.stride + 1, self.stride - 1, self.stride + 1)
        diagonals = [self.color.get(point + step) for step in steps]
        return diagonals.count(3 - color) + (None in diagonals) < 2


def twin(position):
    """The planes, one definition after the other."""
    size = int(position.board.meta[0])
    color = int(position.meta[META_TO_MOVE])
    stones = Stones(position)
    planes = np.zeros((KEIMA.planes, size * size), np.float32)
    planes[keima.ON_BOARD] = 1
    for point in on_board_points(size).tolist():
        at = index_of(point, size)
        if stones.color[point]:
            planes[keima.OWN if stones.color[point] == color else keima.OPPONENT, at] = 1
            liberties = len(stones.chain(point)[1])
            if liberties <= 3:
                planes[keima.LIBERTIES + liberties - 1, at] = 1
        elif is_legal_move(position, point, color):
            planes[keima.SENSIBLE, at] = not stones.is_eye(point, color)
            captured, length, liberties = stones.after(point, color)
            if captured:
                planes[keima.CAPTURE + min(captured, 3) - 1, at] = 1
            if liberties == 1:
                planes[keima.SELF_ATARI + min(length, 2) - 1, at] = 1
            elif liberties:
                planes[keima.AFTER + min(liberties, 4) - 2, at] = 1
            cell = divmod(at, size)
            planes[keima.LADDER_CAPTURE, at], planes[keima.LADDER_ESCAPE, at] = ladders(position, cell, color)
        else:
            captured, _, liberties = stones.after(point, color)
            planes[keima.FORBIDDEN, at] = captured > 0 or liberties > 0
    count = int(position.meta[META_N_MOVES])
    for age, point in enumerate(position.moves[:count][::-1][: keima.RECENT_MOVES].tolist()):
        if point != PASS:
            planes[keima.RECENT + age, index_of(point, size)] = 1
    return planes.reshape(-1, size, size)


@settings(max_examples=60)
@given(
    st.sampled_from([(5, 40), (7, 70), (9, 110), (19, 180)]),
    st.integers(0, 2**32),
    st.sampled_from([KO_SIMPLE, KO_POSITIONAL]),
)
def test_planes_equal_the_slow_twin(board, seed, ko_rule):
    size, most = board
    position = random_position(size, seed % most, seed, ko_rule)
    planes, _ = encoded(position)
    expected = twin(position)
    for plane in range(KEIMA.planes):
        np.testing.assert_array_equal(planes[plane], expected[plane], err_msg=f"plane {plane}")


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_symmetry_turns_every_plane_and_no_global(symmetry):
    position = random_position(9, 50, 3)
    plain, globals_ = encoded(position)
    image, same = encoded(position, symmetry)
    to = symmetry_table(9)[symmetry][:-1]
    back = np.empty_like(plain)
    back.reshape(KEIMA.planes, -1)[:] = image.reshape(KEIMA.planes, -1)[:, to]
    np.testing.assert_array_equal(back, plain)
    np.testing.assert_array_equal(globals_, same)


def test_symmetries_are_the_eight_of_the_square_and_have_inverses():
    table = symmetry_table(5)
    assert len({tuple(row) for row in table}) == 8
    for symmetry in range(8):
        assert all(apply_symmetry(apply_symmetry(i, 5, symmetry), 5, INVERSE[symmetry]) == i for i in range(26))


def test_ko_point_is_forbidden_and_recent_moves_are_in_order():
    position = new_position(5)
    for vertex in ("B3", "C3", "C4", "D4", "C2", "D2", "A1", "E3", "D3"):
        play_move(position, from_vertex(vertex, 5), int(position.meta[META_TO_MOVE]))
    assert (position.board.meta[META_KO_POINT], position.board.meta[META_KO_COLOR]) == (from_vertex("C3", 5), WHITE)
    planes, _ = encoded(position)
    assert planes[keima.FORBIDDEN].sum() == 1
    assert planes[keima.FORBIDDEN, 2, 2] == 1
    assert planes[keima.RECENT, 2, 3] == planes[keima.RECENT + 1, 2, 4] == planes[keima.RECENT + 2, 4, 0] == 1


def test_komi_is_seen_from_the_side_to_move_and_counts_stones_under_territory():
    position = new_position(9)
    position.rules[RULE_KOMI_X2] = 13
    assert encoded(position)[1][keima.KOMI] == pytest.approx(-6.5 / keima.KOMI_SCALE)
    play_move(position, from_vertex("E5", 9), BLACK)
    assert encoded(position)[1][keima.KOMI] == pytest.approx(6.5 / keima.KOMI_SCALE)
    position.rules[RULE_SCORING] = SCORING_TERRITORY
    assert encoded(position)[1][keima.KOMI] == pytest.approx(7.5 / keima.KOMI_SCALE)


@pytest.mark.parametrize(("size", "drawn"), [(9, 1), (8, 0)])
def test_the_wave_tells_komi_from_the_margins_that_occur(size, drawn):
    for komi_x2 in range(-12, 13):
        position = new_position(size)
        position.rules[RULE_KOMI_X2] = komi_x2
        # An odd number of points is shared with an odd margin: half a point off one is that margin in effect.
        margins = [margin for margin in range(-9, 10) if margin % 2 == drawn]
        near = [margin for margin in margins if abs(margin - komi_x2 / 2) <= 0.5]
        expected = komi_x2 / 2 - near[0] if near else 0.0
        assert encoded(position)[1][keima.WAVE] == -expected
        play_move(position, from_vertex("E5", size), BLACK)
        assert encoded(position)[1][keima.WAVE] == expected
        position.rules[RULE_SCORING] = SCORING_TERRITORY
        assert encoded(position)[1][keima.WAVE] == 0.0


def test_keima_1_is_keima_2_without_the_wave():
    position = random_position(9, 40, 5)
    position.rules[RULE_KOMI_X2] = 13
    planes, globals_ = encoded(position, 3)
    older, fewer = encoded(position, 3, KEIMA_1)
    np.testing.assert_array_equal(planes, older)
    np.testing.assert_array_equal(globals_[: keima.WAVE], fewer)
    assert globals_[keima.WAVE] != 0.0 and len(fewer) == keima.WAVE


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_equal_keys_mean_equal_planes(seed):
    seen = {}
    position = random_position(3, 0, seed, KO_POSITIONAL, capacity=200)
    rng = np.random.default_rng(seed)
    out = np.zeros(10, np.uint8)
    for _ in range(150):
        color = int(position.meta[META_TO_MOVE])
        legal_moves(position, color, out)
        index = int(rng.choice(np.flatnonzero(out)))
        play_move(position, PASS if index == 9 else int(on_board_points(3)[index]), color)
        planes, globals_ = encoded(position)
        picture = (planes.tobytes(), globals_.tobytes())
        assert seen.setdefault(int(key(position, KEIMA.new_scratch(3))), picture) == picture


def test_an_unknown_kind_of_ko_is_an_error():
    position = new_position(5)
    position.rules[RULE_KO] = 3
    with pytest.raises(ValueError, match="kind of ko"):
        encoded(position)
