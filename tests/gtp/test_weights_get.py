"""``keima weights get``: the list, a download that is then played, questions, and one line for what is wrong."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from engine.nets.architectures.registry import new_spec
from engine.nets.files.leela_zero import save_leela
from gtp.cli import main, weights
from tests.conftest import ROOT
from tests.file_server import Served, file_server
from tests.nets.models import toy
from weights.downloads import downloads


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KEIMA_NETWORKS", str(tmp_path / "networks"))
    return tmp_path / "networks"


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network file's bytes, in Leela Zero's format."""
    path = tmp_path_factory.mktemp("network") / "leela.gz"
    model = toy("alphago-zero", size=19)
    save_leela(path, model, new_spec(model, "zero"))
    return path.read_bytes()


@pytest.fixture
def server(network):
    with file_server() as found:
        found.files["toy.gz"] = Served(network)
        yield found


def run(*words, status=0, **options):
    """The output of ``keima weights``, standard error included."""
    ended = CliRunner().invoke(main, ["weights", *map(str, words)], **options)
    assert ended.exit_code == status, ended.output
    return ended.output


def refused(*words, **options):
    """The one line about what is wrong."""
    text = run(*words, status=1, **options)
    assert text.count("Error: ") == 1 and text.rpartition("Error: ")[2].count("\n") == 1
    return text


def test_the_list_says_what_each_is_good_for(folder):
    text = " ".join(run("get").split())
    for part in ("katago-human", "94.5 MiB *", "36.5 MiB boards", "third parties", "--url URL any other"):
        assert part in text
    rows = json.loads(run("get", "--json"))
    assert [row["name"] for row in rows] == list(downloads()) and not folder.exists()
    assert all(row["licence_url"] and row["file"] == "" for row in rows)


def test_a_download_is_found_and_played_by_its_name(folder, server, network):
    text = run("get", "mine", "--url", f"{server.url}/toy.gz", "--sha256", hashlib.sha256(network).hexdigest().upper())
    assert f"written: {folder / 'mine.gz'}" in text and "play it: keima gtp --weights mine" in text
    assert (folder / "mine.gz").read_bytes() == network
    assert f"downloaded from: {server.url}/toy.gz" in (folder / "mine.licence.txt").read_text()
    rows = {row["file"]: row for row in json.loads(run("find", "--json"))}
    assert rows[str(folder / "mine.gz")]["format"] == "Leela Zero"
    assert any(line.split()[-1:] == ["mine"] for line in run("find").splitlines())
    assert json.loads(run("show", "mine", "--json"))["file"] == str(folder / "mine.gz")
    ended = CliRunner().invoke(main, ["gtp", "--config", "none", "--print-config", "--weights", "mine"])
    assert 'weights = "mine"' in ended.output
    assert "already there" in run("get", "mine", "--url", f"{server.url}/toy.gz") and len(server.requests) == 1


def test_a_listed_network_is_fetched_from_a_mirror(folder, server, network, monkeypatch):
    listed = downloads()["katago-b6c96"]
    facts = vars(listed) | {"bytes": len(network), "sha256": hashlib.sha256(network).hexdigest()}
    monkeypatch.setattr(weights, "downloads", lambda: {"katago-b6c96": type(listed)(**facts)})
    server.files[listed.file_name] = server.files["toy.gz"]
    text = run("get", "katago-b6c96", "--mirror", f"{server.url}/some/where")
    assert server.requests[0][0] == f"/some/where/{listed.file_name}" and "SHA-256 as expected" in text
    licence = (folder / "katago-b6c96.licence.txt").read_text()
    assert listed.licence in licence and listed.licence_url in licence
    (folder / "katago-b6c96.bin.gz").write_bytes(b"damaged")
    assert "written: " in run("get", "katago-b6c96", "--mirror", server.url)


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_it_asks_before_much(folder, server, monkeypatch, answer, status):
    monkeypatch.setattr(weights, "ASKED_BYTES", 100)
    text = run("get", "--url", f"{server.url}/toy.gz", input=answer, status=status)
    assert f"MiB from {server.url}/toy.gz?" in text
    assert (folder / "toy.gz").exists() == (status == 0)
    assert status == 0 or "nothing" in text
    if answer == "":
        assert "--yes answers the question" in text
        assert "?" not in run("get", "--yes", "--url", f"{server.url}/toy.gz")


@pytest.mark.parametrize(("data", "message"), [
    (b"<html>" + b"x" * 5000, "toy.gz: of no kind we know, expected a network of Keima"),
    (b"PK\x03\x04" + b"x" * 5000, "a zip archive, expected a network of Keima"), (b"", "empty, expected a network"),
])  # fmt: skip
def test_what_is_no_network_is_not_kept(folder, server, data, message):
    server.files["toy.gz"] = Served(data)
    assert message in refused("get", "--yes", "--url", f"{server.url}/toy.gz")
    assert not [path for path in folder.iterdir() if path.suffix != ".lock"]


def test_a_network_that_is_cut_off_is_not_kept(folder, server, network):
    """Its header is sound: the whole file is read."""
    server.files["toy.gz"] = Served(network[: len(network) // 2])
    assert "truncated" in refused("get", "--url", f"{server.url}/toy.gz")
    assert not list(folder.glob("toy*"))


def test_mistakes_get_one_line(folder, server):
    url = f"{server.url}/toy.gz"
    assert "no network 'nobody' to download, expected katago-b10c384, " in refused("get", "nobody")
    assert "answers 404" in refused("get", "--url", f"{server.url}/none.gz")
    assert "expected 0000" in refused("get", "--url", url, "--sha256", "0" * 64)
    assert "listed network" in refused("get", "katago-human", "--url", url)
    assert "shipped network" in refused("get", "default", "--url", url)
    assert "expected 64 hexadecimal digits" in run("get", "--url", url, "--sha256", "12", status=2)
    assert "--sha256 belongs to --url" in run("get", "katago-human", "--sha256", "0" * 64, status=2)
    run("get", "--url", url)
    assert "is another file" in refused("get", "toy", "--url", url, "--sha256", "0" * 64)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_keeps_what_has_arrived(folder, server, network, interruptible):
    server.files["toy.gz"].stalls = True
    command = [sys.executable, "-m", "gtp.cli", "weights", "get", "--url", f"{server.url}/toy.gz"]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    part = folder / "toy.gz.part"
    while process.poll() is None and not (part.is_file() and part.stat().st_size == len(network) // 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130 and out == ""
    assert f"interrupted: what has arrived is kept in {part}; run the same command again to resume" in err
    server.files["toy.gz"].stalls = False
    run("get", "--url", f"{server.url}/toy.gz")
    assert (folder / "toy.gz").read_bytes() == network
    assert server.ranges() == ["", f"bytes={len(network) // 2}-"]
    assert (folder / "toy.licence.txt").is_file()
