"""Game records."""

from pathlib import Path

from gtp.host import Host
from gtp.protocol import INTEGER, CommandError, Registry, integer
from gtp.startup import compile_progress

COMMANDS = Registry()
MAX_BYTES = 1 << 24
"""Of a file that is read at all"""


@COMMANDS.command("loadsgf")
def loadsgf(host: Host, file: str, *move: str) -> None:
    """Load a game from an SGF file: all of it, or up to just before a move's number.

    A name may hold spaces; a number behind it is taken as the move.
    """
    words = [file, *move]
    number = integer(words.pop()) if len(words) > 1 and INTEGER.fullmatch(words[-1]) else None
    path = Path(" ".join(words))
    try:
        if not path.is_file():
            raise ValueError(f"{path} is no file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES)
        keeper = host.keeper
        with compile_progress():
            keeper.load_sgf(data, None if number is None else max(0, number - 1))
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot load file: {error}") from error


@COMMANDS.command("printsgf")
def printsgf(host: Host, *file: str) -> str:
    """Give the game as SGF, as for the file ``-``, or write it to a file."""
    from engine.system.files import written_whole

    text = host.keeper.sgf()
    if file in ((), ("-",)):
        return text
    try:
        with written_whole(Path(" ".join(file))) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write file: {error}") from error
    return ""
