"""``keima weights``: what it prints, its exit status, and one line for what is wrong."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.files.leela_zero import save_leela
from engine.nets.network import HEADS
from gtp.cli.weights import weights_group
from tests.nets.models import toy
from weights import DEFAULT, FOLDER, entries, places, players

ROOT = Path(__file__).resolve().parents[2]


def run(*words, status=0):
    """What a command prints."""
    ended = CliRunner().invoke(weights_group, [str(word) for word in words])
    assert ended.exit_code == status, ended.output
    return ended.output


@pytest.fixture
def zero(tmp_path):
    """A network that both formats can hold, as ours and as Leela Zero's."""
    model = toy("alphago-zero", size=19)
    spec = new_spec(model, "zero")
    save_network(
        tmp_path / "zero.safetensors", model, spec, {"step": 5, "games": ["a", "b", "c"], "options": {"x": 0.5}}
    )
    save_leela(tmp_path / "leela", model, spec)
    return tmp_path


def test_show_tells_what_a_network_is(zero):
    text = " ".join(run("show", zero / "zero.safetensors").split())
    for part in (
        "format Keima, version 1", "alphago-zero: planes 17, blocks 2, channels 8", "input zero-17: 17 planes",
        "output policy, value", "boards 19x19 alone", "rules those of its training games", "training: step 5",
        "training: games a ... c (3)", "training: options x 0.5",
    ):  # fmt: skip
        assert part in text
    text = " ".join(run("show", zero / "leela").split())
    assert "format Leela Zero, version 1" in text and "rules area scoring, komi 7.5, positional superko" in text


def test_a_training_record_may_be_anything(tmp_path):
    model = toy("alphago-zero")
    save_network(tmp_path / "net", model, new_spec(model, "net"), "from a friend")
    assert "training: record from a friend" in " ".join(run("show", tmp_path / "net").split())


def test_show_counts_parameters_and_work(zero):
    told = json.loads(run("show", zero / "leela", "--json"))
    points, channels = 361, 8
    convolutions = channels * 18 * 9 + 4 * channels**2 * 9 + 3 * channels
    dense = 2 * points * (points + 1) + points * 256 + 256
    assert told["multiply_adds"] == points * convolutions + dense
    assert told["parameters"] == convolutions + 2 * (5 * channels + 3) + dense + points + 1 + 256 + 1
    assert (told["board"], told["sizes"], told["heads"]) == (19, [19, 19], ["policy", "value"])


@pytest.mark.shared
def test_show_counts_what_a_katago_file_holds_not_what_is_left_of_it(shared_path):
    told = json.loads(run("show", shared_path / "nets" / "g170-b6c96-s175395328-d26788732.bin.gz", "--json"))
    assert told["parameters"] == 1027911 and told["architecture"].startswith("4 residual, 2 global pooling blocks")
    assert "parameters" not in told["training"]


@pytest.mark.parametrize("name", list(players()))
def test_a_player_is_shown_with_its_networks_and_what_they_play_with(name):
    """It was an unknown network, in a line that listed it among the known ones."""
    told = json.loads(run("show", name, "--json"))
    settings = tomllib.loads(players()[name].read_text(encoding="utf-8"))
    assert told["settings"] == settings
    assert "+".join(one["name"] for one in told["networks"]) == settings["weights"]
    text = " ".join(run("show", name).split())
    assert f"player {name}" in text and "patterns " in text
    assert all(f"network {one['name']}" in text for one in told["networks"])


def test_two_networks_are_shown_one_after_the_other(zero):
    text = run("show", f"{zero / 'leela'}+{zero / 'zero.safetensors'}")
    assert text.count("\nparameters ") == 2 and "\n\nnetwork" in text and "player" not in text


@pytest.mark.parametrize("command", [("verify",), ("convert", "x.txt"), ("average", DEFAULT, "x.safetensors")])
def test_where_one_network_is_expected_a_player_is_said_to_be_several(command):
    text = run(command[0], next(iter(players())), *command[1:], status=1)
    assert text.startswith("Error: 'alphago-9' is several networks that play together, expected one network: alpha")
    assert text.count("\n") == 1


@pytest.mark.parametrize("name", list(entries()))
def test_every_shipped_network_can_be_shown(name):
    told = json.loads(run("show", name, "--json"))
    sizes = [9, 9] if name.startswith(("alphago-9", "zero-9")) else [7, 19]
    assert told["format"] == "Keima" and told["sizes"] == sizes and told["training"]["step"] > 0
    assert told["good_for"] == entries()[name].description and f"{sizes[0]}x{sizes[0]}" in told["good_for"]


def test_verify_says_that_a_sound_network_is_sound(zero):
    text = run("verify", zero / "leela", "--device", "cpu")
    assert "leela on 19x19" in text and "float32" in text and "bfloat16" in text and "used for play" in text
    assert "ERROR TOO LARGE" not in text and "eight symmetries" in text
    told = json.loads(run("verify", DEFAULT, "--device", "cpu", "--json"))
    assert [way["is_close"] for way in told["ways"]] == [True, True]
    assert set(told["symmetry_spread"]) == {"win rate", "score"}


def test_verify_ends_with_status_1_where_something_is_too_far_off(zero, monkeypatch):
    monkeypatch.setitem(HEADS, "policy", HEADS["policy"]._replace(limit_32=-1.0))
    assert run("verify", zero / "leela", "--device", "cpu", status=1).count("ERROR TOO LARGE") == 1


def test_find_lists_networks_below_folders(zero):
    (zero / "deep").mkdir()
    (zero / "leela").rename(zero / "deep" / "leela")
    (zero / "foreign.txt").write_text("nothing " * 1000)
    told = json.loads(run("find", zero, "--json"))
    assert [(Path(row["file"]).name, row["format"], row["version"], row["network"]) for row in told] == [
        ("zero.safetensors", "Keima", 1, "alphago-zero"), ("leela", "Leela Zero", 1, ""),
    ]  # fmt: skip
    assert [row["good_for"] for row in told] == ["19x19: fast on a processor"] * 2
    text = run("find", zero)
    assert str(zero / "deep" / "leela") in text and "Leela Zero 1" in text and "foreign" not in text


def test_find_names_the_shipped_networks_by_their_names(monkeypatch, tmp_path):
    monkeypatch.setattr(places.Path, "home", lambda: tmp_path)
    text = run("find")
    assert all(name in text for name in (*entries(), "also for --weights: alphago-9 (AlphaGo of 2016 on 9x9"))
    assert str(FOLDER) not in text
    told = {FOLDER / Path(row["file"]).name: row["good_for"] for row in json.loads(run("find", FOLDER, "--json"))}
    assert told == {FOLDER / entry.file: entry.description for entry in entries().values()}
    assert "No networks in" in run("find", tmp_path)


@pytest.mark.parametrize(("mib", "pace"), [(1, "fast on a processor"), (40, "slow on a processor"), (100, "for a GPU")])
def test_networks_of_others_are_told_apart_by_size(tmp_path, mib, pace):
    path = tmp_path / "net.bin"
    path.write_bytes(b"name\n17\n22\n19\n")
    os.truncate(path, mib << 20)
    (row,) = json.loads(run("find", tmp_path, "--json"))
    assert row["good_for"].startswith("boards of 2x2 to 19x19: ") and row["good_for"].endswith(pace)


def test_finding_networks_needs_no_torch(tmp_path):
    code = f"import sys, gtp.cli.weights as m; m.weights_group(['find', {str(tmp_path)!r}], standalone_mode=False)"
    code += "; print([name for name in ('torch', 'numba', 'numpy') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_convert_writes_the_other_format(zero):
    assert "written: " in run("convert", zero / "zero.safetensors", zero / "out.gz")
    assert "written: " in run("convert", zero / "out.gz", zero / "back.safetensors")
    assert json.loads(run("show", zero / "back.safetensors", "--json"))["encoder"] == "leela-18"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "nobody"), "unknown network 'nobody'"),
        (("show", __file__), "of no kind we know, expected a network of Keima"),
        (("verify", __file__), "of no kind we know, expected a network of Keima"),
        (("verify", DEFAULT, "--device", "abacus"), "unknown device 'abacus'"),
        (("convert", DEFAULT, "net.txt"), "cannot be written for Leela Zero"),
        (("convert", DEFAULT, "net.bin"), r"expected a name ending in \.txt or \.gz"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words, message):
    text = run(*words, status=1)
    assert text.startswith("Error: ") and text.count("\n") == 1
    assert re.search(message, text)


def test_a_folder_that_is_not_there_is_told_in_one_line(zero):
    text = run("convert", zero / "zero.safetensors", zero / "none" / "net.txt", status=1)
    assert text.startswith("Error: ") and text.count("\n") == 1
