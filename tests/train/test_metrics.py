"""Metrics of networks: what is counted, seen from which side, turned back how; against plain Python."""

import math

import numpy as np
import pytest
import torch

from engine.features.encoder import KEIMA
from engine.features.keima import RECENT
from engine.nets.fakes import HashNetwork
from engine.nets.network import NetArrays, with_pass
from engine.records.replay import game_rules
from engine.records.schema import join
from engine.train.batches import BatchBuilder
from engine.train.metrics import (
    PositionMetrics,
    evaluate_positions,
    game_metrics,
    label_metrics,
    mean_metrics,
    sample_positions,
)
from tests.train.made import made_games, made_labels

NETWORK = HashNetwork("keima-1")


def hashed(planes, globals_):
    """Numbers that look random and depend on everything seen."""
    return NETWORK.evaluate(planes, globals_)


def always(logits, value=None):
    """The same logits and value whatever is seen."""

    def evaluate(planes, _globals):
        count = len(planes)
        policy = None if logits is None else np.tile(np.asarray(logits, np.float32), (count, 1))
        return NetArrays(policy, None if value is None else np.full(count, value, np.float32))

    return evaluate


def mixed_games():
    """Games on two boards, some with passes, some without a winner."""
    games = join([made_games(6, 9), made_games(5, 7, 20, seed=1)])
    games.result[[1, 8]] = 0
    for row, ply in ((0, 4), (2, 29), (9, 0)):
        games.moves[games.offsets[row] + ply] = games.size[row] ** 2
    return games


def all_positions(games):
    """Every position with a move to come: (rows, plies)."""
    lengths = np.diff(games.offsets)
    return np.repeat(np.arange(len(lengths)), lengths), np.concatenate([np.arange(length) for length in lengths])


def test_judging_agrees_with_plain_python_on_any_board_and_number_of_threads():
    games, builder = mixed_games(), BatchBuilder(KEIMA)
    rows, plies = all_positions(games)
    order = np.random.default_rng(3).permutation(len(rows))
    rows, plies = rows[order], plies[order]
    (found,) = evaluate_positions(hashed, KEIMA, games, rows, plies, batch=7)
    for one, other in zip(
        found, evaluate_positions(hashed, KEIMA, games, rows, plies, batch=16, threads=3)[0], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert found.ply.tolist() == plies.tolist()
    for i in range(0, len(rows), 5):
        row, ply = int(rows[i]), int(plies[i])
        one = np.array([row]), np.array([ply])
        rules = game_rules(games, one[0], games.territory[one[0]])
        output = hashed(*builder.encode(games, *one, rules, np.array([0]))[:2])
        move, points = int(games.moves[games.offsets[row] + ply]), int(games.size[row]) ** 2
        logits = output.policy[0].astype(float).tolist()
        if move == points:
            assert math.isnan(found.move_rank[i]) and math.isnan(found.cross_entropy[i])
        else:
            assert found.move_rank[i] == sorted(range(points + 1), key=lambda j: (-logits[j], j)).index(move)
            expected = math.log(sum(map(math.exp, logits))) - logits[move]
            assert found.cross_entropy[i] == pytest.approx(expected, abs=1e-9)
        assert found.value[i] == pytest.approx(float(output.value[0]), abs=1e-12)
        winner = int(games.result[row])
        assert math.isnan(found.result[i]) if winner == 0 else found.result[i] == winner * (-1) ** ply


def test_the_ensemble_of_eight_averages_turned_back_probabilities_and_values():
    games, rng = made_games(8), np.random.default_rng(7)
    logits = rng.normal(0, 2, 82)
    weights = [math.exp(logit) for logit in logits]
    rows, plies = all_positions(games)

    def images(row, column):
        for r, c in ((row, column), (column, row)):
            yield from ((r, c), (8 - r, c), (r, 8 - c), (8 - r, 8 - c))

    plain, ensemble = evaluate_positions(always(logits), KEIMA, games, rows, plies, symmetries=8)
    mean = [sum(weights[9 * r + c] for r, c in images(*divmod(i, 9))) / 8 for i in range(81)] + [weights[81]]
    for found, expected in ((plain, weights), (ensemble, mean)):
        for i in range(0, len(rows), 11):
            chance = expected[games.moves[games.offsets[rows[i]] + plies[i]]] / sum(weights)
            assert found.cross_entropy[i] == pytest.approx(-math.log(chance), abs=1e-6)

    def follower(planes, _globals):
        """Its policy turns with the board; its value does not, and differs from board to board."""
        seen = planes[:, RECENT].reshape(len(planes), -1)
        policy = np.concatenate([seen, seen[:, :1] * 0], axis=1)
        return NetArrays(policy, np.tanh(planes[:, RECENT, 0, 0] - planes[:, RECENT, 0, 1]))

    plain, ensemble = evaluate_positions(follower, KEIMA, games, rows, plies, symmetries=8)
    np.testing.assert_allclose(ensemble.cross_entropy, plain.cross_entropy, atol=1e-9)
    for i in range(0, len(rows), 7):
        if plies[i]:
            row, column = divmod(int(games.moves[games.offsets[rows[i]] + plies[i] - 1]), 9)
            corner = row in (0, 8) and column in (0, 8)
            beside = sorted((row, column)) in ([0, 1], [0, 7], [1, 8], [7, 8])
            assert ensemble.value[i] == pytest.approx((2 * corner - beside) / 8 * math.tanh(1), abs=1e-6)


def test_equal_logits_count_by_their_order_and_not_as_hits():
    games = made_games()
    rows, plies = all_positions(games)
    (found,) = evaluate_positions(always(np.zeros(82)), KEIMA, games, rows, plies)
    assert found.move_rank.tolist() == games.moves.tolist()
    assert mean_metrics(found)["top1"] == np.mean(games.moves == 0)


def test_a_policy_without_a_pass_is_found_on_the_same_positions():
    games = mixed_games()
    rows, plies = all_positions(games)
    nine = games.size[rows] == 9
    logits = np.random.default_rng(5).normal(0, 2, 81)
    whole = with_pass(torch.from_numpy(logits)[None])[0].numpy()
    (bare,) = evaluate_positions(always(whole), KEIMA, games, rows[nine], plies[nine])
    (padded,) = evaluate_positions(always([*logits, -50.0]), KEIMA, games, rows[nine], plies[nine])
    np.testing.assert_array_equal(bare.move_rank, padded.move_rank)
    np.testing.assert_allclose(bare.cross_entropy, padded.cross_entropy, atol=1e-4)
    assert np.isnan(bare.move_rank).sum() == 2
    assert set(mean_metrics(bare)) == {
        name for name in mean_metrics(padded) if name.split("/")[0] in ("top1", "top5", "cross_entropy")
    }


def test_metrics_are_means_over_known_positions_in_all_and_by_phase():
    nan = math.nan
    found = PositionMetrics(
        ply=np.array([0, 49, 11, 200, 32]),
        size=np.array([9, 19, 9, 9, 9]),
        move_rank=np.array([0.0, 4.0, nan, 5.0, 1.0]),
        cross_entropy=np.array([1.0, 2.0, nan, 4.0, 5.0]),
        value=np.array([0.5, -0.5, 0.0, 1.0, 0.3]),
        result=np.array([1.0, 1.0, -1.0, nan, 1.0]),
    )
    metrics = mean_metrics(found)
    assert metrics == pytest.approx({
        "top1": 0.25, "top1/opening": 0.5, "top1/endgame": 0.0,
        "top5": 0.75, "top5/opening": 1.0, "top5/endgame": 0.5,
        "cross_entropy": 3.0, "cross_entropy/opening": 1.5, "cross_entropy/endgame": 4.5,
        "value_mse": (0.25 + 2.25 + 1.0 + 0.49) / 4, "value_mse/opening": 1.25, "value_mse/middle": 1.0,
        "value_mse/endgame": 0.49, "value_accuracy": 0.5, "value_accuracy/opening": 0.5,
        "value_accuracy/middle": 0.0, "value_accuracy/endgame": 1.0,
    })  # fmt: skip


def test_a_value_alone_and_a_policy_alone_have_only_their_own_figures():
    games = made_games()
    sample = sample_positions(games, 200)
    value = game_metrics(always(None, 0.0), KEIMA, games, *sample)
    assert value["value_mse"] == 1.0
    assert {name.split("/")[0] for name in value} == {"positions", "value_mse", "value_accuracy"}
    policy = game_metrics(always(np.zeros(82)), KEIMA, games, *sample)
    assert {name.split("/")[0] for name in policy} == {"positions", "top1", "top5", "cross_entropy"}


def test_the_sample_leaves_out_boards_not_played_and_games_without_moves():
    games = mixed_games()
    games.offsets[6:] -= games.offsets[6] - games.offsets[5]
    rows, plies = sample_positions(games, 500, (8, 19))
    assert set(rows.tolist()) == {0, 1, 2, 3, 4}
    assert (plies >= 0).all() and (plies < 30).all()
    assert set(sample_positions(games, 500)[0].tolist()) == set(range(11)) - {5}
    with pytest.raises(ValueError, match="no game with moves on a board of 13 to 19"):
        sample_positions(games, 5, (13, 19))


def test_labels_are_compared_as_far_as_the_network_has_heads():
    labels = made_labels()
    logits = np.zeros(82)
    logits[40] = 1.0
    both = label_metrics(always(logits, 0.5), KEIMA, labels, 60)
    assert set(both) == {"value_mse/9", "value_ce/9", "teacher_top1/9", "policy_kl/9"}
    where = zip(labels.games.offsets[labels.game], labels.ply, strict=True)
    taken = sum(40 in labels.games.moves[start : start + ply] for start, ply in where)
    assert both["teacher_top1/9"] == pytest.approx(1 - taken / 60)
    side = np.where(labels.ply % 2 == 0, 1, -1)
    assert both["value_mse/9"] == pytest.approx(np.mean((side * labels.value_black - 0.5) ** 2), abs=1e-6)
    won = (1 + side * labels.value_black) / 2
    assert both["value_ce/9"] == pytest.approx(-np.mean(won * np.log(0.75) + (1 - won) * np.log(0.25)), abs=1e-6)
    # Targets of 0.75 and 0.25; where the centre is free it has the larger one, and one move's logit is 1.
    entropy, total = 0.75 * np.log(0.75) + 0.25 * np.log(0.25), np.log(np.e + 81)
    assert both["policy_kl/9"] == pytest.approx(entropy + total - 0.75 * (1 - taken / 60))
    assert label_metrics(always(logits), KEIMA, labels, 60, (13, 19)) == {}


def test_labels_in_parts_of_which_the_last_is_shorter_are_compared_alike(monkeypatch):
    """The last part was shown under as many symmetries as the others, and kernels wrote beyond its boards."""
    whole = label_metrics(always(np.arange(82.0), 0.5), KEIMA, made_labels(), 60)
    monkeypatch.setattr("engine.train.metrics.CHUNK", 25)
    assert label_metrics(always(np.arange(82.0), 0.5), KEIMA, made_labels(), 60) == pytest.approx(whole)


def test_labels_without_a_lead_say_nothing_of_scores_and_the_others_count():
    labels = made_labels()
    labels.lead_black[:30] = np.nan
    side = np.where(labels.ply % 2 == 0, 1, -1)

    def evaluate(planes, _globals):
        return NetArrays(None, None, np.zeros(len(planes), np.float32), None)

    found = label_metrics(evaluate, KEIMA, labels, 60)
    assert found == {"score_mae/9": pytest.approx(np.abs(side * labels.lead_black)[30:].mean())}
