"""``keima doctor``: what it finds well, what wrong, what it says to do, and its exit status."""

import importlib.metadata
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import engine.system.jit
import gtp.cli.doctor
from engine.features.encoder import KEIMA
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.files.checkpoint import save_network
from engine.nets.layers import Drawn
from engine.nets.network import HEADS, NetworkSpec
from gtp.cli.doctor import doctor
from weights import entries, find_network


@pytest.fixture
def tiny(tmp_path):
    """A network of random weights."""
    path = tmp_path / "tiny.safetensors"
    spec = NetworkSpec("tiny", KEIMA.name, 7, 9, tuple(HEADS))
    save_network(path, ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, 1, 8), Drawn(1)), spec, {})
    return path


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch):
    monkeypatch.setattr("gtp.cli.doctor.SEARCH_S", 0.1)
    monkeypatch.setattr("gtp.cli.doctor.SLOW", 0.0)


def run(*words, status=0):
    ended = CliRunner().invoke(doctor, [str(word) for word in words])
    assert ended.exit_code == status, ended.output
    return ended.stdout


def found(*words, status=0):
    """Findings by what they are about."""
    return {item["what"]: item for item in json.loads(run("--json", *words, status=status))}


def test_all_is_well_where_it_is(tiny):
    text = run("--weights", tiny, "--size", 7)
    assert text.endswith("Everything works.\n")
    for part in ("Python", "torch", "numba", "numpy", "cpu", "kernel cache", "settings file", "self-test cpu"):
        assert f"\n{part} " in text
    assert "tiny (Keima), boards 7 to 9" in text and "visits/s for 0." in text and "on 7x7, move " in text


def test_json_has_the_same(tiny):
    items = found("--weights", tiny, "--size", 7)
    assert {item["verdict"] for item in items.values()} == {"well"}
    assert "SHA-256" in items["network"]["text"] and "win rate" in items["self-test cpu"]["text"]


def test_without_a_network_there_is_none_to_test():
    items = found("--weights", "none", "--size", 7)
    assert "search" in items and not {"network", "self-test cpu"} & set(items)


def test_a_network_that_is_not_there_and_a_package_that_is_missing_are_wrong(monkeypatch):
    def version(name):
        if name == "sgfmill":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr("importlib.metadata.version", version)
    text = run("--weights", "gone", status=1)
    assert "unknown network 'gone'" in " ".join(text.split()) and "sgfmill: install again" in text
    assert "\n2 of " in text and text.endswith(" checks failed.\n")


def test_a_cache_that_cannot_be_written_is_wrong_and_one_elsewhere_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(engine.system.jit, "FOLDER", None)
    (finding,) = gtp.cli.doctor._kernels()
    assert finding.verdict == "WRONG" and "KEIMA_CACHE" in finding.fix
    monkeypatch.setattr(engine.system.jit, "FOLDER", tmp_path)
    (finding,) = gtp.cli.doctor._kernels()
    assert finding.verdict == "note" and str(tmp_path) in finding.text


def test_it_says_for_which_networks_kernels_are_compiled(monkeypatch):
    """It said "compiled", and a start with alphago-9 compiled some more."""
    compiled = []
    monkeypatch.setattr("gtp.cli.doctor.compile_ahead", compiled.append)
    monkeypatch.setattr("engine.play.ahead.missing", lambda encoder: [] if encoder in compiled else ["encoder"])
    (finding,) = gtp.cli.doctor._compiled(find_network("small"))
    assert finding.text == (
        "compiled for the input keima-2 (default, small, human, zero-9); not yet for alphago-9-sl, alphago-9-rl, "
        "alphago-9-value, alphago-9, alphago-9-tuned, which compile more kernels at their first start"
    )
    (finding,) = gtp.cli.doctor._compiled(find_network("alphago-9"))
    assert compiled == ["keima-2", "alphago-49"]
    assert finding.text.startswith(
        "compiled for the input alphago-49 (alphago-9-value, alphago-9, alphago-9-tuned); not yet for alpha"
    )
    assert not list(gtp.cli.doctor._compiled(None))


def test_a_shipped_file_that_is_damaged_is_wrong(monkeypatch):
    name, entry = next(iter(entries().items()))
    monkeypatch.setattr("gtp.cli.doctor.entries", lambda: {name: replace(entry, sha256="0" * 64)})
    (finding,) = gtp.cli.doctor._file(gtp.cli.doctor.FOLDER / entry.file)
    assert finding.verdict == "WRONG" and "install it again" in finding.fix


def test_a_device_that_computes_something_else_is_wrong(monkeypatch, tiny):
    for name, head in HEADS.items():
        monkeypatch.setitem(HEADS, name, head._replace(limit_16=-1.0, limit_32=-1.0))
    (finding,) = gtp.cli.doctor._self_test(tiny, "cpu")
    assert finding.verdict == "WRONG" and "--device cpu" in finding.fix


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch):
    def torch_is_broken():
        raise ImportError("libtorch.so: cannot open shared object file")
        yield

    monkeypatch.setattr("gtp.cli.doctor._devices", torch_is_broken)
    items = found("--weights", "none", "--size", 7, status=1)
    assert items["torch is broken"]["verdict"] == "WRONG"
    assert "libtorch" in items["torch is broken"]["text"] and "install again" in items["torch is broken"]["fix"]
    assert items["search"]["verdict"] == "well"
