"""The games to be reviewed: read from files, folders and archives, given names of their own, and replayed."""

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
"""Boards that are analysed"""
UNUSABLE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
"""What names of files cannot hold, on one system or another"""
RESERVED = frozenset(("con", "prn", "aux", "nul", "conin$", "conout$",
                      *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³")))  # fmt: skip
"""Names of Windows' devices, with whatever stands behind a dot. Source: learn.microsoft.com, "Naming files, paths" """
LONGEST_NAME = 150
"""Bytes of a name in UTF-8; with what is put behind it systems take 255."""
REVIEW = "-review"
"""Suffix of a review's name where the folder has an SGF file of that name that is no review"""
MOST_MOVES = 2000
"""A game of more is no game that people played"""
MARK = "KEIMA"
"""The SGF property that a review leaves on each node: which of the node's properties are ours"""


@dataclass(frozen=True)
class Step:
    """What a move does, in policy indices."""

    color: int
    point: int
    index: int
    """-1 = a pass"""
    captured: list[int]


@dataclass
class GameToReview:
    """A record, replayed."""

    record: SgfGame
    rules: Rules
    komi: float
    handicap: int
    positions: list[Position] = field(repr=False)
    """before each move, the colour that made it to move; then the last one"""
    steps: list[Step] = field(repr=False)

    @property
    def played(self) -> list[tuple[int, int]]:
        """Colour and point of each move."""
        return [(step.color, step.point) for step in self.steps]

    @property
    def handicap_moves(self) -> int:
        """Number of moves at the beginning that are handicap stones; some servers write them so."""
        stones = [number for number, (color, point) in enumerate(self.played, 1) if color == BLACK and point != PASS]
        left = self.handicap - len(self.record.black)
        return stones[left - 1] if left > 0 else 0

    def colors(self, turn: int) -> list[int]:
        """Colour of each point after some moves, in policy order."""
        found: list[int] = self.positions[turn].board.color[on_board_points(self.record.size)].tolist()
        return found


def game_to_review(
    record: SgfGame, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI
) -> GameToReview:
    """Replay a record.

    Moves out of turn are played as they are. Komi and rules are those which the server meant. The stones that Black
    places before White's first are a handicap, as the position itself knows them.

    Args:
        rules, komi: those in force where the file does not name them.
    Raises:
        ValueError: an impossible move or setup; one line.
    """
    # The whole game first, whose errors say where they are.
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
        # A stone that takes its own chain off leaves its point empty too, though it was so before.
        gone = [int(at) for at in ((before != EMPTY) & (after == EMPTY)).nonzero()[0]]
        if index >= 0 and after[index] == EMPTY:
            gone.append(index)
        steps.append(Step(color, point, index, gone))
    positions.append(_with_to_move(game, game.to_move))
    return GameToReview(record, game.rules, game.komi, game.handicap, positions, steps)


def _with_to_move(game: Game, color: int) -> Position:
    """A copy of the game's position with a colour to move, to be analysed by itself."""
    copy = with_capacity(game.position, game.n_moves)
    copy.meta[META_TO_MOVE] = color
    hide_course(copy)
    return copy


class Source(NamedTuple):
    """One game of a file."""

    name: str
    """of the files that are written, without their endings; no two are alike"""
    piece: bytes
    """the game alone, in UTF-8"""
    record: SgfGame

    def tree(self) -> SgfTree:
        """The file's tree, to be written into."""
        _, tree = next(read_trees(self.piece))
        if isinstance(tree, ValueError):
            raise tree
        return tree


def sources(paths: Sequence[Path], out: Path, refuse: Callable[[str, str], None]) -> Iterator[Source]:
    """The games at some paths that can be reviewed, in order.

    Args:
        out: folder of reviews; its files are skipped, or only the reviews among them where it is one of the paths. A
            source gets no name under which another program's SGF file lies there.
        refuse: told the name and what is wrong, of each file or game that cannot be reviewed.
    Raises:
        ValueError: there is no such path.
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
    """The games of a file."""
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
    """A name for a game's files that no other has, on systems too that take capitals for small letters."""
    # Names of files may be no text.
    stem = os.fsencode(path).decode(errors="replace")
    stem = stem.replace("\\", "/").rsplit("/", 1)[-1]
    stem = re.sub(r"(?i)(\.sgf)?(\.(gz|bz2|xz))?$", "", stem) or "game"
    stem = UNUSABLE.sub("-", stem).encode()[:LONGEST_NAME].decode(errors="ignore").strip(" .") or "game"
    first, dot, rest = stem.partition(".")
    if stem.casefold() == "index" or first.rstrip().casefold() in RESERVED:
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
    """Whether the folder has an SGF file of this name that no review wrote."""
    path = out / f"{name}.sgf"
    return path.exists() and not is_review(path.read_bytes())


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def is_review(data: bytes) -> bool:
    """Whether a file holds what a review wrote: a game whose first node names a comment of ours."""
    if MARK.encode() not in data:
        return False
    trees = (tree for _, tree in read_trees(data))
    return any(isinstance(tree, SgfTree) and b"C" in tree.main_line()[0].get(MARK, []) for tree in trees)
