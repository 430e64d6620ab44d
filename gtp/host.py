"""What GTP commands act on: the player, once it has been loaded, and the conversation's own state."""

import threading
from typing import TYPE_CHECKING

from engine.config import SessionOptions
from gtp.protocol import CommandError, Registry

if TYPE_CHECKING:
    from engine.play.early import EarlySession
    from engine.play.game_session import GameSession
    from engine.play.player import Player


class Host:
    """Handed to every command.

    Commands that need the player wait for it. Those that only change the game or its clock are answered at once, by an
    early session that needs no board; those that need a board wait for its kernels alone. The player takes over.
    Threads: :attr:`player`, :attr:`game_session` and :attr:`record` in the command thread only, the methods in any.
    """

    def __init__(self, commands: Registry, name: str = SessionOptions.name) -> None:
        self.commands = commands
        self.name = name
        """what clients are told that the engine is called"""
        self.quitting = False
        """set by a command: the session ends with its answer"""
        self.sigint_interrupts = False
        """set by a command: SIGINT ends the running command, no longer the session"""
        self.has_gogui = False
        """set by a command: the client is GoGui"""
        self._player: Player | None = None
        self._failure = ""
        self.read_s = 0.0
        """when the running command was read, ``time.perf_counter``; 0 = not known"""
        self._interrupted = False
        self._changed = threading.Condition()
        """told when a command is interrupted, or loading has ended"""
        self._loaded = threading.Event()
        self._early: EarlySession | None = None
        """keeps the game until the player has been loaded; None once the player has it"""
        self._board: GameSession | None = None
        """likewise, with a board, from the first command on that needed one"""
        self._has_record = threading.Event()
        """there is something that keeps the game, or never will be"""

    @property
    def player(self) -> "Player":
        """The player, as soon as there is one.

        Raises:
            CommandError: it could not be loaded.
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
        """The player as soon as there is one; None = the running command was interrupted before.

        Raises:
            CommandError: it could not be loaded.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted or self._loaded.is_set())
        return self.player if self._loaded.is_set() else None

    @property
    def game_session(self) -> "GameSession":
        """What keeps the game, with a board: the player if there is one by now.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._has_record.wait()
        board = None if self._loaded.is_set() else self._board_of_early()
        return board or self.player

    @property
    def record(self) -> "EarlySession | GameSession":
        """What takes changes of the game and its clock: at once, before there is a board.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._has_record.wait()
        early = None if self._loaded.is_set() else self._board or self._early
        return early or self.player

    @property
    def draws_live(self) -> bool:
        """Whether searches are drawn on GoGui's board: as the user's option says, else for GoGui alone."""
        wanted = self.player.options.live_graphics
        return self.has_gogui if wanted is None else wanted

    def _board_of_early(self) -> "GameSession | None":
        """The game so far on a board, whose kernels are imported and compiled for it; None once the player has it."""
        if self._board is None and self._early is not None:
            from engine.play.game_session import begun

            self._board = begun(self._early)
        return self._board

    def begin(self, early: "EarlySession") -> None:
        """The player is still being loaded; until then this keeps the game."""
        self._early = early
        self._has_record.set()

    def provide(self, player: "Player") -> None:
        """The player has been loaded."""
        self._player = player
        if self._interrupted:
            player.interrupt()
        self._end_loading()

    def refuse(self, reason: str) -> None:
        """The player cannot be loaded: commands that need it fail with this reason."""
        self._failure = reason
        self._end_loading()

    def _end_loading(self) -> None:
        with self._changed:
            self._loaded.set()
            self._has_record.set()
            self._changed.notify_all()

    @property
    def is_loading(self) -> bool:
        """Whether commands that need the player still wait for it. Threads: any."""
        return not self._loaded.is_set()

    def stop_pondering(self) -> None:
        """End the search in the opponent's time, if there is a player by now. Threads: the command thread."""
        if self._player is not None:
            self._player.ponder.stop()

    def interrupt(self) -> None:
        """End the running command's search soon; it is answered all the same."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()
        if self._player is not None:
            self._player.interrupt()

    @property
    def is_interrupted(self) -> bool:
        """Whether the running command is to end soon. Threads: any."""
        return self._interrupted

    def resume(self, read_s: float = 0.0) -> None:
        """Forget an interruption: the next command is a new one, read at this ``time.perf_counter``."""
        self.read_s = read_s
        self._interrupted = False
        if self._player is not None:
            self._player.resume()
