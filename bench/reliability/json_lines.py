"""The lines that the fuzzer of ``keima analysis`` sends: queries good and bad, actions, broken JSON, no JSON."""

import json
import random
from collections.abc import Iterator
from typing import Any

SIZES = (2, 3, 5, 7, 9, 9, 9, 13, 19)
COLUMNS = "ABCDEFGHJKLMNOPQRST"
RULES = ("chinese", "japanese", "Tromp-Taylor", "korean", "aga", "stone-scoring", {"ko": "SIMPLE", "scoring": "AREA"})
SWITCHES = (
    "includeOwnership", "includeOwnershipStdev", "includeMovesOwnership", "includeMovesOwnershipStdev", "includePolicy",
    "includePVVisits", "includeNoResultValue",
)  # fmt: skip
SETTINGS: dict[str, tuple[Any, ...]] = {
    "reportAnalysisWinratesAs": ("BLACK", "WHITE", "SIDETOMOVE", "nobody"), "wideRootNoise": (0.04, -1, "much"),
    "maxVisits": (1, 2, 0, "x"), "maxTime": (0.01, 1e9, -1), "maxPlayouts": (1, 3), "nnRandomize": (False, 3),
    "ignorePreRootHistory": (True, "no"), "rootNoiseEnabled": (True,), "rootDirichletNoiseWeight": (0.25, 2),
    "rules": ("chinese",), "cpuctExploration": (1.0, "nan", 1e300), "analysisPVLen": (3, 0), "": ("",),
    "no such setting": (1, None, [1]),
}  # fmt: skip
WILD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 19, 20, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1,
    10**300, float("nan"), float("inf"), "", " ", "B", "W", "b", "pass", "A1", "Z99", "5", "1e9", "true", "null",
    "\u0000", "\n", "\ud800", "\U0001f409", "\u56f2\u7881", "x" * 10_000, [], {}, [[]], [{}], [None], [[["B"]]],
    ["B", "A1"], [["B", "A1"]], [["W", "pass"], ["B", "A1"]], [["B"]], [["B", 5]], [0], [0, 0], [-1], [1, "1"],
    [10**30], {"": ""}, {"moves": [], "player": "B", "untilDepth": 1},
    [{"moves": ["A1"], "player": "W", "untilDepth": 3}],
    [{"moves": "A1", "player": 1, "untilDepth": 0}], {"ko": "NONE"}, {"scoring": None},
)  # fmt: skip
GARBAGE = (
    b"[", b"]", b"{", b"}", b"null", b"true", b"5", b'"id"', b"[]", b"{}", b"[[]]", b'{"id":5}', b'{"id":null}',
    b'{"id":["q"]}', b'{"action":"query_version"}', b"NaN", b"-", b"1e400", b"\xff\xfe", b"\x00", b"quit", b"name",
    b"[" * 100_000, b'{"a":' * 5_000, b'{"id":"' + b"x" * 100_000, b"9" * 5_000, b'"\\ud800"', b"// words", b"'id'",
)  # fmt: skip
"""None of these has an id that an answer could name"""
BITS = (b'"', b",", b":", b"[", b"]", b"{", b"}", b"\\", b"\\u", b"\\ud800", b"-", b"1e999", b"\x00", b"\x80", b"\xff",
        b"null", b"\xc3\x28", b"\t", b"\r", b"\x0b", b"//", b"nan", b"\xef\xbb\xbf")  # fmt: skip


def place(rng: random.Random, size: int) -> str:
    """A vertex of a board, or a pass."""
    return "pass" if rng.random() < 0.03 else f"{COLUMNS[rng.randrange(size)]}{rng.randint(1, size)}"


def query(rng: random.Random) -> dict[str, Any]:
    """A query that is in order, but for moves that may be impossible."""
    size = rng.choice(SIZES)
    moves = [["BW"[n % 2], place(rng, size)] for n in range(rng.choice((0, 1, 2, 3, 5, 8)))]
    found: dict[str, Any] = {
        "boardXSize": size, "boardYSize": size, "moves": moves, "rules": rng.choice(RULES),
        "maxVisits": rng.randint(1, 3),
    }  # fmt: skip
    for name in rng.sample(SWITCHES, rng.choice((0, 0, 1, 3))):
        found[name] = rng.random() < 0.8
    more: dict[str, Any] = {
        "komi": rng.randint(-30, 30) / 2,
        "initialStones": [[rng.choice("BW"), place(rng, size)] for _ in range(rng.randint(0, 4))],
        "initialPlayer": rng.choice("BWbw"),
        "analyzeTurns": [rng.randint(0, len(moves)) for _ in range(rng.randint(1, 3))],
        "priority": rng.randint(-3, 3),
        "whiteHandicapBonus": rng.choice(("0", "N", "N-1")),
        "overrideSettings": {name: rng.choice(SETTINGS[name]) for name in rng.sample(sorted(SETTINGS), 2)},
        "reportDuringSearchEvery": rng.choice((0.001, 0.01, 5)),
        "analysisPVLen": rng.randint(1, 20),
        rng.choice(("avoidMoves", "allowMoves")): [
            {"player": rng.choice("BW"), "moves": [place(rng, size)], "untilDepth": rng.randint(1, 5)}
        ],
    }
    for name in rng.sample(sorted(more), rng.choice((0, 1, 2, 4))):
        found[name] = more[name]
    return found


def spoiled(rng: random.Random, values: dict[str, Any]) -> dict[str, Any]:
    """A query with wrong values, with fields that are missing, or with some that do not exist."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice((*values, "priorities", "komi", "analyzeTurns", "overrideSettings", "allowMoves", "nonsense"))
        if name in values and rng.random() < 0.2:
            del values[name]
        elif name in values and isinstance(values[name], list) and values[name] and rng.random() < 0.5:
            values[name] = [*values[name]]
            values[name][rng.randrange(len(values[name]))] = rng.choice(WILD)
        else:
            values[name] = rng.choice(WILD)
    return values


def action(rng: random.Random, sent: int) -> dict[str, Any]:
    """A request that is no query."""
    kind = rng.choice(("query_version", "query_models", "clear_cache", *("terminate",) * 4, "terminate_all", "no such"))
    found: dict[str, Any] = {"action": kind}
    if kind == "terminate":
        found["terminateId"] = rng.choice((f"q{max(0, sent - rng.randint(0, 20))}", rng.choice(WILD)))
    if kind.startswith("terminate") and rng.random() < 0.3:
        found["turnNumbers"] = rng.choice(([0], [0, 1], rng.choice(WILD)))
    return found


def broken(rng: random.Random, rest: bytes) -> bytes:
    """What follows the id of a request, with bytes changed, put in, taken out, or cut off."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randint(0, len(rest))
        what = rng.randrange(4)
        if what == 0:
            rest = rest[:at] + bytes([rng.randrange(256)]) + rest[at + 1 :]
        elif what == 1:
            rest = rest[:at] + rng.choice(BITS) + rest[at:]
        elif what == 2:
            rest = rest[:at] + rest[at + rng.randint(1, 9) :]
        else:
            rest = rest[:at]
    return rest.replace(b"\n", b" ")


def lines(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Lines without their ends, the same for the same seed, each with the id that it has unless it is broken.

    The id is empty where a line has none for certain. No line is blank.
    """
    rng = random.Random(seed)
    for number in range(count):
        kind, name = rng.random(), f"q{number}"
        if kind < 0.06:
            yield "", rng.choice(GARBAGE)
            continue
        if kind < 0.16:
            values = action(rng, number)
        else:
            values = query(rng)
            if kind < 0.65:
                values = spoiled(rng, values)
        text = json.dumps({"id": name, **values}, ensure_ascii=rng.random() < 0.5)
        line = text.encode("utf-8", "surrogatepass")
        if kind > 0.85:
            head = len(f'{{"id": "{name}"')
            line = line[:head] + broken(rng, line[head:])
        yield name, line
