"""AlphaGo's and AlphaGo Zero's networks are what the papers describe, and they learn."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.nets import layers
from engine.nets.architectures.registry import new_spec
from engine.nets.layers import Drawn, folded
from engine.nets.model import ConvNorm, TorchForward, model_of, module_of, new_model, plain_of
from engine.nets.network import NetworkSpec
from engine.nets.on_device import AlphaGoPair
from tests.nets import twin
from tests.nets.models import inputs, toy, toy_network


def outline(architecture):
    """A network of the published shape, without weights."""
    return new_model(architecture, {})


def parameters_of(model):
    return sum(value.numel() for value in model.parameters())


def convolutions_of(model):
    """(inputs, outputs, kernel, has bias) of every convolution in order; all keep the board's size by zeros."""
    found = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    for layer in found:
        assert layer.kernel_size[0] == layer.kernel_size[1] and layer.stride == layer.dilation == (1, 1)
        assert layer.padding == (layer.kernel_size[0] // 2,) * 2 and layer.padding_mode == "zeros" and layer.groups == 1
    return [(layer.in_channels, layer.out_channels, layer.kernel_size[0], layer.bias is not None) for layer in found]


def linears_of(model):
    return [(layer.in_features, layer.out_features) for layer in model.modules() if isinstance(layer, nn.Linear)]


HIDDEN = 11 * (3 * 3 * 192 * 192 + 192)


def test_the_policy_network_has_thirteen_layers_of_192_filters():
    model = outline("alphago-policy")
    assert convolutions_of(model) == [(48, 192, 5, True), *[(192, 192, 3, True)] * 11, (192, 1, 1, False)]
    assert linears_of(model) == []
    assert model.point_bias.shape == (361,)
    assert parameters_of(model) == (5 * 5 * 48 * 192 + 192) + HIDDEN + (192 + 361) == 3_882_793


def test_the_value_network_has_fifteen_layers():
    model = outline("alphago-value")
    assert convolutions_of(model) == [(49, 192, 5, True), *[(192, 192, 3, True)] * 11, (192, 1, 1, True)]
    assert linears_of(model) == [(361, 256), (256, 1)]
    ending = (192 + 1) + (361 * 256 + 256) + (256 + 1)
    assert parameters_of(model) == (5 * 5 * 49 * 192 + 192) + HIDDEN + ending == 3_980_162


def test_the_dual_network_has_a_residual_trunk_and_two_small_heads():
    model = outline("alphago-zero")
    trunk = [(17, 128, 3, False), *[(128, 128, 3, False)] * 24]
    assert convolutions_of(model) == [*trunk, (128, 2, 1, False), (128, 1, 1, False)]
    assert linears_of(model) == [(2 * 361, 362), (361, 256), (256, 1)]
    convolutions = 3 * 3 * 17 * 128 + 24 * 3 * 3 * 128 * 128 + 128 * 3
    norms = 2 * (25 * 128 + 2 + 1)
    assert parameters_of(model) == convolutions + norms + (722 * 362 + 362) + (361 * 256 + 256) + 257 == 3_919_973


def test_any_number_of_filters_blocks_and_channels():
    assert convolutions_of(new_model("alphago-policy", {"filters": 256}))[5] == (256, 256, 3, True)
    assert len(convolutions_of(new_model("alphago-zero", {"blocks": 19, "channels": 256}))) == 1 + 38 + 2


@pytest.mark.parametrize("name", ["alphago-policy", "alphago-value", "alphago-zero"])
def test_the_default_shape_plays_19x19_with_the_published_input(name):
    spec = new_spec(outline(name), "match")
    planes = {"alphago-policy": 48, "alphago-value": 49, "alphago-zero": 17}[name]
    assert (spec.min_size, spec.max_size) == (19, 19)
    assert spec.encoder == {48: "alphago-48", 49: "alphago-49", 17: "zero-17"}[planes]
    assert (outline(name).shape.planes, outline(name).shape.globals) == (planes, 0)


def test_networks_agree_with_the_papers_words_in_numpy():
    def state_of(name):
        return {key: value.double().numpy() for key, value in toy(name).state_dict().items()}

    for name in ("alphago-policy", "alphago-value", "alphago-zero"):
        planes, globals_ = inputs(name, 2)
        output = toy_network(name).evaluate(planes, globals_)
        for row, position in enumerate(planes.double().numpy()):
            if name == "alphago-policy":
                expected = {"policy": twin.policy(state_of(name), position)}
            elif name == "alphago-value":
                expected = {"value": twin.value(state_of(name), position)}
            else:
                expected = dict(zip(("policy", "value"), twin.zero(state_of(name), position, 2), strict=True))
            for head, values in expected.items():
                found = getattr(output, head)[row].numpy()
                np.testing.assert_allclose(found[: values.size] if values.ndim else found, values, rtol=1e-4, atol=1e-5)


def test_each_point_has_a_bias_of_its_own():
    model = toy("alphago-policy")
    planes, globals_ = inputs("alphago-policy", 1)
    with torch.no_grad():
        before = model(planes, globals_).policy
        model.point_bias[10] += 3.0
        moved = model(planes, globals_).policy - before
    assert moved[0, 10] == pytest.approx(3.0, abs=1e-5)
    assert moved.abs().sum() == pytest.approx(3.0, abs=1e-4)


def test_the_signal_keeps_its_size_through_thirteen_plain_layers():
    torch.manual_seed(1)
    model = new_model("alphago-policy", {"filters": 64, "size": 9})
    planes, globals_ = inputs("alphago-policy", 8, 9)
    scales = []
    for layer in model.layers:
        layer.register_forward_hook(lambda _layer, _inputs, output: scales.append(output.std().item()))
    logits = model(planes, globals_).policy
    assert min(scales) > 0.2 and max(scales) < 2.0
    assert 0.05 < logits.std() < 2.0


@pytest.mark.parametrize("name", ["alphago-policy", "alphago-value", "alphago-zero"])
def test_published_networks_learn_a_batch_by_plain_gradient_descent(name):
    torch.manual_seed(2)
    shape = {"channels": 16, "blocks": 3} if name == "alphago-zero" else {"filters": 16}
    model = new_model(name, shape | {"size": 7})
    planes, globals_ = inputs(name, 16)
    moves, results = torch.arange(16) * 3, (torch.arange(16) % 2) * 2.0 - 1.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    losses = []
    for _ in range(60):
        raw = model(planes, globals_)
        loss = torch.zeros(())
        if raw.policy is not None:
            loss = loss + F.cross_entropy(raw.policy, moves)
        if raw.value is not None:
            loss = loss + (raw.value.tanh() - results).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_batch_normalisation_learns_the_data_and_folds_away():
    torch.manual_seed(3)
    layer = ConvNorm(Drawn(3).conv_norm("layer", 4, 6, 3))
    x = torch.randn(64, 4, 5, 5) * 3 + 1
    for _ in range(200):
        out = layer(x)
    assert out.mean(dim=(0, 2, 3)).abs().max() < 1e-4 and (out.std(dim=(0, 2, 3)) - 1).abs().max() < 1e-2
    layer.eval()
    torch.testing.assert_close(layer(x), out, rtol=1e-2, atol=1e-2)
    arrays = {name: values.detach().numpy() for name, values in layer.state_dict().items()}
    plain = layers.ConvNorm(layers.Convolution(arrays.pop("conv.weight")), **arrays)
    torch.testing.assert_close(module_of(plain.folded())(x), layer(x), rtol=1e-4, atol=1e-4)


def test_folding_leaves_plain_convolutions_alone():
    model = model_of(folded(plain_of(toy("alphago-zero"))))
    assert not any(isinstance(layer, ConvNorm) for layer in model.modules())
    assert all(has_bias for *_, has_bias in convolutions_of(model))


def test_a_fresh_residual_block_is_the_identity():
    block = new_model("alphago-zero", {"blocks": 1, "channels": 8, "size": 7}).blocks[0].eval()
    x = torch.rand(2, 8, 7, 7)
    forward = TorchForward(x, torch.zeros(2, 0))
    block.describe(forward, forward.planes)
    torch.testing.assert_close(forward.planes.value, x)


def test_a_pair_of_anything_else_is_refused():
    policy, value = toy_network("alphago-policy"), toy_network("alphago-value")
    for wrong in [(value, policy), (policy, policy), (policy, toy_network("alphago-zero"))]:
        with pytest.raises(ValueError, match=r"^toy\+toy: encoders .* expected a policy") as caught:
            AlphaGoPair(*wrong)
        assert "\n" not in str(caught.value)
    value.spec = NetworkSpec("other", "alphago-49", 9, 9, ("value",))
    with pytest.raises(ValueError, match="boards of 7 to 7 and of 9 to 9"):
        AlphaGoPair(policy, value)
