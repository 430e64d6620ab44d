"""The property LZ, from which Lizzie, LizzieYzy and LizGoban show an analysis without making it again.

Two lines: engine, win rate in percent, visits and, where it is known, score and its deviation; then the moves, as an
engine's ``info`` lines have them. The win rate of the first line is that of the side that has just moved, all other
numbers are those of the side to move. LizzieYzy reads the position before the first move from LZOP. Sources: LizzieYzy,
``SGFParser.java`` and ``MoveData.java``; LizGoban, ``game.js``.
"""

from engine.go.geometry import BLACK, to_vertex
from engine.insight.review.turns import Candidate, Turn

ENGINE = "Keima"
MOST_MOVES = 5
LONGEST_LINE = 8


def lz_value(turn: Turn, size: int) -> str:
    """A position's LZ; empty where no move has been searched."""
    if not turn.moves:
        return ""
    sign = 1.0 if turn.to_move == BLACK else -1.0
    before = 1.0 - _rate(turn.winrate_black, sign)
    first = [ENGINE, f"{100 * before:.1f}", str(turn.visits)]
    if turn.lead_black is not None:
        first += [f"{sign * turn.lead_black + 0.0:.1f}", f"{turn.stdev or 0.0:.1f}"]
    # LizGoban takes what stands before the last "info".
    moves = "".join(f"{_info(move, sign, size)} info " for move in turn.moves[:MOST_MOVES])
    return f"{' '.join(first)}\n{moves}"


def _info(move: Candidate, sign: float, size: int) -> str:
    """A move as an engine tells of it: whole hundredths of a percent, and the line."""
    told = [f"move {to_vertex(move.point, size)} visits {move.visits}"]
    told.append(f"winrate {round(10_000 * _rate(move.winrate_black, sign))} prior {round(10_000 * move.prior)}")
    if move.lead_black is not None:
        told.append(f"scoreMean {sign * move.lead_black + 0.0:.2f}")
    told.append(f"pv {' '.join(to_vertex(point, size) for point in move.line[:LONGEST_LINE])}")
    return " ".join(told)


def _rate(winrate_black: float, sign: float) -> float:
    return winrate_black if sign > 0 else 1.0 - winrate_black
