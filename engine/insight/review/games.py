"""The games of a review: read from files, folders and archives, given unique names, and replayed."""

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import BLACK, EMPTY, PASS, index_of, on_board_points
from engine.go.position import META_TO_MOVE, Position, hide_course, with_capacity
from engine.go.rules import RULE_SETS, Rules
from engine.go.sgf import SgfGame, read_sgf
from engine.go.sgf_tree import SgfTree, read_trees
from engine.records.archive import Document, documents
from engine.records.sgf_records import komi_meant, rules_meant

SMALLEST, LARGEST = 2, 19
"""Smallest and largest board size of games to review"""
UNUSABLE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
"""Characters that some operating system does not allow in file names"""
RESERVED = frozenset(("con", "prn", "aux", "nul", "conin$", "conout$",
                      *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³")))  # fmt: skip
"""Names of devices on Windows, where no file may have one of them before its first dot. Source: learn.microsoft.com,
"Naming files, paths" """
LONGEST_NAME = 150
"""Maximum length of a review's name in bytes of UTF-8; file systems allow 255, suffixes included"""
REVIEW = "-review"
"""Suffix of a name if the folder of reviews has files of the name without it that are not a review's"""
PAGE = re.compile(rb"default-src 'none'; style-src 'unsafe-inline'.{,1000}<title>[^<]*: reviews?</title>", re.DOTALL)
"""Beginning of the page of a review, and of an index of reviews"""
REPORT = b'{"program": "Keima '
"""Beginning of a review's JSON"""
PICTURE = re.compile(r"-(winrate|lead|loss|end|move-[0-9]+)\.(svg|png)")
"""End of the name of a review's picture"""
MOST_MOVES = 2000
"""Maximum number of moves of a game to review"""
MARK = "KEIMA"
"""SGF property whose values are the names of the properties that a review wrote into the node"""


@dataclass(frozen=True)
class Step:
    """The effect of a move on the board."""

    color: int
    point: int
    index: int
    """policy index; -1 = a pass"""
    captured: list[int]
    """policy indices of the stones that the move removes: captured ones, or its own chain by suicide"""


@dataclass
class GameToReview:
    """A game record, and its replay move by move."""

    record: SgfGame
    rules: Rules
    komi: float
    handicap: int
    positions: list[Position] = field(repr=False)
    """the position before each move, with the move's colour to move; then the final position"""
    steps: list[Step] = field(repr=False)

    @property
    def played(self) -> list[tuple[int, int]]:
        """Colour and point of each move."""
        return [(step.color, step.point) for step in self.steps]

    @property
    def handicap_moves(self) -> int:
        """Number of moves up to the last handicap stone, if a server has recorded these stones as moves; else 0."""
        stones = [number for number, (color, point) in enumerate(self.played, 1) if color == BLACK and point != PASS]
        left = self.handicap - len(self.record.black)
        return stones[left - 1] if left > 0 else 0

    def colors(self, turn: int) -> list[int]:
        """Colour of each point at a turn, in policy order."""
        found: list[int] = self.positions[turn].board.color[on_board_points(self.record.size)].tolist()
        return found


def game_to_review(
    record: SgfGame, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI
) -> GameToReview:
    """Replay a record.

    Moves out of turn are played as recorded. Errors of servers in komi and rules are corrected
    (:mod:`engine.records.sgf_records`). Black's stones before White's first are a handicap, as in
    :class:`engine.go.position.Position`.

    Args:
        rules, komi: defaults for files without them.
    Raises:
        ValueError: an illegal move or setup; one line.
    """
    # Replayed as a whole first, which raises errors with the number of the move.
    meant = replace(record, komi=komi_meant(record), rules=rules_meant(record))
    meant.to_game(rules, komi)
    game = replace(meant, moves=[]).to_game(rules, komi)
    points = on_board_points(record.size)
    positions, steps = [], []
    for color, point in record.moves:
        positions.append(_with_to_move(game, color))
        before = game.position.board.color[points].copy()
        game.play(color, point)
        after = game.position.board.color[points]
        index = -1 if point == PASS else int(index_of(point, record.size))
        # A suicide leaves its own point empty, which was empty before.
        gone = [int(at) for at in ((before != EMPTY) & (after == EMPTY)).nonzero()[0]]
        if index >= 0 and after[index] == EMPTY:
            gone.append(index)
        steps.append(Step(color, point, index, gone))
    positions.append(_with_to_move(game, game.to_move))
    return GameToReview(record, game.rules, game.komi, game.handicap, positions, steps)


def _with_to_move(game: Game, color: int) -> Position:
    """A copy of the game's position for an analysis, with a colour to move and its history hidden from encoders."""
    copy = with_capacity(game.position, game.n_moves)
    copy.meta[META_TO_MOVE] = color
    hide_course(copy)
    return copy


class Source(NamedTuple):
    """A game to review, from a file with one or more games."""

    name: str
    """unique name of the files of its review, without endings"""
    piece: bytes
    """the game's SGF, in UTF-8"""
    record: SgfGame

    def tree(self) -> SgfTree:
        """A new copy of the game's tree, for annotation."""
        _, tree = next(read_trees(self.piece))
        if isinstance(tree, ValueError):
            raise tree
        return tree


def sources(paths: Sequence[Path], out: Path, refuse: Callable[[str, str], None]) -> Iterator[Source]:
    """The games at some paths that can be reviewed, in order.

    Args:
        out: folder of reviews. Its files are skipped; but if one of ``paths`` is this folder or lies in it, only
            reviews are skipped there. No source gets the name of files in it that are not a review's.
        refuse: called with name and problem of each file or game that cannot be reviewed.
    Raises:
        ValueError: a path does not exist.
    """
    used: set[str] = set()
    for path in paths:
        for document in documents(path):
            is_in_out = path.is_dir() and _is_inside(Path(document.name), out)
            if is_in_out and (not _is_inside(path, out) or is_review(document.data)):
                continue
            if document.problem:
                refuse(document.name, document.problem)
            elif document.data and not document.is_shard:
                yield from _games(document, out, used, refuse)


def _games(document: Document, out: Path, used: set[str], refuse: Callable[[str, str], None]) -> Iterator[Source]:
    """The games of a file that can be reviewed; arguments as for :func:`sources`."""
    for number, (piece, tree) in enumerate(read_trees(document.data), 1):
        named = document.name if number == 1 else f"{document.name}, game {number}"
        try:
            if isinstance(tree, ValueError):
                raise tree
            record = read_sgf(piece)
            if not SMALLEST <= record.size <= LARGEST:
                raise ValueError(f"a board of {record.size}, at most {LARGEST} is reviewed")
            if not record.moves:
                raise ValueError("no moves")
            if len(record.moves) > MOST_MOVES:
                raise ValueError(f"{len(record.moves)} moves, at most {MOST_MOVES} are reviewed")
            record.to_game()
        except ValueError as error:
            refuse(named, str(error))
            continue
        yield Source(_name(document.name, number, out, used), piece, record)


def _name(path: str, number: int, out: Path, used: set[str]) -> str:
    """A name for the files of a game's review, unique also on file systems that ignore case."""
    # Names of files need not be valid Unicode.
    stem = os.fsencode(path).decode(errors="replace")
    stem = stem.replace("\\", "/").rsplit("/", 1)[-1]
    stem = re.sub(r"(?i)(\.sgf)?(\.(gz|bz2|xz))?$", "", stem) or "game"
    stem = UNUSABLE.sub("-", stem).encode()[:LONGEST_NAME].decode(errors="ignore").strip(" .") or "game"
    first, dot, rest = stem.partition(".")
    if stem.casefold() in ("index", f"index{REVIEW}") or first.rstrip().casefold() in RESERVED:
        stem = f"{first}-game{dot}{rest}"
    base = stem if number == 1 else f"{stem}-{number}"
    if _is_foreign(out, base):
        base += REVIEW
    wanted, again = base, 2
    while wanted.casefold() in used or _is_foreign(out, wanted):
        wanted, again = f"{base}-{again}", again + 1
    used.add(wanted.casefold())
    return wanted


def _is_foreign(out: Path, name: str) -> bool:
    """Whether the folder has files of this name that are not a review's, so that a review would overwrite them."""
    record, page, report = (out / f"{name}{ending}" for ending in (".sgf", ".html", ".json"))
    if any(path.exists() and not _is_ours(path) for path in (record, page, report)):
        return True
    # Pictures have no mark of ours; a review's lie beside its page.
    pictures = [] if page.exists() else out.glob(f"{glob.escape(name)}-*")
    return any(PICTURE.fullmatch(path.name, len(name)) for path in pictures)


def _is_ours(path: Path) -> bool:
    """Whether a file is a review's record, page or JSON, or an index of reviews."""
    data = path.read_bytes()
    if path.suffix == ".html":
        return PAGE.search(data[:4096]) is not None
    return data.startswith(REPORT) if path.suffix == ".json" else is_review(data)


def free_page(folder: Path, name: str) -> Path:
    """Path of a page in a folder; if a file there has its name and is not ours, the name gets :data:`REVIEW`."""
    path = folder / name
    while path.exists() and not _is_ours(path):
        path = path.with_stem(path.stem + REVIEW)
    return path


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def is_review(data: bytes) -> bool:
    """Whether SGF data is that of a review: the property ``MARK`` of a game's first node lists the comment."""
    if MARK.encode() not in data:
        return False
    trees = (tree for _, tree in read_trees(data))
    return any(isinstance(tree, SgfTree) and b"C" in tree.main_line()[0].get(MARK, []) for tree in trees)
