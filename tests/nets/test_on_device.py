"""Where a network goes: devices by name, and 16 bits only where they do no harm."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch

import engine.nets.compute.by_torch
import engine.nets.devices
import engine.nets.on_device
from engine.nets import notices
from engine.nets.architectures.registry import new_spec
from engine.nets.architectures.resnet import ResNet
from engine.nets.compute.by_program import ProgramNetwork
from engine.nets.compute.by_torch import TorchNetwork
from engine.nets.compute.program import CompiledNetwork, Program
from engine.nets.devices import choose_devices, torch_device
from engine.nets.files.checkpoint import save_network
from engine.nets.forward import Unwritable
from engine.nets.model import plain_of
from engine.nets.network import NetArrays, differences, excess
from engine.nets.on_device import load_network, network_on
from tests.nets.models import inputs, toy


@pytest.fixture
def every_device(monkeypatch):
    """A machine that has whatever is asked for, and more than one of it."""
    monkeypatch.setattr(engine.nets.devices, "checked_device", lambda name: "cuda:0" if name == "cuda" else name)


@pytest.mark.parametrize(
    ("is_there", "has_cuda", "has_mps", "expected"),
    [(True, True, True, "cuda:0"), (True, False, True, "mps"), (True, False, False, "cpu"), (False, True, True, "cpu")],
)
def test_the_best_device_that_torch_can_use_comes_first(is_there, has_cuda, has_mps, expected, monkeypatch):
    monkeypatch.setattr(engine.nets.devices, "has_gpu", lambda: is_there)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: has_mps)
    assert choose_devices("auto") == [expected] and choose_devices("cpu") == ["cpu"]
    # Training knows CUDA alone.
    assert str(torch_device()) == (expected if expected != "mps" else "cpu")


def test_without_torch_a_processor_plays_and_training_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(engine.nets.devices, "has_gpu", lambda: True)
    assert choose_devices("auto") == choose_devices("cpu") == ["cpu"]
    for ask in (torch_device, partial(choose_devices, "cuda")):
        with pytest.raises(ValueError, match=r"needs PyTorch, which cannot be imported .*: pip install torch$"):
            ask()


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_a_device_has_one_name(name):
    assert choose_devices(name) == ["cpu"]


def test_several_devices_are_named_with_commas(every_device):
    assert choose_devices("cuda:0, cuda:1") == ["cuda:0", "cuda:1"]
    assert choose_devices("cuda,cuda:1") == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("device", "words"), [("cuda,cuda:0", "names one twice"), ("cuda:1,cpu", "has the CPU beside others")]
)
def test_devices_that_do_not_go_together_are_refused_in_one_line(device, words, every_device):
    with pytest.raises(ValueError, match=f"device '{device}' {words}, expected") as caught:
        choose_devices(device)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("device", "words"),
    [("fast", "unknown device 'fast'"), ("cpu,fast", "unknown device 'fast'"), ("", "unknown device ''")]
    + ([] if torch.cuda.is_available() else [("cuda:0,cuda:1", "device 'cuda:0' cannot be used here")]),
)
def test_a_device_that_is_not_here_is_refused_in_one_line(device, words):
    with pytest.raises(ValueError, match=f"{words}.* expected auto, cpu, mps, cuda or cuda:N") as caught:
        choose_devices(device)
    assert "\n" not in str(caught.value)


def test_errors_are_told_in_win_rate_and_probability():
    exact = NetArrays(policy=np.array([[0.0, 0.0]]), value=np.array([0.5]))
    rough = NetArrays(policy=np.array([[0.0, 1.0]]), value=np.array([0.6]))
    expected = {"win rate": 0.05, "policy": 1 / (1 + 2.718281828**-1) - 0.5}
    assert differences(exact, rough) == pytest.approx(expected, abs=1e-6)
    assert excess(exact, exact) == ""
    assert "policy moves by 0.231 and win rate moves by 0.050" in excess(exact, rough)
    assert excess(exact, exact._replace(value=np.array([np.nan]))) == "outputs are NaN or infinite (win rate)"
    exact = exact._replace(score=np.array([1.0]))
    assert excess(exact, exact._replace(score=np.array([9.0]))) == ""
    assert excess(exact, exact._replace(score=np.array([np.inf]))) == "outputs are NaN or infinite (score)"


def samples_of_3(encoder: str, size: int):
    return tuple(tensor.numpy() for tensor in inputs("keima-resnet", 3, size=size))


@pytest.mark.parametrize(("wrong", "dtype"), [("", "bfloat16"), ("all is lost", "float32")])
def test_a_network_that_suffers_from_16_bits_keeps_its_32(wrong, dtype, monkeypatch, tmp_path, capfd):
    notices.say.cache_clear()
    monkeypatch.setattr(engine.nets.compute.by_torch, "prefers_bfloat16", lambda _: True)
    monkeypatch.setattr(engine.nets.on_device, "HAS_MATRIX_UNIT", True)
    if wrong:
        monkeypatch.setattr(engine.nets.on_device, "excess", lambda exact, rough: wrong)
    model, asked = toy("keima-resnet"), []

    def samples(encoder: str, size: int):
        asked.append((encoder, size))
        return samples_of_3(encoder, size)

    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    network = load_network(tmp_path / "toy.safetensors", "cpu", samples)
    assert network.dtype == dtype and asked[0] == ("keima-2", 19)
    said = capfd.readouterr().err.splitlines()
    assert said[:1] == ([f"network toy runs in float32: in bfloat16 {wrong}"] if wrong else [])


def refuse_programs(describe):
    """A description with a layer that programs lack."""

    def refusing(self, forward):
        if isinstance(forward, Program):
            raise Unwritable
        describe(self, forward)

    return refusing


@pytest.mark.parametrize(
    ("can_write", "has_bfloat16", "has_matrix_unit", "dtype"),
    [
        (True, False, False, "float32"),
        (True, True, False, "float32"),
        (True, True, True, "bfloat16"),
        (False, False, False, "float32"),
        (False, True, False, "bfloat16"),
    ],
)
def test_a_processor_computes_in_16_bits_what_programs_do_not_compute_faster(
    can_write, has_bfloat16, has_matrix_unit, dtype, monkeypatch
):
    monkeypatch.setattr(engine.nets.compute.by_torch, "prefers_bfloat16", lambda _: has_bfloat16)
    monkeypatch.setattr(engine.nets.on_device, "HAS_MATRIX_UNIT", has_matrix_unit)
    if not can_write:
        monkeypatch.setattr(ResNet, "describe", refuse_programs(ResNet.describe))
    plain = plain_of(toy("keima-resnet"))
    network = network_on(plain, new_spec(plain, "toy"), "cpu")
    assert network.dtype == dtype
    assert isinstance(network, ProgramNetwork) == (can_write and dtype == "float32")


def test_a_matrix_unit_without_torch_leaves_programs(monkeypatch):
    plain = plain_of(toy("keima-resnet"))
    monkeypatch.setattr(engine.nets.on_device, "HAS_MATRIX_UNIT", True)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert isinstance(network_on(plain, new_spec(plain, "toy"), "cpu"), ProgramNetwork)


@pytest.mark.parametrize("wrong_at", [0, 19, 9])
def test_kernels_of_ours_that_are_wrong_here_are_left(wrong_at, monkeypatch, tmp_path, capfd):
    """Not only 16 bits can be wrong: a compiler, a driver or a processor may be."""
    notices.say.cache_clear()
    monkeypatch.setattr(engine.nets.on_device.jit, "FOLDER", tmp_path / "kernels")
    monkeypatch.setattr(engine.nets.compute.by_torch, "prefers_bfloat16", lambda _: False)
    model = toy("keima-resnet")
    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    load = partial(load_network, tmp_path / "toy.safetensors", "cpu", samples_of_3)
    run = CompiledNetwork.run

    def wrong(self, planes, globals_):
        right = run(self, planes, globals_)
        if wrong_at not in (0, planes.shape[2]):
            return right
        return {name: values + np.float32(0.5) * (values > 0) for name, values in right.items()}

    with monkeypatch.context() as patched:
        patched.setattr(CompiledNetwork, "run", wrong)
        assert isinstance(load(), TorchNetwork)
    assert capfd.readouterr().err.startswith("network toy runs slowly: our own kernels compute it wrongly here")
    assert isinstance(load(), ProgramNetwork) and capfd.readouterr().err == ""


def test_programs_that_were_found_right_are_not_compared_again(monkeypatch, tmp_path):
    monkeypatch.setattr(engine.nets.on_device.jit, "FOLDER", tmp_path / "kernels")
    compared = []
    excess = engine.nets.on_device._excess
    monkeypatch.setattr(engine.nets.on_device, "_excess", lambda *one: compared.append(one) or excess(*one))
    for seed, count in ((0, 2), (0, 2), (1, 4), (0, 4)):
        model = toy("keima-resnet", seed=seed)
        save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
        load_network(tmp_path / "toy.safetensors", "cpu", samples_of_3)
        # On boards of both Winograd tile sizes.
        assert len(compared) == count


def test_a_device_that_computes_wrongly_is_left_for_the_cpu(monkeypatch, tmp_path, capfd):
    notices.say.cache_clear()
    model = toy("keima-resnet")
    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    told = {"meta": "0.3 off", "cpu": ""}
    monkeypatch.setattr(engine.nets.on_device, "_excess", lambda network, *_: told[network.device])
    network = load_network(tmp_path / "toy.safetensors", "meta", samples_of_3)
    assert network.device == "cpu"
    assert "runs on the CPU: meta computes it wrongly, 0.3 off" in capfd.readouterr().err


def test_of_two_networks_that_play_as_one_both_leave_a_device_that_computes_one_wrongly(monkeypatch, tmp_path, capfd):
    notices.say.cache_clear()
    for name in ("policy", "value"):
        model = toy(f"alphago-{name}")
        save_network(tmp_path / name, model, new_spec(model, name), {})

    def told(network, *_):
        return "0.3 off" if network.device == "meta" and network.spec.heads == ("policy",) else ""

    monkeypatch.setattr(engine.nets.on_device, "_excess", told)
    pair = load_network((tmp_path / "policy", tmp_path / "value"), "meta", samples_of_3)
    assert pair._policy.device == pair._value.device == "cpu"


def test_evaluators_take_no_threads_from_who_chose_the_device():
    """Torch gives a thread that has not computed yet the number set last, by whomever: one where evaluators run."""
    lines = (
        "import threading, torch",
        "from engine.nets.devices import torch_device",
        "torch_device('cpu')",
        "evaluator = threading.Thread(target=torch.set_num_threads, args=(1,))",
        "evaluator.start(), evaluator.join()",
        "print(torch.get_num_threads())",
    )
    run = partial(subprocess.run, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "2"})
    assert run([sys.executable, "-c", "\n".join(lines)]).stdout == "2\n"
