"""Answers in the format of KataGo's analysis engine.

Answers contain all of KataGo's keys except the position's hashes, which clients compare with their own.
``scoreSelfplay``, which no head estimates, is the lead. The errors of the raw network are KataGo's for networks without
such heads: -1, and -0.5 for ``rawStWrError``. ``scoreStdev`` is computed from the ownership
(:func:`engine.insight.raw_outputs.score_stdev`). For a network without a score, leads are 0, since clients expect
numbers. With a human network beside the main one, answers have KataGo's ``human...`` fields; the order of moves and
``playSelectionValue`` are those of the main search alone.
"""

from typing import Any

import numpy as np

from engine.go.geometry import BLACK, WHITE, index_of, to_vertex
from engine.go.points import color_letter
from engine.insight.analyses import Analysis
from engine.insight.raw_outputs import score_stdev
from engine.play.human import merged
from engine.search.report import MoveReport
from gtp.json.query import Wanted
from gtp.json.values import rounded

OWNERSHIP_DIGITS = 6


class Answer:
    """The answer to one analysis, from the perspective that its query asks for."""

    def __init__(self, found: Analysis, size: int, to_move: int, wanted: Wanted) -> None:
        """Make the answer about a position.

        Args:
            to_move: BLACK or WHITE, the side to move.
        """
        self._report, self._raw, self._human = found.report, found.raw, found.human
        self._explored = found.explored
        self._size, self._to_move, self._wanted = size, to_move, wanted
        viewer = {"b": BLACK, "w": WHITE}.get(wanted.perspective, to_move)
        self._is_flipped = viewer != to_move
        self._black = 1.0 if viewer == BLACK else -1.0
        self._stdev = rounded(found.score_stdev() or 0.0)

    def object(self) -> dict[str, Any]:
        """The keys of the answer that describe the analysis."""
        wanted, more = self._wanted, self._more_visits()
        moves = [move for move in merged(self._report, self._explored) if move.visits + more.get(move.point, 0)]
        most = [max(move.visits for move in moves[order:]) for order in range(len(moves))]
        found: dict[str, Any] = {
            "moveInfos": [
                self._move(move, order, most[order], more.get(move.point, 0)) for order, move in enumerate(moves)
            ],
            "rootInfo": self._root(),
        }
        if wanted.policy:
            found["policy"] = self._policy()
            if self._human is not None:
                found["humanPolicy"] = [
                    rounded(value) if value > 0.0 else -1.0 for value in self._human.policy.tolist()
                ]
        if wanted.ownership:
            found["ownership"] = self._owners(self._report.ownership_black)
        if wanted.ownership_stdev:
            found["ownershipStdev"] = self._by_point(self._report.ownership_stdev)
        return found

    def _more_visits(self) -> dict[int, int]:
        """Point -> visits by the search of human moves, which do not count in the position's value."""
        return {move.point: move.visits for move in self._explored.moves} if self._explored else {}

    def _move(self, move: MoveReport, order: int, selection: int, more: int) -> dict[str, Any]:
        """An item of KataGo's ``moveInfos``: the search's results for one move.

        Args:
            order: number of the move, 0 = best.
            selection: ``playSelectionValue``, the maximum of the visits of this and all later moves.
            more: visits by the search of human moves.
        """
        wanted, score = self._wanted, self._score(move.score_stm)
        line = move.pv[: 1 + wanted.pv_length]
        found: dict[str, Any] = {
            "move": to_vertex(move.point, self._size),
            "visits": move.visits + more,
            "edgeVisits": move.visits,
            "weight": float(move.visits + more),
            "edgeWeight": float(move.visits),
            "utility": self._value(move.value_stm),
            "winrate": self._rate(move.value_stm),
            "scoreMean": score,
            "scoreLead": score,
            "scoreSelfplay": score,
            "scoreStdev": self._stdev,
            "prior": rounded(move.prior),
            "lcb": self._rate(move.lcb_stm),
            "utilityLcb": self._value(move.lcb_stm),
            "order": order,
            "playSelectionValue": float(selection),
            "pv": [to_vertex(point, self._size) for point in line],
        }
        if self._human is not None:
            found["humanPrior"] = rounded(float(self._human.policy[index_of(move.point, self._size)]))
        if wanted.pv_visits:
            found["pvVisits"] = found["pvEdgeVisits"] = move.pv_visits[: len(line)]
        if wanted.no_result:
            found["noResultValue"] = 0.0
        if wanted.moves_ownership:
            found["ownership"] = self._owners(move.ownership_black)
        if wanted.moves_ownership_stdev:
            found["ownershipStdev"] = self._by_point(move.ownership_stdev)
        return found

    def _root(self) -> dict[str, Any]:
        """KataGo's ``rootInfo``: the results for the position as a whole."""
        report, raw_output = self._report, self._raw
        raw_value = report.value_stm if raw_output.value_stm is None else raw_output.value_stm
        raw_score = self._score(report.score_stm if raw_output.score_stm is None else raw_output.score_stm)
        score, more = self._score(report.score_stm), sum(self._more_visits().values())
        return self._human_root() | {
            "currentPlayer": color_letter(self._to_move),
            "visits": report.visits + more,
            "weight": float(report.visits),
            "utility": self._value(report.value_stm),
            "winrate": self._rate(report.value_stm),
            "scoreLead": score,
            "scoreSelfplay": score,
            "scoreStdev": self._stdev,
            "rawWinrate": self._rate(raw_value),
            "rawLead": raw_score,
            "rawScoreSelfplay": raw_score,
            "rawScoreSelfplayStdev": self._stdev,
            "rawNoResultProb": 0.0,
            "rawStWrError": -0.5,
            "rawStScoreError": -1.0,
            "rawVarTimeLeft": -1.0,
        }

    def _human_root(self) -> dict[str, Any]:
        """The part of KataGo's ``rootInfo`` about the human network's outputs; empty without them."""
        human = self._human
        if human is None:
            return {}
        stdev = score_stdev(human.ownership)
        return {
            "humanWinrate": self._rate(human.value or 0.0),
            "humanScoreMean": self._score(human.score),
            "humanScoreStdev": rounded(stdev or 0.0),
            "humanStWrError": -0.5,
            "humanStScoreError": -1.0,
        }

    def _value(self, value_stm: float) -> float:
        """A value from the perspective of the side to move, turned to the viewer's perspective and rounded."""
        return rounded(-value_stm if self._is_flipped else value_stm)

    def _rate(self, value_stm: float) -> float:
        """The viewer's win rate from 0 to 1; confidence bounds may lie beyond."""
        return rounded(0.5 + 0.5 * (-value_stm if self._is_flipped else value_stm))

    def _score(self, score_stm: float | None) -> float:
        """The viewer's lead in points; 0 without an estimate."""
        return 0.0 if score_stm is None else self._value(score_stm)

    def _policy(self) -> list[float]:
        """The network's probabilities of all moves, row by row from the top left, the pass last; -1 for illegal moves.

        Without raw output: the root's priors.
        """
        raw = self._raw.policy
        if raw is not None:
            return [-1.0 if value != value else rounded(value) for value in raw.tolist()]
        priors = self._report.policy
        if priors is None:
            return [-1.0] * (self._size**2 + 1)
        return [rounded(value) if value > 0.0 else -1.0 for value in priors.tolist()]

    def _owners(self, black: np.ndarray | None) -> list[float]:
        """Ownership of each point from 1 (the viewer's) to -1; that of the position if ``black`` is None."""
        known = self._report.ownership_black if black is None else black
        return self._by_point(None if known is None else self._black * known)

    def _by_point(self, values: np.ndarray | None) -> list[float]:
        """A rounded number for each point; zeros if ``values`` is None."""
        if values is None:
            return [0.0] * self._size**2
        found: list[float] = np.round(values.astype(np.float64), OWNERSHIP_DIGITS).tolist()
        return found
