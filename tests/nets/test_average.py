"""The mean of two networks' weights."""

import hashlib

import pytest
import torch
from click.testing import CliRunner

from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import average, save_network
from engine.nets.model import load_model
from gtp.cli.weights import weights_group
from tests.nets.models import toy


@pytest.fixture
def saved(tmp_path):
    """Save a toy network under a name."""

    def save(name, architecture="alphago-zero", training=None, **shape):
        model = toy(architecture, seed=len(name), **shape)
        save_network(tmp_path / name, model, new_spec(model, name), training or {"step": 1})
        return tmp_path / name

    return save


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_every_weight_is_the_mean(saved, tmp_path, share):
    first, second = saved("one", training={"step": 7, "figures": {"top1": 0.5}}), saved("other", training={"step": 9})
    average(first, second, tmp_path / "mean", share)
    (one, _, _), (two, _, _), (mean, spec, training) = map(load_model, (first, second, tmp_path / "mean"))
    a, b, c = one.state_dict(), two.state_dict(), mean.state_dict()
    assert any((a[name] != b[name]).any() for name in a)
    for name, tensor in c.items():
        wanted = (1 - share) * a[name].double() + share * b[name].double() if tensor.is_floating_point() else a[name]
        torch.testing.assert_close(tensor.double(), wanted.double(), rtol=1e-6, atol=1e-6)
    sha256 = hashlib.sha256(second.read_bytes()).hexdigest()
    assert training == {"step": 7, "averaged_with": {"name": "other", "sha256": sha256, "share": share}}
    assert spec.encoder == "zero-17"


@pytest.mark.parametrize(
    ("architecture", "shape", "said"),
    [
        ("alphago-zero", {"channels": 4}, "its shape, "),
        ("alphago-zero", {"size": 9}, "its shape, "),
        ("alphago-policy", {}, "its architecture, alphago-policy, is not that of .*one, alphago-zero"),
    ],
    ids=["channels", "board", "architecture"],
)
def test_networks_of_two_kinds_have_no_mean(saved, tmp_path, architecture, shape, said):
    first, second = saved("one"), saved("other", architecture, **shape)
    with pytest.raises(ValueError, match=said) as refused:
        average(first, second, tmp_path / "mean")
    assert "\n" not in str(refused.value) and not (tmp_path / "mean").exists()


def test_the_command_writes_a_network_and_overwrites_none(saved, tmp_path):
    first, second, target = saved("one", training="of a friend"), saved("other"), tmp_path / "mean.safetensors"
    words = ["average", str(first), str(second), str(target), "--share", "0.25"]
    ended = CliRunner().invoke(weights_group, words)
    assert ended.exit_code == 0 and "written: " in ended.output
    training = load_model(target)[2]
    assert training["record"] == "of a friend" and training["averaged_with"]["share"] == 0.25
    ended = CliRunner().invoke(weights_group, words)
    assert ended.exit_code == 1 and "exists already" in ended.output
    ended = CliRunner().invoke(weights_group, [*words[:3], str(tmp_path / "new"), "--share", "nan"])
    assert ended.exit_code == 2 and "nan" in ended.output
