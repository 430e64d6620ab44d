"""Annotates the game's own SGF with a review: graphs, marks, comments and variations, as common SGF editors show them.

The file's own content stays. The properties that a review adds to a node are named in its property ``KEIMA``, and its
part of a comment is enclosed in invisible characters, so that the next review replaces exactly these parts. Nodes that
a person has marked as good or bad moves keep their marks.

Two properties contain an analysis for other programs. ``KT``, KaTrain's, has three values, each gzip in base64:
ownership and policy as half floats, then JSON; all numbers are Black's. ``LZ``, of Lizzie, LizzieYzy and LizGoban, has
two lines: engine, win rate in percent, visits and, if known, score and its standard deviation; then the moves in the
form of an engine's ``info`` lines. The win rate of the first line is that of the side that has just moved, all other
numbers are those of the side to move. LizzieYzy reads the position before the first move from ``LZOP``. Sources:
KaTrain, ``katrain/core/game_node.py`` (its version 1.0); LizzieYzy, ``SGFParser.java`` and ``MoveData.java``; LizGoban,
``game.js``.
"""

import base64
import gzip
import json

from engine import __version__
from engine.go.geometry import BLACK, PASS, other, to_sgf, to_vertex
from engine.go.points import color_letter
from engine.go.sgf_tree import Node, SgfTree, raw
from engine.insight.review.games import MARK
from engine.insight.review.losses import KINDS, Move
from engine.insight.review.review import WORTH_A_LINE, Review, mean_loss, standing
from engine.insight.review.turns import Candidate, Turn

LINE = b"LINE"
"""Value of the property ``MARK`` on the nodes of variations that a review adds"""
FENCE = "\u2063\u2063".encode()
"""Invisible characters before and after a review's part of a comment"""
NUMBERS, KATRAIN = ("SBKV", "SBKS", "LZ", "LZOP"), ("KT", "KTV")
"""SGF properties with analyses, which other programs write too: Sabaki's and Lizzie's, then KaTrain's"""
MARKS = ("BM", "DO", "IT", "TE")
OURS = frozenset((*NUMBERS, *KATRAIN, *MARKS, "HO"))
"""SGF properties that a review may have written, except comments and ``MARK``"""
MARKS_OF_KIND = ({"TE": b"1"}, {"TE": b"1"}, {"IT": b""}, {"DO": b""}, {"BM": b"1"}, {"BM": b"2", "HO": b"1"})
"""SGF properties that annotate a move of each of ``KINDS``. Source: SGF FF[4], move annotation"""
SHORTEST_LINE = 2
"""Minimum number of vertices in a comment that Sabaki shows as a variation"""
KATRAIN_VERSION = b"1.0"
"""Value of the root's property ``KTV``: the version of ``KT``'s format"""
LIZZIE_MOVES, LIZZIE_LINE = 5, 8
"""Maximum number of a position's candidates in ``LZ``, and of the moves of each PV there"""


def annotate(tree: SgfTree, review: Review, lines: int = 1, katrain: bool = True) -> None:
    """Write a review into its game's tree, in place of an earlier review.

    Args:
        lines: maximum number of variations for each inaccuracy or worse move.
        katrain: whether to write KaTrain's property ``KT``, which takes most of the file's size.
    """
    remove_review(tree)
    nodes = tree.main_line()
    places = tree.move_nodes(len(review.moves))
    for move, at in zip(review.moves, places, strict=True):
        _write_move(nodes[at], review, move, katrain)
    if first := places[0] if places else len(nodes):
        _write_turn(nodes[first - 1], review.turns[0], review.size, katrain)
    if any("KT" in node for node in nodes):
        _put(nodes[0], "KTV", [KATRAIN_VERSION])
    if "AP" not in nodes[0]:
        nodes[0]["AP"] = [raw(f"Keima:{__version__}")]
    _comment(nodes[0], _overview(review))
    for n, (move, at) in enumerate(zip(review.moves, places, strict=True)):
        # No variation between two moves of one node, which the standard forbids.
        if move.kind is not None and move.kind >= WORTH_A_LINE and at and (n == 0 or places[n - 1] != at):
            for line in review.better(move, lines):
                tree.add_variation(at - 1, _line(review, move, line))


def remove_review(tree: SgfTree) -> None:
    """Remove an earlier review from a tree, except variations to which a person has added nodes or comments."""
    for node in tree.every_node():
        first, *others = node.get("C", [b""])
        before, *rest = first.split(FENCE)
        written = {name.decode("utf-8", "replace") for name in node.get(MARK, [])}
        if rest and not written:
            # A program has dropped ``MARK``, but the comment shows that a review wrote the numbers.
            written = {*NUMBERS, *KATRAIN}
        for name in written & OURS:
            node.pop(name, None)
        if rest:
            # Every second piece is a review's.
            kept = b"".join([before, *rest[1::2]])
            node["C"] = [kept, *others]
            if not kept and not others:
                del node["C"]
    tree.remove_variations(lambda node: LINE in node.get(MARK, []) and "C" not in node)
    for node in tree.every_node():
        node.pop(MARK, None)


def _put(node: Node, name: str, values: list[bytes]) -> None:
    """Set a property of a node and list it in the node's ``MARK``; without ``values`` do nothing."""
    if values:
        node[name] = values
        node.setdefault(MARK, []).append(name.encode())


def _comment(node: Node, text: str) -> None:
    """Append a review's text to a node's comment."""
    first, *others = node.get("C", [b""])
    # The empty line is within the fence, so that removal restores a person's comment exactly.
    node["C"] = [first + FENCE + raw(f"{chr(10) * 2 if first else ''}{text}") + FENCE, *others]
    node.setdefault(MARK, []).append(b"C")


def _write_turn(node: Node, turn: Turn, size: int, katrain: bool) -> None:
    """Write the analysis of the position after a node's move, in place of the analysis of any program."""
    for name in (*NUMBERS, *(KATRAIN if katrain else ())):
        node.pop(name, None)
    _write_numbers(node, turn)
    if katrain:
        _put(node, "KT", kt_values(turn, size))
    if lines := lz_value(turn, size):
        _put(node, "LZ" if turn.number else "LZOP", [raw(lines)])


def _write_numbers(node: Node, of: Turn | Candidate) -> None:
    """Write Black's win rate and lead as Sabaki's properties ``SBKV`` and ``SBKS``."""
    _put(node, "SBKV", [f"{100 * of.winrate_black:.2f}".encode()])
    if of.lead_black is not None:
        _put(node, "SBKS", [f"{of.lead_black:.2f}".encode()])


def _write_move(node: Node, review: Review, move: Move, katrain: bool) -> None:
    """Write a move's annotation and comment, and the analysis of the position after it, into the move's node."""
    after = review.turns[move.number]
    _write_turn(node, after, review.size, katrain)
    if move.kind is not None and not any(name in node for name in MARKS):
        for name, value in MARKS_OF_KIND[move.kind].items():
            if name not in node:
                _put(node, name, [value])
    _comment(node, "\n".join([*comment_lines(review, move), f"Now {standing(after)}."]))


def comment_lines(review: Review, move: Move) -> list[str]:
    """Comment on a move: its kind and loss, the better move, and its PV in the form that Sabaki plays, ``B D4 Q16``."""
    if move.kind is None or move.loss is None:
        return []
    begin = f"{KINDS[move.kind].capitalize()}: {review.vertex(move.point)}"
    if move.is_first_choice:
        return [f"{begin} is the first choice."]
    same = "is as good as the first choice, within the noise of the search"
    said = [f"{begin} {f'lost {review.amount(move.loss)}' if move.counted else same}."]
    for line in review.better(move):
        best = review.turns[move.number - 1].moves[0]
        said.append(f"{'Better' if move.counted else 'First choice'}: {review.vertex(line[0])} ({standing(best)}).")
        shown = line[: line.index(PASS)] if PASS in line else line
        if len(shown) >= SHORTEST_LINE:
            said.append(f"{color_letter(move.color)} {review.vertices(shown)}")
    return said


def _overview(review: Review) -> str:
    """Comment on the whole game: settings; accuracy, mean loss and first choices of both players, most costly moves."""
    said = [f"Reviewed by Keima {__version__}: {review.settings}."]
    for color, whole in review.summary.whole.items():
        if whole.accuracy is not None:
            accuracy, first = f"accuracy {whole.accuracy:.0f}", f"first choices {100 * (whole.first_choices or 0):.0f}%"
            said.append(f"{review.player(color)}: {accuracy}, mean loss {mean_loss(whole)} {review.unit}, {first}.")
    costly = [f"#{move.number} ({review.amount(move.counted)})" for move in review.summary.costly]
    if costly:
        said.append(f"Most costly: {', '.join(costly)}.")
    return "\n".join(said)


def _line(review: Review, move: Move, line: list[int]) -> list[Node]:
    """The nodes of a variation in place of a move; the first one has the candidate's numbers and a comment."""
    nodes: list[Node] = []
    color = move.color
    for point in line:
        nodes.append({color_letter(color): [to_sgf(point, review.size).encode()], MARK: [LINE]})
        color = other(color)
    candidate = review.turns[move.number - 1].candidate(line[0])
    if candidate is not None:
        _write_numbers(nodes[0], candidate)
        visits = f"{candidate.visits} visit{'s' * (candidate.visits != 1)}"
        _comment(nodes[0], f"Instead of #{move.number}: {standing(candidate)}, {visits}.")
    return nodes


def kt_values(turn: Turn, size: int) -> list[bytes]:
    """Values of KaTrain's property ``KT`` for a turn; empty if ownership, policy or lead is unknown."""
    if turn.ownership_black is None or turn.policy is None or turn.lead_black is None:
        return []

    def numbers(of: Turn | Candidate) -> dict[str, object]:
        return {"visits": of.visits, "winrate": of.winrate_black, "scoreLead": of.lead_black or 0.0}

    moves = {}
    for order, move in enumerate(turn.moves):
        vertex, line = to_vertex(move.point, size), [to_vertex(at, size) for at in move.line]
        moves[vertex] = {"move": vertex, "order": order, "prior": move.prior, "pv": line, **numbers(move)}
    text = json.dumps({"moves": moves, "root": numbers(turn), "completed": True}, separators=(",", ":"))
    halves = (values.astype("<f2").tobytes() for values in (turn.ownership_black, turn.policy))
    # Without a timestamp, so that the same analysis gives the same file.
    return [base64.b64encode(gzip.compress(data, mtime=0)) for data in (*halves, text.encode())]


def lz_value(turn: Turn, size: int) -> str:
    """Value of Lizzie's property ``LZ`` for a turn; empty if the search visited no move."""
    if not turn.moves:
        return ""
    sign = 1.0 if turn.to_move == BLACK else -1.0

    def rate(of: Turn | Candidate, side: float) -> float:
        return of.winrate_black if side > 0 else 1.0 - of.winrate_black

    first = ["Keima", f"{100 * rate(turn, -sign):.1f}", str(turn.visits)]
    if turn.lead_black is not None:
        first += [f"{sign * turn.lead_black + 0.0:.1f}", f"{turn.stdev or 0.0:.1f}"]
    moves = ""
    for move in turn.moves[:LIZZIE_MOVES]:
        # Win rate and prior in hundredths of a percent, as in lz-analyze.
        told = f"move {to_vertex(move.point, size)} visits {move.visits} winrate {round(10_000 * rate(move, sign))}"
        lead = "" if move.lead_black is None else f" scoreMean {sign * move.lead_black + 0.0:.2f}"
        line = " ".join(to_vertex(point, size) for point in move.line[:LIZZIE_LINE])
        # LizGoban reads moves up to the last "info".
        moves += f"{told} prior {round(10_000 * move.prior)}{lead} pv {line} info "
    return f"{' '.join(first)}\n{moves}"
