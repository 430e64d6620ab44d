"""Pattern policies from games to figures: counting, learning, judging."""

import math
from collections import Counter

import numpy as np
import pytest

from bench.reliability.rules_twin import after, chain_and_liberties
from engine.go.board import new_board, play
from engine.go.geometry import BLACK, index_of, point_of
from engine.records.games import read_games
from engine.rollout.model import load_patterns
from engine.rollout.patterns import all_states
from engine.rollout.softmax import consider, new_candidates
from engine.rollout.vocabulary import unfold
from engine.train.pattern_learning import (
    FIRST_SQUARE,
    RATE,
    STAGE_MOVES,
    STAGES,
    Counts,
    choose_vocabulary,
    count_games,
    evaluate_patterns,
    learn,
)
from tests.train.pattern_games import PASSED, SIZE, games_of_all_kinds, joined, staircase
from weights import find_patterns


@pytest.fixture(scope="module")
def games():
    """Fights in a corner, fights all over the board, and one that goes on after a pass."""
    return games_of_all_kinds()


@pytest.fixture(scope="module")
def counts(games):
    """The games counted by the code under test."""
    result = Counts()
    assert len(list(count_games(joined(games), result))) == len(games)
    return result


@pytest.fixture(scope="module", params=["rollout", "tree"])
def numbers(request, counts):
    """Numbers of what is frequent in these games, and how many weights there are."""
    words = choose_vocabulary(counts, request.param == "tree")
    assert words.is_tree == (request.param == "tree")
    return unfold(words), words.starts[-1]


AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
FURTHER = [*AROUND, (-2, 0), (0, -2), (0, 2), (2, 0)]


def slow_code(liberties, stones, cell, color, offsets):
    """Pattern around a cell, digit by digit in base 8, the colour's own stones first."""
    code = 0
    for place, (down, right) in enumerate(offsets):
        row, column = cell[0] + down, cell[1] + right
        if not (0 <= row < SIZE and 0 <= column < SIZE):
            digit = 4
        elif (row, column) not in stones:
            digit = 0
        else:
            digit = min(3, liberties[row, column]) + (0 if stones[row, column] == color else 4)
        code += digit * 8**place
    return code


def slow_counts(games):
    """3x3 codes seen, nakade, responses and diamonds played, as Counters; from the stones alone."""
    seen, nakade, responses, diamonds = Counter(), Counter(), Counter(), Counter()
    for game in games:
        stones, last, gone = {}, None, set()
        for ply, move in enumerate(game):
            if move == PASSED:
                break
            color, cell = BLACK + ply % 2, divmod(move, SIZE)
            liberties = {stone: len(chain_and_liberties(stones, SIZE, stone)[1]) for stone in stones}
            for row in range(SIZE):
                for column in range(SIZE):
                    if (row, column) not in stones:
                        seen[slow_code(liberties, stones, (row, column), color, AROUND)] += 1
            diamonds[slow_code(liberties, stones, cell, color, FURTHER)] += 1
            step = last and (cell[0] - last[0], cell[1] - last[1])
            if step in FURTHER:
                context = slow_code(liberties, stones, last, color, FURTHER) + 8**12 * min(3, liberties[last])
                responses[16 * context + FURTHER.index(step)] += 1
            if cell in gone and len(gone) <= 9:
                shape = [(cell[0] + down, cell[1] + right) in gone for down, right in sorted([*FURTHER, (0, 0)])]
                nakade[sum(2**bit for bit, taken in enumerate(shape) if taken)] += 1
            result, _, _ = after(stones, SIZE, cell, color)
            gone, stones, last = set(stones) - set(result), result, cell
    return seen, nakade, responses, diamonds


def test_counting_equals_a_slow_count(games, counts):
    seen, nakade, responses, diamonds = slow_counts(games)
    assert {code: int(counts.seen[code]) for code in np.flatnonzero(counts.seen).tolist()} == seen
    assert {shape: int(counts.nakade[shape]) for shape in np.flatnonzero(counts.nakade).tolist()} == nakade
    assert Counter(np.concatenate(counts.responses).tolist()) == responses
    assert Counter(np.concatenate(counts.diamonds).tolist()) == diamonds
    # The games are worth counting only if all of this occurs in them.
    assert min(len(nakade), len(responses), len(diamonds)) >= 3


def test_a_pattern_is_counted_beyond_two_billion_times(games):
    """The empty board's own in 131,000 games of 19x19; the published size has 160,000."""
    counts = Counts()
    counts.seen[0] = 2**31 - 2
    list(count_games(joined(games), counts))
    assert counts.seen[0] > 2**31


def test_images_of_a_pattern_count_together_and_rare_ones_are_left_out():
    """The limits are 100 for 3x3 codes, where it could be played, 16 for diamonds and responses, 2 for nakade."""
    counts = Counts()
    above, left, corner = 3 * 8**1, 3 * 8**3, 3 * 8**0
    eye = sum(3 * 8**place for place in range(8))
    counts.seen[[above, left, corner, eye]] = 60, 40, 99, 1000
    counts.nakade[[1 << 6 | 1 << 5, 1 << 6 | 1 << 7, 1 << 6 | 1]] = 1, 1, 1
    counts.diamonds.append(np.repeat([above, left, corner], [15, 1, 15]))
    counts.responses.append(np.repeat([16 * (above + 8**12), 16 * (above + 2 * 8**12)], [16, 15]))
    words = choose_vocabulary(counts, is_tree=True)
    assert words.fine.tolist() == words.coarse.tolist() == [above]
    assert words.diamonds.tolist() == [above]
    assert len(words.responses) == len(words.nakade) == 1
    assert choose_vocabulary(counts, is_tree=False).diamonds.tolist() == []


def features_after(game, numbers, size):
    """Which features the sensible moves have after a game, float64[moves, weights], and the moves; from nothing."""
    board, moves = new_board(SIZE), new_candidates(SIZE)
    for ply, move in enumerate(game):
        point = int(point_of(move, SIZE))
        moves.last[:] = point, moves.last[0], play(board, point, BLACK + ply % 2)
    all_states(board, moves.cell)
    count = consider(moves, board, numbers, BLACK + len(game) % 2)
    has = np.zeros((count, size))
    for i in range(count):
        has[i, moves.feature[i, : moves.n_features[i]]] = 1
    return has, [int(index_of(point, SIZE)) for point in moves.point[:count]]


def softmax(scores):
    """Probabilities of scores."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def learnt(game, numbers, size, square, rate):
    """Weights and squares after learning from one game; without its last move they are what they were before it."""
    theta, squares = np.random.default_rng(5).normal(0.0, 0.3, size).astype(np.float32), np.full(size, square)
    list(learn(joined([game]), np.zeros(1, np.int64), numbers, theta, squares, np.full(1, rate)))
    return theta, squares


@pytest.mark.parametrize("length", [1, 2, 75])
def test_steps_go_up_the_gradient_of_the_log_likelihood(games, numbers, length):
    """Squares so large that this move cannot change them leave plain steps of rate / 1000 along the gradient."""
    game = games[0][:length]
    (before, _), (behind, _) = (learnt(part, *numbers, square=1e6, rate=10.0) for part in (game[:-1], game))
    has, moves = features_after(game[:-1], *numbers)
    played, slopes = moves.index(game[-1]), np.zeros(numbers[1])
    for i in np.flatnonzero(has.any(axis=0)):
        low, high = (math.log(softmax(has @ before + nudge * has[:, i])[played]) for nudge in (-1e-5, 1e-5))
        slopes[i] = (high - low) / 2e-5
    # A step is 32-bit, and leaves out moves less probable than 1e-4.
    np.testing.assert_allclose((behind - before) / 1e-2, slopes, atol=2e-3)
    assert np.abs(slopes).max() > 0.1


def test_each_step_is_as_long_as_adagrad_says(games, numbers):
    """Every move of the position adds its squared gradient to its features' squares, then steps."""
    game = games[1][:60]
    (theta, squares), (behind, more) = (learnt(part, *numbers, FIRST_SQUARE, RATE) for part in (game[:-1], game))
    has, moves = features_after(game[:-1], *numbers)
    theta, chances = theta.astype(float), softmax(has @ theta)
    for row, move, chance in zip(has, moves, chances, strict=True):
        gradient = (move == game[-1]) - chance
        if abs(gradient) > 1e-4:
            squares += row * gradient**2
            theta += row * RATE * gradient / np.sqrt(squares)
    np.testing.assert_allclose(more, squares, rtol=1e-5)
    np.testing.assert_allclose(behind, theta, atol=1e-5)


def test_learning_raises_the_log_likelihood_over_even_chances(games, numbers):
    shard, theta, squares = joined(games), np.zeros(numbers[1], np.float32), np.full(numbers[1], FIRST_SQUARE)
    even = evaluate_patterns(shard, numbers[0], theta).as_dict()
    list(learn(shard, np.arange(len(games)), numbers[0], theta, squares, np.full(len(games), RATE)))
    once = evaluate_patterns(shard, numbers[0], theta).as_dict()
    assert even["log_likelihood"] < -5 < even["log_likelihood"] + 1 < once["log_likelihood"]
    assert once["top1"] > even["top1"]


@pytest.mark.parametrize("is_tree", [False, True])
def test_a_game_learnt_by_heart_is_foreseen(is_tree):
    """All but the first move and those that begin a row follow from the move before."""
    shard, counts = joined([staircase(140)] * 20), Counts()
    list(count_games(shard, counts))
    words = choose_vocabulary(counts, is_tree)
    theta, squares = np.zeros(words.starts[-1], np.float32), np.full(words.starts[-1], FIRST_SQUARE)
    numbers = unfold(words)
    list(learn(shard, np.arange(20), numbers, theta, squares, np.full(20, RATE)))
    assert evaluate_patterns(joined([staircase(140)]), numbers, theta).as_dict()["top1"] > 0.9


def test_figures_equal_those_told_by_hand(games, numbers):
    """The last game is scored up to its pass."""
    theta = np.random.default_rng(6).normal(0.0, 0.5, numbers[1]).astype(np.float32)
    expected = np.zeros((4, STAGES))
    for game in (games[3], games[-1][:40]):
        for ply, move in enumerate(game):
            has, moves = features_after(game[:ply], *numbers)
            chances, played = softmax(has @ theta), moves.index(move)
            # Moves that look alike are equally probable, and the first of them is named.
            best = int(np.flatnonzero(chances > chances.max() - 1e-9)[0])
            expected[:, ply // STAGE_MOVES] += 1, best == played, math.log(chances[played]), 1
    figures = evaluate_patterns(joined([games[3], games[-1]]), numbers[0], theta)
    np.testing.assert_allclose(figures, expected, rtol=1e-6)
    told = figures.as_dict()
    assert told["positions"] == 170 and told["considered"] == 1
    assert told["top1"] == pytest.approx(expected[1].sum() / 170) and 0 <= told["top1"] <= 1
    assert told["log_likelihood"] == pytest.approx(expected[2].sum() / 170)
    stages = [told[f"top1_moves_{first}_to_{first + 49}"] for first in (1, 51, 101)]
    assert np.dot(stages, figures.positions[:3]) == pytest.approx(figures.hits.sum())


def test_a_move_that_is_not_considered_counts_as_missed(numbers):
    """Black fills an eye in the corner: the policy never does, so there is no likelihood to speak of."""
    game = [1, 180, 19, 182, 20, 184, 0]
    figures = evaluate_patterns(joined([game]), numbers[0], np.zeros(numbers[1], np.float32))
    assert figures.positions.sum() == 7 and figures.considered.sum() == 6
    assert figures.as_dict()["considered"] == pytest.approx(6 / 7)
    assert math.isfinite(figures.as_dict()["log_likelihood"])


@pytest.mark.parametrize("positions", [20, 200, 10**6])
def test_some_positions_are_spread_over_all_moves_of_the_games(games, numbers, positions):
    """As many as there are games must not mean the first move of each: that says nothing about the others."""
    shard = joined([game for game in games if PASSED not in game])
    total = len(shard.moves)
    looked_at = evaluate_patterns(shard, numbers[0], np.zeros(numbers[1], np.float32), positions).positions
    assert min(positions, total) <= looked_at.sum() <= 2 * positions
    np.testing.assert_allclose(looked_at[:2] / looked_at.sum(), 8 * STAGE_MOVES / total, atol=0.15)


@pytest.mark.shared
def test_the_shipped_policies_foresee_moves_of_strong_players(shared_path):
    """AlphaGo's rollout policy foresaw 24.2%. Games that were not learnt from, every fiftieth."""
    found = read_games(shared_path / "data" / "validation.npz.xz")
    shard = joined([found.moves[found.offsets[g] : found.offsets[g + 1]] for g in range(0, len(found.size), 50)])
    top1 = {}
    for kind in ("rollout", "tree"):
        model = load_patterns(find_patterns(kind))
        assert model.kind == kind
        top1[kind] = evaluate_patterns(shard, unfold(model.words), model.theta).as_dict()["top1"]
    assert top1["rollout"] > 0.30
    assert top1["tree"] > top1["rollout"] + 0.03
