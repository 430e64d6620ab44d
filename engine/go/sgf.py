"""Games from and to SGF (Smart Game Format FF[1] to FF[4], www.red-bean.com/sgf), with sgfmill.

Only the main line of a game is read: setup stones, then moves; a file may contain several games. Common faults of files
are accepted: text before the first ``(;``, wrong or missing encodings, komi in "zi" or in hundredths of a point,
passes as ``tt``. Any other fault raises a ``ValueError`` with a message of one line. Size and number of nodes are
limited before parsing, and variations cost no more than their bytes, so a hostile file cannot exhaust the memory.

A file's true encoding may differ from the one in its CA property: many files name none, or that of an earlier program;
text converted to UTF-8 keeps the old name; some programs name UTF-8 and write in the encoding of their system. In some
encodings a byte inside a character may equal a bracket or a backslash, so a wrong encoding can also corrupt moves
(:func:`in_known_encoding`).
"""

import codecs
import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from sgfmill import sgf, sgf_grammar

from engine import __version__
from engine.go.board import META_CAPTURED_BLACK, META_CAPTURED_WHITE
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game, Stage
from engine.go.geometry import BLACK, EMPTY, MAX_SIZE, MIN_SIZE, PASS, WHITE, on_board_points, point_at, to_sgf
from engine.go.points import color_letter
from engine.go.rules import CUSTOM, MAX_KOMI, RULE_SETS, Rules, rules_from, short_form

WIDE_ENCODINGS = {"gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "cp950", "cp950": "cp950",
                  "big5hkscs": "big5hkscs", "shift_jis": "cp932", "cp932": "cp932", "utf-16": "utf-16",
                  "iso2022_jp": "iso2022_jp_2", "iso2022_kr": "iso2022_kr"}  # fmt: skip
"""Python's name of a multi-byte encoding -> the largest encoding of its family, used to decode it. In all of them a
byte inside a character may equal a bracket or a backslash."""
NARROW_ENCODINGS = {
    *("ascii", "utf-8", "utf-8-sig", "euc_jp", "euc_kr", "cp949", "koi8-r", "koi8-u", "mac-roman", "tis-620"),
    *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
    *(f"cp{page}" for page in (437, 850, 852, 866, 874, *range(1250, 1259))),
}
"""Python's names of the other supported encodings; some unsupported ones take quadratic time to decode"""
FALLBACKS = ("utf-8", "gb18030", "shift_jis")
"""Encodings tried in this order if a value cannot be decoded by the file's encoding; the last resort is Latin-1"""
_SAMPLE = 1 << 16
"""Number of bytes by which an encoding is guessed, from the first non-ASCII byte on"""
_COMMON = {
    "gb18030": re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]"),
    "cp932": re.compile(rb"\x81[\x40-\x9f]|\x82[\x4f-\xf1]|\x83[\x40-\x96]|[\x88-\x97][\x40-\xfc]"),
    "cp950": re.compile(rb"[\xa1-\xa3\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
}
"""Encoding -> pattern of its common characters: punctuation, kana, and the first level of Chinese characters"""
_WIDE = {
    "gb18030": re.compile(rb"[\x81-\xfe](?:[\x30-\x39][\x81-\xfe][\x30-\x39]|[\x40-\x7e\x80-\xfe])|[\x80-\xff]"),
    "cp932": re.compile(rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\x80-\xff]"),
    "cp950": re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]|[\x80-\xff]"),
}
"""Encoding -> pattern of a non-ASCII character, or of a byte that is not part of one (in cp932 half-width kana)"""
_ACCENTED = re.compile(rb"(?<![\x80-\xff])[\xc0-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\xc0-\xff]{2}(?=[A-Za-z])")
"""Pattern of accented Latin-1 letters in Western text: a single one, or two between unaccented letters"""
_THREE_BYTES = re.compile("[\u0800-\U0010ffff]")
_BEYOND = re.compile(rb"[\x80-\xff]")


def in_known_encoding(data: bytes) -> tuple[bytes, str]:
    """A file's data and Python's name of their encoding; data in one of ``WIDE_ENCODINGS`` are converted to UTF-8."""
    encoding = _encoding_of(data)
    if encoding in WIDE_ENCODINGS:
        # In UTF-8 a byte that equals a bracket is a bracket. Data that cannot be decoded stay as they are.
        with contextlib.suppress(UnicodeError):
            return data.decode(WIDE_ENCODINGS[encoding]).encode(), "utf-8"
    return data, encoding


def text_of(raw: bytes, encoding: str) -> str:
    """A value as text, decoded by the file's encoding or, if that fails, by one of ``FALLBACKS``."""
    for known in (encoding, *FALLBACKS):
        with contextlib.suppress(UnicodeError):
            return raw.decode(known)
    return raw.decode("latin-1")


def _encoding_of(data: bytes) -> str:
    """Python's name of a file's encoding: UTF-16 or UTF-8 if the bytes show it, else declared by CA, else guessed."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _declared(data)
    try:
        text = data.decode()
    except UnicodeError:
        # The declared UTF-8 is wrong.
        return _guessed(data) if declared in ("", "utf-8", "utf-8-sig", "ascii") else declared
    # Text in other encodings is hardly ever valid UTF-8, and never with characters of three bytes.
    return declared if declared and not _THREE_BYTES.search(text) else "utf-8"


def _declared(data: bytes) -> str:
    """Python's name of the encoding in the first CA property; empty if there is none or it is not supported."""
    found = re.search(rb"(?<![A-Za-z])CA\s*\[([\w .:-]{1,40})\]", data[:10000])
    try:
        name = codecs.lookup(found[1].decode("ascii").strip()).name if found else ""
    except (LookupError, ValueError):
        return ""
    return name if name in WIDE_ENCODINGS or name in NARROW_ENCODINGS else ""


def _guessed(data: bytes) -> str:
    """The encoding whose common characters have the largest share of data that are not valid UTF-8.

    It may be UTF-8 too, for UTF-8 with damaged bytes.
    """
    first = _BEYOND.search(data)
    sample = data[max(0, first.start() - 1) :][:_SAMPLE] if first else b""
    n_beyond = len(_BEYOND.findall(sample))
    shares = {}
    for name, wide in _WIDE.items():
        signs = wide.findall(sample)
        shares[name] = sum(map(bool, map(_COMMON[name].fullmatch, signs))) / max(1, len(signs))
    shares["latin-1"] = len(_ACCENTED.findall(sample)) / max(1, n_beyond)
    shares["utf-8"] = len(_BEYOND.findall(sample.decode(errors="ignore").encode())) / max(1, n_beyond)
    # Among equals the first: most files without a declared encoding are Chinese.
    return max(("gb18030", "latin-1", "cp932", "cp950", "utf-8"), key=lambda name: shares[name])


MAX_BYTES = 4 << 20
MAX_NODES = 100_000
MAX_VALUES = 500_000
MAX_ESCAPES = 100_000
"""Maximum number of backslashes in a game; the parser needs a hundred bytes for each"""
MAX_DEPTH = 2000
"""Maximum depth of nested variations"""
MAX_SETUPS = 1000
"""Maximum number of main-line nodes that set up stones; each may start a new game"""
MAX_TEXT_BYTES = 1 << 17
"""Maximum size in bytes of a value read as text; for each white-space byte the parser needs a hundred bytes"""
MAX_STONES = MAX_SIZE * MAX_SIZE
"""Maximum number of points in one setup list, each rectangle counted by its points"""
MOST_ZI = 5.0
"""Largest number with a quarter, such as 3.75, that is read as komi in zi (1 zi = 2 points)"""
_KOMI = re.compile(
    r"\s*+([+-]?\d{1,9}(?:[.,]\d*+)?|[+-]?[.,]\d++)\s*+(?:又\s*+(\d)/([1-9]))?\s*+([½半])?"
    r"\s*+(?:points?|pts?|moku|[目집]|(子))?\s*+(半)?\s*+"
)
"""Pattern of a KM value. Groups: number, numerator and denominator of a fraction, a half, the unit zi, a half
after the unit"""
COLOR_OF = {"B": BLACK, "W": WHITE}
DETAILS = ("AP", "BR", "DT", "HA", "KM", "PB", "PW", "RD", "TM", "WR")
_VALUE = rb"\[(?:[^\\\]]++|\\.?)*+\]?"
"""Pattern of a property's value in brackets. It is possessive, and may lack its bracket at the end of the file, so that
no byte is read twice"""
_OF_RULES = re.compile(r"(?<!\s)\s++rules?\s*$", re.IGNORECASE)
_START = re.compile(rb"\(\s*;")
_TO_BRACKET = re.compile(rb"[^()\[]*+(?:" + _VALUE + rb"[^()\[]*+)*+([()])", re.DOTALL)
_ROOT = re.compile(rb"\s*;(?:\s*[A-Za-z]+\s*(?:" + _VALUE + rb"\s*)++)*?\s*(?:FF|GM|SZ)\s*\[", re.DOTALL)
"""Pattern of the beginning of a root node, up to its first FF, GM or SZ; no other node has these properties"""
STONES = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}
"""Setup property -> colour that it sets"""


@dataclass
class SgfGame:
    """The main line of a game in a file. Points are those of :mod:`engine.go.geometry` for this board size."""

    size: int
    komi: float | None
    """in points; None = missing or invalid"""
    rules: Rules | None
    """None = missing or unknown"""
    black: list[int] = field(default_factory=list)
    """points of Black's stones before the first move"""
    white: list[int] = field(default_factory=list)
    captured: tuple[int, int] = (0, 0)
    """number of Black's and of White's stones captured before the first move"""
    earlier: tuple[Stage, ...] = ()
    """parts of the game before its last setup in mid-game, after which ``moves`` begins"""
    to_move: int = BLACK
    moves: list[tuple[int, int]] = field(default_factory=list)
    """colour and point of each move"""
    result: str = ""
    details: dict[str, str] = field(default_factory=dict)
    """property -> text, for the properties in ``DETAILS`` that the first node has"""
    unknown_rules: str = ""
    """beginning of the value of RU, if it names no known rules"""

    def to_game(self, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI) -> Game:
        """The game with all its moves played.

        Args:
            rules, komi: used if the file names none.
        Raises:
            ValueError: an illegal move (:meth:`engine.go.game.Game.play`), named in the message, or illegal setup.
        """
        game = Game(self.size, self.rules or rules, komi if self.komi is None else self.komi)
        if self.black or self.white or self.earlier or self.to_move != BLACK:
            game.setup_stones(self.black, self.white, self.to_move, self.captured, self.earlier)
        _play(game, self.moves)
        return game


def _play(game: Game, moves: list[tuple[int, int]]) -> None:
    """Play moves of a file; raises as :meth:`SgfGame.to_game` does."""
    for color, point in moves:
        try:
            game.play(color, point)
        except ValueError as error:
            at = to_sgf(point, game.size)
            raise ValueError(f"SGF: move {game.n_moves + 1} at {at} is illegal") from error


def read_sgf(data: bytes, n_moves: int | None = None) -> SgfGame:
    """Read the main line of the first game of a file.

    Args:
        n_moves: number of moves to read; later moves and setup are not read. None = all.
    Raises:
        ValueError: broken, too large, not Go, or not a square board of 2 to 25; the message is one line.
    """
    # Before the conversion, which may double the size.
    _check_size(data)
    return _read_game(*in_known_encoding(data), n_moves)


def read_sgf_games(data: bytes) -> Iterator[SgfGame | ValueError]:
    """The main line of every game of a file, in order; size limits apply to each game, not to the file.

    A broken game yields its ValueError, and reading continues with the next game. A game without closing bracket ends
    where the next one begins.
    """
    for piece, encoding in game_pieces(data):
        try:
            yield _read_game(piece, encoding)
        except ValueError as error:
            yield error


def game_pieces(data: bytes) -> Iterator[tuple[bytes, str]]:
    """The bytes and the encoding of each game of a file, in order; a file without games is one piece."""
    data, encoding = in_known_encoding(data)
    pieces = _split(data)
    # The piece of a file without games raises an error when it is parsed.
    yield from ((piece, encoding) for piece in chain([next(pieces, data)], pieces))


def _split(data: bytes) -> Iterator[bytes]:
    """The bytes of each game of a file, in order."""
    start = _START.search(data)
    while start is not None:
        first, depth, end = start.start(), 1, start.start() + 1
        while depth and (bracket := _TO_BRACKET.match(data, end)):
            is_open = bracket[1] == b"("
            if is_open and _ROOT.match(data, bracket.end()):
                end = bracket.start(1)
                break
            depth += 1 if is_open else -1
            end = bracket.end()
        else:
            end = len(data) if depth else end
        yield data[first:end]
        start = _START.search(data, end)


def _check_size(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise ValueError(f"SGF: {len(data)} bytes, at most {MAX_BYTES} are read")


def _read_game(data: bytes, encoding: str, n_moves: int | None = None) -> SgfGame:
    """The main line of the first game in bytes from :func:`in_known_encoding`; raises as :func:`read_sgf` does."""
    return _Reader(list(sgf_grammar.main_sequence_iter(parsed_tree(data))), encoding, n_moves).game


def game_of_nodes(nodes: list[dict[str, list[bytes]]]) -> SgfGame:
    """The game along a line of nodes from the root, such as a variation of an :class:`engine.go.sgf_tree.SgfTree`.

    Args:
        nodes: property -> raw values, in UTF-8; only read.
    Raises:
        ValueError: as :func:`read_sgf`.
    """
    return _Reader(nodes, "utf-8", None).game


def parsed_tree(data: bytes) -> Any:
    """sgfmill's ``Coarse_game_tree`` of the first game in ``data``, within the limits ``MAX_...``.

    Raises:
        ValueError: no game, a broken game, or one beyond a limit; the message is one line.
    """
    _check_size(data)
    start = _START.search(data)
    if start is None:
        raise ValueError("SGF: no game in the file")
    data = data[start.start() :]
    _check_bounds(data)
    try:
        return sgf_grammar.parse_sgf_game(data)
    except ValueError as error:
        raise ValueError(f"SGF: {error}") from error


def _check_bounds(data: bytes) -> None:
    """Raise ValueError for data with too many values, nodes or backslashes, or nested too deep; nothing is parsed."""
    # The count limits the memory for a file of brackets alone.
    structure, values = re.subn(_VALUE, b"", data, count=MAX_VALUES + 1, flags=re.DOTALL)
    if values > MAX_VALUES:
        raise ValueError(f"SGF: more than {MAX_VALUES} values")
    for name, count, limit in (
        ("nodes", structure.count(b";"), MAX_NODES),
        ("backslashes", data.count(b"\\"), MAX_ESCAPES),
    ):
        if count > limit:
            raise ValueError(f"SGF: {count} {name}, at most {limit} are read")
    depth = 0
    for match in re.finditer(rb"[()]", structure):
        depth += 1 if match.group() == b"(" else -1
        if depth > MAX_DEPTH:
            raise ValueError(f"SGF: variations nested more than {MAX_DEPTH} deep")


class _Reader:
    """Converts the nodes of a main line into a :class:`SgfGame`."""

    def __init__(self, nodes: list[dict[str, list[bytes]]], encoding: str, n_moves: int | None):
        root = nodes[0]
        self._encoding = encoding
        game_type = self._first(root, "GM")
        if game_type not in ("", "1"):
            raise ValueError(f"SGF: GM[{_shown(game_type)}], expected GM[1], Go")
        size, rules = self._size(self._first(root, "SZ")), self._first(root, "RU")
        self.game = SgfGame(
            size=size,
            komi=_komi(self._first(root, "KM")),
            rules=_rules(rules),
            result=self._first(root, "RE"),
            details={name: text for name in DETAILS if (text := self._first(root, name))},
        )
        if self.game.rules is None:
            self.game.unknown_rules = _shown(rules)
        self._setups = 0
        self._so_far: Game | None = None
        """the game replayed so far, from the latest setup on"""
        self._names_player = False
        """whether PL named the colour to move at the start"""
        self._moves_left = 2 * len(nodes) if n_moves is None else n_moves
        for node in nodes:
            if self._moves_left == 0 and node.keys() & COLOR_OF.keys():
                if not self.game.moves:
                    self.game.to_move = next(color for name, color in COLOR_OF.items() if name in node)
                break
            if self._moves_left == 0 and self.game.moves and node.keys() & STONES:
                break
            self._setup(node)
            self._moves(node)
        else:
            # After handicap stones White is to move, even without PL.
            if not self._names_player and self.game.black and not self.game.white and not self.game.moves:
                self.game.to_move = WHITE

    def _first(self, node: dict[str, list[bytes]], name: str) -> str:
        """First value of a property as text, stripped; empty if it is missing."""
        value = node.get(name, [b""])[0]
        if len(value) > MAX_TEXT_BYTES:
            raise ValueError(f"SGF: {name} of {len(value)} bytes, at most {MAX_TEXT_BYTES} are read")
        return text_of(sgf_grammar.simpletext_value(value), self._encoding).strip()

    @staticmethod
    def _size(text: str) -> int:
        """Board size; 19 if none is given."""
        parts = text.split(":") if text else ["19"]
        if len(parts) > 2 or not all(re.fullmatch(r"\s*[0-9]{1,4}\s*", part) for part in parts):
            raise ValueError(f"SGF: SZ[{_shown(text)}] is not a board size")
        columns, rows = int(parts[0]), int(parts[-1])
        if columns != rows or not MIN_SIZE <= columns <= MAX_SIZE:
            raise ValueError(f"SGF: board {columns}x{rows}, expected a square one of {MIN_SIZE} to {MAX_SIZE}")
        return columns

    def _setup(self, node: dict[str, list[bytes]]) -> None:
        """Apply a node's setup; if it changes stones after moves, the game starts anew from the changed position."""
        if not node.keys() & {*STONES, "PL"}:
            return
        game = self.game
        player = self._first(node, "PL").upper()[:1]
        if player in COLOR_OF and not game.moves:
            game.to_move, self._names_player = COLOR_OF[player], True
        if not node.keys() & STONES:
            return
        self._setups += 1
        if self._setups > MAX_SETUPS:
            raise ValueError(f"SGF: more than {MAX_SETUPS} setups on the main line")
        colors = dict.fromkeys(game.black, BLACK) | dict.fromkeys(game.white, WHITE)
        if game.moves:
            board = self._reached().position.board
            colors = {int(point): int(board.color[point]) for point in on_board_points(game.size)}
        before = dict(colors)
        for name, color in STONES.items():
            colors |= dict.fromkeys(points_in(node.get(name, []), game.size), color)
        if game.moves:
            if colors == before:
                return
            reached, self._so_far = self._reached(), None
            taken = reached.position.board.meta[[META_CAPTURED_BLACK, META_CAPTURED_WHITE]].tolist()
            stage = Stage(reached.start_stones(), reached.start_to_move, game.moves)
            game.captured, game.earlier = (taken[0], taken[1]), (*game.earlier, stage)
            game.to_move, game.moves = reached.to_move, []
        game.black = [point for point, color in colors.items() if color == BLACK]
        game.white = [point for point, color in colors.items() if color == WHITE]
        if player in COLOR_OF:
            game.to_move = COLOR_OF[player]

    def _reached(self) -> Game:
        """The game up to the last node read, as :class:`Game`; only moves read since the last call are played."""
        if self._so_far is None:
            self._so_far = replace(self.game, moves=[]).to_game()
        _play(self._so_far, self.game.moves[self._so_far.n_moves :])
        return self._so_far

    def _moves(self, node: dict[str, list[bytes]]) -> None:
        """Append a node's moves; if it has two, which the standard forbids, Black's comes first."""
        for name, color in COLOR_OF.items():
            if name in node and self._moves_left:
                if not self.game.moves:
                    self.game.to_move = color
                self.game.moves.append((color, point_in(node[name][0], self.game.size)))
                self._moves_left -= 1


def point_in(raw: bytes, size: int) -> int:
    """Point of a raw value of a move or stone; an empty value and, up to 19x19, ``tt`` are passes.

    Raises:
        ValueError: not a point of the board; the message is one line.
    """
    text = raw.strip().lower()
    if not text or (text == b"tt" and size <= 19):
        return PASS
    column, row = (text[0] - 97, text[1] - 97) if len(text) == 2 else (-1, -1)
    if not (0 <= column < size and 0 <= row < size):
        shown = _shown(raw.decode("ascii", "replace"))
        raise ValueError(f"SGF: [{shown}] is not a point of a {size}x{size} board")
    return int(point_at(row, column, size))


def points_in(values: list[bytes], size: int) -> list[int]:
    """Points of a list of raw values, rectangles (``aa:cc``) expanded; passes are left out.

    Raises:
        ValueError: as :func:`point_in`, or more than ``MAX_STONES`` points.
    """
    points: list[int] = []
    stride = size + 1
    for value in values:
        first, _, last = value.partition(b":")
        low, high = point_in(first, size), point_in(last or first, size)
        if PASS in (low, high):
            continue
        # Some programs swap the corners.
        (top, bottom), (left, right) = sorted((low // stride, high // stride)), sorted((low % stride, high % stride))
        points += [row * stride + column for row in range(top, bottom + 1) for column in range(left, right + 1)]
        if len(points) > MAX_STONES:
            raise ValueError(f"SGF: a list of more than {MAX_STONES} points")
    return points


def _shown(text: str) -> str:
    """The first 20 characters of a value for a message, unprintable ones as ``?``."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:20])


def _komi(text: str) -> float | None:
    """Komi in points; None = invalid.

    Servers also write hundredths (``650`` for 6.5), and zi of two points each, in quarters: ``3.75`` or ``375`` for
    7.5. Quarters above ``MOST_ZI`` are invalid. Units are allowed: ``6目半``, ``2.75子``.
    """
    found = _KOMI.fullmatch(text.casefold())
    if found is None:
        return None
    number, upper, lower, half, zi, late_half = found.groups()
    komi = float(number.replace(",", ".")) + (int(upper) / int(lower) if upper else 0.0)
    if half or late_half:
        komi += math.copysign(0.5, komi)
    if abs(komi) > MAX_KOMI:
        return None
    if zi:
        komi *= 2
    if abs(komi) >= 100 and number.lstrip("+-").isdigit() and (komi / 25).is_integer():
        komi /= 100
    if (4 * komi) % 2 == 1 and abs(komi) <= MOST_ZI:
        komi *= 2
    return komi if (2 * komi).is_integer() and abs(komi) <= MAX_KOMI else None


def _rules(text: str) -> Rules | None:
    """Rules by name or in KataGo's short form; None = unknown."""
    try:
        return rules_from(_OF_RULES.sub("", text)) if text else None
    except ValueError:
        return None


RU_NAMES = {"aga": "AGA", "goe": "GOE", "new-zealand": "NZ"}
"""Rule set -> its name in the SGF standard, if not the rule set's name capitalised, such as ``Japanese``"""


def komi_text(komi: float) -> str:
    """Value of KM; a large komi gets a decimal point, or it would be read as hundredths."""
    return f"{komi:g}" if abs(komi) < 100 else f"{komi:.1f}"


def rules_text(rules: Rules) -> str:
    """Value of RU."""
    return short_form(rules) if rules.name == CUSTOM else RU_NAMES.get(rules.name, rules.name.title())


def write_sgf(game: Game, black: str = "", white: str = "", result: str = "") -> str:
    """A game as SGF FF[4] in UTF-8 on one line, as scripts expect from ``printsgf``.

    Args:
        black, white: names of the players.
        result: value of RE, such as ``B+3.5``.
    """
    record = sgf.Sgf_game(game.size, encoding="UTF-8")
    root = record.get_root()
    root.set("AP", ("Keima", __version__))
    root.set_raw("KM", komi_text(game.komi).encode())
    root.set("RU", rules_text(game.rules))
    for name, text in (("PB", black), ("PW", white), ("RE", result)):
        if text:
            root.set(name, text)
    if game.handicap and not game.earlier:
        root.set("HA", game.handicap)
    before: Stage | None = None
    for stage in (*game.earlier, Stage(game.start_stones(), game.start_to_move, game.moves())):
        node = root if before is None else record.extend_main_sequence()
        _set_up(node, stage, {} if before is None else _reached(before, game.size), game.size)
        for color, point in stage.moves:
            record.extend_main_sequence().set_raw(color_letter(color), to_sgf(point, game.size).encode())
        before = stage
    return record.serialise(wrap=None).decode("utf-8")


def _reached(stage: Stage, size: int) -> dict[int, int]:
    """Point -> colour of the stones after the last move of a stage."""
    game = Game(size)
    black, white = ([point for point, of in stage.stones.items() if of == color] for color in (BLACK, WHITE))
    game.setup_stones(black, white, stage.to_move)
    for move in stage.moves:
        game.play(*move)
    return game.stones()


def _set_up(node: Any, stage: Stage, before: dict[int, int], size: int) -> None:
    """Write to ``node`` the setup properties that turn the stones ``before`` into a stage's first position."""
    changed = before.items() ^ stage.stones.items()
    colors = {point: stage.stones.get(point, EMPTY) for point, _ in sorted(changed)}
    for name, color in (("AB", BLACK), ("AW", WHITE), ("AE", EMPTY)):
        if places := [to_sgf(point, size).encode() for point, of in colors.items() if of == color]:
            node.set_raw_list(name, places)
    if stage.stones or stage.to_move == WHITE:
        # Without PL, Black's stones alone would be a handicap, after which White is to move.
        node.set("PL", color_letter(stage.to_move).lower())
