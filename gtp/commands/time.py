"""The game clock. Without these commands every move gets the time of the option ``--seconds``."""

from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import Registry, integer, number

COMMANDS = Registry()


@COMMANDS.command("time_settings")
def time_settings(host: Host, main_time: str, period: str, stones: str) -> None:
    """Set the clock: main time, then so many stones in every period; times in seconds.

    A period of 0 means none: absolute time. A period with 0 stones means no clock at all.
    """
    host.player.clock.configure(number(main_time), number(period), integer(stones))


@COMMANDS.command("time_left")
def time_left(host: Host, color: str, time: str, stones: str = "0") -> None:
    """Tell a player's time in seconds: of the main time, or of a period with so many stones to go."""
    host.player.clock.set_left(arguments.color(color), number(time), integer(stones))
