"""Network files: what is wrong with one is said in one line, and old ones are still read."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.devices import torch_device
from engine.nets.files.checkpoint import read_header, save_network
from engine.nets.model import load_model
from engine.nets.on_device import load_network
from tests.nets.models import toy
from weights import entries, find


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "tiny.safetensors"
    model = toy("keima-resnet")
    save_network(path, model, new_spec(model, "tiny"), {"step": 5})
    return path


def _edited(path, change):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    inner = json.loads(header["__metadata__"]["keima"])
    change(inner)
    header["__metadata__"]["keima"] = json.dumps(inner)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def _claims(path, header):
    text = json.dumps({"__metadata__": {"keima": header}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:3]), "not a safetensors file"),
        (lambda path: path.write_bytes(path.read_bytes()[:900]), "header"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "damaged, truncated"),
        (lambda path: path.write_bytes(b"\xff" * 4000), "not a safetensors file"),
        (lambda path: path.write_bytes(b""), "not a safetensors file"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: _claims(path, "[" * 100000), "no Keima network header"),
        (lambda path: _claims(path, '{"format": ' + "9" * 5000 + "}"), "no Keima network header"),
        (lambda path: _edited(path, lambda h: h.update(format=99)), "expected format 1"),
        (lambda path: _edited(path, lambda h: h.update(architecture="oracle")), "unknown architecture 'oracle'"),
        (lambda path: _edited(path, lambda h: h.update(architecture="alphago-zero")), "describes no network"),
        (lambda path: _edited(path, lambda h: h["shape"].update(blocks=4)), "do not fit"),
        (lambda path: _edited(path, lambda h: h["shape"].update(colour=4)), "describes no network"),
        (lambda path: _edited(path, lambda h: h["shape"].update(channels=10**9)), "expected 1 to 2048"),
        (lambda path: _edited(path, lambda h: h["shape"].update(channels="8")), "expected a whole number"),
        (lambda path: _edited(path, lambda h: h.update(sizes=[9])), "describes no network"),
        (lambda path: _edited(path, lambda h: h.update(sizes=[19, 7])), "expected two from"),
        (lambda path: _edited(path, lambda h: h.pop("shape")), "lacks 'shape'"),
        (lambda path: _edited(path, lambda h: h.pop("training")), "lacks 'training'"),
    ],
)
def test_bad_files_give_one_line_that_names_the_file(saved, damage, message):
    damage(saved)
    with pytest.raises(ValueError, match=message) as caught:
        load_model(saved)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_weights_that_are_not_numbers_are_refused(name, tmp_path):
    model = toy(name)
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] = float("nan")
    path = tmp_path / "nan.safetensors"
    save_network(path, model, new_spec(model, "nan"), {})
    with pytest.raises(ValueError, match="not finite"):
        load_model(path)


def test_header_is_read_without_tensors(saved):
    header = read_header(saved)
    assert header["architecture"] == "keima-resnet"
    assert header["encoder"] == "keima-2"
    assert header["sizes"] == [7, 19]


@pytest.mark.parametrize("name", entries())
def test_the_shipped_networks_are_still_read(name):
    network = load_network(find(name), "cpu")
    size, shape = network.spec.max_size, network.shape
    planes, globals_ = np.zeros((1, shape.planes, size, size), np.float32), np.zeros((1, shape.globals), np.float32)
    assert all(np.isfinite(head).all() for head in network.evaluate(planes, globals_) if head is not None)


def test_unknown_device_is_one_line():
    with pytest.raises(ValueError, match="expected auto, cpu, mps, cuda"):
        torch_device("abacus")


def test_reading_one_imports_no_torch(tmp_path):
    """It takes a second, which every start would wait for."""
    paths = []
    for architecture in ARCHITECTURES:
        paths.append(str(tmp_path / f"{architecture}.safetensors"))
        model = toy(architecture)
        save_network(Path(paths[-1]), model, new_spec(model, "tiny"), {})
    code = (
        "import sys; from engine.nets.on_device import load_network; from pathlib import Path\n"
        "for path in sys.argv[1:]:\n"
        "    load_network(Path(path), 'cpu')\n"
        "    print(Path(path).stem, 'torch' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", code, *paths], cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [f"{architecture} False" for architecture in ARCHITECTURES]
