"""A review as data: the object that ``--json`` writes for programs, and the shorter one inside a page."""

from typing import Any

from engine import __version__
from engine.go.geometry import BLACK, WHITE, to_sgf
from engine.go.notation import color_letter
from engine.insight.glance import owner_letters
from engine.insight.review.judgement import KINDS, Move
from engine.insight.review.review import Review
from engine.insight.review.summary import PHASES, Score
from engine.insight.review.turns import Turn

PAGE_CANDIDATES = 6
"""Moves of a position that a page shows"""
PAGE_LINE = 10


def report_of(review: Review) -> dict[str, Any]:
    """All of a review, for programs. Win rates are Black's from 0 to 1, leads and ownership Black's."""
    game = review.game
    return {
        "program": f"Keima {__version__}",
        "network": review.means.network,
        "visits": review.means.visits,
        "seconds": review.means.seconds,
        "game": {
            "name": review.name, "black": review.player(BLACK), "white": review.player(WHITE), "size": review.size,
            "komi": game.komi, "rules": game.rules.name, "handicap": game.handicap, "result": game.record.result,
            "date": game.record.details.get("DT", ""),
        },
        "unit": review.unit,
        "thresholds": dict(zip(KINDS[1:], review.thresholds, strict=True)),
        "players": {
            color_letter(color): {
                **_score(review.summary.whole[color]),
                "phases": dict(zip(PHASES, map(_score, review.summary.phases[color]), strict=True)),
                "mostCostly": [move.number for move in review.summary.costly_of[color]],
            }
            for color in (BLACK, WHITE)
        },
        "mostCostly": [move.number for move in review.summary.costly],
        "moves": [_move(review, move) for move in review.moves],
        "positions": [_position(review, turn) for turn in review.turns],
    }  # fmt: skip


def _score(score: Score) -> dict[str, Any]:
    """How one player did."""
    return {
        "moves": score.moves, "accuracy": score.accuracy,
        "accuracyInterval": None if score.accuracies is None else list(score.accuracies),
        "meanLoss": score.mean_loss, "meanLossError": score.mean_loss_error,
        "firstChoices": score.first_choices, "nearBest": score.near_best,
        "kinds": dict(zip(KINDS, score.kinds, strict=True)),
    }  # fmt: skip


def _move(review: Review, move: Move) -> dict[str, Any]:
    """One move."""
    return {
        "number": move.number, "color": color_letter(move.color), "move": review.vertex(move.point), "loss": move.loss,
        "noise": move.noise, "countedLoss": move.counted, "winrateLoss": move.winrate_loss,
        "course": None if move.course is None else round(move.course, 2),
        "kind": None if move.kind is None else KINDS[move.kind], "isFirstChoice": move.is_first_choice,
        "rank": move.rank, "policyRank": move.policy_rank, "prior": move.prior, "difficulty": move.difficulty,
        "better": [[review.vertex(point) for point in line] for line in review.better(move, 3)] if move.counted else [],
    }  # fmt: skip


def _position(review: Review, turn: Turn) -> dict[str, Any]:
    """One position."""
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
    """What a page's script reads: short names, moves as policy indices, -1 = a pass, lines as letters of SGF."""
    size = review.size
    return {
        "size": size,
        "unit": review.unit,
        "thresholds": review.thresholds,
        "kinds": KINDS,
        "start": "".join(map(str, review.game.start)),
        "moves": [
            {
                "c": step.color, "i": step.index, "x": step.captured, "l": move.loss, "n": move.noise,
                "f": int(move.is_first_choice),
            }
            for step, move in zip(review.game.steps, review.moves, strict=True)
        ],
        "turns": [
            {
                "c": turn.to_move, "w": round(100 * turn.winrate_black, 1), "s": turn.lead_black,
                "o": None if turn.ownership_black is None else owner_letters(turn.ownership_black),
                "m": [
                    [_letters(one.line[:PAGE_LINE], size), one.visits, round(100 * one.winrate_black, 1),
                     one.lead_black, round(100 * one.prior, 1)]
                    for one in turn.moves[:PAGE_CANDIDATES]
                ],
            }
            for turn in review.turns
        ],
    }  # fmt: skip


def _letters(line: list[int], size: int) -> str:
    """A line as a page has it, two letters a move, ``..`` for a pass: lines are most of a page."""
    return "".join(to_sgf(point, size) or ".." for point in line)
