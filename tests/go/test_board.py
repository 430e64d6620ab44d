"""The kernels against the slow twin, move by move, and the board's own promises."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench.reliability.rules_twin import Cell, Stones, Twin, after, chain_and_liberties
from engine.go.board import (
    META_CAPTURED_BLACK,
    META_CAPTURED_WHITE,
    META_KO_POINT,
    META_N_EMPTY,
    copy_board,
    hash_after,
    is_eye,
    new_board,
    play,
    stones_lost_by_suicide,
)
from engine.go.diagram import parse
from engine.go.geometry import BLACK, PASS, WHITE, ZOBRIST
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, apply_rules, legal_moves, new_position, play_move
from engine.go.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL, RULE_SUICIDE, Rules
from engine.go.scoring import area_owner
from tests.go.cells import to_point

KO_RULES = (KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL)
RULE_PAIRS = [(ko_rule, suicide) for ko_rule in KO_RULES for suicide in (False, True)]


def expected_hash(stones: Stones, size: int) -> int:
    """XOR of the Zobrist words of all stones."""
    words = [ZOBRIST[color, to_point(cell, size)] for cell, color in stones.items()]
    return int(np.bitwise_xor.reduce(np.array(words, np.uint64)))


def check_board(position: Position, twin: Twin) -> None:
    """Colours, chains, liberties, prisoners, empty list, hash and area agree with the twin's."""
    board, size = position.board, twin.size
    cells = {to_point((row, column), size): (row, column) for row in range(size) for column in range(size)}
    assert {cells[p]: int(board.color[p]) for p in cells if board.color[p]} == twin.stones
    empty = board.empty[: board.meta[META_N_EMPTY]]
    assert sorted(cells[int(p)] for p in empty) == twin.empty_cells()
    assert all(board.slot[p] == i and board.head[p] == 0 for i, p in enumerate(empty))
    checked: set[Cell] = set()
    for cell in twin.stones:
        if cell not in checked:
            chain, liberties = chain_and_liberties(twin.stones, size, cell)
            checked |= chain
            head = board.head[to_point(cell, size)]
            assert {cells[int(p)] for p in np.flatnonzero(board.head == head)} == chain
            assert (board.stones[head], board.libs[head]) == (len(chain), len(liberties))
            assert board.lib_sum[head] == sum(to_point(liberty, size) for liberty in liberties)
    assert int(board.meta[META_CAPTURED_BLACK]) == twin.lost[BLACK]
    assert int(board.meta[META_CAPTURED_WHITE]) == twin.lost[WHITE]
    assert int(board.hash[0]) == expected_hash(twin.stones, size)
    owner = np.empty(size * size, np.int8)
    area_owner(board, owner)
    owners = twin.area()
    signs = {BLACK: 1, WHITE: -1, 0: 0}
    assert owner.tolist() == [signs[owners.get(cell, 0)] for cell in cells.values()]


def check_legality(positions: list[Position], twin: Twin) -> None:
    """Legal moves agree under every ko rule, with suicide and without, and so does the hash after each."""
    size, color = twin.size, twin.to_move
    mask = np.empty(size * size + 1, np.uint8)
    for (ko_rule, suicide), legal in zip(RULE_PAIRS, twin.legal_cells(color, RULE_PAIRS), strict=True):
        position = positions[ko_rule]
        position.rules[RULE_SUICIDE] = suicide
        assert legal_moves(position, color, mask) == len(legal) + 1
        assert {divmod(int(index), size) for index in np.flatnonzero(mask[:-1])} == legal
    for cell in sorted(legal)[:: 1 + len(legal) // 30]:
        stones, _, _ = after(twin.stones, size, cell, color)
        assert int(hash_after(positions[0].board, to_point(cell, size), color)) == expected_hash(stones, size)


def play_both(size: int, choices: list[int], corner: Cell, span: int) -> None:
    """Play one game on twin and kernels, moves drawn from a square of ``span`` cells so that chains meet soon.

    One choice in 16 is a pass; any other takes a cell by its number among the empty ones, also where a move repeats
    a position or is a suicide, which the board accepts.
    """
    twin, positions = Twin(size), [new_position(size, len(choices)) for _ in KO_RULES]
    for ko_rule, position in zip(KO_RULES, positions, strict=True):
        apply_rules(position, Rules("test", ko_rule), 0.0)
    for n, choice in enumerate(choices):
        cells = [c for c in twin.empty_cells() if all(low <= x < low + span for x, low in zip(c, corner, strict=True))]
        cell = cells[choice // 16 % len(cells)] if cells and choice % 16 else None
        point, color = (to_point(cell, size) if cell else PASS), twin.to_move
        captured = twin.play(cell, color)
        for position in positions:
            assert play_move(position, point, color) == captured
            assert position.meta[[META_N_MOVES, META_TO_MOVE]].tolist() == [n + 1, twin.to_move]
        check_board(positions[0], twin)
        check_legality(positions, twin)
    hashes = positions[0].hashes[: len(choices) + 1].tolist()
    classes = {(stones, key) for (stones, _), key in zip(twin.situations, hashes, strict=True)}
    assert len(classes) == len(set(hashes)) == len({stones for stones, _ in classes})


CHOICE = st.integers(0, 16 * 625 - 1)
RANDOM_GAMES = settings(derandomize=True, suppress_health_check=list(HealthCheck))


@settings(RANDOM_GAMES, max_examples=100)
@given(st.integers(2, 5), st.lists(CHOICE, min_size=20, max_size=120))
@example(2, [16 * i + 1 for i in range(90)])
def test_small_boards_agree_with_the_twin(size, choices):
    play_both(size, choices, (0, 0), size)


@settings(RANDOM_GAMES, max_examples=40)
@given(st.data())
def test_boards_of_all_sizes_agree_with_the_twin(data):
    size = data.draw(st.integers(6, 19), "size")
    span = data.draw(st.integers(3, 6), "span")
    corner = data.draw(st.tuples(*[st.integers(0, size - span)] * 2), "corner")
    play_both(size, data.draw(st.lists(CHOICE, min_size=40, max_size=80), "choices"), corner, span)


@pytest.mark.parametrize(("size", "moves", "seed"), [(9, 250, 3), (19, 400, 1), (25, 250, 2)])
def test_whole_large_boards_agree_with_the_twin(size, moves, seed):
    choices = np.random.default_rng(seed).integers(0, 16 * size * size, moves)
    play_both(size, [int(choice) for choice in choices], (0, 0), size)


def test_a_copy_is_independent():
    source, target = new_board(9), new_board(9)
    play(source, to_point((4, 4), 9), BLACK)
    copy_board(target, source)
    play(source, to_point((4, 5), 9), WHITE)
    assert target.color[to_point((4, 5), 9)] == 0
    assert (target.buffer != source.buffer).any()
    play(target, to_point((4, 5), 9), WHITE)
    np.testing.assert_array_equal(target.buffer, source.buffer)


@pytest.mark.parametrize(
    ("diagram", "lost"),
    [
        ("""
            a O . .
            O O . .
            . . . .
            . . . .
        """, 1),
        ("""
            X O . .
            a O . .
            O . . .
            . . . .
        """, 2),
        ("""
            X O X .
            a O X .
            O X . .
            . . . .
        """, 0),
        ("""
            X O . .
            a O . .
            X . . .
            . . . .
        """, 0),
    ],
)  # fmt: skip
def test_suicide_counts_the_stones_lost(diagram, lost):
    board, marks = parse(diagram)
    assert stones_lost_by_suicide(board, marks["a"], BLACK) == lost
    before = board.meta[META_CAPTURED_BLACK]
    play(board, marks["a"], BLACK)
    assert board.meta[META_CAPTURED_BLACK] - before == lost


def test_ko_needs_one_stone_taken_by_a_lone_stone_with_one_liberty():
    ko, marks = parse("""
        . X O . .
        X O a O .
        . X O . .
        . . . . .
        . . . . .
    """)
    assert play(ko, marks["a"], BLACK) == 1
    assert ko.meta[META_KO_POINT] == to_point((1, 1), 5)
    play(ko, PASS, WHITE)
    assert ko.meta[META_KO_POINT] == 0
    snapback, marks = parse("""
        . X X O .
        X O O a O
        . X X O .
        . . . . .
        . . . . .
    """)
    assert play(snapback, marks["a"], BLACK) == 2
    assert snapback.meta[META_KO_POINT] == 0


def test_eyes_are_false_by_two_diagonals_or_one_at_the_edge():
    board, marks = parse("""
        a X . X b X O
        X X . X X O .
        . O X . . . .
        . X c X . X .
        . . X O X e X
        X . . . O X .
        d X . . . . .
    """)
    eyes = {name: bool(is_eye(board, point, BLACK)) for name, point in marks.items()}
    assert eyes == {"a": True, "b": False, "c": False, "d": True, "e": True}
    assert not is_eye(board, marks["a"], WHITE)
