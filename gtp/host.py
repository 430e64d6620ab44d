"""The host of the GTP commands: the player, once it is loaded, and the state of the conversation."""

import threading
from typing import TYPE_CHECKING

from engine.config import SessionOptions
from gtp.protocol import CommandError, Registry

if TYPE_CHECKING:
    from engine.play.early import EarlySession
    from engine.play.game_session import GameSession
    from engine.play.player import Player


class Host:
    """The player and the state of the conversation; the first argument of every command.

    Until the player is loaded, an early session keeps the game. Commands that change the game or its clock are answered
    at once, without a board; commands that need a board wait only for the board's kernels; others wait for the player,
    which takes over the game.
    Threads: :attr:`player`, :attr:`game_session` and :attr:`record` in the command thread only, the methods in any.
    """

    def __init__(self, commands: Registry, name: str = SessionOptions.name) -> None:
        self.commands = commands
        self.name = name
        """the engine's name for clients"""
        self.quitting = False
        """set by a command after whose answer the session ends"""
        self.sigint_interrupts = False
        """set by a command after which SIGINT stops the running command instead of the session"""
        self.has_gogui = False
        """the client is GoGui; set by a command that only GoGui sends"""
        self._player: Player | None = None
        self._failure = ""
        self.read_s = 0.0
        """when the running command was read, ``time.perf_counter``; 0 = unknown"""
        self._interrupted = False
        self._changed = threading.Condition()
        """notified when a command is interrupted, and when loading ends"""
        self._loaded = threading.Event()
        self._early: EarlySession | None = None
        """keeps the game until the player is loaded; None once the player has taken the game over"""
        self._board: GameSession | None = None
        """the game of the early session on a board, made for the first command that needs one"""
        self._has_record = threading.Event()
        """set once there is an early session or a player, or loading has failed"""

    @property
    def player(self) -> "Player":
        """The player; waits until it is loaded.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._loaded.wait()
        if self._player is None:
            raise CommandError(self._failure)
        board = self._board_of_early()
        self._early = self._board = None
        if board is not None:
            self._player.take_over(board)
        return self._player

    @property
    def uninterrupted_player(self) -> "Player | None":
        """The player; waits until it is loaded, or returns None when the running command is interrupted before.

        Raises:
            CommandError: the player could not be loaded.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted or self._loaded.is_set())
        return self.player if self._loaded.is_set() else None

    @property
    def game_session(self) -> "GameSession":
        """The session with the game on a board: the player if it is loaded, else one made of the early session.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._has_record.wait()
        board = None if self._loaded.is_set() else self._board_of_early()
        return board or self.player

    @property
    def record(self) -> "EarlySession | GameSession":
        """The session that takes changes of the game and its clock: the player if it is loaded, else an early session.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._has_record.wait()
        early = None if self._loaded.is_set() else self._board or self._early
        return early or self.player

    @property
    def draws_live(self) -> bool:
        """Whether searches are drawn on GoGui's board: the option ``live_graphics`` or, if unset, ``has_gogui``."""
        wanted = self.player.options.live_graphics
        return self.has_gogui if wanted is None else wanted

    def _board_of_early(self) -> "GameSession | None":
        """The early session's game on a board; the first call loads kernels. None once the player has the game."""
        if self._board is None and self._early is not None:
            from engine.play.game_session import begun

            self._board = begun(self._early)
        return self._board

    def begin(self, early: "EarlySession") -> None:
        """Let an early session answer changes of the game until the player is loaded."""
        self._early = early
        self._has_record.set()

    def provide(self, player: "Player") -> None:
        """Take the loaded player, and let the commands that wait for it continue."""
        self._player = player
        if self._interrupted:
            player.interrupt()
        self._end_loading()

    def refuse(self, reason: str) -> None:
        """Let commands that need the player fail with ``reason``, since it could not be loaded."""
        self._failure = reason
        self._end_loading()

    def _end_loading(self) -> None:
        with self._changed:
            self._loaded.set()
            self._has_record.set()
            self._changed.notify_all()

    @property
    def is_loading(self) -> bool:
        """Whether loading of the player has not ended yet. Threads: any."""
        return not self._loaded.is_set()

    def stop_pondering(self) -> None:
        """Stop pondering, if the player is loaded. Threads: the command thread."""
        if self._player is not None:
            self._player.ponder.stop()

    def interrupt(self) -> None:
        """Stop the running command's search soon; the command still gets its answer."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()
        if self._player is not None:
            self._player.interrupt()

    @property
    def is_interrupted(self) -> bool:
        """Whether the running command is to stop soon. Threads: any."""
        return self._interrupted

    def resume(self, read_s: float = 0.0) -> None:
        """Clear an interruption before the next command runs.

        Args:
            read_s: ``time.perf_counter`` at which this command was read; 0 = unknown.
        """
        self.read_s = read_s
        self._interrupted = False
        if self._player is not None:
            self._player.resume()
