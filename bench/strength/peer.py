"""Other GTP engines in positions that a bench chooses, under rules, board size and komi that it sets."""

from collections.abc import Sequence
from functools import partial

from bench.match.gtp_client import START_S, EngineRefused, GtpClient
from bench.match.play import tell_rules
from engine.go.geometry import BLACK, WHITE, from_vertex, to_vertex
from engine.go.points import color_word

LIMIT_S = 300.0
"""Longest wait for an answer of an engine"""


class Peer:
    """A GTP engine in positions of games; a context manager."""

    def __init__(self, line: str, rules: str, size: int, komi: float):
        """Start the engine.

        Args:
            line: the engine's command line.
        Raises:
            EngineError, EngineRefused: the engine cannot be started, or refuses the board size or komi.
            ValueError: the command line is empty or has an open quotation.
        """
        self._line, self._size = line, size
        self.client = GtpClient(line)
        try:
            self._forgets = self.client.lists("clear_cache", START_S)
            for command in (f"boardsize {size}", f"komi {komi:g}"):
                self._ask(command)
            tell_rules(rules, partial(self.client.lists, limit_s=LIMIT_S), self._ask)
        except Exception:
            self.client.close()
            raise

    def set_position(self, moves: Sequence[int]) -> None:
        """Set up the position after some moves, given as points, Black's first.

        The engine's cache is cleared first if it lists ``clear_cache``.

        Raises:
            EngineError: the engine failed.
            EngineRefused: the engine refused a move of the game.
        """
        self._ask("clear_board")
        if self._forgets:
            self._ask("clear_cache")
        for i, point in enumerate(moves):
            self._ask(f"play {color_word((BLACK, WHITE)[i % 2])} {to_vertex(point, self._size)}")

    def move(self, moves: Sequence[int]) -> int:
        """The point that the engine plays after some moves, as for :meth:`set_position`.

        Raises:
            EngineError: the engine failed.
            EngineRefused: the engine refused a move of the game, or resigned.
        """
        self.set_position(moves)
        answer = self._ask(f"genmove {color_word((BLACK, WHITE)[len(moves) % 2])}")
        try:
            return from_vertex(answer, self._size)
        except ValueError as error:
            raise EngineRefused(f"{self._line}: {answer!r}, expected a move; it must not resign") from error

    def _ask(self, command: str) -> str:
        return self.client.ask(command, LIMIT_S)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
