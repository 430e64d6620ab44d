"""Losses of moves: drift, noise, kinds, phases, accuracy, on hand-made analyses."""

import math
from dataclasses import replace

import numpy as np
import pytest

from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.sgf import read_sgf
from engine.insight.review.games import game_to_review
from engine.insight.review.losses import (
    KINDS,
    PERCENT,
    POINTS,
    SURE,
    THRESHOLDS,
    USUAL_NOISE,
    USUAL_WEIGHT,
    drift_of,
    kind_of,
    lessons_of,
    most_costly,
    move_losses,
    noise_scale,
    openness_of,
    performance_of,
    phase_of,
    summary_of,
    unit_of,
)
from engine.insight.review.review import review_of
from engine.insight.review.turns import MOST_CANDIDATES, Decision, decision_of, from_line, to_line
from tests.insight.reviews import MEANS, SIZE, candidate, game, point, turn

NOISE_AT_50 = 10.0 * math.sqrt(1 / 50 + 1 / 100)
"""Of a first choice with 50 visits and a position of 100, the deviation of the result being 10 points, at scale 1"""


def one_move(before, after, vertex="E5"):
    return move_losses([before, after], game(vertex), SIZE)[0]


def test_a_loss_is_what_the_first_choice_was_given_less_what_came():
    """The position's own value, which the search drifts away from, plays no part."""
    for own in (-20.0, 3.0, 20.0):
        move = one_move(turn(0, own, candidate("C3", 6.0), candidate("E5", 5.0)), turn(1, 1.0, candidate("D4", 1.0)))
        assert (move.loss, move.rank, move.is_first_choice) == (5.0, 2, False)
        assert move.winrate_loss == 5.0


def test_white_loses_what_black_gains():
    turns = [
        turn(0, 0.0, candidate("E5", 0.0)),
        turn(1, 0.0, candidate("C3", -2.0)),
        turn(2, 6.0, candidate("D4", 6.0)),
    ]
    moves = move_losses(turns, game("E5", "G7"), SIZE)
    assert moves[1].color == WHITE
    assert moves[1].loss == 8.0 and moves[1].rank is None


def test_a_move_behind_the_candidates_has_no_rank():
    """The move that was played is kept wherever the search has it; how many stood before it is not known."""
    vertices = ["C3", *(f"{letter}{row}" for row in (7, 8) for letter in "ABCDEFGHJ")][:MOST_CANDIDATES]
    candidates = [candidate(vertex, 0.0) for vertex in vertices]
    last, behind = (
        one_move(turn(0, 0.0, *candidates[: MOST_CANDIDATES - missing], candidate("E5", -5.0)), turn(1, -5.0))
        for missing in (1, 0)
    )
    assert (last.rank, behind.rank) == (MOST_CANDIDATES, None)
    assert last.loss == behind.loss == 5.0


def test_the_first_choice_loses_nothing_and_nothing_is_lost_by_a_gain():
    drifting = one_move(turn(0, 5.0, candidate("E5", 5.0)), turn(1, -4.0, candidate("C3", -4.0)))
    assert (drifting.loss, KINDS[drifting.kind]) == (0.0, "excellent")
    better = one_move(turn(0, 5.0, candidate("C3", 5.0)), turn(1, 9.0, candidate("C3", 9.0)))
    assert (better.loss, KINDS[better.kind]) == (0.0, "excellent")


def test_no_move_is_blamed_within_the_noise_of_few_visits():
    figures = turn(0, 0.0, candidate("C3", 3.0, visits=5)), turn(1, -2.0, candidate("D4", 0.0), visits=6)
    move = one_move(*figures)
    assert move.noise == pytest.approx(SURE * USUAL_NOISE * 10 * math.sqrt(1 / 5 + 1 / 6), abs=1e-3)
    far = turn(1, -7.0, candidate("D4", 0.0), visits=6)
    assert (one_move(figures[0], far).counted, KINDS[one_move(figures[0], far).kind]) == (10.0, "blunder")
    noisy = one_move(turn(0, 0.0, candidate("C3", 1.0, visits=5)), turn(1, -0.5, candidate("D4", 0.0), visits=6))
    assert noisy.loss == 1.5 < noisy.noise
    assert (noisy.counted, KINDS[noisy.kind]) == (0.0, "good")


def test_the_noise_is_that_of_the_games_own_first_choices():
    turns = [turn(n, 1.0 * n, candidate("E5", 1.0 * n, visits=50)) for n in range(9)]
    scale = noise_scale(turns, game(*["E5"] * 8), SIZE)
    own = 1.0 / NOISE_AT_50 / 0.6745
    assert scale == pytest.approx((8 * own + USUAL_WEIGHT * USUAL_NOISE) / (8 + USUAL_WEIGHT))
    quiet = [turn(n, 1.0, candidate("E5", 1.0, visits=50)) for n in range(9)]
    assert noise_scale(quiet, game(*["E5"] * 8), SIZE) < USUAL_NOISE
    assert noise_scale(turns, game(*["C3"] * 8), SIZE) == USUAL_NOISE, "other moves show no noise"


def test_moves_out_of_turn_are_not_judged():
    """Black's handicap stones, played as moves: nothing says what the first is worth with White to move."""
    turns = [
        turn(0, 0, candidate("C3", 0)),
        turn(1, 20, candidate("C3", 20), to_move=BLACK),
        turn(2, 30, to_move=WHITE),
    ]
    moves = move_losses(turns, [(BLACK, point("G7")), (BLACK, point("C7"))], SIZE)
    assert moves[0].loss is None and moves[0].kind is None and moves[0].counted == 0
    assert moves[1].loss == 0.0
    moves = move_losses(turns, [(BLACK, point("G7")), (BLACK, point("C7"))], SIZE, handicap_moves=2)
    assert [(move.loss, move.kind, move.counted) for move in moves] == [(None, None, 0.0)] * 2


def test_without_leads_losses_are_of_the_win_rate():
    turns = [turn(0, (0.6,), candidate("C3", (0.62,))), turn(1, (0.4,), candidate("D4", (0.4,)))]
    assert unit_of(turns) == PERCENT and unit_of([turn(0, 1.0)]) == POINTS
    move = move_losses(turns, game("E5"), SIZE)[0]
    assert move.loss == pytest.approx(22.0) and KINDS[move.kind] == "blunder"


def test_a_pass_is_a_move_like_others():
    turns = [turn(0, 5.0, candidate("pass", 5.0)), turn(1, 5.0, candidate("D4", 5.0)), turn(2, 9.0)]
    moves = move_losses(turns, [(BLACK, PASS), (WHITE, PASS)], SIZE)
    assert moves[0].is_first_choice and moves[1].loss == 4.0


@pytest.mark.parametrize(
    ("loss", "kind"),
    [(0.0, "excellent"), (0.2, "great"), (0.6, "good"), (1.2, "inaccuracy"), (4.0, "mistake"), (10.0, "blunder")],
)
def test_kinds_begin_at_their_thresholds(loss, kind):
    assert KINDS[kind_of(loss, -1.0, (0.2, 0.6, 1.2, 4.0, 10.0))] == kind


def test_phases_end_where_katrains_do():
    assert [phase_of(number, 19) for number in (1, 50, 51, 144, 145, 400)] == [0, 0, 1, 1, 2, 2]


def test_accuracy_follows_from_the_mean_loss():
    turns = [
        turn(0, 0.0, candidate("C3", 0.0)),
        turn(1, -4.0, candidate("G7", -4.0)),
        turn(2, -4.0, candidate("D4", -4.0)),
        turn(3, -4.0),
    ]
    moves = move_losses(turns, game("E5", "G7", "D4"), SIZE)
    summary = summary_of(moves, SIZE, POINTS)
    black = summary.whole[BLACK]
    assert black.accuracy == pytest.approx(100 * 0.75**2.0, abs=0.05)
    assert (black.moves, black.mean_loss, black.first_choices, black.near_best) == (2, 2.0, 0.5, 0.5)
    assert black.kinds == (1, 0, 0, 0, 1, 0)
    assert summary.whole[WHITE].accuracy == 100.0
    assert summary.phases[WHITE][1].accuracy is None, "White made no move in the middle game"
    assert [move.number for move in summary.costly] == [1]


def played_out(losses, noise, seed):
    """Turns of a game in which moves lose so many points, their values with noise, the first choices' with none."""
    rng, lead, turns = np.random.default_rng(seed), 0.0, []
    for n in range(len(losses) + 1):
        seen = lead + noise * rng.standard_normal()
        turns.append(turn(n, seen, candidate("C3", seen)))
        if n < len(losses):
            lead -= losses[n] * (1 if n % 2 == 0 else -1)
    return turns


def test_losses_add_up_to_the_course_of_the_lead():
    """Black's sum of losses less White's is what the lead moved by, whatever the noise."""
    rng = np.random.default_rng(5)
    for seed in range(20):
        turns = played_out(rng.exponential(1.0, 60), 2.0, seed)
        vertices = rng.choice(["C3", "E5"], 60)
        whole = summary_of(move_losses(turns, game(*vertices), SIZE), SIZE, POINTS).whole
        moved = turns[0].lead_black - turns[-1].lead_black
        sums = {color: whole[color].mean_loss * whole[color].moves for color in (BLACK, WHITE)}
        assert sums[BLACK] - sums[WHITE] == pytest.approx(moved, abs=0.01 * 60)


def test_noise_makes_no_player_weaker_and_hides_no_small_losses():
    """Each of White's moves loses 0.8 points, within the noise of any one of them; Black's lose nothing."""
    noise = 1.0
    turns = played_out([0.0, 0.8] * 100, noise, 11)
    moves = move_losses(turns, game(*["E5"] * 200), SIZE)
    whole = summary_of(moves, SIZE, POINTS).whole
    for color, mean in ((BLACK, 0.0), (WHITE, 0.8)):
        score = whole[color]
        assert score.mean_loss == pytest.approx(mean, abs=3 * noise * math.sqrt(2 / 100))
        low, high = score.accuracies
        assert low <= score.accuracy <= high
    assert whole[WHITE].mean_loss_error == pytest.approx(1.96 * moves[0].noise / SURE / math.sqrt(100), abs=0.01)


def test_the_drift_of_first_choices_is_no_gain():
    """Each search values its own position a point lower than what comes of the first choice."""
    turns = [turn(n, 0.0 if n % 2 == 0 else 1.0, candidate("C3", 0.5)) for n in range(101)]
    moves = move_losses(turns, game(*["C3"] * 100), SIZE)
    assert {move.course for move in moves} == {-1.0}
    assert drift_of(moves) == pytest.approx(-100 / (100 + USUAL_WEIGHT))
    assert summary_of(moves, SIZE, POINTS).whole[BLACK].mean_loss == pytest.approx(0.0, abs=0.06)


def test_four_percent_of_the_win_rate_count_like_a_point():
    turns = [
        turn(0, (0.6,), candidate("C3", (0.6,), prior=0.0), candidate("E5", (0.56,), prior=0.9)),
        turn(1, (0.585,), candidate("D4", (0.585,))),
    ]
    (move,) = move_losses(turns, game("E5"), SIZE)
    assert move.difficulty == 1.0 and move.loss == 1.5
    sure = replace(move, noise=0.0)
    assert performance_of([sure], PERCENT, 0.0).near_best == 1.0
    assert performance_of([sure], PERCENT, 0.0).accuracy == round(100 * 0.75 ** (1.5 / 4), 1)


def test_the_most_costly_moves_come_worst_first_and_none_that_was_as_good():
    losses = (5.0, 0.1, 9.0, 7.0, 6.0)
    turns = []
    for n, loss in enumerate(losses):
        sign = 1.0 if n % 2 == 0 else -1.0
        turns.append(turn(n, 0.0, candidate("C3", sign * loss)))
    turns.append(turn(5, 0.0))
    moves = move_losses(turns, game("E5", "E6", "E7", "E4", "E3"), SIZE)
    assert [move.number for move in most_costly(moves)] == [3, 4, 5]
    assert most_costly(moves[1:2]) == []
    assert performance_of([], POINTS, 0.0).accuracy is None


def test_thresholds_that_cannot_be_used_are_named(capsys):
    turns = [turn(0, (0.6,), candidate("C3", (0.6,))), turn(1, (0.4,), candidate("D4", (0.4,)))]
    made = game_to_review(read_sgf(b"(;SZ[9];B[ee])"))
    review_of("game", made, turns, MEANS)
    assert "--thresholds" not in capsys.readouterr().err
    review = review_of("game", made, turns, MEANS, (1, 2, 3, 4, 5))
    assert review.thresholds == THRESHOLDS[PERCENT]
    assert "--thresholds: ignored, since they are points and this network has no score" in capsys.readouterr().err


def test_a_turn_comes_back_from_its_line():
    one = turn(3, -1.5, candidate("C3", -1.0, line=("D4", "pass")))
    again = from_line(to_line(one))
    assert again.moves == one.moves and again.lead_black == one.lead_black
    assert (again.policy == one.policy).all() and (again.ownership_black == one.ownership_black).all()
    for broken in (to_line(one)[:-5], "[]", "{}", "null", to_line(one).replace('"number"', '"nimber"')):
        with pytest.raises(ValueError, match="not a line"):
            from_line(broken)


def test_the_kind_follows_from_the_numbers_that_are_told():
    """A page's script tells kinds anew from rounded losses."""
    figures = turn(0, 0.0, candidate("C3", 0.199, visits=10**6)), turn(1, 0.0, candidate("D4", 0.0), visits=10**6)
    move = one_move(*figures)
    assert (move.loss, KINDS[move.kind]) == (0.2, "great")


@pytest.mark.parametrize(
    ("best", "played", "openness"),
    [(0.5, 0.4, 1.0), (0.7, 0.3, 1.0), (0.9, 0.95, 0.36), (0.95, 0.9, 0.36), (0.1, 0.02, 0.36), (0.99, 0.999, 0.0396)],
)
def test_points_count_less_the_more_a_game_is_decided(best, played, openness):
    assert openness_of(best, played) == pytest.approx(openness)
    assert openness_of(1 - best, 1 - played) == pytest.approx(openness), "for both sides alike"


def test_four_points_in_a_won_game_are_no_lesson():
    """The largest loss at 99% comes after a smaller one in an open game; without the weight it came first."""
    won = turn(1, -30.0, candidate("G7", -30.0)), turn(2, -24.0, candidate("D4", -24.0))
    turns = [turn(0, 0.0, candidate("C3", 0.0)), won[0], won[1], turn(3, 0.0)]
    turns[1] = replace(turns[1], winrate_black=0.01, moves=[turns[1].moves[0]._replace(winrate_black=0.01)])
    turns[2] = replace(turns[2], winrate_black=0.015)
    open_game = [turn(0, 0.0, candidate("C3", 0.0)), turn(1, -4.0, candidate("G7", -4.0))]
    decided = move_losses(turns[1:3], [(WHITE, point("H8"))], SIZE)[0]
    lesson = move_losses(open_game, game("E5"), SIZE)[0]
    assert decided.counted == 6.0 > lesson.counted == 4.0
    assert decided.consequence == pytest.approx(6 * 0.059, abs=0.01) and lesson.consequence == pytest.approx(
        4, abs=0.01
    )
    assert lessons_of([decided, lesson]) == [lesson, decided] and most_costly([decided, lesson])[0] == decided
    rates = [turn(0, (0.99,), candidate("C3", (0.99,))), turn(1, (0.9,), candidate("D4", (0.9,)))]
    assert move_losses(rates, game("E5"), SIZE)[0].openness == 1.0, "a loss of win rate is weighted by itself"


def test_a_game_is_decided_where_the_win_rate_stays():
    def of(*rates):
        return decision_of([turn(n, (rate,)) for n, rate in enumerate(rates)])

    assert of(0.5, 0.6, 0.4, 0.6, 0.95, 0.8, 0.95, 0.97) == Decision(BLACK, 3, 6)
    assert of(0.5, 0.4, 0.2) == Decision(WHITE, 1, None)
    assert of(0.95, 0.99) == Decision(BLACK, 0, 0)
    assert of(0.9, 0.5) is None
