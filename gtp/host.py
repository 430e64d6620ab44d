"""What GTP commands act on: the player, once it has been loaded, and the conversation's own state."""

import threading
from typing import TYPE_CHECKING

from engine.config import SessionOptions
from gtp.protocol import CommandError, Registry

if TYPE_CHECKING:
    from engine.play.keeper import GameKeeper
    from engine.play.player import Player


class Host:
    """Handed to every command.

    Commands that need the player wait for it. Those that only change the game or its clock are answered while it is
    still being loaded, by a keeper whose game the player then takes over.
    Threads: :attr:`player` and :attr:`keeper` in the command thread only, the methods in any.
    """

    def __init__(self, commands: Registry, name: str = SessionOptions.name) -> None:
        self.commands = commands
        self.name = name
        """what clients are told that the engine is called"""
        self.quitting = False
        """set by a command: the session ends with its answer"""
        self.sigint_interrupts = False
        """set by a command: SIGINT ends the running command, no longer the session"""
        self._player: Player | None = None
        self._failure = ""
        self.read_s = 0.0
        """when the running command was read, ``time.perf_counter``; 0 = not known"""
        self._interrupted = False
        self._loaded = threading.Event()
        self._early: GameKeeper | None = None
        """keeps the game until the player has been loaded; None once the player has it"""
        self._has_board = threading.Event()
        """there is a keeper, or never will be"""

    @property
    def player(self) -> "Player":
        """The player, as soon as there is one.

        Raises:
            CommandError: it could not be loaded.
        """
        self._loaded.wait()
        if self._player is None:
            raise CommandError(self._failure)
        early, self._early = self._early, None
        if early is not None:
            self._player.take_over(early)
        return self._player

    @property
    def keeper(self) -> "GameKeeper":
        """What keeps the game: the player if there is one by now.

        Raises:
            CommandError: the player could not be loaded.
        """
        self._has_board.wait()
        early = self._early
        return self.player if early is None or self._loaded.is_set() else early

    def begin(self, keeper: "GameKeeper") -> None:
        """The player is still being loaded; until then this keeps the game."""
        self._early = keeper
        self._has_board.set()

    def provide(self, player: "Player") -> None:
        """The player has been loaded."""
        self._player = player
        if self._interrupted:
            player.interrupt()
        self._loaded.set()
        self._has_board.set()

    def refuse(self, reason: str) -> None:
        """The player cannot be loaded: commands that need it fail with this reason."""
        self._failure = reason
        self._loaded.set()
        self._has_board.set()

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
        self._interrupted = True
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
