"""A server that speaks what gtp2ogs speaks with OGS, for one game: WebSocket frames of JSON on this machine.

Sources: RFC 6455; gtp2ogs 9.0.1, src/main.ts and src/Game.ts; goban, src/engine/GobanSocket.ts.
"""

import base64
import hashlib
import json
import socket
import struct
from typing import Any

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BOT, PERSON = 1, 2
GAME = 77
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Server:
    """Waits for one client; every wait fails after ``limit_s``. Use as a context manager."""

    def __init__(self, limit_s: float) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(limit_s)
        self._limit_s = limit_s
        self.port = self._socket.getsockname()[1]

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def accept(self) -> dict[str, Any]:
        """Let the client in as the bot; its configuration, as it tells the server."""
        self._client, _ = self._socket.accept()
        self._client.settimeout(self._limit_s)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._take(1)
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
        key = next(value for name, value in lines.items() if name.lower() == "sec-websocket-key")
        accept = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        upgrade = (
            f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}"
        )
        self._client.sendall(f"{upgrade}\r\n\r\n".encode())
        _, number = self.wait_for("authenticate")
        self.send(number, {"id": BOT, "username": "keima"})
        return self.wait_for("bot/config")[0]

    def send(self, *message: Any) -> None:
        """An event with its data, or the answer to a number."""
        data = json.dumps(message).encode()
        length = struct.pack(">BB", 0x81, len(data)) if len(data) < 126 else struct.pack(">BBH", 0x81, 126, len(data))
        self._client.sendall(length + data)

    def wait_for(self, *commands: str) -> tuple[Any, int]:
        """Data and number of the next of these commands; what else the client sends is passed over."""
        while True:
            command, data, *number = self._receive()
            if command in commands:
                return data | {"command": command}, number[0] if number else 0

    def _receive(self) -> list[Any]:
        """The client's next message; a client masks what it sends."""
        kind, length = self._take(2)
        length &= 127
        if length >= 126:
            (length,) = struct.unpack(">H" if length == 126 else ">Q", self._take(2 if length == 126 else 8))
        mask, data = self._take(4), self._take(length)
        text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        return json.loads(text) if kind & 15 == 1 else ["", {}]

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._client.recv(count - len(data))
            assert piece, "the client has closed the connection"
            data += piece
        return data

    def begin(self, time_control: dict[str, Any], size: int, clock: dict[str, Any]) -> None:
        """Begin a game in which the bot is White, whose clock and Black's are alike."""
        self.send("active_game", {"id": GAME, "phase": "play"})
        self.wait_for("game/connect")
        players = {"black": {"id": PERSON, "username": "person"}, "white": {"id": BOT, "username": "keima"}}
        turn = {"current_player": PERSON, "black_player_id": PERSON, "last_move": 0}
        self.state = {
            "game_id": GAME, "phase": "play", "width": size, "height": size, "komi": 6.5, "handicap": 0,
            "free_handicap_placement": False, "initial_player": "black", "moves": [], "players": players,
            "time_control": time_control, "clock": turn | {"black_time": clock, "white_time": clock},
        }  # fmt: skip
        self.send(f"game/{GAME}/gamedata", self.state)

    def play(self, x: int, y: int, now_ms: float) -> dict[str, Any]:
        """Play for the person; what the bot then sends: a move, a resignation or a word in the chat."""
        self._moved([x, y], BOT, now_ms)
        return self.wait_for("game/move", "game/resign")[0]

    def confirm(self, move: str, now_ms: float) -> None:
        """Tell the bot that its move has been made."""
        point = [-1, -1] if move == ".." else [LETTERS.index(letter) for letter in move]
        self._moved(point, PERSON, now_ms)

    def _moved(self, point: list[int], turn: int, now_ms: float) -> None:
        self.state["clock"] |= {"current_player": turn, "last_move": now_ms}
        self.send(f"game/{GAME}/clock", self.state["clock"])
        self.state["moves"].append([*point, 1000])
        number = len(self.state["moves"])
        self.send(f"game/{GAME}/move", {"game_id": GAME, "move_number": number, "move": [*point, 1000]})
