"""Networks as programs, line by line and as a whole, against torch in float64."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from engine.nets.compute import program as kernels
from engine.nets.compute.by_program import ProgramNetwork
from engine.nets.compute.program import Program
from engine.nets.compute.runner import new_runner
from engine.nets.compute.simd import WIDTH
from engine.nets.compute.winograd import TILES, tile_side
from engine.nets.forward import Unwritable
from engine.nets.layers import IDENTITY, MISH, RELU, SILU, Convolution, Linear, Norm
from engine.nets.model import pooled, pooled_by_size
from tests.nets.models import exact_output, inputs, network_of, toy


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


TORCH = {IDENTITY: nn.Identity(), RELU: nn.ReLU(), MISH: nn.Mish(), SILU: nn.SiLU()}
ANY_ACTIVATION = st.sampled_from(tuple(TORCH))


def plain(layer):
    """The plain layer of torch's."""
    bias = None if layer.bias is None else layer.bias.detach().numpy()
    if isinstance(layer, nn.Linear):
        return Linear(layer.weight.detach().numpy(), bias)
    return Convolution(layer.weight.detach().numpy(), bias, layer.dilation)


def outputs(write, x, vectors=None):
    """What a program computes from points and vectors; ``write(program)`` returns the slot."""
    vectors = torch.zeros(len(x), 0) if vectors is None else vectors
    program = Program(x.shape[1], vectors.shape[1], tile_side(x.shape[2]))
    program.output("it", write(program))
    return torch.from_numpy(program.compiled().run(x.numpy(), vectors.numpy())["it"])


def exact(layer, x):
    """What a layer computes in float64."""
    return nn.functional.conv2d(
        x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double(),
        padding=layer.padding, dilation=layer.dilation,
    ).detach()  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(2, 25), count=st.integers(1, 5), channels=st.integers(1, 40), filters=st.integers(1, 60),
    kernel=st.sampled_from([(3, 3), (3, 3), (1, 1), (5, 5), (3, 1)]),
    dilation=st.sampled_from([(1, 1), (1, 1), (2, 1)]),
    bias=st.booleans(), normed=st.booleans(), before=ANY_ACTIVATION, after=ANY_ACTIVATION, has_plus=st.booleans(),
    has_vector=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_convolution_with_all_that_surrounds_it(
    size, count, channels, filters, kernel, dilation, bias, normed, before, after, has_plus, has_vector, seed
):
    torch.manual_seed(seed)
    padding = tuple(step * (side // 2) for side, step in zip(kernel, dilation, strict=True))
    layer = nn.Conv2d(channels, filters, kernel, padding=padding, dilation=dilation, bias=bias)
    of_points = nn.Conv2d(channels, filters, 1, bias=False)
    x, vectors = torch.randn(count, channels, size, size), torch.randn(count, filters)
    scale, shift = (torch.randn(channels), torch.randn(1, channels, 1, 1)) if normed else (None, None)

    def write(program):
        return program.convolution(
            plain(layer), program.planes, Norm(before, scale.numpy(), shift.numpy()) if normed else None,
            program.globals if has_vector else None,
            program.convolution(plain(of_points), program.planes) if has_plus else None, after,
        )  # fmt: skip

    ready = TORCH[before](x.double() * scale.double()[:, None, None] + shift.double()) if normed else x
    expected = exact(layer, ready)
    if has_vector:
        expected = expected + vectors.double()[..., None, None]
    if has_plus:
        expected = expected + exact(of_points, x)
    found = outputs(write, x, vectors)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), TORCH[after](expected), rtol=0, atol=1e-4)


def test_outputs_may_take_the_place_of_what_is_added():
    layer = nn.Conv2d(8, 8, 3, padding=1)
    x = torch.randn(3, 8, 9, 9)

    def write(program):
        return program.convolution(plain(layer), program.planes, plus=program.planes, into=program.planes)

    found = outputs(write, x)
    torch.testing.assert_close(found.double(), exact(layer, x) + x, rtol=0, atol=1e-4)


def test_memory_of_freed_slots_is_used_again():
    program = Program(8, 1, 3)
    layer = nn.Conv2d(8, 8, 1)
    first = program.convolution(plain(layer), program.planes)
    program.free(first)
    assert program.convolution(plain(layer), program.planes) == first
    second = program.convolution(plain(layer), program.planes)
    assert second != first
    program.free(second)
    program.output("it", first)
    for slot in (second, first):
        with pytest.raises(AssertionError):
            program.free(slot)


def test_layers_that_do_not_fit_their_slots_are_found():
    program = Program(8, 1, 3)
    with pytest.raises(AssertionError):
        program.convolution(plain(nn.Conv2d(20, 8, 3, padding=1)), program.planes)
    with pytest.raises(AssertionError):
        program.linear(plain(nn.Linear(2, 3)), program.globals)
    with pytest.raises(AssertionError):
        program.convolution(plain(nn.Conv2d(8, 8, 1)), program.planes, into=program.planes)


@pytest.mark.parametrize("size", [7, 9, 19])
def test_more_boards_than_one_group_of_tiles(size):
    layer = nn.Conv2d(20, 24, 3, padding=1)
    x = torch.randn(TILES // 4 + 3, 20, size, size)
    found = outputs(lambda program: program.convolution(plain(layer), program.planes), x)
    torch.testing.assert_close(found.double(), exact(layer, x), rtol=0, atol=1e-4)


def test_many_boards_go_through_in_parts(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_BOARDS", 4)
    layer, x = nn.Conv2d(8, 8, 3, padding=1), torch.randn(11, 8, 5, 5)
    found = outputs(lambda program: program.convolution(plain(layer), program.planes), x)
    torch.testing.assert_close(found.double(), exact(layer, x), rtol=0, atol=1e-4)


def test_small_whole_numbers_come_out_almost_exact():
    layer = nn.Conv2d(16, 16, 3, padding=1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randint(-3, 4, parameter.shape))
    x = torch.randint(-3, 4, (2, 16, 9, 9)).float()
    found = outputs(lambda program: program.convolution(plain(layer), program.planes), x)
    assert (found - exact(layer, x)).abs().max() < 1e-3


@pytest.mark.parametrize("activation", TORCH)
def test_activations(activation):
    x = torch.cat([torch.linspace(-120, 120, 8 * 81), torch.linspace(-4, 4, 8 * 81)]).view(2, 8, 9, 9)
    found = outputs(lambda program: program.norm(program.planes, Norm(activation)), x)
    torch.testing.assert_close(found.double(), TORCH[activation](x.double()), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("activation", TORCH)
def test_activations_of_what_no_network_should_compute(activation):
    odd = torch.tensor([torch.nan, torch.inf, 3e38, 88.0, 20.0, -20.0, -87.0, -88.0, -3e38])
    x = odd.repeat(9)[:, None].expand(81, 8).T.reshape(1, 8, 9, 9)
    found = outputs(lambda program: program.norm(program.planes, Norm(activation)), x)
    torch.testing.assert_close(found, TORCH[activation](x), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(("by_size", "expected"), [(False, pooled), (True, pooled_by_size)])
@pytest.mark.parametrize("channels", [3, 32])
def test_pooling_and_the_matrices_behind_it(by_size, expected, channels):
    torch.manual_seed(0)
    layer, more = nn.Linear(3 * channels, 10), nn.Linear(4, 10, bias=False)
    x, vectors = torch.randn(3, channels, 7, 7), torch.randn(3, 4)

    def write(program):
        plus, behind = program.linear(plain(more), program.globals), plain(layer)
        return program.product(behind.weight, behind.bias, program.pool(program.planes, by_size), plus, RELU)

    found = outputs(write, x, vectors)
    torch.testing.assert_close(found, torch.relu(layer(expected(x)) + more(vectors)).detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 2, 20])
def test_a_linear_layer_of_all_points(channels):
    layer, x = nn.Linear(channels * 49, 10), torch.randn(3, channels, 7, 7)
    found = outputs(lambda program: program.linear(plain(layer), program.planes, RELU), x)
    torch.testing.assert_close(found, torch.relu(layer(x.flatten(1))).detach(), rtol=0, atol=1e-5)


def test_layers_that_only_torch_computes_are_refused():
    program = Program(4, 0, 3)
    with pytest.raises(Unwritable):
        program.apply(object(), program.planes)


def test_one_kernel_serves_all_types_and_layouts():
    layer, x = nn.Conv2d(12, 8, 3, padding=1), torch.randn(3, 20, 9, 9)
    expected = exact(layer, x[:, :12])
    for planes in (x[:, :12], x[:, :12].double(), x[:, :12].contiguous(memory_format=torch.channels_last)):
        found = outputs(
            lambda program: program.convolution(plain(layer), program.planes), planes, torch.zeros(3, 4)[:, ::2]
        )
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-4)
    assert len(kernels.run_program.signatures) == 1


def new_resnet(**shape):
    model = toy("keima-resnet", **shape)
    return model, network_of(model)


def test_a_network_without_globals_says_the_same_each_time():
    model, network = new_resnet(globals=0)
    planes, no_globals = inputs("keima-resnet", 3)[0], torch.zeros(3, 0)
    expected = exact_output(model, planes, no_globals)
    for _ in range(3):
        for head, exactly in zip(network.evaluate(planes, no_globals), expected, strict=True):
            torch.testing.assert_close(head, exactly, rtol=1e-3, atol=1e-3)


def test_boards_of_all_sizes_in_turn():
    model, network = new_resnet(blocks=2)
    for size in (9, 19, 7, 13, 19, 8, 9):
        planes, globals_ = inputs("keima-resnet", 2, size=size)
        expected = exact_output(model, planes, globals_)
        for head, exactly in zip(network.evaluate(planes, globals_), expected, strict=True):
            torch.testing.assert_close(head, exactly, rtol=1e-3, atol=1e-3)


def test_threads_that_come_at_once_share_what_the_first_writes():
    for _ in range(3):
        model, network = new_resnet(blocks=2)
        planes, globals_ = inputs("keima-resnet", 2, size=9)
        expected = exact_output(model, planes, globals_)
        with ThreadPoolExecutor(4) as threads:
            results = list(threads.map(network.evaluate, [planes] * 8, [globals_] * 8))
        for found in results:
            torch.testing.assert_close(found.policy, expected.policy, rtol=1e-3, atol=1e-3)


def test_a_runner_that_is_prepared_has_the_program(monkeypatch):
    _, network = new_resnet(blocks=2)
    runner = new_runner(network)
    planes, globals_ = inputs("keima-resnet", 2, size=9)
    assert runner.prepare(9, planes.shape[1], globals_.shape[1], 8) == 8
    monkeypatch.setattr(Program, "compiled", None)
    runner.run([planes.numpy()], [globals_.numpy()])


@pytest.mark.parametrize("size", [7, 9, 11])
@pytest.mark.parametrize(
    ("architecture", "shape"),
    [
        ("keima-resnet", {"blocks": 6, "channels": 96, "head_channels": 32}),
        ("keima-resnet", {"blocks": 3, "channels": 48, "inner": 24, "planes": 2 * WIDTH + 1}),
        ("alphago-policy", {"filters": 32}),
        ("alphago-value", {"filters": 24}),
        ("alphago-zero", {"blocks": 3, "channels": 32}),
        ("elf-opengo", {"blocks": 3, "channels": 32}),
    ],
)
def test_a_whole_network_says_the_same(architecture, shape, size):
    if architecture != "keima-resnet":
        shape = shape | {"size": size}
    model = toy(architecture, **shape)
    planes, globals_ = inputs(architecture, 5, size=size)
    if "planes" in shape:
        planes = planes.repeat(1, 8, 1, 1)[:, : shape["planes"]]
    network = network_of(model)
    assert isinstance(network.network, ProgramNetwork)
    expected = exact_output(model, planes, globals_)
    found, one = network.evaluate(planes, globals_), network.evaluate(planes[2:3], globals_[2:3])
    for head, exactly, single in zip(found, expected, one, strict=True):
        if exactly is not None:
            torch.testing.assert_close(head, exactly, rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(head[2:3], single, rtol=1e-6, atol=1e-6)
    with ThreadPoolExecutor(4) as threads:
        results = [threads.submit(network.evaluate, planes, globals_) for _ in range(8)]
        for result in results:
            torch.testing.assert_close(result.result(), found, rtol=0, atol=0)
