"""Every way to compute a network is held against plain float32, and a wrong one is found out."""

import numpy as np
import pytest
import torch

import engine.nets.on_device
from engine.features.encoder import sample_inputs
from engine.nets.architectures.registry import new_spec
from engine.nets.compute.by_program import ProgramNetwork
from engine.nets.model import plain_of
from engine.nets.network import NetArrays, differences
from engine.nets.on_device import board_sizes, symmetry_spread, verify
from tests.nets.models import SHAPES, inputs, toy


def samples(encoder, size):
    """Inputs for the toy network."""
    return tuple(tensor.numpy() for tensor in inputs("keima-resnet", 3, size))


@pytest.fixture(scope="module")
def network():
    """A toy network on two board sizes."""
    network = plain_of(toy("keima-resnet"))
    return network, new_spec(network, "toy", sizes=(7, 11))


def test_a_sound_network_is_close_in_32_and_in_16_bits(network):
    exact, rough = verify(*network, ["cpu"], samples)
    assert (exact.device, exact.dtype, rough.dtype) == ("cpu", "float32", "bfloat16")
    assert exact.is_close and rough.is_close and exact.plays != rough.plays
    assert set(exact.errors) == {"win rate", "policy", "score", "ownership"}
    assert max(exact.errors.values()) < 1e-4 < max(rough.errors.values())


@pytest.mark.parametrize("wrong", [0.1, np.nan])
def test_a_device_that_computes_something_else_is_found_out(wrong, network, monkeypatch):
    class Wrong(ProgramNetwork):
        def evaluate(self, planes, globals_):
            output = super().evaluate(planes, globals_)
            return output._replace(value=output.value + np.float32(wrong)) if planes.shape[2] == 11 else output

    monkeypatch.setattr(engine.nets.on_device, "ProgramNetwork", Wrong)
    exact, _ = verify(*network, ["cpu"], samples)
    assert not exact.is_close and exact.errors["win rate"] > 0.04 and exact.errors["policy"] < 1e-4


def test_a_network_that_16_bits_compute_too_coarsely_plays_in_32(network, monkeypatch):
    monkeypatch.setattr("engine.nets.compute.by_torch.prefers_bfloat16", lambda device: True)
    monkeypatch.setattr("engine.nets.on_device.HAS_MATRIX_UNIT", True)
    assert [check.plays for check in verify(*network, ["cpu"], samples)] == [False, True]
    monkeypatch.setattr("engine.nets.on_device.excess", lambda exact, rough: "differs too much")
    assert [check.plays for check in verify(*network, ["cpu"], samples)] == [True, False]


def test_differences_are_told_on_the_scales_that_people_know():
    exact = NetArrays(policy=np.array([[0.0, 0.0]]), value=np.array([0.5]), score=np.array([3.0]))
    rough = NetArrays(policy=np.array([[0.0, 1.0]]), value=np.array([0.6]), score=np.array([1.0]))
    expected = {"win rate": 0.05, "policy": 1 / (1 + np.exp(-1)) - 0.5, "score": 2.0}
    assert differences(exact, rough) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "expected"), [((7, 19), [9, 19]), ((19, 19), [19]), ((7, 7), [7]), ((11, 13), [11, 13])]
)
def test_a_large_board_and_a_small_one_are_looked_at(sizes, expected):
    assert board_sizes(new_spec(toy("keima-resnet"), "toy", sizes=sizes)) == expected


def test_the_spread_over_symmetries_is_that_of_turned_positions():
    model = toy("alphago-zero")
    planes, _ = sample_inputs("zero-17", 7)
    spread = symmetry_spread(plain_of(model), new_spec(model, "toy"), sample_inputs)
    values = []
    for turns in range(4):
        for turned in (np.rot90(planes, turns, (2, 3)), np.rot90(planes, turns, (2, 3))[:, :, ::-1]):
            with torch.no_grad():
                values.append(model(torch.from_numpy(turned.copy()), None).value.tanh().numpy())
    assert spread == {"win rate": pytest.approx(np.std(values, axis=0).mean() / 2, rel=1e-4)}
    assert spread["win rate"] > 1e-4 and SHAPES["alphago-zero"]["size"] == 7
