"""The lines that the fuzzer sends: commands good, bad, changed and endless, and which of them a reply is due to."""

import random
import re
from collections.abc import Iterator

from gtp.commands import COMMANDS
from gtp.session import MAX_LINE

COMMAND = re.compile(rb"[ \t]*(?:([0-9]{1,10})(?![^ \t]))?[ \t]*([^ \t]?[^ \t]*)")
CONTROL = bytes([*range(9), *range(11, 32), 127])
LARGEST_ID = 2**31 - 1
LEFT_OUT = ("quit", "printsgf")
"""Commands that end the session or write a file"""
ANALYZE = (
    "lz-analyze", "kata-analyze", "cgos-analyze", "lz-genmove_analyze", "kata-genmove_analyze", "cgos-genmove_analyze",
    "kata-search_analyze", "kata-search_analyze_cancellable",
)  # fmt: skip
PARAMETERS = ("temperature", "temperature-moves", "resignThreshold", "lag", "c-puct", "root-noise", "seed", "nonsense")
"""For kata-set-param: none that lets it search for long, or in many threads"""
SIZES = ("2", "3", "5", "7", "9", "9", "9", "13", "19", "25", "26", "0", "-1", "9 9", "9 13")
WORDS = (
    "b", "w", "black", "WHITE", "green", "pass", "PASS", "resign", "D4", "A1", "J9", "T19", "z99", "0", "1", "2", "-1",
    "7.5", "-0.5", "1e9", "nan", "inf", "999999999", "99999999999999999999", "true", "all", "dead", "alive", "seki",
    "chinese", "japanese", "{", '{"ko":"SIMPLE"}', "byoyomi", "canadian", "fischer", "none", "\u00e9", "\u56f2\u7881",
)  # fmt: skip


def sensible(rng: random.Random) -> str:
    """A command of a game, its arguments mostly good."""
    color, size = rng.choice("bw"), 9
    vertex = rng.choice("ABCDEFGHJ") + str(rng.randint(1, size))
    clock = f"{rng.choice((0, 0.2, 3, 90, -5))} {rng.choice((0, 0.05, 0.3, 30, -2))} {rng.randint(-1, 10)}"
    left = rng.choice((-9, 0, 0.1, 1, 90))
    report = rng.choice(("", "1", "interval 2 ownership true", f"{color} 1 maxmoves 2 pvVisits true", "rootInfo true"))
    moves = rng.choice(("", "", f" avoid {color} {vertex} 1", f" allow {color} {vertex},D4 2"))
    game = (
        *(f"play {color} {vertex}",) * 24, f"play {color} pass", *(f"genmove {color}",) * 8, "undo", "undo",
        f"reg_genmove {color}", "clear_board", f"boardsize {rng.choice(SIZES)}", f"komi {rng.randint(-20, 20) / 2}",
        f"fixed_handicap {rng.randint(0, 10)}", f"place_free_handicap {rng.randint(0, 12)}",
        f"set_free_handicap {vertex} D4", f"set_position {color} {vertex} w D4", f"kata-search {color}",
        f"kata-search_cancellable {color}", f"time_settings {clock}", f"kgs-time_settings byoyomi {clock}",
        f"kata-time_settings fischer-capped {clock} -1", f"time_left {color} {left} {rng.randint(0, 5)}",
        f"kgs-rules {rng.choice(('japanese', 'chinese', 'aga', 'new_zealand', 'x'))}", "final_score",
        f"final_status_list {rng.choice(('dead', 'alive', 'seki', 'x'))}", "showboard", "list_commands", "help",
        f"kata-set-param {rng.choice(PARAMETERS)} {rng.choice(WORDS)}", *("# interrupt",) * 2,
        "known_command play",
        *(f"{rng.choice(ANALYZE)} {report}{moves}",) * 4, "stop",
    )  # fmt: skip
    return rng.choice(game)


def anything(rng: random.Random, names: list[str]) -> str:
    """A registered command with any words behind it."""
    return " ".join([rng.choice(names), *rng.choices(WORDS, k=rng.randint(0, 4))])


def mutated(rng: random.Random, line: bytes) -> bytes:
    """A line with something changed."""
    at = rng.randint(0, len(line))
    match rng.randint(0, 7):
        case 0:
            return line[:at] + bytes([rng.randrange(256)]) + line[at + 1 :]
        case 1:
            return line[:at] + rng.randbytes(rng.randint(1, 5)) + line[at:]
        case 2:
            return line[:at] + line[at + rng.randint(1, 5) :]
        case 3:
            return b" ".join(word for word in line.split() for _ in range(rng.randint(0, 2)))
        case 4:
            return b"%d %s" % (rng.choice((0, 7, rng.randrange(10**6), LARGEST_ID, LARGEST_ID + 1, 10**40)), line)
        case 5:
            return line + rng.choice((b"\r", b" \t ", b" # words", b"#", b"\x00", b"\x0b")) + line[:at]
        case 6:
            return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\t", b"   ", b"\x1b[A", b"=", b"?")) + line
    return line.swapcase()


def line_of(rng: random.Random, names: list[str]) -> bytes:
    """One line without its end."""
    kind = rng.random()
    if kind < 0.55:
        line = sensible(rng).encode()
    elif kind < 0.65:
        line = anything(rng, names).encode()
    elif kind < 0.90:
        line = mutated(rng, (sensible(rng) if rng.random() < 0.7 else anything(rng, names)).encode())
    elif kind < 0.998:
        line = rng.randbytes(rng.randint(0, 200))
    else:
        line = rng.choice((b"", b"5 ", b"# ", b"play b ")) + b"x" * rng.randint(MAX_LINE - 9, 4 * MAX_LINE)
    # No other folder may be read or written; a line is one line.
    return line.replace(b"/", b"|").replace(b"\n", b" ")


def reply_to(line: bytes) -> tuple[bytes, bytes] | None:
    """Id and name of the command in a line, as the protocol's text defines them; None = no reply is due."""
    text = line[: MAX_LINE + 1].translate(None, CONTROL).partition(b"#")[0].strip(b" \t")
    if not text:
        return None
    found = COMMAND.match(text)
    assert found is not None  # every part of the pattern may be empty
    id_, name = found.groups()
    if id_ is not None and int(id_) > LARGEST_ID:
        id_, name = None, id_
    return id_ or b"", name


def lines(seed: int, count: int) -> Iterator[bytes]:
    """``count`` lines, none of which ends the session or writes a file."""
    rng = random.Random(seed)
    names = [command.name for command in COMMANDS if command.name not in LEFT_OUT]
    while count:
        line = line_of(rng, names)
        due = reply_to(line)
        if due is None or not due[1].lower().startswith(tuple(name.encode() for name in LEFT_OUT)):
            count -= 1
            yield line
