"""The files of a review, each written whole or not at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.go.sgf_tree import SgfTree
from engine.insight.review import graphs, pictures, svg
from engine.insight.review.annotate import annotate
from engine.insight.review.data import report_of
from engine.insight.review.page import Entry, index_of_games, page_of
from engine.insight.review.review import Review
from engine.system.files import written_whole

INDEX = "index.html"


@dataclass(frozen=True)
class Wanted:
    """What is written beside the annotated SGF and the page."""

    json: bool = False
    svg: bool = False
    png: bool = False
    lines: int = 1
    """variations for a move that was blamed"""
    katrain: bool = True


def write_review(folder: Path, review: Review, tree: SgfTree, wanted: Wanted) -> list[Path]:
    """Write a review; returns the files, the page first.

    Args:
        tree: the game's, into which the review is written.
    Raises:
        OSError: a file cannot be written; the message names it.
        ValueError: PNG without matplotlib; one line.
    """
    annotate(tree, review, wanted.lines, wanted.katrain)
    name = review.name
    texts = {f"{name}.html": page_of(review).encode(), f"{name}.sgf": tree.to_bytes()}
    if wanted.json:
        texts[f"{name}.json"] = (json.dumps(report_of(review), ensure_ascii=False) + "\n").encode()
    if wanted.svg:
        texts |= {f"{name}-{part}.svg": svg.standalone(drawn).encode() for part, drawn in drawings(review).items()}
    if wanted.png:
        texts |= {f"{name}-{part}.png": data for part, data in pictures.pictures(review).items()}
    for file, data in texts.items():
        with written_whole(folder / file) as part:
            part.write_bytes(data)
    return [folder / file for file in texts]


def drawings(review: Review) -> dict[str, str]:
    """The pictures of a review: its graphs, the positions before its most costly moves, and the last one."""
    found = {
        "winrate": graphs.winrate_graph(review),
        "lead": graphs.lead_graph(review),
        "loss": graphs.loss_graph(review),
    }
    for move in review.summary.costly:
        found[f"move-{move.number}"] = graphs.costly_diagram(review, move)
    last = len(review.moves)
    found["end"] = svg.board(review.game.colors(last), review.size, f"The board after move {last}")
    return {part: drawn for part, drawn in found.items() if drawn}


def write_index(folder: Path, entries: Sequence[Entry]) -> Path:
    """Write the page that lists games.

    Raises:
        OSError: it cannot be written; the message names it.
    """
    with written_whole(folder / INDEX) as part:
        part.write_text(index_of_games(entries), encoding="utf-8")
    return folder / INDEX
