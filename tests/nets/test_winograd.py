"""Winograd's convolution against the direct one in float64."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from engine.nets.architectures.registry import new_spec
from engine.nets.compute.adapter import TorchNetwork, exact_output
from engine.nets.compute.winograd import TILES, WinogradConvolution, with_winograd
from tests.nets.models import CPU, inputs, toy


def direct(convolution: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    """What the convolution means, in float64."""
    bias = None if convolution.bias is None else convolution.bias.detach().double()
    return nn.functional.conv2d(x.double(), convolution.weight.detach().double(), bias, padding=1)


@settings(max_examples=40)
@given(
    size=st.integers(2, 21), count=st.integers(1, 5), channels=st.integers(1, 40), filters=st.integers(1, 40),
    bias=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_it_computes_the_convolution(size, count, channels, filters, bias, seed):
    torch.manual_seed(seed)
    convolution = nn.Conv2d(channels, filters, 3, padding=1, bias=bias)
    x = torch.randn(count, channels, size, size)
    found = WinogradConvolution(convolution)(x)
    assert found.dtype == torch.float32 and found.permute(0, 2, 3, 1).is_contiguous()
    torch.testing.assert_close(found.double(), direct(convolution, x), rtol=0, atol=1e-4)


def test_more_boards_than_one_group_of_tiles():
    convolution = nn.Conv2d(20, 24, 3, padding=1)
    x = torch.randn(2 * TILES // 4 + 3, 20, 7, 7)
    torch.testing.assert_close(WinogradConvolution(convolution)(x).double(), direct(convolution, x), rtol=0, atol=1e-4)


def test_small_whole_numbers_come_out_almost_exact():
    convolution = nn.Conv2d(16, 16, 3, padding=1)
    with torch.no_grad():
        for parameter in convolution.parameters():
            parameter.copy_(torch.randint(-3, 4, parameter.shape))
    x = torch.randint(-3, 4, (2, 16, 9, 9)).float()
    assert (WinogradConvolution(convolution)(x) - direct(convolution, x)).abs().max() < 1e-3


def test_only_large_plain_convolutions_are_replaced():
    plain = nn.Conv2d(32, 32, 3, padding=1)
    others = [
        nn.Conv2d(32, 32, 1), nn.Conv2d(32, 32, 5, padding=2), nn.Conv2d(32, 32, 3), nn.Conv2d(32, 32, 3, 2, 1),
        nn.Conv2d(32, 32, 3, padding=1, groups=2), nn.Conv2d(32, 32, 3, padding=1, dilation=2),
        nn.Conv2d(32, 32, 3, padding=1, padding_mode="circular"), nn.Conv2d(8, 32, 3, padding=1),
    ]  # fmt: skip
    model = nn.Sequential(nn.Sequential(plain), *others)
    replaced = with_winograd(model)
    assert isinstance(replaced[0][0], WinogradConvolution) and model[0][0] is plain
    assert [type(layer) for layer in replaced[1:]] == [nn.Conv2d] * len(others)
    assert with_winograd(model[1:]) is None


@pytest.mark.parametrize(
    ("architecture", "shape"),
    [
        ("keima-resnet", {"blocks": 6, "channels": 96, "head_channels": 32}),
        ("alphago-policy", {"filters": 32, "size": 11}),
        ("alphago-zero", {"blocks": 3, "channels": 32, "size": 11}),
    ],
)
def test_a_whole_network_says_the_same(architecture, shape):
    model = toy(architecture, **shape)
    planes, globals_ = inputs(architecture, 5, size=11)
    network = TorchNetwork(model, new_spec(model, "toy"), CPU, reduced=False)
    assert any(isinstance(layer, WinogradConvolution) for layer in network._for_size(11).modules())
    exact = exact_output(model, planes, globals_)
    # As evaluators do: with more threads torch adds up in another order, and how many a thread has hangs on the past.
    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as alone:
        found = alone.submit(network.evaluate, planes, globals_).result()
    for head, expected in zip(found, exact, strict=True):
        if expected is not None:
            torch.testing.assert_close(head, expected, rtol=1e-3, atol=1e-3)
    with ThreadPoolExecutor(4, initializer=torch.set_num_threads, initargs=(1,)) as threads:
        results = [threads.submit(network.evaluate, planes, globals_) for _ in range(8)]
        for result in results:
            torch.testing.assert_close(result.result(), found, rtol=0, atol=0)


def test_a_network_whose_work_lies_elsewhere_is_left_as_it_is():
    convolution, others = nn.Conv2d(16, 16, 3, padding=1), [nn.Linear(64, 64) for _ in range(16)]
    assert with_winograd(nn.Sequential(convolution, *others[:4])) is not None
    assert with_winograd(nn.Sequential(convolution, *others)) is None
