"""What is minimised, against the formulas written out."""

import math

import numpy as np
import pytest
import torch

from engine.config import TrainOptions
from engine.nets.network import RawHeads
from engine.train.losses import combined_loss


def targets(**values):
    """Targets of two positions on 2x2."""
    held = {
        "policy": [[1.0, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0]],
        "value": [1.0, -1.0],
        "value_known": [1.0, 0.25],
        "score": [10.0, -3.0],
        "ownership": [[[1.0, 1], [-1, 0]], [[0, 0], [0, 0]]],
        "score_ownership_weight": [1.0, 0.0],
        "reply": [[0.0, 0, 0, 0, 0], [0.25, 0, 0, 0, 0.75]],
    } | values
    return {name: torch.tensor(value) for name, value in held.items()}


def test_policy_is_the_cross_entropy_with_the_target():
    logits = torch.tensor([[1.0, 0, 0, 0, 0], [0, 2.0, 0, 0, 0]])
    _, parts = combined_loss(RawHeads(policy=logits), targets(), TrainOptions())
    first = math.log(math.e + 4) - 1
    second = math.log(math.e**2 + 4) - 1
    assert parts["policy"].item() == pytest.approx((first + second) / 2, rel=1e-5)


def test_passes_count_nothing_for_a_network_without_that_output():
    passing = targets(policy=[[0.0, 0, 0, 0, 1], [1.0, 0, 0, 0, 0]])
    _, parts = combined_loss(RawHeads(policy=torch.zeros(2, 4)), passing, TrainOptions())
    assert parts["policy"].item() == pytest.approx(math.log(4) / 2)


@pytest.mark.parametrize("kind", ["mse", "cross-entropy"])
def test_value_losses_count_by_weight(kind):
    logit = np.array([0.3, 0.8])
    v, z = np.tanh(logit), np.array([1.0, -1.0])
    each = (v - z) ** 2 if kind == "mse" else -np.log(np.where(z > 0, (1 + v) / 2, (1 - v) / 2))
    _, parts = combined_loss(
        RawHeads(value=torch.tensor(logit)), targets(), TrainOptions(value_loss=kind)
    )  # fmt: skip
    assert parts["value"].item() == pytest.approx((each[0] + 0.25 * each[1]) / 2, rel=1e-5)


def test_areas_nobody_knows_count_nothing():
    heads = RawHeads(score=torch.tensor([10.0, 50.0]), ownership=torch.full((2, 2, 2), 0.5))
    _, parts = combined_loss(heads, targets(), TrainOptions())
    assert parts["score"].item() == 0
    p = (1 + math.tanh(0.5)) / 2
    known = (-2 * math.log(p) - math.log(1 - p) - 0.5 * (math.log(p) + math.log(1 - p))) / 4
    assert parts["ownership"].item() == pytest.approx(known / 2, rel=1e-5)


def test_the_reply_is_learnt_where_it_is_known():
    logits = torch.tensor([[9.0, 0, 0, 0, 0], [2.0, 0, 0, 0, 0]])
    _, parts = combined_loss(RawHeads(reply=logits), targets(), TrainOptions())
    assert parts["reply"].item() == pytest.approx((math.log(math.e**2 + 4) - 0.25 * 2) / 2, rel=1e-5)


def test_the_total_is_the_weighted_sum_of_the_parts():
    options = TrainOptions(policy_weight=2, value_weight=3, score_weight=5, ownership_weight=7, reply_weight=11)
    heads = RawHeads(torch.randn(2, 5), torch.randn(2), torch.randn(2), torch.randn(2, 2, 2), torch.randn(2, 5))
    total, parts = combined_loss(heads, targets(), options)
    expected = sum(getattr(options, f"{name}_weight") * part for name, part in parts.items())
    assert len(parts) == 5
    assert total.item() == pytest.approx(expected.item(), rel=1e-6)
