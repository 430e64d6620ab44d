"""A search's results, as clients read them: lines of ``info`` as KataGo and Leela Zero write them, CGOS's, summaries.

Everything is said for the side to move, as both programs do by default. Moves stand in the order in which they would
be played, and the variation is the last thing said of a move unless more is asked for, since clients read it to the
end of the segment.

The lead in points is the mean over the search of what the network's score head says, or of rollouts where there is no
value network; without either it is left out. It stands for the score that selfplay would reach too, which nothing here
estimates. The standard deviation of the score is that of ``keima analysis``, which follows from
how open the ownership is (:func:`engine.insight.raw_outputs.score_stdev`); it is left out where ownership is not known.

Sources: KataGo, docs/GTP_Extensions.md, and what its version 1.17.2 writes; Leela Zero's ``lz-analyze``, and what
gtp2ogs reads of its standard error; for CGOS, zakki/cgos, wiki page "GTP tournament game expansion".
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.go.points import to_vertex
from weights import NetworkPath, files_of

if TYPE_CHECKING:
    import numpy as np

    from engine.inference.server import InferenceServer
    from engine.insight.analyses import Analysis
    from engine.search.report import MoveReport, Report

LIKELIEST = 10
"""Moves listed where none has a visit and no number was asked for"""
NO_ERRORS = "rawStWrError -1 rawStScoreError -1 rawVarTimeLeft -1"
"""KataGo's words for a network without uncertainty outputs"""
CGOS_DIGITS = 4


@dataclass(frozen=True)
class Extras:
    """What a client of either protocol may ask to have in a report."""

    pv_visits: bool = False
    no_result: bool = False
    """probability that the game ends without a result"""
    ownership: bool = False
    ownership_stdev: bool = False
    moves_ownership: bool = False
    moves_ownership_stdev: bool = False

    @property
    def any_ownership(self) -> bool:
        """Whether reports say anything of who owns what."""
        return self.ownership or self.ownership_stdev or self.moves_ownership or self.moves_ownership_stdev


@dataclass(frozen=True)
class ReportOptions(Extras):
    """What a client of GTP asks to have in each report."""

    min_moves: int = 0
    """moves at least, likely ones without visits among them"""
    max_moves: int = 1 << 30
    """moves at most"""
    pv_edge_visits: bool = False
    root: bool = False


def kata_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """One update in KataGo's layout; empty where there is no move to list, as KataGo writes nothing then.

    Args:
        is_black: Black is to move.
    """
    report, sign = found.report, 1.0 if is_black else -1.0
    stdev = found.score_stdev()
    words = [_kata_move(move, order, size, sign, stdev, options) for order, move in enumerate(_listed(report, options))]
    if not words:
        return ""
    if options.root:
        words.append(
            f"rootInfo visits {report.visits} utility {report.value_stm:.6g} winrate {_rate(report.value_stm):.6g}"
            f"{_lead(report.score_stm, stdev)} weight {report.visits} {NO_ERRORS}"
        )
    words += _points("ownership", report.ownership_black, sign, options.ownership)
    words += _points("ownershipStdev", report.ownership_stdev, 1.0, options.ownership_stdev)
    return " ".join(words)


def _points(key: str, values: "np.ndarray | None", sign: float, is_wanted: bool) -> list[str]:
    """A number for each point behind a key; nothing where they are not known or not wanted."""
    if values is None or not is_wanted:
        return []
    return [key, *(f"{sign * value:.6g}" for value in values.tolist())]


def _kata_move(
    move: "MoveReport", order: int, size: int, sign: float, stdev: float | None, options: ReportOptions
) -> str:
    """One move in KataGo's layout; ``sign`` is 1 where Black is to move, else -1."""
    owners = _points("movesOwnership", move.ownership_black, sign, options.moves_ownership)
    owners += _points("movesOwnershipStdev", move.ownership_stdev, 1.0, options.moves_ownership_stdev)
    no_result = " noResultValue 0" if options.no_result else ""
    text = (
        f"info move {vertices([move.point], size)} visits {move.visits} edgeVisits {move.visits}"
        f" utility {move.value_stm:.6g} winrate {_rate(move.value_stm):.6g}{_lead(move.score_stm, stdev)}"
        f"{no_result} prior {move.prior:.6g} lcb {(move.lcb_stm + 1.0) / 2.0:.6g} utilityLcb {move.lcb_stm:.6g}"
        f" weight {move.visits} order {order} {_variation(move, size, options)}"
    )
    return " ".join([text, *owners])


def lz_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """One update in Leela Zero's layout: rates, priors and bounds as whole numbers out of 10,000, none below 0."""
    return " ".join(
        f"info move {vertices([move.point], size)} visits {move.visits} winrate {round(1e4 * _rate(move.value_stm))}"
        f" prior {round(1e4 * move.prior)} lcb {max(0, round(5e3 * (move.lcb_stm + 1.0)))} order {order}"
        f" {_variation(move, size, options)}"
        for order, move in enumerate(_listed(found.report, options))
    )


def cgos_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """What was found as the object of JSON that CGOS shows to spectators; empty where there is no move to list.

    Args:
        is_black: Black is to move.
    """
    from engine.insight.raw_outputs import owner_letters

    report = found.report
    moves = [
        {"move": vertices([move.point], size), **_cgos_numbers(move), "prior": round(move.prior, CGOS_DIGITS)}
        | {"pv": vertices(move.pv, size)}
        for move in _listed(report, options)
    ]
    if not moves:
        return ""
    owners = {}
    if report.ownership_black is not None:
        owners["ownership"] = owner_letters(report.ownership_black * (1.0 if is_black else -1.0))
    return json.dumps({**_cgos_numbers(report), "moves": moves} | owners, separators=(",", ":"))


def _cgos_numbers(found: "Report | MoveReport") -> dict[str, float]:
    """What CGOS is told of a position and of a move alike."""
    score = {} if found.score_stm is None else {"score": round(found.score_stm, CGOS_DIGITS)}
    return {"winrate": round(_rate(found.value_stm), CGOS_DIGITS), "visits": found.visits} | score


def lz_summary(report: "Report", size: int) -> str:
    """A finished search in Leela Zero's layout: a line a move, then one on the whole; gtp2ogs shows it in chats."""
    lines = [
        f"{vertices([move.point], size):>4} -> {move.visits:7d} (V: {100 * _rate(move.value_stm):.2f}%) "
        f"(LCB: {100 * _rate(move.lcb_stm):.2f}%) (N: {100 * move.prior:.2f}%) PV: {vertices(move.pv, size)}"
        for move in _listed(report, ReportOptions())
    ]
    speed = report.playouts_this_run / max(report.seconds, 1e-3)
    counts = f"{report.visits} visits, {report.tree_nodes} nodes, {report.playouts_this_run} playouts, {speed:.0f} n/s"
    return "\n".join([*lines, "", counts])


def caption(report: "Report", is_black: bool) -> str:
    """A search in one line, as a caption below graphics.

    Args:
        is_black: Black is to move.
    """
    lead = "" if report.score_stm is None else f", lead {report.score_stm:+.1f}"
    side = "Black" if is_black else "White"
    return f"{side} to move: win rate {_rate(report.value_stm):.1%}{lead}, {report.visits} visits"


def winrate(report: "Report") -> float:
    """The side to move's, from 0 to 1."""
    return _rate(report.value_stm)


def _listed(report: "Report", options: ReportOptions) -> list["MoveReport"]:
    """The moves to show, best first."""
    moves = report.moves
    if moves and moves[0].visits == 0:
        moves = moves[: max(options.min_moves, LIKELIEST)]
    return moves[: options.max_moves]


def _variation(move: "MoveReport", size: int, options: ReportOptions) -> str:
    """The moves that would follow, behind them their visits if wanted; a position's are those of the move to it."""
    visits = " ".join(map(str, move.pv_visits))
    line = f"pv {vertices(move.pv, size)}"
    line += f" pvVisits {visits}" if options.pv_visits else ""
    return line + (f" pvEdgeVisits {visits}" if options.pv_edge_visits else "")


def _rate(value: float) -> float:
    """A value from -1 to 1, or a bound that may lie beyond, as a win rate from 0 to 1.

    In lines for clients bounds are as they are, as KataGo's: moves of few visits would all be alike.
    """
    return min(1.0, max(0.0, (value + 1.0) / 2.0))


def _lead(score: float | None, stdev: float | None) -> str:
    """KataGo's three names of the lead in points, its deviation among them; nothing where there is no estimate."""
    if score is None:
        return ""
    deviation = "" if stdev is None else f" scoreStdev {stdev:.6g}"
    return f" scoreMean {score:.6g}{deviation} scoreLead {score:.6g} scoreSelfplay {score:.6g}"


def vertices(points: Iterable[int], size: int) -> str:
    """Points as GTP writes them, in one line; a pass in lower case, as analysing clients know it."""
    return " ".join(to_vertex(point, size) for point in points)


def described(network: NetworkPath | None, server: "InferenceServer | None") -> list[dict[str, Any]]:
    """KataGo's description of each file of a network; none where rollouts play alone."""
    from engine.nets.files.header import recognise

    files = files_of(network)
    if server is None:
        return []
    return [
        {
            "name": str(file),
            "internalName": recognise(file).network if len(files) > 1 else server.spec.name,
            "maxBatchSize": server.max_batch,
            "usesHumanSLProfile": False,
            "version": recognise(file).version,
            "usingFP16": "auto",
        }
        for file in files
    ]
