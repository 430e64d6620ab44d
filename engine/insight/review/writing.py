"""The files of a review, each written atomically: page, annotated SGF, JSON, pictures.

A page is one file without dependencies. Without scripts it is a static report; ``review.js`` adds a board to step
through the game.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import __version__
from engine.go.geometry import BLACK, PASS, WHITE, index_of, to_sgf
from engine.go.points import color_letter
from engine.go.rules import short_form
from engine.go.sgf_tree import SgfTree
from engine.insight.raw_outputs import OWNER_LETTERS, owner_letters
from engine.insight.review.annotate import annotate
from engine.insight.review.index import IndexEntry, entry_of
from engine.insight.review.losses import KINDS, PHASES, POINTS, Move, Performance
from engine.insight.review.review import Review, lead_text, mean_loss
from engine.insight.review.turns import Turn
from engine.pictures.boards import LAYERS, board, diagram
from engine.pictures.charts import GAME_WIDTH, GAME_WIDTH_OF_PHONES, game_chart
from engine.pictures.drawing import png, stand_alone
from engine.pictures.pages import page
from engine.system.files import written_whole

HERE = Path(__file__).parent
LEAST_SCALE = 10.0
"""Minimum of :func:`scale`, in points or percent"""
SHOWN_OF_A_LINE = 8
"""Maximum number of moves of a PV in a diagram"""
PAGE_LINES = 6
"""Maximum number of a position's candidates that have a PV in a page; the others are the move alone"""
PAGE_LINE = 10
"""Maximum number of moves of a PV in a page"""


@dataclass(frozen=True)
class ReviewOutputs:
    """The files of a review besides page and annotated SGF, and the content of that SGF."""

    json: bool = False
    svg: bool = False
    png: bool = False
    lines: int = 1
    """maximum number of variations in the SGF for each inaccuracy or worse move"""
    katrain: bool = True
    """whether the SGF has KaTrain's property ``KT`` with the analysis"""


def write_review(folder: Path, review: Review, tree: SgfTree, wanted: ReviewOutputs) -> IndexEntry:
    """Write the files of a review; returns its entry in the index.

    Args:
        tree: the game's tree, which is annotated.
    Raises:
        OSError: a file cannot be written; the message names it.
        ImportError: PNG is wanted and matplotlib is missing.
    """
    annotate(tree, review, wanted.lines, wanted.katrain)
    files = {".html": page_of(review).encode(), ".sgf": tree.to_bytes()}
    if wanted.json:
        files[".json"] = (json.dumps(report_of(review), ensure_ascii=False) + "\n").encode()
    for part, drawn in drawings(review).items() if wanted.svg or wanted.png else ():
        if wanted.svg:
            files[f"-{part}.svg"] = stand_alone(drawn).encode()
        if wanted.png:
            files[f"-{part}.png"] = png(drawn)
    for ending, data in files.items():
        with written_whole(folder / f"{review.name}{ending}") as unfinished:
            unfinished.write_bytes(data)
    return entry_of(review)


def page_of(review: Review) -> str:
    """The HTML page of a review."""
    return page(
        HERE / "review.html", review=review, drawings=drawings(review), data=page_data(review), kinds=KINDS,
        narrow=charts(review, GAME_WIDTH_OF_PHONES), phases=PHASES, lead_text=lead_text, mean_loss=mean_loss,
        board=board(review.size, LAYERS, "", f'id="board" tabindex="0" class="{"large" if review.size > 13 else ""}"'),
    )  # fmt: skip


def served(text: str, address: str) -> str:
    """A review's page for a server that analyses positions, from the text of the page's file.

    Args:
        address: path on the same server that answers the page's questions (docs/review.md), without quotes.
    """
    text = text.replace("default-src 'none'", "default-src 'none'; connect-src 'self'", 1)
    return text.replace("<html ", f'<html data-analyse="{address}" ', 1)


def drawings(review: Review) -> dict[str, str]:
    """SVG drawings of a review by name: charts, diagrams of both players' lessons, the final board."""
    last, found = len(review.moves), charts(review, GAME_WIDTH)
    found |= {f"move-{move.number}": _lesson_diagram(review, move) for move in _lessons(review)}
    return found | {"end": diagram(review.game.colors(last), f"The board after move {last}")}


def _lessons(review: Review) -> list[Move]:
    """The lessons of both players."""
    return [move for color in (BLACK, WHITE) for move in review.summary.lessons[color]]


def charts(review: Review, width: int) -> dict[str, str]:
    """Charts of win rate, lead and losses over the moves, by name. The lessons are dots on the curves.

    Args:
        width: in units of the drawing; charts of ``GAME_WIDTH`` have ids.
    """
    last, lessons, is_points = len(review.moves), _lessons(review), review.unit == POINTS

    def chart(name: str, title: str, marks: Sequence[tuple[float, str]], values: Sequence[tuple[int, float]] = (),
              bars: Sequence[tuple[int, float, int]] = ()) -> str:  # fmt: skip
        ends = sorted((marks[0][0], marks[-1][0]))
        dots = [(move.number, values[move.number][1], move.kind or 0) for move in lessons] if values else []
        named = f'id="g-{name}" class="wide"' if width == GAME_WIDTH else 'class="narrow"'
        return game_chart(title, last, (ends[0], ends[1]), marks, values, bars, named, dots, width)

    rates = [(turn.number, 100 * turn.winrate_black) for turn in review.turns]
    title = f"Black's win rate over {last} moves, at the end {rates[-1][1]:.0f}%"
    found = {"winrate": chart("winrate", title, ((0, "W"), (50, "50%"), (100, "B")), rates)}
    if is_points:
        leads = [(turn.number, turn.lead_black or 0.0) for turn in review.turns]
        most = scale([lead for _, lead in leads])
        title = f"Black's lead in points over {last} moves, at the end {lead_text(leads[-1][1])}"
        found["lead"] = chart("lead", title, ((most, f"B+{most:g}"), (0, "0"), (-most, f"W+{most:g}")), leads)
    unit, sign = ("Points", "") if is_points else ("Percent", "%")
    most = scale([move.loss for move in review.moves if move.loss is not None])
    bars = [
        (move.number, move.counted if move.color == BLACK else -move.counted, move.kind or 0)
        for move in review.moves
        if move.counted
    ]
    title = f"{unit} lost by each move, Black's upwards, White's downwards"
    found["loss"] = chart(
        "loss", title, ((most, f"B {most:g}{sign}"), (0, "0"), (-most, f"W {most:g}{sign}")), bars=bars
    )
    return found


def scale(values: Sequence[float]) -> float:
    """End of a chart's axis of leads or losses: the 98th percentile of the absolute values, rounded up."""
    sizes = sorted(abs(value) for value in values) or [0.0]
    most = max(LEAST_SCALE, sizes[math.ceil(0.98 * len(sizes)) - 1])
    step = 5 if most <= 50 else 10
    return step * math.ceil(most / step)


def _lesson_diagram(review: Review, move: Move) -> str:
    """Diagram of the position before a lesson: the move as a cross, the better PV numbered."""
    line = [point for better in review.better(move) for point in better[:SHOWN_OF_A_LINE]]
    title = (
        f"The board before move {move.number}. {review.words(move).replace(' ', ' played ')}, which lost"
        f" {review.amount(move.counted)}. Better: {review.vertices(line) or 'nothing known'}."
    )
    played, *better = (-1 if point == PASS else int(index_of(point, review.size)) for point in (move.point, *line))
    return diagram(review.game.colors(move.number - 1), title, better, move.color, played)


def report_of(review: Review) -> dict[str, Any]:
    """The review as JSON values. Win rates (0 to 1), leads and ownership are Black's."""
    game, summary = review.game, review.summary
    return {
        "program": f"Keima {__version__}",
        "network": review.settings.network,
        "visits": review.settings.visits,
        "seconds": review.settings.seconds,
        "game": {
            "name": review.name, "black": review.player(BLACK), "white": review.player(WHITE), "size": review.size,
            "komi": game.komi, "rules": game.rules.name, "handicap": game.handicap, "result": game.record.result,
            "date": game.record.details.get("DT", ""),
        },
        "unit": review.unit,
        "thresholds": dict(zip(KINDS[1:], review.thresholds, strict=True)),
        "players": {
            color_letter(color): {
                **_performance(summary.whole[color]),
                "phases": dict(zip(PHASES, map(_performance, summary.phases[color]), strict=True)),
                "mostCostly": [move.number for move in summary.costly_of[color]],
            }
            for color in (BLACK, WHITE)
        },
        "mostCostly": [move.number for move in summary.costly],
        "moves": [_move(review, move) for move in review.moves],
        "positions": [_position(review, turn) for turn in review.turns],
    }  # fmt: skip


def _performance(of: Performance) -> dict[str, Any]:
    """A player's statistics as JSON values."""
    return {
        "moves": of.moves, "accuracy": of.accuracy, "accuracyInterval": of.accuracies, "meanLoss": of.mean_loss,
        "meanLossError": of.mean_loss_error, "firstChoices": of.first_choices, "nearBest": of.near_best,
        "kinds": dict(zip(KINDS, of.kinds, strict=True)),
    }  # fmt: skip


def _move(review: Review, move: Move) -> dict[str, Any]:
    """A move and its loss as JSON values."""
    return {
        "number": move.number, "color": color_letter(move.color), "move": review.vertex(move.point), "loss": move.loss,
        "noise": move.noise, "countedLoss": move.counted, "winrateLoss": move.winrate_loss,
        "course": None if move.course is None else round(move.course, 2),
        "kind": None if move.kind is None else KINDS[move.kind], "isFirstChoice": move.is_first_choice,
        "rank": move.rank, "policyRank": move.policy_rank, "prior": move.prior, "difficulty": move.difficulty,
        "better": [[review.vertex(point) for point in line] for line in review.better(move, 3)] if move.counted else [],
    }  # fmt: skip


def _position(review: Review, turn: Turn) -> dict[str, Any]:
    """A turn as JSON values; win rate, leads and ownership are Black's."""
    owners = turn.ownership_black
    return {
        "turn": turn.number, "toMove": color_letter(turn.to_move), "visits": turn.visits, "winrate": turn.winrate_black,
        "lead": turn.lead_black, "leadStdev": turn.stdev,
        "moves": [
            {
                "move": review.vertex(one.point), "visits": one.visits, "winrate": one.winrate_black,
                "lead": one.lead_black, "prior": one.prior, "pv": [review.vertex(point) for point in one.line],
            }
            for one in turn.moves
        ],
        "ownership": None if owners is None else [round(float(value), 2) for value in owners],
    }  # fmt: skip


def page_data(review: Review) -> dict[str, Any]:
    """Data for ``review.js``. Moves are policy indices, -1 = a pass; PVs, which take most of the space, are SGF
    coordinates, two letters a move, ``..`` = a pass.

    Keys of a move: ``c`` colour, ``i`` point, ``x`` captured stones, ``l`` loss, ``n`` noise, ``f`` whether it is the
    first choice, ``k`` openness, ``y`` reason. Keys of a turn: ``c`` colour to move, ``w`` win rate and ``s`` lead of
    Black, ``o`` ownership, ``m`` candidates: PV, visits, win rate, lead, prior. Rates and priors are percent.
    """
    game, size = review.game, review.size
    moves = [
        {
            "c": step.color, "i": step.index, "x": step.captured, "l": move.loss, "n": move.noise,
            "f": int(move.is_first_choice), "k": move.openness, "y": review.reasons.get(move.number, ""),
        }
        for step, move in zip(game.steps, review.moves, strict=True)
    ]  # fmt: skip
    turns = [
        {
            "c": turn.to_move, "w": round(100 * turn.winrate_black, 1), "s": turn.lead_black,
            "o": None if turn.ownership_black is None else owner_letters(turn.ownership_black),
            "m": [
                [_letters(one.line[: PAGE_LINE if n < PAGE_LINES else 1], size), one.visits,
                 round(100 * one.winrate_black, 1), one.lead_black, round(100 * one.prior, 1)]
                for n, one in enumerate(turn.moves)
            ],
        }
        for turn in review.turns
    ]  # fmt: skip
    return {
        "size": size, "unit": review.unit, "thresholds": review.thresholds, "kinds": KINDS, "owners": OWNER_LETTERS,
        "lines": PAGE_LINES, "players": {color: review.player(color) for color in (BLACK, WHITE)},
        "rules": short_form(game.rules), "suicide": game.rules.suicide, "komi": game.komi,
        "start": "".join(map(str, game.colors(0))), "moves": moves, "turns": turns,
    }  # fmt: skip


def _letters(line: Sequence[int], size: int) -> str:
    """A line as SGF coordinates, two letters a move."""
    return "".join(to_sgf(point, size) or ".." for point in line)
