"""The games that are to be reviewed: read from files, folders and archives, and given names of their own."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.go.rules import Rules
from engine.go.sgf import SgfGame, read_sgf
from engine.go.sgf_tree import SgfTree, read_trees
from engine.insight.review.annotate import is_review
from engine.insight.review.game import MOST_MOVES, GameToReview, game_to_review
from engine.records.archive import Document, documents

SMALLEST, LARGEST = 2, 19
"""Boards that are analysed"""
UNUSABLE = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
"""What names of files cannot hold, on one system or another"""
RESERVED = frozenset(
    (
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"),
    )
)
"""Names of Windows' devices, with whatever stands behind a dot. Source: learn.microsoft.com, "Naming files, paths" """
LONGEST_NAME = 150
"""Bytes of a name in UTF-8; with what is put behind it systems take 255."""
REVIEW = "-review"
"""Suffix of a review's name where the folder has an SGF file of that name that is no review"""


class Source(NamedTuple):
    """One game of a file."""

    name: str
    """of the files that are written, without their endings; no two are alike"""
    piece: bytes
    """the game alone, in UTF-8"""
    record: SgfGame

    def game(self, rules: Rules, komi: float) -> GameToReview:
        """The game replayed; errors as of :func:`engine.insight.review.game.game_to_review`."""
        return game_to_review(self.record, rules, komi)

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
