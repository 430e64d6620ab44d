"""Another GTP engine that chooses moves in positions, as it is configured."""

from collections.abc import Sequence
from pathlib import Path

from bench.match.gtp_client import EngineRefused, GtpClient, argument_words
from bench.match.play import tell_rules
from engine.go.geometry import BLACK, WHITE, from_vertex, to_vertex
from engine.go.notation import color_word

START_S = 600.0
"""For the first answers: an engine may have to compile before it has them"""
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
        self._client, self._size = GtpClient(line), size
        self._name = self.name_of(line)
        self.forgets = self._client.lists("clear_cache", START_S)
        """whether it can be told to begin each search from nothing"""
        for command in (f"boardsize {size}", f"komi {komi:g}"):
            self._client.ask(command, START_S)
        tell_rules(
            rules, lambda name: self._client.lists(name, LIMIT_S), lambda words: self._client.ask(words, LIMIT_S)
        )

    @staticmethod
    def name_of(line: str) -> str:
        """What a table calls the engine of a command line: its program."""
        words = argument_words(line)
        return Path(words.split()[0] if isinstance(words, str) else words[0]).stem

    def move(self, moves: Sequence[int]) -> int:
        """The point it plays after these moves, Black's first.

        Raises:
            EngineError: it broke down.
            EngineRefused: it refused a move of the game, or answered with none.
        """
        self._client.ask("clear_board", LIMIT_S)
        if self.forgets:
            self._client.ask("clear_cache", LIMIT_S)
        for i, point in enumerate(moves):
            self._client.ask(f"play {color_word((BLACK, WHITE)[i % 2])} {to_vertex(point, self._size)}", LIMIT_S)
        answer = self._client.ask(f"genmove {color_word((BLACK, WHITE)[len(moves) % 2])}", LIMIT_S)
        try:
            return from_vertex(answer, self._size)
        except ValueError as error:
            raise EngineRefused(f"{self._name} answered {answer!r}, expected a move: is it free to resign?") from error

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
