"""Another GTP engine that chooses moves in positions, as it is configured."""

from collections.abc import Sequence
from functools import partial

from bench.match.gtp_client import START_S, EngineRefused, GtpClient
from bench.match.play import tell_rules
from engine.go.geometry import BLACK, WHITE, from_vertex, to_vertex
from engine.go.notation import color_word

LIMIT_S = 300.0


class Peer:
    """An engine in a process of its own; use as a context manager."""

    def __init__(self, line: str, rules: str, size: int, komi: float):
        """Start it.

        Args:
            line: its command line.
        Raises:
            EngineError, EngineRefused: it cannot be started, or does not play on such a board.
            ValueError: no command line.
        """
        self._line, self._size = line, size
        self._client = GtpClient(line)
        try:
            self._forgets = self._client.lists("clear_cache", START_S)
            for command in (f"boardsize {size}", f"komi {komi:g}"):
                self._ask(command)
            tell_rules(rules, partial(self._client.lists, limit_s=LIMIT_S), self._ask)
        except Exception:
            self._client.close()
            raise

    def move(self, moves: Sequence[int]) -> int:
        """The point it plays after these moves, Black's first, searched from nothing where it can be told to forget.

        Raises:
            EngineError: it broke down.
            EngineRefused: it refused a move of the game, or answered with none.
        """
        self._ask("clear_board")
        if self._forgets:
            self._ask("clear_cache")
        for i, point in enumerate(moves):
            self._ask(f"play {color_word((BLACK, WHITE)[i % 2])} {to_vertex(point, self._size)}")
        answer = self._ask(f"genmove {color_word((BLACK, WHITE)[len(moves) % 2])}")
        try:
            return from_vertex(answer, self._size)
        except ValueError as error:
            raise EngineRefused(f"{self._line}: {answer!r}, expected a move; it must not resign") from error

    def _ask(self, command: str) -> str:
        return self._client.ask(command, LIMIT_S)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
