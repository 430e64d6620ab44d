"""The size-independent network, its files, and the Network interface."""

import json
import struct

import numpy as np
import pytest
import torch

from engine.features.encoder import ENCODERS, KEIMA
from engine.nets.checkpoint import load_model, read_header, save_network
from engine.nets.load import choose_device, load_network
from engine.nets.network import NetworkSpec
from engine.nets.resnet import ResNet, ResNetShape, TorchNetwork

SPEC = NetworkSpec("tiny", KEIMA.name, 7, 19, has_score=True, has_ownership=True)


def tiny(seed=0):
    """A small network whose every parameter is random, so that no output is trivially constant."""
    torch.manual_seed(seed)
    model = ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, blocks=3, channels=8, head_channels=8, value_hidden=8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    return model


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "tiny.safetensors"
    save_network(path, tiny(), SPEC, {"step": 5})
    return path


def inputs(count, size, seed=1):
    rng = np.random.default_rng(seed)
    planes = (rng.random((count, KEIMA.planes, size, size)) < 0.3).astype(np.float32)
    return torch.from_numpy(planes), torch.from_numpy(rng.random((count, KEIMA.globals)).astype(np.float32))


@pytest.mark.parametrize("size", [7, 8, 9, 13, 19])
def test_one_network_evaluates_every_board_size(saved, size):
    network = load_network(saved, "cpu")
    output = network.evaluate(*inputs(3, size))
    assert output.policy.shape == (3, size * size + 1)
    assert output.value.shape == output.score.shape == (3,)
    assert output.ownership.shape == (3, size, size)
    assert all(part.dtype == torch.float32 and torch.isfinite(part).all() for part in output)
    assert output.value.abs().max() <= 1 and output.ownership.abs().max() <= 1


def test_rows_of_a_batch_do_not_influence_each_other():
    network = TorchNetwork(tiny(), SPEC, torch.device("cpu"), reduced=False)
    planes, globals_ = inputs(5, 9)
    together = network.evaluate(planes, globals_)
    for row in range(5):
        alone = network.evaluate(planes[row : row + 1], globals_[row : row + 1])
        torch.testing.assert_close(alone.policy[0], together.policy[row], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(alone.value[0], together.value[row], rtol=1e-4, atol=1e-5)


def test_reduced_precision_stays_close():
    planes, globals_ = inputs(8, 19)
    exact = TorchNetwork(tiny(), SPEC, torch.device("cpu"), reduced=False).evaluate(planes, globals_)
    rough = TorchNetwork(tiny(), SPEC, torch.device("cpu"), reduced=True).evaluate(planes, globals_)
    assert (exact.value - rough.value).abs().max() < 0.05
    assert (exact.policy.softmax(1) - rough.policy.softmax(1)).abs().max() < 0.05


def test_file_round_trip_keeps_weights_spec_and_record(saved):
    model, spec, record = load_model(saved)
    assert record == {"step": 5}
    assert spec == SPEC
    assert spec.encoder in ENCODERS
    for name, value in tiny().state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def _edited(path, change):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    inner = json.loads(header["__metadata__"]["keima"])
    change(inner)
    header["__metadata__"]["keima"] = json.dumps(inner)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:3]), "not a safetensors file"),
        (lambda path: path.write_bytes(path.read_bytes()[:900]), "header"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "damaged, truncated"),
        (lambda path: path.write_bytes(b"\xff" * 4000), "not a safetensors file"),
        (lambda path: path.write_bytes(b""), "not a safetensors file"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: _edited(path, lambda h: h.update(format=99)), "expected format 1"),
        (lambda path: _edited(path, lambda h: h["shape"].update(blocks=4)), "do not fit"),
        (lambda path: _edited(path, lambda h: h["shape"].update(colour=4)), "does not describe"),
        (lambda path: _edited(path, lambda h: h["shape"].update(channels=10**9)), "does not describe"),
        (lambda path: _edited(path, lambda h: h.pop("shape")), "does not describe"),
    ],
)
def test_bad_files_give_one_line_that_names_the_file(saved, damage, message):
    damage(saved)
    with pytest.raises(ValueError, match=message) as caught:
        load_model(saved)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    model = tiny()
    with torch.no_grad():
        model.stem.weight[0, 0, 0, 0] = float("nan")
    path = tmp_path / "nan.safetensors"
    save_network(path, model, SPEC, {})
    with pytest.raises(ValueError, match="not finite"):
        load_model(path)


def test_header_is_read_without_tensors(saved):
    header = read_header(saved)
    assert header["encoder"] == KEIMA.name
    assert header["sizes"] == [7, 19]


def test_unknown_device_is_one_line():
    with pytest.raises(ValueError, match="expected auto, cpu or cuda"):
        choose_device("abacus")
