"""Where a network goes: devices by name, and 16 bits only where they do no harm."""

import pytest
import torch

import engine.nets.adapter
import engine.nets.load
from engine.nets.architectures import new_spec
from engine.nets.checkpoint import save_network
from engine.nets.load import choose_devices, load_network
from engine.nets.network import NetOutput
from engine.nets.precision import errors, strays
from engine.nets.say import say_once
from tests.nets.models import inputs, toy


@pytest.fixture
def every_device(monkeypatch):
    """A machine that has whatever is asked for, and more than one of it."""
    monkeypatch.setattr(engine.nets.load, "choose_device", lambda name: torch.device(name))


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
    assert errors(exact, rough) == pytest.approx((0.05, 1 / (1 + 2.718281828**-1) - 0.5), abs=1e-6)
    assert strays(exact, exact) == ""
    assert "win rates move by 0.050" in strays(exact, rough)
    assert strays(exact, exact._replace(value=torch.tensor([torch.nan])))


@pytest.mark.parametrize(("wrong", "dtype"), [("", torch.bfloat16), ("all is lost", torch.float32)])
def test_a_network_that_suffers_from_16_bits_keeps_its_32(wrong, dtype, monkeypatch, tmp_path, capfd):
    say_once.cache_clear()
    monkeypatch.setattr(engine.nets.adapter, "likes_bfloat16", lambda _: True)
    if wrong:
        monkeypatch.setattr(engine.nets.load, "strays", lambda exact, rough: wrong)
    model, asked = toy("keima-resnet"), []

    def samples(encoder: str, size: int):
        asked.append((encoder, size))
        return tuple(tensor.numpy() for tensor in inputs("keima-resnet", 3))

    save_network(tmp_path / "toy.safetensors", model, new_spec(model, "toy"), {})
    network = load_network(tmp_path / "toy.safetensors", "cpu", samples)
    assert network.dtype == dtype and asked == [("keima-1", 19)]
    said = capfd.readouterr().err
    assert said == (f"network toy runs in float32: in bfloat16 {wrong}\n" if wrong else "")
