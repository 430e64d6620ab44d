"""Winograd's convolution while a network learns: outputs and gradients against the direct one in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import engine.nets.compute.precision
import engine.nets.compute.winograd_learning
import engine.train.shards
from engine.nets.compute.winograd import tile_side
from engine.nets.compute.winograd_learning import (
    TILES_LEARNT,
    LearningConvolution,
    learns_by_winograd,
    one_torch_thread,
    with_learning_winograd,
)
from tests.nets.models import inputs, toy
from tests.train.trainers import new_trainer

CPU = torch.device("cpu")


def check(convolution: nn.Conv2d, x: torch.Tensor) -> None:
    """One convolution, forth and back, against its meaning in float64."""
    exact = nn.Conv2d(convolution.in_channels, convolution.out_channels, 3, padding=1, dtype=torch.float64)
    with torch.no_grad():
        exact.weight.copy_(convolution.weight)
        exact.bias.zero_() if convolution.bias is None else exact.bias.copy_(convolution.bias)
    y = x.double().requires_grad_()
    outputs = exact(y)
    back = torch.randn_like(outputs)
    outputs.backward(back)
    x = x.clone().requires_grad_()
    found = LearningConvolution(convolution)(x)
    assert found.dtype == torch.float32 and found.permute(0, 2, 3, 1).is_contiguous()
    found.backward(back.float())
    torch.testing.assert_close(found.double(), outputs, rtol=0, atol=1e-4)
    torch.testing.assert_close(x.grad.double(), y.grad, rtol=0, atol=1e-4)
    scale = exact.weight.grad.abs().max() + exact.bias.grad.abs().max()
    torch.testing.assert_close(convolution.weight.grad.double(), exact.weight.grad, rtol=0, atol=1e-5 * float(scale))
    if convolution.bias is not None:
        torch.testing.assert_close(convolution.bias.grad.double(), exact.bias.grad, rtol=0, atol=1e-5 * float(scale))


@settings(max_examples=40)
@given(
    size=st.integers(2, 21), count=st.integers(1, 9), channels=st.integers(1, 40), filters=st.integers(1, 40),
    bias=st.booleans(), is_channels_last=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_outputs_and_gradients_are_those_of_the_convolution(
    size, count, channels, filters, bias, is_channels_last, seed
):
    torch.manual_seed(seed)
    x = torch.randn(count, channels, size, size)
    if is_channels_last:
        x = x.to(memory_format=torch.channels_last)
    check(nn.Conv2d(channels, filters, 3, padding=1, bias=bias), x)


@pytest.mark.parametrize("size", [7, 9])
def test_more_boards_than_one_group_of_tiles(size):
    torch.manual_seed(1)
    check(nn.Conv2d(16, 20, 3, padding=1), torch.randn(TILES_LEARNT // 4 + 6, 16, size, size))


def test_tiles_have_the_side_that_takes_fewer_products():
    assert [size for size in range(2, 26) if tile_side(size) == 3] == [2, 3, 5, 6, 9, 21]


def test_gradients_pass_input_that_needs_none():
    convolution = nn.Conv2d(16, 16, 3, padding=1)
    LearningConvolution(convolution)(torch.randn(2, 16, 9, 9)).sum().backward()
    assert convolution.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("architecture", "shape"),
    [("keima-resnet", {"blocks": 3, "channels": 32}), ("alphago-zero", {"blocks": 2, "channels": 32, "size": 9})],
)
def test_a_network_learns_on_its_own_parameters(architecture, shape):
    model = toy(architecture, **shape).train()
    learning = with_learning_winograd(model)
    assert sum(isinstance(layer, LearningConvolution) for layer in learning.modules()) > 3
    assert not any(isinstance(layer, LearningConvolution) for layer in model.modules())
    assert {id(one) for one in learning.parameters()} == {id(one) for one in model.parameters()}
    assert {id(one) for one in learning.buffers()} == {id(one) for one in model.buffers()}
    planes, globals_ = inputs(architecture, 6, size=9)

    def gradients(network: nn.Module) -> dict[str, torch.Tensor]:
        model.zero_grad()
        heads = [head for head in network(planes, globals_) if head is not None]
        sum((head * torch.linspace(-1, 1, head.numel()).view_as(head)).sum() for head in heads).backward()
        return {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}

    direct, found = gradients(model), gradients(learning)
    assert direct.keys() == found.keys()
    for name, one in direct.items():
        torch.testing.assert_close(found[name], one, rtol=1e-3, atol=1e-3 * float(one.abs().max()) + 1e-5)


def test_it_is_for_processors_without_bfloat16_and_networks_with_such_convolutions(monkeypatch):
    module = engine.nets.compute.winograd_learning
    wide, narrow = toy("keima-resnet", blocks=1, channels=16), toy("keima-resnet", blocks=1, channels=4)
    monkeypatch.setattr(module, "prefers_bfloat16", lambda device: False)
    assert learns_by_winograd(CPU, wide) and not learns_by_winograd(torch.device("cuda"), wide)
    assert not learns_by_winograd(CPU, narrow)
    monkeypatch.setattr(module, "prefers_bfloat16", lambda device: True)
    assert not learns_by_winograd(CPU, wide)


def test_one_torch_thread_is_for_a_while():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_torch_thread(False):
            assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), one_torch_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_a_run_takes_the_same_steps_either_way(tmp_path, monkeypatch):
    reached = {}
    # Where the processor prefers 16 bits, a run takes those, and no such convolution.
    monkeypatch.setattr(engine.nets.compute.precision, "prefers_bfloat16", lambda _: False)
    for by_winograd in (False, True):
        monkeypatch.setattr(engine.train.shards, "learns_by_winograd", lambda *_, answer=by_winograd: answer)
        # The toy's convolutions are small ones.
        monkeypatch.setattr("engine.nets.compute.winograd_learning.MIN_CHANNELS", 1)
        trainer = new_trainer(tmp_path / str(by_winograd), 5, optimizer="sgd", rate=0.01)
        has_any = any(isinstance(layer, LearningConvolution) for layer in trainer._call.modules())
        assert has_any == by_winograd
        trainer.run()
        reached[by_winograd] = trainer.averaged().state_dict()
    for name, value in reached[False].items():
        torch.testing.assert_close(reached[True][name], value, rtol=1e-2, atol=1e-4)
