"""A local web server for tests of downloads, which breaks off, lies and stalls as it is told."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """A file on the server, and what is wrong with it."""

    data: bytes
    tag: str = '"first"'
    """its ETag; empty = none"""
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    """one for each of the first requests: bytes that are sent before the connection breaks off"""
    length: int | None = None
    """Content-Length instead of the true one; -1 = none"""
    statuses: list[int] = field(default_factory=list)
    """one for each of the first requests: a status without the file; 0 = the file"""
    headers: dict[str, str] = field(default_factory=dict)
    stalls: bool = False
    """send half and then nothing until the server closes"""
    after: Callable[[], None] = lambda: None
    """called after each answer"""


class FileServer:
    """The running server."""

    def __init__(self, port: int):
        self.url = f"http://127.0.0.1:{port}"
        self.files: dict[str, Served] = {}
        """last part of the path -> file"""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """path and headers (names in lower case) of each request"""
        self.closing = threading.Event()

    def ranges(self) -> list[str]:
        """The header Range of each request, empty where it had none."""
        return [headers.get("range", "") for _, headers in self.requests]


@contextmanager
def file_server() -> Iterator[FileServer]:
    """Run a server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            served = here.files.get(self.path.rpartition("/")[2])
            status = served.statuses.pop(0) if served and served.statuses else 0
            if served is None or status:
                self.send_response(status or 404)
                for name, value in (served.headers if served else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self._send(served)
                served.after()

        def _send(self, served: Served) -> None:
            data, start = served.data, 0
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if found and served.ranges and self.headers.get("If-Range", served.tag) == served.tag:
                start = int(found[1])
                if start >= len(data):
                    self.send_response(416)
                    self.end_headers()
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            if served.length != -1:
                self.send_header("Content-Length", str(len(data) - start if served.length is None else served.length))
            for name, value in (({"ETag": served.tag} if served.tag else {}) | served.headers).items():
                self.send_header(name, value)
            self.end_headers()
            rest = data[start:]
            if served.stalls:
                self.wfile.write(rest[: len(rest) // 2])
                self.wfile.flush()
                here.closing.wait()
                return
            self.wfile.write(rest[: served.breaks.pop(0)] if served.breaks else rest)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here = FileServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        here.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
