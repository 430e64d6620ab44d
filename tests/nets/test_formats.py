"""Network files are known by what they hold; conversion goes where it can."""

import gzip
import json
import struct

import pytest
import torch

from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.files.header import (
    EXPECTED,
    EXPECTED_INPUTS,
    KATAGO,
    KEIMA,
    LEELA_ZERO,
    Header,
    expected_input,
    recognise,
)
from engine.nets.files.leela_zero import save_leela
from engine.nets.files.read import convert, read_network
from engine.nets.model import load_model
from tests.nets.models import leela_model, toy

KATAGO_TEXT = b"g170-b6c96-s1\n8\n22\n19\ntrunk\n6\n96\n96\n64\n32\n32\nconv1\n"


def leela_text(version=1):
    """How a file of Leela Zero's begins."""
    return f"{version}\n{'-0.015 1e-05 0.2 ' * 54}\n0 0 0\n".encode()


def saved(path, architecture="alphago-zero", **shape):
    """A network file of ours."""
    model = toy(architecture, **shape)
    save_network(path, model, new_spec(model, path.stem), {"step": 5})
    return path


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (leela_text(), Header(LEELA_ZERO, 1, "")),
        (leela_text(2).replace(b"\n", b"\r\n"), Header(LEELA_ZERO, 2, "")),
        (gzip.compress(leela_text(), mtime=0), Header(LEELA_ZERO, 1, "")),
        (KATAGO_TEXT, Header(KATAGO, 8, "g170-b6c96-s1")),
        (KATAGO_TEXT + b"3\n3\n@BIN@\x00\xff\x80", Header(KATAGO, 8, "g170-b6c96-s1")),
        (gzip.compress(KATAGO_TEXT.replace(b"8", b"17", 1), mtime=0), Header(KATAGO, 17, "g170-b6c96-s1")),
        (KATAGO_TEXT.replace(b"\n", b" \r\n"), Header(KATAGO, 8, "g170-b6c96-s1")),
    ],
)  # fmt: skip
def test_a_file_is_known_by_how_it_begins(data, header, tmp_path):
    (tmp_path / "network.sgf").write_bytes(data)
    assert recognise(tmp_path / "network.sgf") == header


@pytest.mark.parametrize("data", [leela_text(), KATAGO_TEXT])
def test_what_a_foreign_network_needs_is_known_before_it_is_read(data, tmp_path):
    (tmp_path / "network").write_bytes(data)
    kind = recognise(tmp_path / "network").format
    assert expected_input(tmp_path / "network") == EXPECTED_INPUTS[kind]
    assert kind in EXPECTED


def test_a_kind_of_file_without_an_expected_input_is_an_error_in_one_line(tmp_path, monkeypatch):
    """Not taken for a damaged file: nothing would be compiled ahead, and clients just wait."""
    monkeypatch.setattr("engine.nets.files.header.recognise", lambda path: Header("New", 1, ""))
    with pytest.raises(ValueError, match="networks of New have no entry in EXPECTED_INPUTS"):
        expected_input(tmp_path / "network")


def test_our_own_are_known_whatever_they_are_called(tmp_path):
    path = saved(tmp_path / "network.txt.gz", "alphago-value")
    assert recognise(path) == Header(KEIMA, 1, "alphago-value")
    assert read_network(path)[2] == {"step": 5}


@pytest.mark.shared
def test_katagos_own_files_are_known(shared_path):
    paths = sorted((shared_path / "nets").glob("*.bin.gz"))
    assert paths
    for path in paths:
        header = recognise(path)
        assert (header.format, header.network) == (KATAGO, path.name.removesuffix(".bin.gz"))


def strange_safetensors():
    """A sound file of another program."""
    text = json.dumps({"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty, expected a network of Keima"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "of no kind we know, expected a network of Keima"),
        (b"(;GM[1]FF[4]SZ[19];B[pd])\n", "of no kind we know"),
        (b"1\n2\n3\n4\n5\n", "of no kind we know"),
        (bytes(4000), "of no kind we know"),
        (b"\xff" * 4000, "of no kind we know"),
        (gzip.compress(b"nothing", mtime=0), "of no kind we know"),
        (gzip.compress(leela_text(), mtime=0)[:9], "truncated, expected more of its gzip archive"),
        (b"\x1f\x8b" + bytes(99), "damaged, expected a sound gzip archive"),
        (b"PK\x03\x04" + bytes(99), "a zip archive, expected a network of Keima"),
        (leela_text(17), "version 17 of Leela Zero's format, expected 1 or 2"),
        (strange_safetensors(), "no Keima network header"),
    ],
)
def test_what_is_no_network_is_told_in_one_line(data, message, tmp_path):
    (tmp_path / "thing").write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        read_network(tmp_path / "thing")
    assert str(caught.value).startswith(str(tmp_path / "thing")) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_cannot_be_read_is_named(name, tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_network(tmp_path / name)


@pytest.mark.parametrize("name", ["net.txt", "net.gz"])
def test_ours_become_leela_zeros_and_come_back(name, tmp_path):
    source = saved(tmp_path / "ours.safetensors", size=19, planes=17, value_hidden=256)
    convert(source, tmp_path / name)
    assert recognise(tmp_path / name) == Header(LEELA_ZERO, 1, "")
    convert(tmp_path / name, tmp_path / "back.safetensors")
    model, spec, training = load_model(tmp_path / "back.safetensors")
    read = leela_model(tmp_path / name)[0].state_dict()
    assert all(torch.equal(value, read[key]) for key, value in model.state_dict().items())
    assert spec.encoder == "leela-18" and spec.max_size == 19
    assert training["converted"]["format"] == "Leela Zero, version 1" and training["converted"]["file"] == name


def test_black_values_stay_blacks(tmp_path):
    model = toy("elf-opengo", size=19)
    save_leela(tmp_path / "elf.txt", model, new_spec(model, "elf"))
    convert(tmp_path / "elf.txt", tmp_path / "elf.safetensors")
    convert(tmp_path / "elf.safetensors", tmp_path / "again.txt")
    assert recognise(tmp_path / "again.txt").version == 2


@pytest.mark.parametrize(
    ("make", "target", "message"),
    [
        (lambda path: saved(path, size=19), "net.safetensors", r"in \.txt or \.gz or \.onnx from"),
        (lambda path: path.write_bytes(leela_text()), "net.txt", r"in \.safetensors or \.onnx from"),
        (lambda path: path.write_bytes(KATAGO_TEXT), "net.txt", r"ending in \.onnx from a network of KataGo"),
        (lambda path: saved(path, size=19), "there.gz", "there.gz: exists already, expected a new name"),
        (lambda path: saved(path, size=9), "net.gz", "plays boards of 9x9, expected 19x19"),
        (lambda path: path.write_bytes(leela_text()), "net.safetensors", "line 3"),
    ],
)
def test_what_cannot_be_converted_is_told_in_one_line(make, target, message, tmp_path):
    (tmp_path / "there.gz").write_bytes(b"something")
    make(tmp_path / "source")
    with pytest.raises(ValueError, match=message) as caught:
        convert(tmp_path / "source", tmp_path / target)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "there.gz"]
    assert (tmp_path / "there.gz").read_bytes() == b"something"
