"""Downloads from a server that breaks off, lies about sizes, ignores ranges, changes the file, redirects and stalls."""

import errno
import hashlib
import json
import shutil
import socket
import urllib.request
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.system import download as module
from engine.system.download import Source, Watcher, download
from tests.file_server import Served, file_server

DATA = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with file_server() as found:
        found.files["net.bin"] = Served(DATA)
        yield found


class Caller:
    """Downloads into a folder, and keeps what it is told."""

    def __init__(self, folder: Path, url: str):
        self.target, self.url = folder / "new" / "net.bin", url
        self.sizes: list[int] = []
        self.notices: list[str] = []
        self.seen: list[tuple[int, int]] = []
        self.waits: list[float] = []

    def get(self, size: int = len(DATA), sha256: str = SHA256, check=lambda path: None, progress=None) -> str:
        def seen(done: int, total: int) -> None:
            self.seen.append((done, total))
            if progress is not None:
                progress(done)

        watcher = Watcher(self.sizes.append, seen, self.notices.append)
        return download(Source(self.url, size, sha256), self.target, check, watcher, self.waits.append)

    def is_whole(self) -> bool:
        return self.target.read_bytes() == DATA and not self.left()

    def left(self) -> list[str]:
        """Names of the files beside the target, but for the lock."""
        names = (path.name for path in self.target.parent.iterdir() if path != self.target)
        return sorted(name for name in names if not name.endswith(".lock"))

    @property
    def part(self) -> Path:
        return self.target.with_name("net.bin.part")


@pytest.fixture
def caller(tmp_path, server):
    return Caller(tmp_path, f"{server.url}/net.bin")


@pytest.mark.parametrize(("size", "sha256"), [(len(DATA), SHA256), (0, SHA256), (0, "")])
def test_a_file_is_written_whole(caller, size, sha256):
    assert caller.get(size, sha256) == SHA256
    assert caller.is_whole()
    assert caller.sizes == [len(DATA)] and caller.seen[0] == (0, len(DATA)) and caller.seen[-1] == (len(DATA),) * 2


def test_a_connection_that_breaks_off_is_resumed_at_once(caller, server):
    server.files["net.bin"].breaks = [200_000, 100_000]
    caller.get()
    assert caller.is_whole()
    assert server.ranges() == ["", "bytes=200000-", "bytes=300000-"]
    assert [headers.get("if-range") for _, headers in server.requests] == [None, '"first"', '"first"']
    assert len(caller.notices) == 2 and "broke off after 0.2 MiB of 0.5 MiB" in caller.notices[0]
    assert caller.sizes == [len(DATA)]


def test_a_command_that_was_interrupted_is_resumed_by_the_next(caller, server):
    def interrupt(done: int) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        caller.get(progress=interrupt)
    held = caller.part.stat().st_size
    assert held > 100_000 and not caller.target.exists()
    caller.get()
    assert caller.is_whole() and server.ranges() == ["", f"bytes={held}-"]


def test_a_server_that_ignores_ranges_sends_the_file_anew(caller, server):
    server.files["net.bin"].ranges = False
    server.files["net.bin"].breaks = [200_000]
    caller.get()
    assert caller.is_whole()
    assert "sends the whole file" in caller.notices[1]


def test_a_file_that_changes_in_between_is_fetched_anew(caller, server):
    """Bytes of two files are never joined, though no checksum would find it."""
    new = bytes(reversed(DATA))

    def change() -> None:
        server.files["net.bin"] = Served(new, tag='"second"')

    server.files["net.bin"] = Served(DATA, breaks=[200_000], after=change)
    caller.get(0, "")
    assert caller.target.read_bytes() == new and not caller.left()


@pytest.mark.parametrize(("sha256", "ranges"), [("", ["", ""]), (SHA256, ["", "bytes=200000-"])])
def test_without_a_validator_only_a_checksum_allows_to_resume(caller, server, sha256, ranges):
    server.files["net.bin"].tag = ""
    server.files["net.bin"].breaks = [200_000]
    caller.get(0, sha256)
    assert caller.is_whole() and server.ranges() == ranges


def test_a_weak_tag_is_no_validator(caller, server):
    server.files["net.bin"] = Served(DATA, tag='W/"x"', breaks=[200_000], headers={"Last-Modified": "then"})
    caller.get(0, "")
    assert server.requests[1][1]["if-range"] == "then"
    assert caller.target.read_bytes() == DATA


def test_bytes_of_another_address_are_not_kept(caller, server):
    server.files["other.bin"] = Served(bytes(len(DATA)))
    caller.target.parent.mkdir()
    caller.part.write_bytes(bytes(1000))
    caller.part.with_name("net.bin.part.json").write_text(json.dumps({"url": "http://other/", "validator": '"first"'}))
    caller.get()
    assert caller.is_whole() and server.ranges() == [""]


def test_a_wrong_checksum_keeps_nothing(caller):
    with pytest.raises(ValueError, match=f"SHA-256 is {SHA256}, expected 0000"):
        caller.get(len(DATA), "0" * 64)
    assert not caller.target.exists() and not caller.left()


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1])
def test_a_file_of_another_size_is_refused_before_it_is_read(caller, size):
    with pytest.raises(ValueError, match=f"the server's file has 512,000 bytes, expected {size:,}"):
        caller.get(size)
    assert not caller.seen and not caller.left()


def test_never_more_is_written_than_was_promised(caller, server):
    server.files["net.bin"].length = -1
    with pytest.raises(ValueError, match="sends more than 100,000 bytes"):
        caller.get(100_000)
    assert max(done for done, _ in caller.seen) <= 100_000 and not caller.left()


def test_a_file_without_end_is_given_up(caller, server, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 100_000)
    with pytest.raises(ValueError, match="512,000 bytes, at most 100,000"):
        caller.get(0)
    server.files["net.bin"].length = -1
    with pytest.raises(ValueError, match="sends more than 100,000 bytes"):
        caller.get(0)
    assert not caller.left()


@pytest.mark.parametrize("length", [len(DATA) - 5, len(DATA) + 5])
def test_a_false_length_of_an_unknown_file_does_not_pass_the_checksum(caller, server, length):
    """Too short: the rest is cut off. Too long: the connection always breaks off, and what there is stays."""
    server.files["net.bin"].length = length
    with pytest.raises((ValueError, OSError), match=r"SHA-256|broke off"):
        caller.get(0)
    assert not caller.target.exists()


def test_a_connection_that_always_breaks_off_is_given_up(caller, server):
    server.files["net.bin"].ranges = False
    server.files["net.bin"].breaks = [1000] * 100
    with pytest.raises(OSError, match=r"broke off after 0\.0 MiB of 0\.5 MiB; 0\.0 MiB are kept, and the same command"):
        caller.get()
    assert len(server.requests) == module.TRIES and caller.waits == [1, 2, 4]
    assert caller.part.stat().st_size == 1000


def test_a_server_that_stalls_is_asked_again(caller, server, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.5)
    server.files["net.bin"].stalls = True

    def cure(done: int) -> None:
        server.files["net.bin"].stalls = done < 200_000

    caller.get(progress=cure)
    assert caller.is_whole() and any("sent nothing for 0.5 s" in text for text in caller.notices)


@pytest.mark.parametrize("status", [404, 403, 410])
def test_a_refusal_is_told_at_once(caller, server, status):
    server.files["net.bin"].statuses = [status]
    with pytest.raises(ValueError, match=rf"{server.url}/net\.bin: the server answers {status} .*, expected the file"):
        caller.get()
    assert len(server.requests) == 1 and not caller.left()


def test_a_server_that_is_busy_is_asked_again(caller, server):
    server.files["net.bin"].statuses = [503, 429]
    caller.get()
    assert caller.is_whole() and caller.waits == [1, 2]


def test_bytes_that_are_too_many_are_fetched_anew(caller, server):
    caller.target.parent.mkdir()
    caller.part.write_bytes(DATA + b"more")
    caller.part.with_name("net.bin.part.json").write_text(json.dumps({"url": caller.url, "validator": '"first"'}))
    caller.get(0)
    assert caller.is_whole() and server.ranges() == [f"bytes={len(DATA) + 4}-", ""]


def test_a_whole_part_needs_no_server(caller, server):
    caller.target.parent.mkdir()
    caller.part.write_bytes(DATA)
    caller.get()
    assert caller.is_whole() and not server.requests


def test_a_redirection_is_followed_with_its_range(caller, server):
    server.files["old.bin"] = Served(b"", statuses=[302, 302], headers={"Location": "/net.bin"})
    server.files["net.bin"].breaks = [200_000]
    caller.url = f"{server.url}/old.bin"
    caller.get()
    assert caller.is_whole() and server.ranges() == ["", "", "bytes=200000-", "bytes=200000-"]


@pytest.mark.parametrize(("old", "new", "is_fine"), [
    ("https", "https://b/", True), ("http", "http://b/", True), ("http", "https://b/", True),
    ("https", "http://b/", False), ("https", "ftp://b/", False), ("http", "ftp://b/", False),
])  # fmt: skip
def test_https_is_not_left_by_a_redirection(old, new, is_fine):
    request = urllib.request.Request(f"{old}://a/")

    def redirected():
        return module._Redirects().redirect_request(request, None, 302, "Found", Message(), new)

    if is_fine:
        assert redirected().full_url == new
    else:
        with pytest.raises(ValueError, match=r"https?://a/: the server redirects to .*, expected https"):
            redirected()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/net.bin", "net.bin", "https:///net.bin", ""])
def test_only_web_addresses_are_fetched(caller, url):
    caller.url = url
    with pytest.raises(ValueError, match="expected an address that begins with https"):
        caller.get()


def test_offline_says_what_to_do_by_hand(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/net.bin"
        caller = Caller(tmp_path, url)
        with pytest.raises(
            OSError, match=rf"127\.0\.0\.1 cannot be reached \(.*\); to fetch it by hand, save {url} as"
        ):
            caller.get()
    assert len(caller.waits) == module.TRIES - 1


def test_a_full_disk_is_found_before(caller, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 18))
    with pytest.raises(OSError, match=r"the disk is full: .*new has 0\.2 MiB free, and 0\.5 MiB are still to come"):
        caller.get()
    assert not caller.left()


def test_a_disk_that_fills_up_keeps_what_has_arrived(caller, monkeypatch):
    def full(done: int) -> None:
        if done > 100_000:
            raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, piece):
            full(self.file.tell() + len(piece))
            return self.file.write(piece)

        def flush(self):
            self.file.flush()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    opened = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, mode="r", *a, **k: Full(opened(path, mode)) if mode in ("wb", "ab")
                      else opened(path, mode, *a, **k))  # fmt: skip
        with pytest.raises(
            OSError, match=r"the disk is full: .* still to come: 0\.1 MiB are kept, and the same command"
        ):
            caller.get()
    held = caller.part.stat().st_size
    assert 0 < held <= 100_000
    caller.get()
    assert caller.is_whole()


def test_what_the_caller_does_not_accept_is_not_kept(caller):
    def check(path: Path) -> None:
        raise ValueError(f"{path}: not a network")

    with pytest.raises(ValueError, match=rf"{caller.url}: not a network"):
        caller.get(check=check)
    assert not caller.target.exists() and not caller.left()


def test_who_declines_gets_nothing(caller, server):
    def decline(size: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        download(Source(caller.url), caller.target, lambda path: None, Watcher(decline, print, print))
    assert not caller.left()


def test_a_compressed_answer_is_refused(caller, server):
    server.files["net.bin"].headers = {"Content-Encoding": "gzip"}
    with pytest.raises(ValueError, match="the server compresses the file"):
        caller.get()


def test_a_proxy_of_the_environment_is_used(tmp_path, server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    caller = Caller(tmp_path, "http://networks.invalid/net.bin")
    caller.get()
    assert caller.is_whole() and server.requests[0][0] == "http://networks.invalid/net.bin"


def test_two_at_once_are_refused(caller, server):
    def second(done: int) -> None:
        with pytest.raises(ValueError, match="locked by another process"):
            caller.get()

    caller.get(progress=second)
    assert caller.is_whole() and len(server.requests) == 1
