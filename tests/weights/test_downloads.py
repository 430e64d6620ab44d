"""The list of networks to download, their names, and where they are stored and found."""

import sys
import urllib.parse
from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

import weights
from weights import places, user_networks
from weights.downloads import A_COPY, SHA256, THIRD_PARTIES, Download, downloads, licence_text, name_for, stored_at

LISTED = downloads()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KEIMA_NETWORKS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_network_can_be_fetched_checked_and_named(name):
    one = LISTED[name]
    assert urllib.parse.urlsplit(one.url).scheme == urllib.parse.urlsplit(one.licence_url).scheme == "https"
    assert SHA256.fullmatch(one.sha256) and one.sha256_from in (A_COPY, THIRD_PARTIES)
    assert one.bytes >= 0 and one.licence and one.description and "\n" not in one.description
    assert one.ending in (".bin.gz", ".txt.gz") and name_for(one, name) == name


@pytest.mark.shared
def test_a_checksum_from_a_copy_is_that_of_a_copy(shared_path):
    from engine.system.files import sha256_of

    tested = [one for one in LISTED.values() if one.sha256_from == A_COPY]
    assert tested
    for one in tested:
        copy = shared_path / "nets" / one.file_name
        assert copy.stat().st_size == one.bytes and sha256_of(copy) == one.sha256


def test_a_damaged_list_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("weights.downloads.DOWNLOADS", tmp_path / "list.toml")
    with pytest.raises(ValueError, match=r"list\.toml: cannot be read"):
        downloads()
    (tmp_path / "list.toml").write_text('[one]\nurl = "https://a/b"\n')
    with pytest.raises(ValueError, match=r"list\.toml: network 'one' needs exactly the keys bytes, "):
        downloads()


@pytest.mark.parametrize(("url", "name", "found", "ending"), [
    ("https://a/b/kata1-b6.bin.gz?x=1", "", "kata1-b6", ".bin.gz"),
    ("https://a/b/a%20b.txt.gz", "mine", "mine", ".txt.gz"),
    ("https://a/b/leela", "", "leela", ".bin"),
    ("https://a/b/net.SAFETENSORS", "x", "x", ".safetensors"), ("https://a/..%2f..%2fx.gz", "", "x", ".gz"),
])  # fmt: skip
def test_a_network_is_named_by_its_file_or_by_the_user(folder, url, name, found, ending):
    one = Download(url)
    assert name_for(one, name) == found and one.ending == ending
    assert stored_at(found, one) == folder / f"{found}{ending}"


@pytest.mark.parametrize(("url", "name", "message"), [
    ("https://a/", "", "'' cannot name a network"), ("https://a/x", "../x", "'../x' cannot name a network"),
    ("https://a/x", "a+b", "cannot name a network"),
    ("https://a/x", ".x", "cannot name a network"), ("https://a/x", "-x", "cannot name a network"),
    ("https://a/default.gz", "", "'default' is the name of a shipped network"),
    ("https://a/x", "alphago-9", "'alphago-9' is the name of a shipped network"),
])  # fmt: skip
def test_no_name_leads_out_of_the_folder_or_hides_a_shipped_network(url, name, message):
    with pytest.raises(ValueError, match=message):
        name_for(Download(url), name)


def test_a_downloaded_network_is_found_by_its_name(folder, monkeypatch):
    (folder / "mine.bin.gz").write_bytes(b"x")
    monkeypatch.chdir(folder)
    Path("mine").mkdir()
    assert weights.find("mine") == weights.find_network("mine") == folder / "mine.bin.gz"
    assert weights.find_network("mine+mine") == (folder / "mine.bin.gz",) * 2
    assert weights.anchored("mine", folder / "elsewhere") == "mine"
    assert places.Place(folder, 0) in places.places()
    with pytest.raises(ValueError, match="unknown network 'yours'"):
        weights.find("yours")


def test_a_listed_network_that_is_not_there_yet_can_be_got(folder):
    with pytest.raises(ValueError, match="network 'katago-human' is not on this machine: keima weights get katago-hu"):
        weights.find("katago-human")


def test_a_mirror_has_the_file_by_the_same_name():
    one = LISTED["katago-human"].at("http://mirror/go/")
    assert one.url == "http://mirror/go/b18c384nbt-humanv0.bin.gz" and one.sha256 == LISTED["katago-human"].sha256


def test_the_licence_says_what_is_known():
    text = licence_text(LISTED["katago-human"], "ab")
    assert "network_license/" in text and "SHA-256: ab" in text
    assert licence_text(Download("https://a/b"), "ab").startswith("licence: not known")


@pytest.mark.parametrize("data", ["", "/some/where"])
@pytest.mark.parametrize(("platform", "folders"), [("linux", Unix), ("darwin", MacOS)])
def test_the_folder_is_the_one_that_platformdirs_finds(platform, folders, data, monkeypatch):
    """weights needs the standard library alone."""
    monkeypatch.delenv("KEIMA_NETWORKS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", data if platform == "linux" else "")
    expected = Path(folders("keima", appauthor=False).user_data_dir) / "networks"
    monkeypatch.setattr(sys, "platform", platform)
    assert user_networks() == expected


def test_the_folder_on_windows_does_not_roam(tmp_path, monkeypatch):
    monkeypatch.delenv("KEIMA_NETWORKS", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    assert user_networks() == tmp_path / "keima" / "networks"


def test_a_user_without_a_home_folder_has_no_downloads(monkeypatch):
    monkeypatch.delenv("KEIMA_NETWORKS", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", lambda path: (_ for _ in ()).throw(RuntimeError("no home")))
    assert weights.downloaded("mine") is None
