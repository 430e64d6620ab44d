"""Muon against a plain twin: singular values by decomposition, one matrix at a time, in float64."""

import numpy as np
import pytest
import torch
from torch import nn

from engine.train.muon import COEFFICIENTS, MOMENTUM, ROUNDS, Muon, is_inner, orthogonal


def twin_of_orthogonal(matrix: np.ndarray) -> np.ndarray:
    """The polynomial, round by round, of the singular values alone."""
    u, values, v = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
    values = values / np.sqrt((values**2).sum())
    for _ in range(ROUNDS):
        values = sum(factor * values**power for factor, power in zip(COEFFICIENTS, (1, 3, 5), strict=True))
    return u @ np.diag(values) @ v


@pytest.mark.parametrize(("rows", "columns"), [(20, 50), (50, 20), (32, 32)])
def test_matrices_become_nearly_orthogonal_as_by_decomposition(rows, columns):
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(3, rows, columns)).astype(np.float32) * np.float32([1, 1e-3, 1e4])[:, None, None]
    found = orthogonal(torch.from_numpy(matrices)).numpy()
    for one, matrix in zip(found, matrices, strict=True):
        np.testing.assert_allclose(one, twin_of_orthogonal(matrix), atol=1e-3)
    values = np.linalg.svd(orthogonal(torch.from_numpy(matrices[:, :, : columns // 2])).numpy(), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3
    assert not orthogonal(torch.zeros(1, rows, columns)).any()


def test_steps_are_those_of_a_twin_and_of_adamw():
    torch.manual_seed(1)
    filters, bias = nn.Parameter(torch.randn(16, 4, 3, 3)), nn.Parameter(torch.randn(16))
    output, unused = nn.Parameter(torch.randn(2, 64)), nn.Parameter(torch.randn(20, 20))
    assert [is_inner(one) for one in (filters, bias, output, unused)] == [True, False, False, True]
    before = unused.detach().clone()
    twin, mean = filters.detach().double().numpy(), np.zeros((16, 36))
    others = [nn.Parameter(one.detach().clone()) for one in (output, bias)]
    groups = [{"params": [filters, output, unused], "weight_decay": 0.1}, {"params": [bias], "weight_decay": 0.0}]
    muon = Muon(groups, 0.01, None)
    adamw = torch.optim.AdamW(
        [{"params": others[:1], "weight_decay": 0.1}, {"params": others[1:], "weight_decay": 0.0}],
        lr=0.01, betas=(0.9, 0.99),
    )  # fmt: skip
    for _ in range(4):
        for one in (filters, output, bias):
            one.grad = torch.randn_like(one)
        gradient = filters.grad.double().numpy().reshape(16, 36)
        for one, other in zip((output, bias), others, strict=True):
            other.grad = one.grad.clone()
        muon.step()
        adamw.step()
        mean = MOMENTUM * mean + (1 - MOMENTUM) * gradient
        step = twin_of_orthogonal((1 - MOMENTUM) * gradient + MOMENTUM * mean)
        twin = twin * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 6 * step.reshape(twin.shape)
    np.testing.assert_allclose(filters.detach().numpy(), twin, atol=1e-4)
    for one, other in zip((output, bias), others, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(unused, before), "a parameter without a gradient stays"
