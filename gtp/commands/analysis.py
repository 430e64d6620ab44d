"""Analysis: searches that report while they run.

The arguments are KataGo's: an optional colour (by default the side to move), an optional interval in centiseconds,
then pairs in any order: ``interval N``, ``minmoves N``, ``maxmoves N``, ``pvVisits true``, ``pvEdgeVisits true``,
``avoid COLOR VERTICES DEPTH`` and ``allow COLOR VERTICES DEPTH``, vertices joined by commas, the depth in moves from
the position on the board. For each colour there may be several ``avoid`` or one ``allow``. KataGo's commands also take
``rootInfo true``, ``noResultValue true`` and ``ownership true``, with ``ownershipStdev``, ``movesOwnership`` and
``movesOwnershipStdev``. Ownership is the mean of the network's ownership over the search tree. For a network without
that head it is the mean of 200 rollouts before the search: constant during the search, and without ownership of moves
and standard deviations.

Sources: KataGo, docs/GTP_Extensions.md; Leela Zero's ``lz-analyze``; for CGOS, zakki/cgos, wiki page "GTP tournament
game expansion", and TamaGo's ``cgos-analyze``.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.go.points import BLACK
from gtp.commands import arguments
from gtp.commands.play import CANCELLED, print_summary
from gtp.host import Host
from gtp.info import ReportOptions, cgos_line, kata_line, lz_line, vertices
from gtp.protocol import NUMBER, CommandError, Registry, Reply, integer, number, switch

if TYPE_CHECKING:
    from engine.insight.analyses import Analysis
    from engine.insight.raw_outputs import PositionQuery
    from engine.play.player import Player
    from engine.search.move_filter import MoveFilter
    from engine.search.report import Report, Watcher

COMMANDS = Registry()
DEFAULT_CENTISECONDS = 100.0
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.01, 86400.0
ARGUMENTS = "[COLOR] [CENTISECONDS] [KEY VALUE...]"
FIRST_S = 0.03
"""Maximum time before the first report of an analysis, in seconds; a shorter interval counts instead"""
RAW_S = 0.25
"""Maximum time, in seconds, that the first report waits for ``scoreStdev``, without which q5Go shows no score"""
MAX_MOVES = 1000
"""Upper bound of ``minmoves`` and ``maxmoves``, more than the moves of any position"""
CGOS_MOVES = 10
"""Maximum number of moves in a report for CGOS, which stores a report with every move of a game"""
LZ_SWITCHES = {"pvVisits": "pv_visits", "pvEdgeVisits": "pv_edge_visits"}
KATA_SWITCHES = {
    "rootInfo": "root",
    "noResultValue": "no_result",
    "ownership": "ownership",
    "ownershipStdev": "ownership_stdev",
    "movesOwnership": "moves_ownership",
    "movesOwnershipStdev": "moves_ownership_stdev",
    **LZ_SWITCHES,
}
"""Argument with a value true or false -> attribute of :class:`gtp.info.ReportOptions`"""
COUNTS = {"minmoves": "min_moves", "maxmoves": "max_moves"}
"""Argument with a number of moves -> attribute of :class:`gtp.info.ReportOptions`"""


class Layout(NamedTuple):
    """The arguments and the report format of one program's commands."""

    line: Callable[["Analysis", int, bool, ReportOptions], str]
    """function of :mod:`gtp.info` that writes a report"""
    switches: dict[str, str]
    options: ReportOptions = ReportOptions()
    """options of reports, which a command's arguments override"""
    has_stdev: bool = False
    """reports contain the score's standard deviation, which is computed from the network's ownership"""
    genmove_interval_s: float = DEFAULT_CENTISECONDS / 100.0
    """default interval of the reports of commands that choose a move; infinite = only the last report"""


LZ, KATA = Layout(lz_line, LZ_SWITCHES), Layout(kata_line, KATA_SWITCHES, has_stdev=True)
CGOS = Layout(cgos_line, {}, ReportOptions(max_moves=CGOS_MOVES, ownership=True), genmove_interval_s=math.inf)


Filter = tuple[str, int, list[int], int]
"""A filter of moves: ``avoid`` or ``allow``, colour, points and depth in moves"""


class Wanted(NamedTuple):
    """The arguments of an analysis command, which are read before the player is loaded."""

    color: int
    interval_s: float
    options: ReportOptions
    filters: list[Filter]


class Asked(NamedTuple):
    """What an analysis needs: the side to move, the receiver of its reports, and the moves to search."""

    color: int
    watcher: "Watcher"
    """writes the reports"""
    moves: "MoveFilter"
    query: "PositionQuery | None"
    """evaluation of the network's raw output; None = not needed"""


@COMMANDS.command("lz-analyze", open_ended=True, arguments=ARGUMENTS)
def lz_analyze(host: Host, *words: str, reply: Reply) -> None:
    """Analyze until the next line, in Leela Zero's format."""
    _analyze(host, words, reply, LZ)


@COMMANDS.command("kata-analyze", open_ended=True, arguments=ARGUMENTS)
def kata_analyze(host: Host, *words: str, reply: Reply) -> None:
    """Analyze until the next line, in KataGo's format."""
    _analyze(host, words, reply, KATA)


@COMMANDS.command("cgos-analyze", open_ended=True, arguments=ARGUMENTS)
def cgos_analyze(host: Host, *words: str, reply: Reply) -> None:
    """Analyze until the next line, in CGOS's JSON."""
    _analyze(host, words, reply, CGOS)


@COMMANDS.command("lz-genmove_analyze", arguments=ARGUMENTS)
def lz_genmove_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose and play a move, with reports as by lz-analyze; ends with the line ``play VERTEX``."""
    return _choose(host, words, reply, LZ)


@COMMANDS.command("kata-genmove_analyze", arguments=ARGUMENTS)
def kata_genmove_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose and play a move, with reports as by kata-analyze; ends with the line ``play VERTEX``."""
    return _choose(host, words, reply, KATA)


@COMMANDS.command("cgos-genmove_analyze", arguments=ARGUMENTS)
def cgos_genmove_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose and play a move; a line of CGOS's JSON for spectators, then ``play VERTEX``."""
    return _choose(host, words, reply, CGOS)


@COMMANDS.command("kata-search_analyze", arguments=ARGUMENTS)
def kata_search_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose a move without playing it, with reports as by kata-analyze; ends with ``play VERTEX``."""
    return _choose(host, words, reply, KATA, update=False)


@COMMANDS.command("kata-search_analyze_cancellable", open_ended=True, arguments=ARGUMENTS)
def kata_search_analyze_cancellable(host: Host, *words: str, reply: Reply) -> str:
    """Like kata-search_analyze, but the next line cancels it, with ``play cancelled``."""
    return _choose(host, words, reply, KATA, update=False, is_cancellable=True)


@COMMANDS.command("stop")
def stop(host: Host) -> None:
    """Stop an analysis, as any line does, and pondering."""
    host.stop_pondering()


def _analyze(host: Host, words: tuple[str, ...], reply: Reply, layout: Layout) -> None:
    """Analyse and report until interrupted; without a report if interrupted before the player is loaded."""
    wanted = _wanted(host, words, layout, DEFAULT_CENTISECONDS / 100.0)
    player = host.uninterrupted_player
    if player is None:
        return
    asked = _asked(player, wanted, reply, layout)
    reply.begin()
    try:
        player.analyze(asked.color, asked.watcher, asked.moves)
    finally:
        _let_go(asked)


def _choose(
    host: Host, words: tuple[str, ...], reply: Reply, layout: Layout, update: bool = True, is_cancellable: bool = False
) -> str:
    """Choose a move, with reports during the search and its last one at the end; return ``play VERTEX``.

    Args:
        update: play the move.
        is_cancellable: an interruption cancels the command, with ``play cancelled``.
    """
    wanted = _wanted(host, words, layout, layout.genmove_interval_s)
    player = host.uninterrupted_player if is_cancellable else host.player
    if player is None:
        reply.begin()
        return f"play {CANCELLED}"
    from engine.play.game_session import RESIGN, Purpose

    asked = _asked(player, wanted, reply, layout)
    reply.begin()
    purpose = Purpose.PLAY if update else Purpose.PROPOSE
    try:
        move = player.genmove(asked.color, purpose, asked.watcher, asked.moves, asked_s=host.read_s)
        if is_cancellable and host.is_interrupted:
            return f"play {CANCELLED}"
        if player.last_genmove_report is not None:
            asked.watcher.on_report(player.last_genmove_report)
    finally:
        _let_go(asked)
    if update:
        print_summary(host)
    return f"play {'resign' if move == RESIGN else vertices([move], player.game.size)}"


def _let_go(asked: Asked) -> None:
    """Cancel the evaluation of the network's raw output, if it was started."""
    if asked.query is not None:
        asked.query.cancel()


def _wanted(host: Host, words: tuple[str, ...], layout: Layout, interval_s: float) -> Wanted:
    """Read a command's arguments.

    Args:
        interval_s: default interval of reports.
    Raises:
        CommandError: an unknown argument or value.
    """
    left, given, filters = list(words), dict[str, Any](), list[Filter]()
    color = arguments.leading_color(host, left)
    if left and NUMBER.fullmatch(left[0]):
        left.insert(0, "interval")
    while left:
        key = left.pop(0)
        if key in ("avoid", "allow"):
            values = [_next(left, f"{key} COLOR VERTICES DEPTH") for _ in range(3)]
            filters.append(_filter(host, key, *values))
        elif key in layout.switches:
            given[layout.switches[key]] = switch(key, _next(left, f"{key} true"))
        elif key in COUNTS:
            given[COUNTS[key]] = _count(key, _next(left, f"{key} NUMBER"))
        elif key == "interval":
            text = _next(left, "interval CENTISECONDS")
            seconds = number(text) / 100.0
            if seconds < 0.0:
                raise CommandError(f"syntax error: interval is {text}, expected 0 or more")
            interval_s = min(max(seconds, MIN_INTERVAL_S), MAX_INTERVAL_S)
        else:
            known = ", ".join(["interval", *COUNTS, "avoid", "allow", *layout.switches])
            raise CommandError(f"syntax error: {key!r} is unknown, expected one of {known}")
    for key, side, _, _ in filters:
        # KataGo refuses ambiguous filters too.
        if key == "allow" and sum(other == side for _, other, _, _ in filters) > 1:
            raise CommandError("syntax error: several filters of a color with allow, expected one allow alone")
    return Wanted(color, interval_s, replace(layout.options, **given), filters)


def _asked(player: "Player", wanted: Wanted, reply: Reply, layout: Layout) -> Asked:
    """Prepare the analysis that a command's arguments describe."""
    from engine.insight.analyses import Analysis
    from engine.insight.raw_outputs import NOTHING
    from engine.search.move_filter import EVERY_MOVE, only, without
    from engine.search.report import Watcher

    color, interval_s, options, filters = wanted
    restrictions = ((only if key == "allow" else without)(side, points, depth) for key, side, points, depth in filters)
    moves, size = reduce(and_, restrictions, EVERY_MOVE), player.game.size
    query = _query(player, color) if layout.has_stdev and not options.any_ownership else None
    patience = iter((RAW_S,))

    def write(report: "Report") -> None:
        raw = NOTHING if query is None else query.outputs_within(next(patience, 0.0))
        reply.line(layout.line(Analysis(report, raw), size, color == BLACK, options))

    first_s = min(FIRST_S, interval_s) if math.isfinite(interval_s) else math.inf
    watcher = Watcher(write, interval_s, first_s, options.min_moves, options.any_ownership)
    return Asked(color, watcher, moves, query)


def _query(player: "Player", color: int) -> "PositionQuery | None":
    """Start an evaluation whose ownership gives ``scoreStdev``; None if the network has no such head or has failed."""
    from engine.inference.server import NetworkFailed
    from engine.insight.raw_outputs import PositionQuery

    server, encoder = player.server, player.encoder
    if server is None or encoder is None or "ownership" not in server.spec.heads:
        return None
    try:
        return PositionQuery(server, encoder, player.position_for(color))
    except NetworkFailed:
        return None


def _next(left: list[str], usage: str) -> str:
    """Remove and return the next argument.

    Raises:
        CommandError: there is none.
    """
    if not left:
        raise CommandError(f"syntax error: expected {usage}")
    return left.pop(0)


def _count(key: str, text: str) -> int:
    """Parse the number of moves of an argument; a number above ``MAX_MOVES`` becomes ``MAX_MOVES``.

    Raises:
        CommandError: not a number, or a negative one.
    """
    value = integer(text)
    if value < 0:
        raise CommandError(f"syntax error: {key} is {value}, expected 0 or more")
    return min(value, MAX_MOVES)


def _filter(host: Host, key: str, color: str, vertices: str, depth: str) -> Filter:
    """Parse the colour, vertices and depth after ``avoid`` or ``allow``, which is ``key``.

    Raises:
        CommandError: a wrong word, no vertex, or a depth below 1.
    """
    points = [arguments.vertex(host, text) for text in vertices.split(",") if text]
    if not points:
        raise CommandError(f"syntax error: {key} without a vertex")
    moves = integer(depth)
    if moves < 1:
        raise CommandError(f"syntax error: a depth of {moves} moves, expected 1 or more")
    return key, arguments.color(color), points, moves
