"""Convolutions with packed weights against torch's own, and networks with one thread against many."""

import platform

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from engine.nets.compute import packing
from engine.nets.compute.packing import BATCHES, Float32Linear, PackedConvolution, with_packed_weights
from tests.nets.models import inputs, toy_network

# Under an emulator of ARM this file once ended in an illegal instruction.
pytestmark = pytest.mark.skipif(not packing.is_meant_for(platform.machine()), reason="packing is for x86 processors")
needs_onednn = pytest.mark.skipif(not packing._can_pack(), reason="torch without oneDNN")


@pytest.fixture(autouse=True)
def one_thread():
    """Evaluators have one thread each, and nothing is packed for more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@needs_onednn
@settings(max_examples=60)
@given(
    size=st.integers(2, 21), count=st.integers(1, 9), channels=st.integers(1, 40), filters=st.integers(1, 40),
    kernel=st.sampled_from((1, 3, 5)), dilation=st.integers(1, 2), bias=st.booleans(), reduced=st.booleans(),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_they_compute_the_convolution(size, count, channels, filters, kernel, dilation, bias, reduced, seed):
    torch.manual_seed(seed)
    padding = dilation * (kernel // 2)
    plain = nn.Conv2d(channels, filters, kernel, padding=padding, dilation=dilation, bias=bias)
    dtype = torch.bfloat16 if reduced else torch.float32
    model = nn.Sequential(plain).to(dtype=dtype, memory_format=torch.channels_last)
    x = torch.randn(count, channels, size, size).to(dtype=dtype, memory_format=torch.channels_last)
    with torch.inference_mode():
        found, expected = with_packed_weights(model, size)(x), model(x)
    assert found.dtype == dtype and found.is_contiguous(memory_format=torch.channels_last)
    tolerance = 2e-2 if reduced else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@needs_onednn
@pytest.mark.parametrize("shape", [(1, 24), (5, 24), (3, 7, 24)])
@pytest.mark.parametrize("bias", [True, False])
def test_matrices_are_multiplied_in_float32_where_rows_are_few(shape, bias):
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(24, 16, bias=bias)).to(torch.bfloat16)
    x = torch.randn(shape).to(torch.bfloat16)
    with torch.inference_mode():
        found, plain = with_packed_weights(model, 9)(x), model(x)
        exact = model.float()(x.float())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, plain, rtol=2e-2, atol=2e-2)
    if len(shape) == 2:
        torch.testing.assert_close(found, exact.to(torch.bfloat16), rtol=0, atol=0)


def packed_kinds(model, size=9):
    with torch.inference_mode():
        return [type(layer) for layer in with_packed_weights(model, size)]


@needs_onednn
def test_what_it_packs_and_what_it_leaves():
    model = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular"),
        nn.Conv2d(8, 8, 3, padding="same"), nn.ReLU(), nn.Linear(9, 9), nn.Linear(9, 9).to(torch.bfloat16),
        nn.Linear(256, 256).to(torch.bfloat16),
    )  # fmt: skip
    kept = [nn.Conv2d, nn.Conv2d, nn.ReLU, nn.Linear]
    assert packed_kinds(model) == [PackedConvolution, *kept, Float32Linear, nn.Linear]
    assert type(model[0]) is nn.Conv2d, "the model itself stays as it is"


def test_torch_without_it_keeps_its_own(monkeypatch):
    monkeypatch.setattr(packing, "_can_pack", lambda: False)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))
    assert with_packed_weights(model, 9) is model


@pytest.mark.parametrize(
    ("machine", "packs"),
    [("x86_64", True), ("AMD64", True), ("aarch64", False), ("arm64", False), ("ARM64", False), ("", False)],
)
def test_processors_other_than_x86_keep_their_own(monkeypatch, machine, packs):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(packing, "_scripted", lambda: None)
    assert packing._can_pack() == (packs and torch.backends.mkldnn.is_available())
    if not packs:
        model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))
        assert with_packed_weights(model, 9) is model


@needs_onednn
def test_torch_without_scripts_keeps_its_own(monkeypatch):
    def refuse():
        raise RuntimeError("torch.jit.script is no more")

    monkeypatch.setattr(packing, "_scripted", refuse)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))
    assert with_packed_weights(model, 9) is model


def test_more_threads_keep_their_own():
    torch.set_num_threads(2)
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))
    assert with_packed_weights(model, 9) is model


@needs_onednn
def test_batches_that_want_different_layouts_get_none(monkeypatch):
    layouts = iter(torch.arange(len(BATCHES)))
    monkeypatch.setattr(torch.ops.mkldnn, "_get_mkldnn_serialized_md", lambda weight: next(layouts))
    assert packed_kinds(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))) == [nn.Conv2d]


@needs_onednn
def test_a_processor_without_instructions_for_16_bits_keeps_its_own(monkeypatch):
    """There doctor's test in 16 bits failed."""

    def refuse(*_):
        raise RuntimeError("bf16 path needs the cpu support")

    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_convolution_weight", refuse)
    assert packed_kinds(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1).to(torch.bfloat16))) == [nn.Conv2d]


@needs_onednn
def test_a_call_that_computes_something_else_is_not_used(monkeypatch):
    monkeypatch.setattr(packing, "_scripted", lambda: lambda x, *_: 2 * x)
    assert packed_kinds(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))) == [nn.Conv2d]


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", ["keima-resnet", "alphago-zero", "alphago-policy+alphago-value"])
def test_networks_with_one_thread_and_with_two_agree(name, reduced):
    network = toy_network(name, reduced=reduced)
    tensors = inputs(name, 5)
    alone = network.evaluate(*tensors)
    torch.set_num_threads(2)
    for found, expected in zip(network.evaluate(*tensors), alone, strict=True):
        if expected is not None:
            tolerance = 0.1 if reduced else 1e-5
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
