"""The rollout policy: incremental weights, draws and rollouts compared with slow twins and the definition."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reliability.rules_twin import chain_and_liberties
from engine.go.board import META_KO_COLOR, META_KO_POINT, META_N_EMPTY, META_SIZE, copy_board, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex, on_board_points
from engine.go.random import seed_state
from engine.go.scoring import area_owner
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.model import PatternModel, load_patterns, rollout_tables
from engine.rollout.patterns import N_CODES, swap_colors
from engine.rollout.policy import (
    BLOCK_BITS,
    FACTOR_BITS,
    begin,
    clear_responses,
    draw,
    follow,
    list_responses,
    new_weights,
    play_out_by_policy,
)
from engine.rollout.run import is_sensible, owner_at_end
from engine.rollout.softmax import consider, new_candidates, weigh
from engine.rollout.vocabulary import FIRST_CELL, unfold
from engine.system.jit import kernel
from tests.go.cells import to_cell, to_point
from tests.rollout import twin
from weights import find_patterns


@cache
def made_up_model():
    """A small vocabulary with random weights, so that every kind of feature counts."""
    words = twin.small_vocabulary(False)
    theta = np.random.default_rng(1).normal(0, 1.0, words.starts[-1]).astype(np.float32)
    return PatternModel(words, theta, {})


@cache
def made_up_tables():
    return rollout_tables(made_up_model())


@cache
def hashed_tables():
    """Weights that differ for almost all codes, 0 for moves that are not sensible: nothing stale goes unseen."""
    tables = made_up_tables()
    numbers = 1 + ((np.arange(N_CODES, dtype=np.uint32) * np.uint32(0x9E3779B1)) >> np.uint32(17))
    static = np.random.default_rng(2).integers(1, 1 << 24, 1 + (1 << 15)).astype(np.int32)
    static[0] = 0
    return tables._replace(square=np.where(tables.square == 0, 0, numbers).astype(np.uint16), static=static)


@cache
def shipped_model():
    return load_patterns(find_patterns("rollout"))


@cache
def shipped_tables():
    return rollout_tables(shipped_model())


def check_from_scratch(weights, fresh, board, tables):
    """Weights kept up to date are those that :func:`begin` finds, to the last unit."""
    begin(fresh, board, tables)
    for name in ("cell", "weight", "block", "total"):
        assert (getattr(weights, name) == getattr(fresh, name)).all(), name


def check_against_twin(weights, board, tables):
    """States, weights and their sums are those of the twin."""
    cell, weight = twin.expected_weights(board, tables)
    assert (weights.cell == cell).all()
    assert (weights.weight == weight).all()
    padded = np.zeros((len(weights.block) << BLOCK_BITS, 2), np.int64)
    padded[: len(weight)] = weight
    assert (weights.block == padded.reshape(-1, 1 << BLOCK_BITS, 2).sum(axis=1)).all()
    assert (weights.total == weight.sum(axis=0)).all()


def follow_game(tables, size, seed, moves, twin_every):
    """Follow a random game, compared after every move."""
    weights, fresh = new_weights(size), new_weights(size)
    begin(weights, new_board(size), tables)
    for ply, moment in enumerate(twin.random_game(size, seed, moves)):
        if moment.last != PASS:
            follow(weights, moment.board, tables, moment.last, moment.color, len(moment.captured))
        check_from_scratch(weights, fresh, moment.board, tables)
        if ply % twin_every == 0:
            check_against_twin(weights, moment.board, tables)


@settings(max_examples=40)
@given(size=st.integers(2, 13), seed=st.integers(0, 10**6))
def test_weights_after_every_move_are_those_from_scratch(size, seed):
    follow_game(hashed_tables(), size, seed, 2 * size * size, 1 if size < 8 else 9)


def test_weights_of_the_shipped_policy_are_those_from_scratch():
    for size, seed in ((5, 1), (9, 2), (19, 3)):
        follow_game(shipped_tables(), size, seed, 2 * size * size, 40)


@pytest.mark.slow
@pytest.mark.parametrize("size", [9, 19])
def test_weights_of_a_thousand_games_are_those_from_scratch(size):
    # The two tables alternate; the twin looks at three or four positions of each game.
    for seed in range(1000):
        tables = hashed_tables() if seed % 2 else shipped_tables()
        follow_game(tables, size, seed, 2 * size * size, size * size // 2 + 1)


def after_move(text, color):
    """The moment after the colour has played at the diagram's mark ``m``."""
    board, marks = parse(text)
    before = board.color.copy()
    play(board, marks["m"], color)
    captured = np.flatnonzero((board.color == EMPTY) & (before == 3 - color)).tolist()
    return twin.Moment(board, marks["m"], PASS, captured, color)


def middle_game(size, seed, ply):
    """The moment after a number of moves of a random game, or a few later if that was a pass."""
    for number, moment in enumerate(twin.random_game(size, seed, 2 * size * size)):
        if number >= ply and moment.last != PASS:
            return moment
    raise AssertionError("the game was too short")


def expected_weight(moment, color, tables):
    """Weight times factors of every move by point: exact whole numbers, rounded down as the policy does."""
    sight = twin.Sight(moment, color)
    weight = {cell: int(tables.static[tables.square[code]]) for cell, code in sight.codes.items()}
    factors = {cell: [] for cell in weight}
    last = sight.last[0]
    if last is not None:
        liberties = min(len(chain_and_liberties(sight.stones, sight.size, last)[1]), 3)
        rows = np.flatnonzero(tables.contexts.keys[:-1, 0] == sight.diamond(last) + (liberties << 36))
        responses = tables.contexts.values[rows[0] if len(rows) else -1, FIRST_CELL:]
        for i, offset in enumerate(twin.FAR):
            factors.get(twin.shifted(last, offset), []).append(int(responses[i]))
        if len(sight.captured) <= 9:
            for cell in sight.captured:
                offsets = [(row - cell[0], column - cell[1]) for row, column in sight.captured]
                pattern = sum(1 << twin.THIRTEEN.index(offset) for offset in offsets if offset in twin.THIRTEEN)
                factors.get(cell, []).append(int(tables.nakade[pattern]))
        for cell in twin.savers(sight.stones, sight.size, last, color):
            if cell in sight.codes and not twin.is_rescue(sight.codes[cell]):
                factors[cell].append(int(tables.save[0]))
    result = {}
    for cell, plain in weight.items():
        factor = 1 << FACTOR_BITS
        for other in factors[cell]:
            factor = factor * int(other) >> FACTOR_BITS
        result[to_point(cell, sight.size)] = plain * factor >> FACTOR_BITS
    return result


@kernel
def draw_many(weights, board, tables, color, last, captured, state, out):
    """Fill ``out`` with moves drawn in one position."""
    for i in range(len(out)):
        count = clear_responses(weights)
        if last != PASS:
            count = list_responses(weights, board, tables, last, color, captured)
        out[i] = draw(weights, board, color, count, state)


def drawn(moment, color, tables, count, seed=1):
    """Points drawn by the policy, with weights from nothing."""
    weights, out = new_weights(int(moment.board.meta[META_SIZE])), np.zeros(count, np.int64)
    begin(weights, moment.board, tables)
    draw_many(weights, moment.board, tables, color, moment.last, len(moment.captured), seed_state(seed, color), out)
    return out


KO = """
    . . . . .
    . X O . .
    X m X O .
    . X O . .
    . . . . .
"""
# White takes three stones in a row.
NAKADE = """
    O X X X m .
    O O O O O .
    . . . . . .
    X X . . X X
    . . X X . .
    O . . . . O
"""
# White's stone puts five black stones into atari; white stones at their other end can be taken on two points.
SAVERS = """
    . X O . . . .
    X O X O O O .
    X O X X X X m
    . . . O O O .
    . . . . . . .
    . . O . X . .
    . . . . . . .
"""
# Ten stones: too many to leave a nakade.
MASSACRE = """
    X X X X X m
    X X X X X O
    O O O O O O
    . . . . . .
    . X . . X .
    . . . . . .
"""
POSITIONS = {
    "empty board": lambda: twin.Moment(new_board(5), PASS, PASS, [], WHITE),
    "ko": lambda: after_move(KO, WHITE),
    "nakade": lambda: after_move(NAKADE, WHITE),
    "savers": lambda: after_move(SAVERS, WHITE),
    "many captured": lambda: after_move(MASSACRE, WHITE),
    "pass": lambda: middle_game(5, 3, 8)._replace(last=PASS, captured=[]),
    "beginning": lambda: middle_game(9, 4, 6),
    "middle": lambda: middle_game(9, 5, 45),
    "end": lambda: middle_game(9, 6, 75),
    "large": lambda: middle_game(19, 7, 150),
}


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("tables", [made_up_tables, shipped_tables])
def test_draws_follow_the_weights_exactly(name, tables):
    moment, tables = POSITIONS[name](), tables()
    color = 3 - moment.color
    expected = expected_weight(moment, color, tables)
    moves = drawn(moment, color, tables, 200_000)
    assert set(moves.tolist()) <= {point for point, weight in expected.items() if weight > 0}
    total = sum(expected.values())
    rare = [point for point, weight in expected.items() if weight * len(moves) < 10 * total]
    bins = [[point] for point in expected if point not in rare] + [rare]
    counts = np.array([np.isin(moves, points).sum() for points in bins])
    means = np.array([sum(expected[point] for point in points) for points in bins]) / total * len(moves)
    chi_square = ((counts - means) ** 2 / np.maximum(means, 1.0)).sum()
    freedom = len(bins) - 1
    assert chi_square < freedom + 4 * np.sqrt(2 * freedom)


def test_the_positions_show_what_they_are_meant_to():
    ko, nakade, savers = POSITIONS["ko"](), POSITIONS["nakade"](), POSITIONS["savers"]()
    assert (ko.board.meta[META_KO_POINT], ko.board.meta[META_KO_COLOR]) == (from_vertex("C3", 5), BLACK)
    assert len(nakade.captured) == 3
    assert len(POSITIONS["many captured"]().captured) == 10
    sight = twin.Sight(savers, BLACK)
    points = {from_vertex("B4", 7), from_vertex("D7", 7)}
    assert {to_point(cell, 7) for cell in twin.savers(sight.stones, 7, sight.last[0], BLACK)} == points
    for moment in (nakade, savers):
        with_answers = expected_weight(moment, BLACK, made_up_tables())
        assert with_answers != expected_weight(moment._replace(last=PASS), BLACK, made_up_tables())


def test_no_move_drawn_is_illegal_or_fills_an_eye():
    for size in (2, 4, 6, 9):
        for moment in twin.random_game(size, size, 2 * size * size):
            for color in (BLACK, WHITE):
                allowed = [
                    p
                    for p in on_board_points(size)
                    if moment.board.color[p] == EMPTY and is_sensible(moment.board, p, color)
                ]
                moves = set(drawn(moment, color, made_up_tables(), 100).tolist())
                assert moves <= set(allowed or [PASS])


def test_the_policy_passes_when_a_ko_is_all_there_is():
    moment = POSITIONS["ko"]()
    ko = int(moment.board.meta[META_KO_POINT])
    tables = made_up_tables()
    code = twin.code_at(twin.states_of(twin.stones_of(moment.board), 5), to_cell(ko, 5), twin.NEAR, BLACK)
    square = np.zeros_like(tables.square)
    square[code] = square[swap_colors(code)] = 1
    only_ko = tables._replace(square=square)
    assert set(drawn(moment, BLACK, only_ko, 50).tolist()) == {PASS}
    moment.board.meta[META_KO_POINT] = 0
    assert set(drawn(moment, BLACK, only_ko, 50).tolist()) == {ko}


@cache
def shipped_numbers():
    return unfold(shipped_model().words)


def fast_and_defined(moment, color):
    """Probabilities by point of the rollout policy, what rounding may change of them, and those of the softmax."""
    board, tables, size = moment.board, shipped_tables(), int(moment.board.meta[META_SIZE])
    weights, moves = new_weights(size), new_candidates(size)
    begin(weights, board, tables)
    moves.cell[:] = weights.cell
    moves.last[:] = moment.last, moment.before, len(moment.captured)
    count = consider(moves, board, shipped_numbers(), color)
    if count:
        weigh(moves, count, shipped_model().theta)
    defined = np.zeros(len(weights.cell))
    defined[moves.point[:count]] = moves.probability[:count]
    n_responses = clear_responses(weights)
    if moment.last != PASS:
        n_responses = list_responses(weights, board, tables, moment.last, color, len(moment.captured))
    plain, factor = weights.weight[:, color - BLACK].astype(np.int64), np.full(len(defined), 1 << FACTOR_BITS, np.int64)
    listed = weights.response[:n_responses]
    factor[listed] = weights.factor[listed]
    if board.meta[META_KO_COLOR] == color:
        factor[board.meta[META_KO_POINT]] = 0
    # Half a unit of the weight, half a unit of each factor (whichever is the small one), one for rounding down.
    raised, slack = (plain * factor) >> FACTOR_BITS, 0.5 * factor / (1 << FACTOR_BITS)
    slack[listed] += (plain + raised)[listed] / (1 << FACTOR_BITS) + 1.0
    total = max(1, raised.sum())
    return raised / total, slack / np.maximum(raised, 1) + slack[raised > 0].sum() / total, defined


def test_the_fast_form_is_the_softmax_it_stands_for():
    errors = []
    for size, seed in ((5, 1), (9, 2), (9, 3), (19, 4)):
        for moment in twin.random_game(size, seed, size * size):
            fast, slack, defined = fast_and_defined(moment, 3 - moment.color)
            assert ((fast > 0) <= (defined > 0)).all()
            usual = defined > 1e-3
            error = np.abs(fast[usual] / defined[usual] - 1.0)
            assert (error < 1.1 * slack[usual] + 1e-6).all()
            errors += error.tolist()
    # What is left after rounding: little, for nearly all moves that matter.
    assert len(errors) > 20_000
    assert np.percentile(errors, 50) < 0.001
    assert np.percentile(errors, 99) < 0.01


def play_out(size, seed, limit=None, color=BLACK, tables=None):
    """A game by the policy from the empty board: the board, the weights, and the moves played."""
    board, weights = new_board(size), new_weights(size)
    moves = play_out_by_policy(
        board,
        weights,
        tables or made_up_tables(),
        new_last_good_replies(),
        0.0,
        color,
        PASS,
        0,
        seed_state(seed, size),
        limit or 100_000,
    )
    return board, weights, moves


@pytest.mark.parametrize("size", [2, 3, 5, 9, 19])
def test_games_end_when_neither_side_has_a_move(size):
    for seed in range(10):
        board, weights, moves = play_out(size, seed, tables=shipped_tables())
        assert moves < 100_000
        last = BLACK if moves % 2 else WHITE
        empty = [int(p) for p in board.empty[: board.meta[META_N_EMPTY]]]
        assert not any(is_sensible(board, p, last) for p in empty)
        owner = np.empty(size * size, np.int8)
        area_owner(board, owner)
        assert [owner_at_end(board, p) for p in on_board_points(size).tolist()] == owner.tolist()
        check_from_scratch(weights, new_weights(size), board, shipped_tables())


def test_the_limit_stops_a_game():
    board, _, moves = play_out(9, 1, limit=7)
    assert moves == 7
    assert board.meta[META_N_EMPTY] == 81 - 7


def test_a_seed_repeats_a_game():
    ends = [play_out(13, seed)[0].hash[0] for seed in (6, 6, 7)]
    assert ends[0] == ends[1] != ends[2]


def test_two_passes_end_a_finished_game_at_once():
    board, _ = parse(". X .\nX X X\n. X .")
    arguments = new_last_good_replies(), 0.0, WHITE, PASS, 0, seed_state(0, 0), 100
    assert play_out_by_policy(board, new_weights(3), made_up_tables(), *arguments) == 2


def test_games_go_on_from_any_position_for_either_colour():
    for ply, moment in enumerate(twin.random_game(7, 3, 60)):
        if ply % 6:
            continue
        for color in (BLACK, WHITE):
            board, weights = new_board(7), new_weights(7)
            copy_board(board, moment.board)
            arguments = new_last_good_replies(), 0.0, color, moment.last, len(moment.captured), seed_state(ply, 0), 1000
            assert play_out_by_policy(board, weights, made_up_tables(), *arguments) < 1000
            check_from_scratch(weights, new_weights(7), board, made_up_tables())
