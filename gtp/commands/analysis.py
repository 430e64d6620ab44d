"""Analysis: searches that tell what they find while they go on.

The arguments are KataGo's: an optional colour (by default the side to move), an optional interval in centiseconds,
then pairs in any order: ``interval N``, ``minmoves N``, ``maxmoves N``, ``pvVisits true``, ``pvEdgeVisits true``,
``avoid COLOR VERTICES DEPTH`` and ``allow COLOR VERTICES DEPTH``, vertices joined by commas, the depth in moves from
the position on the board. KataGo's commands take ``rootInfo true`` and ``ownership true`` besides, with
``ownershipStdev``, ``movesOwnership`` and ``movesOwnershipStdev``. Ownership is the mean over the search tree of what
the network says, or, where it says nothing of owners, of 200 rollouts before the search: then it does not change as the
search goes on, and nothing is said of moves and deviations.

Sources: KataGo, docs/GTP_Extensions.md; Leela Zero's ``lz-analyze``.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

from gtp.commands import arguments
from gtp.commands.play import tell_search
from gtp.host import Host
from gtp.info import ReportOptions, kata_line, lz_line, vertices
from gtp.protocol import NUMBER, CommandError, Registry, Reply, integer, number, switch

if TYPE_CHECKING:
    from engine.search.move_filter import MoveFilter
    from engine.search.report import Report, Watcher

COMMANDS = Registry()
DEFAULT_CENTISECONDS = 100.0
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.01, 86400.0
FIRST_S = 0.03
"""When an analysis says its first word, so that a client need not wait for the interval"""
MAX_MOVES = 1000
"""More than any board has"""
LZ_SWITCHES = {"pvVisits": "pv_visits", "pvEdgeVisits": "pv_edge_visits"}
KATA_SWITCHES = {
    "rootInfo": "root",
    "ownership": "ownership",
    "ownershipStdev": "ownership_stdev",
    "movesOwnership": "moves_ownership",
    "movesOwnershipStdev": "moves_ownership_stdev",
    **LZ_SWITCHES,
}
"""Key that takes true or false -> what of :class:`gtp.info.ReportOptions` it sets"""
COUNTS = {"minmoves": "min_moves", "maxmoves": "max_moves"}
"""Key that takes a number of moves -> likewise"""


class Layout(NamedTuple):
    """What one program's commands understand and how their reports look."""

    line: Callable[["Report", int, bool, ReportOptions], str]
    """of :mod:`gtp.info`"""
    switches: dict[str, str]


LZ, KATA = Layout(lz_line, LZ_SWITCHES), Layout(kata_line, KATA_SWITCHES)


@COMMANDS.command("lz-analyze", open_ended=True)
def lz_analyze(host: Host, *words: str, reply: Reply) -> None:
    """Analyze until the next line arrives, in Leela Zero's layout: lz-analyze [COLOR] [CENTISECONDS] [KEY VALUE...]."""
    _analyze(host, words, reply, LZ)


@COMMANDS.command("kata-analyze", open_ended=True)
def kata_analyze(host: Host, *words: str, reply: Reply) -> None:
    """Analyze until the next line arrives, in KataGo's layout: kata-analyze [COLOR] [CENTISECONDS] [KEY VALUE...]."""
    _analyze(host, words, reply, KATA)


@COMMANDS.command("lz-genmove_analyze")
def lz_genmove_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose and play a move, saying meanwhile what lz-analyze would say; ends with the line ``play VERTEX``."""
    return _choose(host, words, reply, LZ, True)


@COMMANDS.command("kata-genmove_analyze")
def kata_genmove_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose and play a move, saying meanwhile what kata-analyze would say; ends with the line ``play VERTEX``."""
    return _choose(host, words, reply, KATA, True)


@COMMANDS.command("kata-search_analyze")
def kata_search_analyze(host: Host, *words: str, reply: Reply) -> str:
    """Choose a move without playing it, saying meanwhile what kata-analyze would say; ends with ``play VERTEX``."""
    return _choose(host, words, reply, KATA, False)


@COMMANDS.command("stop")
def stop(host: Host) -> None:
    """End an analysis, as every line does, and the search in the opponent's time."""
    host.stop_pondering()


def _analyze(host: Host, words: tuple[str, ...], reply: Reply, layout: Layout) -> None:
    """Report until interrupted."""
    orders = _asked(host, words, reply, layout)
    reply.begin()
    host.player.analyze(*orders)


def _choose(host: Host, words: tuple[str, ...], reply: Reply, layout: Layout, update: bool) -> str:
    """Report until a move has been chosen; the last report of the search comes in any case."""
    from engine.play.keeper import RESIGN

    color, watcher, moves = _asked(host, words, reply, layout)
    reply.begin()
    player = host.player
    move = player.genmove(color, update, watcher, moves, asked_s=host.read_s)
    if player.last_genmove_report is not None:
        watcher.on_report(player.last_genmove_report)
    if update:
        tell_search(host)
    return f"play {'resign' if move == RESIGN else vertices([move], player.game.size)}"


def _asked(host: Host, words: tuple[str, ...], reply: Reply, layout: Layout) -> tuple[int, "Watcher", "MoveFilter"]:
    """Read a command's arguments: the colour, a watcher that writes reports, and the moves that may be chosen.

    Raises:
        CommandError: something there is not understood.
    """
    from engine.go.geometry import BLACK
    from engine.search.move_filter import EVERY_MOVE
    from engine.search.report import Watcher

    left, asked, filters = list(words), dict[str, Any](), list["MoveFilter"]()
    color, interval_s = arguments.leading_color(host, left), DEFAULT_CENTISECONDS / 100.0
    if left and NUMBER.fullmatch(left[0]):
        left.insert(0, "interval")
    while left:
        key = left.pop(0)
        if key in ("avoid", "allow"):
            values = [_next(left, f"{key} COLOR VERTICES DEPTH") for _ in range(3)]
            filters.append(_move_filter(host, key, *values))
        elif key in layout.switches:
            asked[layout.switches[key]] = switch(key, _next(left, f"{key} true"))
        elif key in COUNTS:
            asked[COUNTS[key]] = _count(key, _next(left, f"{key} NUMBER"))
        elif key == "interval":
            seconds = number(_next(left, "interval CENTISECONDS")) / 100.0
            interval_s = min(max(seconds, MIN_INTERVAL_S), MAX_INTERVAL_S)
        else:
            known = ", ".join(["interval", *COUNTS, "avoid", "allow", *layout.switches])
            raise CommandError(f"syntax error: {key!r} is not understood, expected one of {known}")
    if "allow" in words and len(filters) > 1:
        raise CommandError("syntax error: allow stands alone, without avoid or another allow")
    options, size = ReportOptions(**asked), host.keeper.game.size

    def tell(report: "Report") -> None:
        reply.line(layout.line(report, size, color == BLACK, options))

    watcher = Watcher(tell, interval_s, min(FIRST_S, interval_s), options.min_moves, options.any_ownership)
    return color, watcher, reduce(and_, filters, EVERY_MOVE)


def _next(left: list[str], usage: str) -> str:
    """The next argument, which must be there."""
    if not left:
        raise CommandError(f"syntax error: expected {usage}")
    return left.pop(0)


def _count(key: str, text: str) -> int:
    """An argument that must be a number of moves."""
    value = integer(text)
    if value < 0:
        raise CommandError(f"syntax error: {key} is {value}, expected 0 or more")
    return min(value, MAX_MOVES)


def _move_filter(host: Host, key: str, color: str, vertices: str, depth: str) -> "MoveFilter":
    """What ``avoid`` or ``allow`` (``key``) leaves of a colour's moves."""
    from engine.search.move_filter import only, without

    points = [arguments.vertex(host, text) for text in vertices.split(",") if text]
    moves = integer(depth)
    if moves < 1:
        raise CommandError(f"syntax error: a depth of {moves} moves, expected 1 or more")
    return (only if key == "allow" else without)(arguments.color(color), points, moves)
