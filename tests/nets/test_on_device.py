"""Where a network goes: devices by name, and 16 bits only where they do no harm."""

import os
import subprocess
import sys
from functools import partial

import pytest
import torch

import engine.nets.compute.adapter
import engine.nets.on_device
from engine.nets.architectures.alphago import AlphaGoPolicy
from engine.nets.architectures.registry import new_spec
from engine.nets.compute.adapter import TorchNetwork
from engine.nets.compute.precision import differences, excess
from engine.nets.compute.program import CompiledNetwork
from engine.nets.files.checkpoint import save_network
from engine.nets.network import NetOutput
from engine.nets.notices import say_once
from engine.nets.on_device import choose_devices, load_network
from tests.nets.models import inputs, toy


@pytest.fixture
def every_device(monkeypatch):
    """A machine that has whatever is asked for, and more than one of it."""
    monkeypatch.setattr(engine.nets.on_device, "choose_device", lambda name: torch.device(name))


def test_the_best_device_comes_first(monkeypatch):
    assert choose_devices("cpu") == [torch.device("cpu")]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_devices("auto") == [torch.device("cpu")]


def test_apples_gpu_comes_before_the_cpu_and_after_cuda(monkeypatch, every_device):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_devices("auto") == [torch.device("mps")]


def test_several_devices_are_named_with_commas(every_device):
    assert choose_devices("cuda:0, cuda:1") == [torch.device("cuda", 0), torch.device("cuda", 1)]
    assert choose_devices("cuda,cuda:1") == [torch.device("cuda", 0), torch.device("cuda", 1)]


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
    exact = NetOutput(policy=torch.tensor([[0.0, 0.0]]), value=torch.tensor([0.5]))
    rough = NetOutput(policy=torch.tensor([[0.0, 1.0]]), value=torch.tensor([0.6]))
    expected = {"win rate": 0.05, "policy": 1 / (1 + 2.718281828**-1) - 0.5}
    assert differences(exact, rough) == pytest.approx(expected, abs=1e-6)
    assert excess(exact, exact) == ""
    assert "policy moves by 0.231 and win rate moves by 0.050" in excess(exact, rough)
    assert excess(exact, exact._replace(value=torch.tensor([torch.nan]))) == "outputs are NaN or infinite (win rate)"
    exact = exact._replace(score=torch.tensor([1.0]))
    assert excess(exact, exact._replace(score=torch.tensor([9.0]))) == ""
    assert excess(exact, exact._replace(score=torch.tensor([torch.inf]))) == "outputs are NaN or infinite (score)"


def samples_of_3(encoder: str, size: int):
    return tuple(tensor.numpy() for tensor in inputs("keima-resnet", 3, size=size))


@pytest.mark.parametrize(("wrong", "dtype"), [("", torch.bfloat16), ("all is lost", torch.float32)])
def test_a_network_that_suffers_from_16_bits_keeps_its_32(wrong, dtype, monkeypatch, tmp_path, capfd):
    say_once.cache_clear()
    monkeypatch.setattr(engine.nets.compute.adapter, "prefers_bfloat16", lambda _: True)
    monkeypatch.setattr(engine.nets.compute.adapter, "has_matrix_unit", lambda: True)
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


@pytest.mark.parametrize(
    ("can_write", "has_bfloat16", "has_matrix_unit", "dtype"),
    [
        (True, False, False, torch.float32),
        (True, True, False, torch.float32),
        (True, True, True, torch.bfloat16),
        (False, False, False, torch.float32),
        (False, True, False, torch.bfloat16),
    ],
)
def test_a_processor_computes_in_16_bits_what_programs_do_not_compute_faster(
    can_write, has_bfloat16, has_matrix_unit, dtype, monkeypatch
):
    monkeypatch.setattr(engine.nets.compute.adapter, "prefers_bfloat16", lambda _: has_bfloat16)
    monkeypatch.setattr(engine.nets.compute.adapter, "has_matrix_unit", lambda: has_matrix_unit)
    monkeypatch.setattr(engine.nets.compute.adapter, "_can_write", lambda _: can_write)
    model = toy("keima-resnet")
    network = TorchNetwork(model, new_spec(model, "toy"), torch.device("cpu"))
    assert network.dtype == dtype
    assert network.is_compiled == (can_write and dtype == torch.float32)


@pytest.mark.parametrize("wrong_at", [0, 19, 9])
def test_kernels_of_ours_that_are_wrong_here_are_left(wrong_at, monkeypatch, tmp_path, capfd):
    """Not only 16 bits can be wrong: a compiler, a driver or a processor may be."""
    say_once.cache_clear()
    monkeypatch.setattr(engine.nets.compute.adapter, "prefers_bfloat16", lambda _: False)
    model = toy("keima-resnet")
    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    load = partial(load_network, tmp_path / "toy.safetensors", "cpu", samples_of_3)
    assert not load().is_plain
    assert capfd.readouterr().err == ""
    run = CompiledNetwork.run

    def wrong(self, planes, globals_):
        right = run(self, planes, globals_)
        if wrong_at not in (0, planes.shape[2]):
            return right
        return {name: values + 0.5 * torch.rand_like(values) for name, values in right.items()}

    monkeypatch.setattr(CompiledNetwork, "run", wrong)
    assert load().is_plain
    assert capfd.readouterr().err.startswith("network toy runs slowly: our own kernels compute it wrongly here")


def test_a_device_that_computes_wrongly_is_left_for_the_cpu(monkeypatch, tmp_path, capfd):
    say_once.cache_clear()
    model = toy("keima-resnet")
    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    told = {"meta": "0.3 off", "cpu": ""}
    monkeypatch.setattr(engine.nets.on_device, "_excess", lambda network, *_: told[network.device.type])
    network = load_network(tmp_path / "toy.safetensors", torch.device("meta"), samples_of_3)
    assert network.device == torch.device("cpu")
    assert "runs on the CPU: meta computes it wrongly, 0.3 off" in capfd.readouterr().err


def test_of_two_networks_that_play_as_one_both_leave_a_device_that_computes_one_wrongly(monkeypatch, tmp_path, capfd):
    say_once.cache_clear()
    for name in ("policy", "value"):
        model = toy(f"alphago-{name}")
        save_network(tmp_path / name, model, new_spec(model, name), {})

    def told(network, model, *_):
        return "0.3 off" if network.device.type == "meta" and isinstance(model, AlphaGoPolicy) else ""

    monkeypatch.setattr(engine.nets.on_device, "_excess", told)
    pair = load_network((tmp_path / "policy", tmp_path / "value"), torch.device("meta"), samples_of_3)
    assert pair._policy.device == pair._value.device == torch.device("cpu")


def test_evaluators_take_no_threads_from_who_chose_the_device():
    """Torch gives a thread that has not computed yet the number set last, by whomever: one where evaluators run."""
    lines = (
        "import threading, torch",
        "from engine.nets.on_device import choose_device",
        "choose_device('cpu')",
        "evaluator = threading.Thread(target=torch.set_num_threads, args=(1,))",
        "evaluator.start(), evaluator.join()",
        "print(torch.get_num_threads())",
    )
    run = partial(subprocess.run, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "2"})
    assert run([sys.executable, "-c", "\n".join(lines)]).stdout == "2\n"
