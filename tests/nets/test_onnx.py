"""Exported networks of every architecture, computed by ONNX Runtime, beside their reference."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from engine.nets.architectures.registry import new_spec
from engine.nets.files.onnx import PARTS, save_onnx
from engine.nets.files.read import convert, pair_spec
from engine.nets.katago.blocks import FeedForwardBlock
from engine.nets.katago.model import load_katago
from engine.nets.model import plain_of
from engine.nets.network import NetArrays
from engine.nets.on_device import Reference
from tests.nets.katago_files import NETWORKS as KATAGO
from tests.nets.katago_files import saved
from tests.nets.models import toy
from weights import find_network

OURS = {
    "resnet": ("keima-resnet", {}),
    "resnet-nested": ("keima-resnet", {"inner": 4, "pool_every": 1}),
    "resnet-reply": ("keima-resnet", {"reply": 1, "pool_every": 9}),
    "resnet-no-globals": ("keima-resnet", {"globals": 0}),
    "policy": ("alphago-policy", {}),
    "value": ("alphago-value", {}),
    "zero": ("alphago-zero", {}),
    "elf": ("elf-opengo", {}),
}
PAIR = "policy+value"
OF_ONE_SIZE = ("policy", "value", "zero", "elf", PAIR)
NAMES = (*OURS, PAIR, *KATAGO)


def made(name, tmp_path):
    """The networks of a name, in a list, and their spec."""
    if name in KATAGO:
        network, spec, _ = load_katago(saved(tmp_path, KATAGO[name]))
        return [network], spec
    networks = [plain_of(toy(OURS[part][0], **OURS[part][1])) for part in name.split("+")]
    specs = [new_spec(network, name) for network in networks]
    return networks, specs[0] if len(specs) == 1 else pair_spec(*specs)


def given(networks, count, size, seed=0):
    """Planes of zeros and ones, and globals with flags of rules among them."""
    random, shape = np.random.default_rng(seed), networks[-1].shape
    planes = (random.random((count, shape.planes, size, size)) < 0.3).astype(np.float32)
    globals_ = random.standard_normal((count, shape.globals)).astype(np.float32)
    globals_[:, 6:10:3] = random.random(globals_[:, 6:10:3].shape) < 0.5
    return planes, globals_


def expected(networks, planes, globals_):
    """The outputs of the reference."""
    parts = [Reference(network)(planes[:, : network.shape.planes], globals_) for network in networks]
    return parts[0] if len(parts) == 1 else NetArrays(parts[0].policy, parts[1].value)


class Session:
    """An ONNX file in ONNX Runtime."""

    def __init__(self, path):
        self._session = pytest.importorskip("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs = {one.name: one.shape for one in self._session.get_inputs()}
        self.outputs = {one.name: one.shape for one in self._session.get_outputs()}
        self.facts = self._session.get_modelmeta().custom_metadata_map

    def __call__(self, planes, globals_):
        given = {"planes": planes, "globals": globals_}
        found = self._session.run(list(self.outputs), {name: given[name] for name in self.inputs})
        return NetArrays(**dict(zip(self.outputs, found, strict=True)))


def exported(name, tmp_path, size=None):
    """A network's session and its parts."""
    onnx = pytest.importorskip("onnx")
    networks, spec = made(name, tmp_path)
    path = tmp_path / "net.onnx"
    save_onnx(path, networks, spec, size)
    onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True, data_prop=True)
    return Session(path), networks, spec


def compare(session, networks, count, size):
    """Compare a session with the reference."""
    inputs = given(networks, count, size)
    for head, one, other in zip(NetArrays._fields, session(*inputs), expected(networks, *inputs), strict=True):
        assert (one is None) == (other is None), head
        if one is not None:
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5, err_msg=head)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_those_of_the_network_for_every_batch_and_board(name, tmp_path):
    session, networks, spec = exported(name, tmp_path)
    assert (spec.min_size == spec.max_size) == (name in OF_ONE_SIZE)
    for size in {spec.min_size, 7, 8 if name not in OF_ONE_SIZE else 7, spec.max_size}:
        for count in (1, 7):
            compare(session, networks, count, size)


@pytest.mark.parametrize("name", ["resnet", "v15-human", "v17-hybrid"])
def test_a_graph_of_one_board_size(name, tmp_path):
    session, networks, _ = exported(name, tmp_path, size=9)
    assert session.inputs["planes"][2:] == [9, 9] and session.outputs["policy"][1:] == [82]
    assert session.facts["keima.sizes"] == "9"
    for count in (1, 7):
        compare(session, networks, count, 9)


def test_names_shapes_and_metadata(tmp_path):
    session, _, spec = exported("resnet", tmp_path)
    assert session.inputs == {"planes": ["batch", 5, "size", "size"], "globals": ["batch", 3]}
    assert session.outputs == {
        "policy": ["batch", "size*size+1"], "value": ["batch"], "score": ["batch"],
        "ownership": ["batch", "size", "size"],
    }  # fmt: skip
    assert session.facts == {"keima.name": "resnet", "keima.encoder": spec.encoder, "keima.sizes": "7-19"}
    session, *_ = exported(PAIR, tmp_path)
    assert session.inputs == {"planes": ["batch", 49, 7, 7]}
    assert session.outputs == {"policy": ["batch", 50], "value": ["batch"]}
    assert session.facts["keima.encoder"] == "alphago-49"


def test_weights_have_the_names_of_our_files(tmp_path):
    onnx = pytest.importorskip("onnx")
    exported("resnet-nested", tmp_path)
    names = {one.name for one in onnx.load(tmp_path / "net.onnx").graph.initializer}
    assert {"stem.weight", "blocks.0.narrow.weight", "blocks.2.blocks.1.second.bias", "ownership_out.weight"} <= names


def test_the_shipped_pair_is_converted_by_its_name(tmp_path):
    pytest.importorskip("onnx")
    convert(find_network("alphago-9"), tmp_path / "pair.onnx")
    session = Session(tmp_path / "pair.onnx")
    assert list(session.outputs) == ["policy", "value"] and session.facts["keima.sizes"] == "9"
    with pytest.raises(ValueError, match=r"pair\.onnx: exists already, expected a new name$"):
        convert(find_network("alphago-9"), tmp_path / "pair.onnx")


def test_a_board_size_that_the_network_does_not_play_is_refused(tmp_path):
    pytest.importorskip("onnx")
    networks, spec = made("zero", tmp_path)
    with pytest.raises(ValueError, match=r"^network zero plays boards of 7 alone, not 9$"):
        save_onnx(tmp_path / "net.onnx", networks, spec, 9)
    assert not list(tmp_path.iterdir())


def test_a_layer_without_a_formula_is_named(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.delitem(PARTS, FeedForwardBlock)
    networks, spec = made("v17-plain", tmp_path)
    with pytest.raises(ValueError, match=r"^network tiny-b1c6 has a layer that .* \(FeedForwardBlock\)$"):
        save_onnx(tmp_path / "net.onnx", networks, spec)


def test_without_the_package_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r"^export to ONNX needs the package onnx .*pip install onnx$"):
        save_onnx(tmp_path / "net.onnx", [SimpleNamespace()], None)
