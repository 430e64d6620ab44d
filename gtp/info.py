"""Search results for clients: ``info`` lines in KataGo's, Leela Zero's and CGOS's formats, and summaries.

All values are from the view of the side to move, KataGo's and Leela Zero's default. Moves are in order of preference. A
move's principal variation comes last in the move's segment unless a client asks for more, since clients read the
variation to the end of the segment.

The lead in points is the mean over the search of the network's score head, or of rollouts without a value network;
without either the keys are left out. ``scoreSelfplay`` repeats the lead, since no head estimates it. The standard
deviation of the score is computed from the ownership (:func:`engine.insight.raw_outputs.score_stdev`) and left out
without ownership.

Sources: KataGo, docs/GTP_Extensions.md, and the output of version 1.17.2; Leela Zero's ``lz-analyze``, and the lines of
its standard error that gtp2ogs reads; for CGOS, zakki/cgos, wiki page "GTP tournament game expansion".
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
"""Number of moves listed if no move has a visit; ``min_moves`` may be larger, ``max_moves`` smaller"""
NO_ERRORS = "rawStWrError -1 rawStScoreError -1 rawVarTimeLeft -1"
"""KataGo's keys and values for a network without uncertainty outputs"""
CGOS_DIGITS = 4


@dataclass(frozen=True)
class Extras:
    """Optional parts of a report, in GTP and JSON."""

    pv_visits: bool = False
    no_result: bool = False
    """probability that the game ends without a result"""
    ownership: bool = False
    ownership_stdev: bool = False
    moves_ownership: bool = False
    moves_ownership_stdev: bool = False

    @property
    def any_ownership(self) -> bool:
        """Whether reports contain ownership."""
        return self.ownership or self.ownership_stdev or self.moves_ownership or self.moves_ownership_stdev


@dataclass(frozen=True)
class ReportOptions(Extras):
    """Optional parts of a report in GTP."""

    min_moves: int = 0
    """minimum number of moves: the likeliest unvisited moves follow the visited ones"""
    max_moves: int = 1 << 30
    """maximum number of moves"""
    pv_edge_visits: bool = False
    root: bool = False


def kata_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """One report in KataGo's format; empty if it has no move, since KataGo then prints no line.

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
            f"rootInfo visits {report.visits} utility {report.value_stm:.6g} winrate {win_rate(report.value_stm):.6g}"
            f"{_lead(report.score_stm, stdev)} weight {report.visits} {NO_ERRORS}"
        )
    words += _points("ownership", report.ownership_black, sign, options.ownership)
    words += _points("ownershipStdev", report.ownership_stdev, 1.0, options.ownership_stdev)
    return " ".join(words)


def _points(key: str, values: "np.ndarray | None", sign: float, is_wanted: bool) -> list[str]:
    """A report's key, then ``sign`` times the value of each point; empty if the values are unknown or unwanted."""
    if values is None or not is_wanted:
        return []
    return [key, *(f"{sign * value:.6g}" for value in values.tolist())]


def _kata_move(
    move: "MoveReport", order: int, size: int, sign: float, stdev: float | None, options: ReportOptions
) -> str:
    """One move in KataGo's format; ``sign`` is 1 where Black is to move, else -1."""
    owners = _points("movesOwnership", move.ownership_black, sign, options.moves_ownership)
    owners += _points("movesOwnershipStdev", move.ownership_stdev, 1.0, options.moves_ownership_stdev)
    no_result = " noResultValue 0" if options.no_result else ""
    text = (
        f"info move {vertices([move.point], size)} visits {move.visits} edgeVisits {move.visits}"
        f" utility {move.value_stm:.6g} winrate {win_rate(move.value_stm):.6g}{_lead(move.score_stm, stdev)}"
        f"{no_result} prior {move.prior:.6g} lcb {(move.lcb_stm + 1.0) / 2.0:.6g} utilityLcb {move.lcb_stm:.6g}"
        f" weight {move.visits} order {order} {_variation(move, size, options)}"
    )
    return " ".join([text, *owners])


def lz_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """One report in Leela Zero's format: win rates, priors and bounds as integers from 0 to 10,000."""
    return " ".join(
        f"info move {vertices([move.point], size)} visits {move.visits} winrate {round(1e4 * win_rate(move.value_stm))}"
        f" prior {round(1e4 * move.prior)} lcb {max(0, round(5e3 * (move.lcb_stm + 1.0)))} order {order}"
        f" {_variation(move, size, options)}"
        for order, move in enumerate(_listed(found.report, options))
    )


def cgos_line(found: "Analysis", size: int, is_black: bool, options: ReportOptions) -> str:
    """One report as the JSON object that CGOS shows to spectators; empty if the report has no move.

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
    """CGOS's keys with the numbers of a position or a move: win rate, visits and, if known, score."""
    score = {} if found.score_stm is None else {"score": round(found.score_stm, CGOS_DIGITS)}
    return {"winrate": round(win_rate(found.value_stm), CGOS_DIGITS), "visits": found.visits} | score


def lz_summary(report: "Report", size: int) -> str:
    """A finished search in Leela Zero's format: a line a move, then one for the search; gtp2ogs shows it in chats."""
    lines = [
        f"{vertices([move.point], size):>4} -> {move.visits:7d} (V: {100 * win_rate(move.value_stm):.2f}%) "
        f"(LCB: {100 * win_rate(move.lcb_stm):.2f}%) (N: {100 * move.prior:.2f}%) PV: {vertices(move.pv, size)}"
        for move in _listed(report, ReportOptions())
    ]
    speed = report.playouts_this_run / max(report.seconds, 1e-3)
    counts = f"{report.visits} visits, {report.tree_nodes} nodes, {report.playouts_this_run} playouts, {speed:.0f} n/s"
    return "\n".join([*lines, "", counts])


def caption(report: "Report", is_black: bool) -> str:
    """A search in one line for people: side to move, win rate, lead and visits; the caption of graphics.

    Args:
        is_black: Black is to move.
    """
    lead = "" if report.score_stm is None else f", lead {report.score_stm:+.1f}"
    side = "Black" if is_black else "White"
    return f"{side} to move: win rate {win_rate(report.value_stm):.1%}{lead}, {report.visits} visits"


def _listed(report: "Report", options: ReportOptions) -> list["MoveReport"]:
    """The moves of a report that are shown, best first, within the options' limits."""
    moves = report.moves
    if moves and moves[0].visits == 0:
        moves = moves[: max(options.min_moves, LIKELIEST)]
    return moves[: options.max_moves]


def _variation(move: "MoveReport", size: int, options: ReportOptions) -> str:
    """The principal variation, with the visits of its moves if wanted; a node has the visits of the edge to it."""
    visits = " ".join(map(str, move.pv_visits))
    line = f"pv {vertices(move.pv, size)}"
    line += f" pvVisits {visits}" if options.pv_visits else ""
    return line + (f" pvEdgeVisits {visits}" if options.pv_edge_visits else "")


def win_rate(value: float) -> float:
    """A value from -1 to 1 as a win rate from 0 to 1; a confidence bound beyond -1 or 1 is clamped.

    KataGo's lines have unclamped bounds instead: clamped bounds of moves with few visits would all be equal.
    """
    return min(1.0, max(0.0, (value + 1.0) / 2.0))


def _lead(score: float | None, stdev: float | None) -> str:
    """KataGo's three keys of the lead in points, and the score's standard deviation; empty without a score."""
    if score is None:
        return ""
    deviation = "" if stdev is None else f" scoreStdev {stdev:.6g}"
    return f" scoreMean {score:.6g}{deviation} scoreLead {score:.6g} scoreSelfplay {score:.6g}"


def vertices(points: Iterable[int], size: int) -> str:
    """GTP vertices in one line; the pass in lower case, which analysing clients expect."""
    return " ".join(to_vertex(point, size) for point in points)


def described(network: NetworkPath | None, server: "InferenceServer | None") -> list[dict[str, Any]]:
    """One description per file of a network, in the format of KataGo's kata-get-models; empty without a network."""
    from engine.features.encoder import ENCODERS
    from engine.nets.files.header import recognise

    files = files_of(network)
    if server is None:
        return []
    return [
        {
            "name": str(file),
            "internalName": recognise(file).network if len(files) > 1 else server.spec.name,
            "maxBatchSize": server.max_batch,
            "usesHumanSLProfile": ENCODERS[server.spec.encoder].knows_profiles,
            "version": recognise(file).version,
            "usingFP16": "auto",
        }
        for file in files
    ]
