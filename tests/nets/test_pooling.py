"""Pooling against numpy, and what a trace makes of the board's size."""

import numpy as np
import pytest
import torch

from engine.nets.model import pooled, pooled_by_size


@pytest.mark.parametrize("size", [2, 9, 14, 19])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pooling_is_mean_scaled_mean_and_a_third(size, dtype):
    torch.manual_seed(size)
    x = torch.randn(3, 5, size, size).to(dtype=dtype, memory_format=torch.channels_last)
    points = x.float().numpy().reshape(3, 5, -1).astype(np.float64)
    mean, scale = points.mean(axis=2), (size - 14) / 10
    tolerance = 1e-6 if dtype is torch.float32 else 4e-3
    expected = np.concatenate([mean, mean * scale, points.max(axis=2)], axis=1)
    assert pooled(x).dtype == dtype
    np.testing.assert_allclose(pooled(x).float(), expected, rtol=tolerance, atol=tolerance)
    expected = np.concatenate([mean, mean * scale, mean * (scale**2 - 0.1)], axis=1)
    np.testing.assert_allclose(pooled_by_size(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_trace_computes_nothing_with_the_size():
    trace = torch.jit.trace(pooled, torch.ones(1, 2, 9, 9))
    assert not {"aten::sub", "aten::div", "aten::size"} & {node.kind() for node in trace.graph.nodes()}
