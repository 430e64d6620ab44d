"""A server of the board in the browser in this process, and a browser's part of the talk with it, without a browser."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import PlayOptions, SetupOptions
from engine.play.player import Player
from gtp.web.app import App, Served
from gtp.web.connections import Server, host_names, listen
from gtp.web.guard import Guard
from tests.playing import FEW, SEARCH

TOKEN = "token-of-a-test"
WAIT_S = 200.0


class Tab:
    """One tab of a browser with a session."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self.port, self.cookie = port, cookie
        self.state: dict[str, Any] = {}

    def enter(self, token: str = TOKEN) -> "Tab":
        """Exchange a token for the cookie."""
        status, headers, _ = self.request("GET", f"/?token={token}")
        assert status == 303, status
        self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer; ``_`` in a header's name means ``-``, an empty value removes it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        sent = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value:
                connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        connection.close()
        return found

    def get(self, path: str) -> Any:
        """A JSON answer."""
        status, _, data = self.request("GET", path)
        assert status == 200, (status, data)
        return json.loads(data)

    def post(self, action: str, status: int = 200, **body: Any) -> dict[str, Any]:
        """Do an action, with the revision of the state that the tab knows; returns the answer."""
        self.state = self.state or self.get("/api/state")
        body.setdefault("rev", self.state["rev"])
        found, _, data = self.request("POST", f"/api/{action}", json.dumps(body).encode())
        answer = json.loads(data)
        assert found == status, (found, answer.get("error"))
        self.state = answer.get("state", self.state)
        return answer

    def refused(self, action: str, status: int = 400, **body: Any) -> str:
        """The error of an action that is refused."""
        return self.post(action, status, **body)["error"]

    def play(self, *vertices: str) -> None:
        """Play moves, and wait for the engine's answers if it has a colour."""
        for vertex in vertices:
            self.post("play", point=self.index(vertex))
            if self.state["players"][self.state["toMove"]]["engine"]:
                self.wait(lambda state: state["phase"] != "play" or not state["players"][state["toMove"]]["engine"])

    def index(self, vertex: str) -> int:
        """The page's index of a vertex."""
        size = self.state["size"]
        if vertex == "pass":
            return -1
        return (size - int(vertex[1:])) * size + "ABCDEFGHJKLMNOPQRSTUVWXYZ".index(vertex[0])

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Kind and data of the events of a stream of its own, until the caller ends it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request("GET", "/events", headers={"Cookie": self.cookie})
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            kind = ""
            while line := answer.readline():
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])
        finally:
            connection.close()

    def wait(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a state; returns it."""
        for kind, data in self.events():
            if kind == "state" and is_wanted(data):
                self.state = data
                return data
        raise AssertionError("the stream ended")


def ready(state: dict[str, Any]) -> bool:
    """Whether the engine is loaded and idle."""
    return state["engine"]["state"] == "ready"


@contextmanager
def serving(
    folder: Path, network: Path | None = None, password: str = "", play: PlayOptions = FEW, load: Any = None
) -> Iterator[tuple[App, int]]:
    """A server in a thread of its own, on 9x9; yields the application and its port.

    Args:
        folder: the user's data folder.
        network: as for :class:`Player`; None = rollouts alone.
        load: makes the player; None = the usual one.
    """
    search = replace(SEARCH, uniform_rollouts=network is None)

    def usual(say: Callable[[str], None]) -> Player:
        return Player(search, play, network, size=9, any_size=True)

    app = App(Served(folder, SetupOptions(size=9), play, search, network, load or usual))
    socket = listen("127.0.0.1", 0)
    port = socket.getsockname()[1]
    server = Server(Guard(app.starlette(), host_names("127.0.0.1", port), TOKEN, password), app.hub.close)
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        yield app, port
    finally:
        server.should_exit = True
        thread.join()
        app.close()
        socket.close()
