"""The game clock. Without a clock every move gets the time of the option ``--seconds``.

GTP's ``time_settings`` sets absolute time and Canadian overtime. KGS's and KataGo's commands name the kind of clock
first and have byo-yomi too, KataGo's also Fischer clocks. Under byo-yomi the last number of ``time_left`` counts
periods. Sources: kgsGtp's documentation of ``kgs-time_settings``; KataGo, docs/GTP_Extensions.md.
"""

from collections.abc import Callable

from engine.play.clock import TimeSettings, absolute, byoyomi, canadian, fischer
from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import CommandError, Registry, integer, number

COMMANDS = Registry()
KINDS: dict[str, tuple[Callable[..., TimeSettings], dict[str, Callable[[str], float]]]] = {
    "none": (TimeSettings, {}),
    "absolute": (absolute, {"MAIN": number}),
    "byoyomi": (byoyomi, {"MAIN": number, "PERIOD": number, "PERIODS": integer}),
    "canadian": (canadian, {"MAIN": number, "PERIOD": number, "STONES": integer}),
    "fischer": (fischer, {"MAIN": number, "INCREMENT": number}),
    "fischer-capped": (fischer, {"MAIN": number, "INCREMENT": number, "LIMIT": number, "MOVE": number}),
}
"""Kind of clock -> function that makes its settings, and argument -> parser; all but stones and periods are seconds"""
KGS_KINDS = ("none", "absolute", "byoyomi", "canadian")


@COMMANDS.command("time_settings")
def time_settings(host: Host, main_time: str, period: str, stones: str) -> None:
    """Set the clock, in seconds: main time, then periods of this length, each for this number of stones.

    A period of 0 means absolute time. A period with 0 stones means no clock.
    """
    _configure(host, canadian(number(main_time), number(period), integer(stones)))


@COMMANDS.command("kgs-time_settings")
def kgs_time_settings(host: Host, kind: str, *numbers: str) -> None:
    """Set a clock of one of these kinds, times in seconds.

    none; absolute MAIN; byoyomi MAIN PERIOD PERIODS; canadian MAIN PERIOD STONES.
    """
    _configure(host, _settings(kind, numbers, KGS_KINDS))


@COMMANDS.command("kata-time_settings")
def kata_time_settings(host: Host, kind: str, *numbers: str) -> None:
    """Set a clock of one of these kinds, times in seconds; fractions too.

    none; absolute MAIN; byoyomi MAIN PERIOD PERIODS; canadian MAIN PERIOD STONES; fischer MAIN INCREMENT;
    fischer-capped MAIN INCREMENT LIMIT MOVE, where LIMIT is the largest main time and MOVE the longest time of a move;
    -1 = unlimited.
    """
    _configure(host, _settings(kind, numbers, tuple(KINDS)))


@COMMANDS.command("kata-list_time_settings")
def kata_list_time_settings(host: Host) -> str:
    """List the kinds of clock of kata-time_settings."""
    return " ".join(KINDS)


@COMMANDS.command("time_left")
def time_left(host: Host, color: str, time: str, stones: str = "0") -> None:
    """Set a player's remaining time in seconds: main time, or a period with its remaining stones.

    Under byo-yomi the last number is the number of remaining periods; 0 = main time.
    """
    host.record.clock.set_left(arguments.color(color), number(time), integer(stones))


def _configure(host: Host, settings: TimeSettings) -> None:
    """Set the clock. If it limits the time, wait for the player: the client may start the clock after the answer."""
    game_session = host.player if settings.is_limited else host.record
    game_session.clock.configure(settings)


def _settings(kind: str, numbers: tuple[str, ...], known: tuple[str, ...]) -> TimeSettings:
    """A clock from its kind and numbers.

    Raises:
        CommandError: unknown kind, or a wrong number of arguments.
    """
    if kind not in known:
        raise CommandError(f"syntax error: {kind!r} is not a kind of clock, expected one of {', '.join(known)}")
    make, readers = KINDS[kind]
    if len(numbers) != len(readers):
        raise CommandError(f"syntax error: expected {' '.join([kind, *readers])}")
    return make(*(read(text) for read, text in zip(readers.values(), numbers, strict=True)))
