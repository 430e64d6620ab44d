"""Traces: the layers of every architecture by name, and outputs that are those of the network."""

import numpy as np
import pytest
import torch

from engine.nets.architectures.registry import ARCHITECTURES
from engine.nets.files.read import read_network
from engine.nets.model import plain_of
from engine.nets.on_device import Reference
from engine.nets.raw import RawNetwork
from engine.nets.trace import INPUT, TIP, trace
from tests.nets.models import SHAPES, inputs, toy
from weights import find_network


def toy_trace(architecture, **shape):
    """The trace of a toy network, the network, and its inputs."""
    network = plain_of(toy(architecture, **shape))
    planes, globals_ = (values.numpy() for values in inputs(architecture, 2))
    return trace(network, planes, globals_), network, planes, globals_


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_heads_are_those_of_the_reference(architecture):
    found, network, planes, globals_ = toy_trace(architecture)
    for one, other in zip(found.heads, Reference(network)(planes, globals_), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


def test_the_last_layers_are_the_outputs():
    found = toy_trace("keima-resnet")[0]
    np.testing.assert_array_equal(found.layers["policy_out"].reshape(2, -1), found.heads.policy[:, :-1])
    np.testing.assert_allclose(np.tanh(found.layers["ownership_out"][:, 0]), found.heads.ownership, rtol=1e-6)
    found, network, *_ = toy_trace("alphago-policy")
    logits = found.layers["last"].reshape(2, -1) + network.point_bias
    np.testing.assert_array_equal(logits, found.heads.policy[:, :-1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_layers_are_named_as_in_files_and_have_a_map_for_each_channel(architecture):
    found, _, planes, _ = toy_trace(architecture)
    assert next(iter(found.layers)) == INPUT
    np.testing.assert_array_equal(found.layers[INPUT], planes)
    assert all(values.shape[0] == 2 and values.shape[2:] == (7, 7) for values in found.layers.values())
    named = [name.removesuffix(".weight").removesuffix(".conv") for name in toy(architecture).state_dict()]
    blocks = [f"blocks.{n}" for n in range(SHAPES[architecture].get("blocks", 0))]
    assert set(found.layers) - {INPUT, TIP} <= {*named, *blocks}
    assert set(blocks) <= set(found.layers)


def test_a_block_is_the_trunk_after_it():
    """Each block adds to the trunk of the one before; a first layer's outputs are those that its second layer reads."""
    found, network, *_ = toy_trace("keima-resnet", pool_every=9)
    trunk, weight = found.layers["stem"], network.blocks[0].second
    change = torch.conv2d(
        torch.from_numpy(found.layers["blocks.0.first"]), torch.from_numpy(weight.weight),
        torch.from_numpy(weight.bias), padding=1,
    )  # fmt: skip
    np.testing.assert_allclose(found.layers["blocks.0"] - trunk, change.numpy(), atol=1e-5)
    assert (found.layers["blocks.0.first"] >= 0.0).all() and (found.layers["blocks.0"] < 0.0).any()
    np.testing.assert_array_equal(np.maximum(found.layers["blocks.2"], 0.0), found.layers[TIP])


def test_nested_blocks_have_their_own_layers():
    layers = toy_trace("keima-resnet", inner=4)[0].layers
    assert list(layers)[1:7] == [
        "stem", "blocks.0.narrow", "blocks.0.blocks.0.first", "blocks.0.blocks.0", "blocks.0.blocks.1.first",
        "blocks.0.blocks.1",
    ]  # fmt: skip
    assert layers["blocks.0.narrow"].shape[1] == 4 and layers["blocks.0"].shape[1] == 8


def test_a_pair_has_the_layers_of_both_networks():
    network = RawNetwork(find_network("alphago-9"))
    planes = (np.random.default_rng(1).random((1, 49, 9, 9)) < 0.2).astype(np.float32)
    globals_ = np.zeros((1, 0), np.float32)
    found = network.trace(planes, globals_)
    assert found.layers["policy.layers.11"].shape == (1, 32, 9, 9)
    assert found.layers["value.layers.0"].shape == (1, 64, 9, 9)
    asked = network.ask(planes, globals_, 0.0)
    np.testing.assert_array_equal(found.heads.policy[0], asked.policy)
    assert (1.0 + found.heads.value[0]) / 2.0 == pytest.approx(asked.win)
    with pytest.raises(ValueError, match="plays boards of 9 alone, not 7"):
        network.trace(planes[:, :, :7, :7], globals_)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["g170-b6c96-s175395328-d26788732", "b7c96h3tfrs-test5-cnorm"])
def test_katagos_networks_are_traced_with_attention_by_torch(shared_path, name):
    network, *_ = read_network(shared_path / "nets" / f"{name}.bin.gz")
    random = np.random.default_rng(1)
    planes = (random.random((1, 22, 9, 9)) < 0.3).astype(np.float32)
    globals_ = random.random((1, 19), np.float32)
    found = trace(network, planes, globals_)
    for one, other in zip(found.heads, Reference(network)(planes, globals_), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [f"blocks.{n}" for n in range(network.shape.blocks)] == [
        layer for layer in found.layers if layer.startswith("blocks.") and layer.count(".") == 1
    ]
