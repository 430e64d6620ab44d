"""The game on the board: size, handicap, komi, rules and game records.

Rules may change during a game: its moves are replayed under the new rules. Sources: KataGo, docs/GTP_Extensions.md;
kgsGtp's documentation of ``kgs-rules``.
"""

from contextlib import nullcontext
from pathlib import Path

from engine.go.points import BLACK
from engine.go.rules import rules_from, rules_json, rules_named, with_flag
from gtp.commands import arguments
from gtp.host import Host
from gtp.protocol import INTEGER, CommandError, Registry, integer, number
from gtp.startup import compile_progress

COMMANDS = Registry()


@COMMANDS.command("boardsize")
def boardsize(host: Host, size: str, height: str = "") -> None:
    """Begin a game on an empty board of this size, with the same komi and rules.

    Width and height, which some clients send, must be the same: boards are square.
    """
    width = integer(size)
    if height and integer(height) != width:
        raise CommandError(f"unacceptable size: {size}x{height} is not square")
    record = host.record
    # While the player is being loaded, the loading thread shows progress.
    with nullcontext() if host.is_loading else compile_progress():
        record.new_game(width)


@COMMANDS.command("rectangular_boardsize")
def rectangular_boardsize(host: Host, width: str, height: str) -> None:
    """Begin a game on an empty board of this width and height, which must be the same."""
    boardsize(host, width, height)


@COMMANDS.command("query_boardsize")
def query_boardsize(host: Host) -> str:
    """The size of the board."""
    return str(host.record.game.size)


@COMMANDS.command("clear_board")
def clear_board(host: Host) -> None:
    """Begin a game on an empty board of the same size, with the same komi and rules."""
    host.record.new_game(host.record.game.size)


@COMMANDS.command("set_position")
def set_position(host: Host, *stones: str) -> None:
    """Begin a game from stones, given as pairs of color and vertex; Black is to move. Without stones the board is
    empty.

    The position has no history: no ko and no captures.
    """
    if not stones:
        clear_board(host)
        return
    arguments.set_up(host, arguments.moves(host, stones), BLACK)


@COMMANDS.command("komi")
def komi(host: Host, points: str) -> None:
    """Set the komi, in whole or half points, of this and later games."""
    try:
        host.record.set_komi(number(points))
    except ValueError as error:
        raise CommandError(f"syntax error: {error}") from error


@COMMANDS.command("get_komi")
def get_komi(host: Host) -> str:
    """The current komi."""
    return f"{host.record.game.komi:g}"


@COMMANDS.command("showboard")
def showboard(host: Host) -> str:
    """Draw the board."""
    return "\n" + host.game_session.diagram()


@COMMANDS.command("fixed_handicap")
def fixed_handicap(host: Host, stones: str) -> str:
    """Place this number of handicap stones on the traditional points."""
    return arguments.vertices(host, host.record.fixed_handicap(integer(stones)))


@COMMANDS.command("place_free_handicap")
def place_free_handicap(host: Host, stones: str) -> str:
    """Place this number of handicap stones on points that the engine chooses."""
    return arguments.vertices(host, host.record.place_free_handicap(integer(stones)))


@COMMANDS.command("set_free_handicap")
def set_free_handicap(host: Host, *vertex: str) -> None:
    """Place handicap stones on these points."""
    try:
        stones = [arguments.vertex(host, text) for text in vertex]
    except CommandError as error:
        raise CommandError(f"bad vertex list: {error}") from error
    host.record.set_free_handicap(stones)


@COMMANDS.command("kata-get-rules")
def kata_get_rules(host: Host) -> str:
    """The current rules as a JSON object of flags."""
    return rules_json(host.record.game.rules)


@COMMANDS.command("kata-set-rules")
def kata_set_rules(host: Host, *rules: str) -> None:
    """Set the rules: a name such as chinese, japanese, aga, or a JSON object of flags."""
    if not rules:
        raise CommandError("syntax error: expected kata-set-rules NAME or kata-set-rules {FLAGS}")
    host.record.set_rules(rules_from(" ".join(rules)))


@COMMANDS.command("kata-set-rule")
def kata_set_rule(host: Host, flag: str, value: str) -> None:
    """Change one flag of the rules: ko, scoring, tax, suicide, hasButton, whiteHandicapBonus or friendlyPassOk."""
    host.record.set_rules(with_flag(host.record.game.rules, flag, value))


@COMMANDS.command("kgs-rules")
def kgs_rules(host: Host, rules: str) -> None:
    """Set the rules by their name on KGS: chinese, japanese, aga or new_zealand."""
    # KGS plays its Chinese rules with superko.
    host.record.set_rules(rules_named("chinese-kgs" if rules.lower() == "chinese" else rules))


MAX_BYTES = 1 << 24
"""Maximum number of bytes read from an SGF file"""


@COMMANDS.command("loadsgf")
def loadsgf(host: Host, file: str, *move: str) -> None:
    """Load a game from an SGF file: all moves, or the moves before a move number.

    The file name may contain spaces; a number after it is the move number.
    """
    words = [file, *move]
    number = integer(words.pop()) if len(words) > 1 and INTEGER.fullmatch(words[-1]) else None
    path = Path(" ".join(words))
    try:
        if not path.is_file():
            raise ValueError(f"{path} is not a file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES)
        game_session = host.game_session
        with compile_progress():
            game_session.load_sgf(data, None if number is None else max(0, number - 1))
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot load file: {error}") from error


@COMMANDS.command("printsgf")
def printsgf(host: Host, *file: str) -> str:
    """Print the game as SGF, or write it to a file; ``-`` as the file prints it."""
    from engine.system.files import written_whole

    text = host.game_session.sgf()
    if file in ((), ("-",)):
        return text
    try:
        with written_whole(Path(" ".join(file))) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write file: {error}") from error
    return ""
