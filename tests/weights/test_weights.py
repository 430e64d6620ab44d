"""The shipped networks: the manifest agrees with the files, names are found, and mistakes get one clear line."""

import hashlib
import re
import tomllib

import pytest
from click.testing import CliRunner

import weights
from gtp.cli import main
from weights import FOLDER, Entry

MAX_MIB = 40
SHIPPED = weights.entries()


def test_the_default_is_shipped_as_soon_as_anything_is():
    assert not SHIPPED or weights.DEFAULT in SHIPPED


def test_names_are_the_tables_of_the_manifest():
    assert list(weights.entries()) == list(tomllib.loads(weights.MANIFEST.read_text(encoding="utf-8")))


def test_every_network_file_is_listed():
    listed = {entry.file for entry in SHIPPED.values()}
    assert {path.name for path in FOLDER.glob("*.safetensors")} == listed


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_network_is_what_the_manifest_says(name):
    from engine.features.encoder import ENCODERS
    from engine.nets.files.checkpoint import read_header

    entry, path = SHIPPED[name], weights.find(name)
    assert path == FOLDER / entry.file
    assert hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
    assert read_header(path)["encoder"] == entry.encoder
    assert entry.encoder in ENCODERS
    assert entry.description and "\n" not in entry.description
    assert (FOLDER / entry.card).read_text(encoding="utf-8").startswith("#")


def test_only_the_card_of_the_default_network_calls_it_default():
    """Commands on the others measure the network that plays today."""
    for card in {entry.card for entry in SHIPPED.values()} - {SHIPPED[weights.DEFAULT].card}:
        commands = re.findall(r"`([^`\n]+)`", (FOLDER / card).read_text(encoding="utf-8"))
        assert not [words for words in commands if weights.DEFAULT in words.split()], card


def test_the_box_stays_small():
    assert sum((FOLDER / entry.file).stat().st_size for entry in SHIPPED.values()) < MAX_MIB << 20


@pytest.fixture
def manifest(tmp_path, monkeypatch):
    """Write a manifest of the test's own and use it."""

    def write(text: str) -> None:
        (tmp_path / "MANIFEST.toml").write_text(text, encoding="utf-8")

    monkeypatch.setattr(weights, "FOLDER", tmp_path)
    monkeypatch.setattr(weights, "MANIFEST", tmp_path / "MANIFEST.toml")
    return write


TWO = """
[one]
file = "one.safetensors"
sha256 = "00"
encoder = "keima-1"
description = "the first"
card = "one.md"

[two]
file = "two.safetensors"
sha256 = "11"
encoder = "keima-1"
description = "the second"
card = "two.md"
"""


def test_a_name_gives_its_file(manifest, tmp_path):
    manifest(TWO)
    (tmp_path / "one.safetensors").write_bytes(b"x")
    assert weights.find("one") == tmp_path / "one.safetensors"
    assert list(weights.entries()) == ["one", "two"]
    assert weights.entries()["two"] == Entry("two.safetensors", "11", "keima-1", "the second", "two.md")


def test_two_networks_joined_by_plus_give_two_files(manifest, tmp_path):
    manifest(TWO)
    for name in ("one.safetensors", "two.safetensors", "c++", "c"):
        (tmp_path / name).write_bytes(b"x")
    assert weights.find_network("one") == tmp_path / "one.safetensors"
    assert weights.find_network("one+two") == (tmp_path / "one.safetensors", tmp_path / "two.safetensors")
    assert weights.find_network(f"{tmp_path / 'c'}+two") == (tmp_path / "c", tmp_path / "two.safetensors")
    assert weights.find_network(str(tmp_path / "c++")) == tmp_path / "c++"
    for text in ("one+", "+two", "one+three", "one+two+two", "three"):
        with pytest.raises(ValueError, match="unknown network") as caught:
            weights.find_network(text)
        assert "\n" not in str(caught.value)


def test_a_path_gives_itself(manifest, tmp_path, monkeypatch):
    manifest(TWO)
    (tmp_path / "own.bin").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert weights.find("own.bin").resolve() == tmp_path.resolve() / "own.bin"
    assert weights.find(str(tmp_path / "own.bin")) == tmp_path / "own.bin"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("two", "network 'two' is listed in .* but its file .*two.safetensors is missing"),
        ("three", "unknown network 'three': no such file, and the shipped networks are: one, two"),
        ("", "unknown network ''"),
        (".", "is a folder, expected a network file"),
        ("x" * 5000, "cannot be looked up|unknown network"),
        ("a\0b", "unknown network"),
        ("~no-such-user-here/net", "cannot be looked up"),
    ],
)
def test_what_cannot_be_found_is_said_in_one_line(manifest, wanted, message):
    manifest(TWO)
    with pytest.raises(ValueError, match=message) as caught:
        weights.find(wanted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[one\n", "not valid TOML"),
        ("one = 1\n", "network 'one' needs exactly the keys card, description, encoder, file, sha256"),
        ("[one]\nfile = 'a'\n", "network 'one' needs exactly"),
        (TWO + "color = 'red'\n", "network 'two' needs exactly"),
    ],
)
def test_a_damaged_manifest_is_named(manifest, text, message):
    manifest(text)
    with pytest.raises(ValueError, match=message) as caught:
        weights.entries()
    assert "MANIFEST.toml" in str(caught.value)


def test_a_missing_manifest_is_named(manifest):
    with pytest.raises(ValueError, match=r"MANIFEST\.toml: cannot be read"):
        weights.find("one")


def test_a_player_is_its_networks_and_the_settings_it_plays_with(manifest, tmp_path, monkeypatch):
    """Networks by name, patterns beside the file; what the command line says comes before."""
    manifest(TWO)
    for name in ("one.safetensors", "two.safetensors", "r.npz", "t.npz"):
        (tmp_path / name).write_bytes(b"x")
    lines = 'weights = "one+two"\npatterns = "r.npz+t.npz"\nrollout-weight = 0.5\nsize = 9\n'
    (tmp_path / "player-9.toml").write_text(lines)
    assert weights.players() == {"player-9": tmp_path / "player-9.toml"}
    with pytest.raises(ValueError, match="the shipped networks are: one, two; several that play together: player-9"):
        weights.find_network("player")
    both = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    assert weights.find_network("player-9") == both
    assert weights.anchored("player-9", tmp_path / "elsewhere") == "player-9"

    def printed(*words):
        found = CliRunner().invoke(main, ["gtp", "--config", "none", "--print-config", *words])
        assert found.exit_code == 0, found.output
        return tomllib.loads(found.stdout)

    found = printed("--weights", "player-9")
    assert (found["weights"], found["rollout-weight"], found["size"]) == ("one+two", 0.5, 9)
    assert weights.find_network(found["weights"]) == both
    assert found["patterns"] == f"{tmp_path / 'r.npz'}+{tmp_path / 't.npz'}"
    assert printed("--weights", "player-9", "--rollout-weight", "0")["rollout-weight"] == 0
    assert printed("--weights", "one")["size"] == 19


@pytest.mark.parametrize("name", weights.players())
def test_a_shipped_player_has_all_that_it_names(name):
    from gtp.cli.settings import read_settings

    settings = read_settings(weights.players()[name])
    assert {*settings["weights"].split("+")} <= {*SHIPPED} and weights.find_network(name)
    assert all(path.parent == FOLDER for path in weights.find_pattern_pair(settings["patterns"]))
    card = FOLDER / SHIPPED[settings["weights"].split("+")[0]].card
    assert f"--weights {name}`" in card.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["alphago-9-rollout+alphago-9-tree", "alphago-9-rollout.npz+alphago-9-tree.npz"])
def test_shipped_pattern_policies_are_found_by_name(text):
    names = [path.name for path in weights.find_pattern_pair(text)]
    assert names == ["alphago-9-rollout.npz", "alphago-9-tree.npz"]
    with pytest.raises(ValueError, match=r"unknown pattern policy 'x': no such file, and the shipped ones are: .*tree"):
        weights.find_pattern_pair("x+tree")
