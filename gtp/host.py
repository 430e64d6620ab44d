"""What GTP commands act on: the player, once it has been loaded, and the conversation's own state."""

import threading
from typing import TYPE_CHECKING

from gtp.protocol import CommandError, Registry

if TYPE_CHECKING:
    from engine.player import Player


class Host:
    """Handed to every command.

    Commands that need the player wait for it; those that do not are answered while it is still being loaded.
    Threads: :attr:`player` in the command thread only, the methods in any.
    """

    def __init__(self, commands: Registry) -> None:
        self.commands = commands
        self.quitting = False
        """set by a command: the session ends with its answer"""
        self.sigint_interrupts = False
        """set by a command: SIGINT ends the running command, no longer the session"""
        self._player: Player | None = None
        self._failure = ""
        self._interrupted = False
        self._loaded = threading.Event()

    @property
    def player(self) -> "Player":
        """The player, as soon as there is one.

        Raises:
            CommandError: it could not be loaded.
        """
        self._loaded.wait()
        if self._player is None:
            raise CommandError(self._failure)
        return self._player

    def provide(self, player: "Player") -> None:
        """The player has been loaded."""
        self._player = player
        if self._interrupted:
            player.interrupt()
        self._loaded.set()

    def refuse(self, reason: str) -> None:
        """The player cannot be loaded: commands that need it fail with this reason."""
        self._failure = reason
        self._loaded.set()

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

    def resume(self) -> None:
        """Forget an interruption: the next command is a new one."""
        self._interrupted = False
        if self._player is not None:
            self._player.resume()
