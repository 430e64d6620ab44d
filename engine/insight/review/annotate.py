"""A review inside the game's own SGF: graphs, marks, comments and lines, as the usual programs show them.

All of the file stays. What is added to a node is named in its property ``KEIMA``, and what is added to a comment stands
between two invisible signs, so that the next review replaces what this one wrote and nothing else. Nodes that a person
has marked as good or bad moves keep that mark.

Two properties hold an analysis for programs that show it without making it again. ``KT``, KaTrain's: three values, each
packed by gzip and written in base64, ownership and the network's probabilities as half floats, then JSON; all numbers
are Black's. ``LZ``, of Lizzie, LizzieYzy and LizGoban: two lines, first engine, win rate in percent, visits and, where
it is known, score and its deviation, then the moves as an engine's ``info`` lines have them. The win rate of the first
line is that of the side that has just moved, all other numbers are those of the side to move. LizzieYzy reads the
position before the first move from ``LZOP``. Sources: KaTrain, ``katrain/core/game_node.py`` (its version 1.0);
LizzieYzy, ``SGFParser.java`` and ``MoveData.java``; LizGoban, ``game.js``.
"""

import base64
import gzip
import json

from engine import __version__
from engine.go.geometry import BLACK, PASS, other, to_sgf, to_vertex
from engine.go.notation import color_letter
from engine.go.sgf_tree import Node, SgfTree, raw
from engine.insight.review.games import MARK
from engine.insight.review.judgement import KINDS, Move
from engine.insight.review.review import WORTH_A_LINE, Review, mean_loss, standing
from engine.insight.review.turns import Candidate, Turn

LINE = b"LINE"
"""In ``MARK`` on the nodes of our lines"""
FENCE = "\u2063\u2063".encode()
"""Around our part of a comment"""
NUMBERS, KATRAIN = ("SBKV", "SBKS", "LZ", "LZOP"), ("KT", "KTV")
"""Of an analysis, by any program"""
MARKS = ("BM", "DO", "IT", "TE")
OURS = frozenset((*NUMBERS, *KATRAIN, *MARKS, "HO"))
"""What a review may have written besides comments"""
MARKS_OF_KIND = ({"TE": b"1"}, {"TE": b"1"}, {"IT": b""}, {"DO": b""}, {"BM": b"1"}, {"BM": b"2", "HO": b"1"})
"""As in ``KINDS``. Source: SGF FF[4], move annotation"""
SHORTEST_LINE = 2
"""Vertices that Sabaki takes for a line"""
KATRAIN_VERSION = b"1.0"
"""Of the form of KT, as the root's KTV says it"""
LIZZIE_MOVES, LIZZIE_LINE = 5, 8
"""Moves of a position in LZ, and moves of their lines"""


def annotate(tree: SgfTree, review: Review, lines: int = 1, katrain: bool = True) -> None:
    """Write a review into its game's tree, in place of an earlier one.

    Args:
        lines: variations for a move that was blamed.
        katrain: write what KaTrain reloads; it is most of the file.
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
        # A node with two moves, which the standard forbids, has no place between them.
        if move.kind is not None and move.kind >= WORTH_A_LINE and at and (n == 0 or places[n - 1] != at):
            for line in review.better(move, lines):
                tree.add_variation(at - 1, _line(review, move, line))


def remove_review(tree: SgfTree) -> None:
    """Take an earlier review out of a tree; lines that a person has added to or commented stay."""
    for node in tree.every_node():
        first, *others = node.get("C", [b""])
        before, *rest = first.split(FENCE)
        written = {name.decode("utf-8", "replace") for name in node.get(MARK, [])}
        if rest and not written:
            # A program has dropped our property, but the comment tells whose the numbers are.
            written = {*NUMBERS, *KATRAIN}
        for name in written & OURS:
            node.pop(name, None)
        if rest:
            # Every second piece is ours.
            kept = b"".join([before, *rest[1::2]])
            node["C"] = [kept, *others]
            if not kept and not others:
                del node["C"]
    tree.remove_variations(lambda node: LINE in node.get(MARK, []) and "C" not in node)
    for node in tree.every_node():
        node.pop(MARK, None)


def _put(node: Node, name: str, values: list[bytes]) -> None:
    """Set a property of ours."""
    if values:
        node[name] = values
        node.setdefault(MARK, []).append(name.encode())


def _comment(node: Node, text: str) -> None:
    """Append a comment of ours to a node's comment."""
    first, *others = node.get("C", [b""])
    # The empty line is ours too: what people wrote comes back to the byte.
    node["C"] = [first + FENCE + raw(f"{chr(10) * 2 if first else ''}{text}") + FENCE, *others]
    node.setdefault(MARK, []).append(b"C")


def _write_turn(node: Node, turn: Turn, size: int, katrain: bool) -> None:
    """What was found of the position that a node leads to, in place of what any program has found."""
    for name in (*NUMBERS, *(KATRAIN if katrain else ())):
        node.pop(name, None)
    _write_numbers(node, turn)
    if katrain:
        _put(node, "KT", kt_values(turn, size))
    if lines := lz_value(turn, size):
        _put(node, "LZ" if turn.number else "LZOP", [raw(lines)])


def _write_numbers(node: Node, of: Turn | Candidate) -> None:
    """Black's win rate and lead, as Sabaki has them."""
    _put(node, "SBKV", [f"{100 * of.winrate_black:.2f}".encode()])
    if of.lead_black is not None:
        _put(node, "SBKS", [f"{of.lead_black:.2f}".encode()])


def _write_move(node: Node, review: Review, move: Move, katrain: bool) -> None:
    """What a move was worth."""
    after = review.turns[move.number]
    _write_turn(node, after, review.size, katrain)
    if move.kind is not None and not any(name in node for name in MARKS):
        for name, value in MARKS_OF_KIND[move.kind].items():
            if name not in node:
                _put(node, name, [value])
    _comment(node, "\n".join([*judgement_lines(review, move), f"Now {standing(after)}."]))


def judgement_lines(review: Review, move: Move) -> list[str]:
    """What is said of a move, and what was better as a line that Sabaki plays: ``B D4 Q16 C3``."""
    if move.kind is None or move.loss is None:
        return []
    begin = f"{KINDS[move.kind].capitalize()}: {review.vertex(move.point)}"
    if move.is_first_choice:
        return [f"{begin} is the first choice."]
    same = "is as good as the first choice, as far as can be told"
    said = [f"{begin} {f'lost {review.amount(move.loss)}' if move.counted else same}."]
    for line in review.better(move):
        best = review.turns[move.number - 1].moves[0]
        said.append(f"{'Better' if move.counted else 'First choice'}: {review.vertex(line[0])} ({standing(best)}).")
        shown = line[: line.index(PASS)] if PASS in line else line
        if len(shown) >= SHORTEST_LINE:
            said.append(f"{color_letter(move.color)} {review.vertices(shown)}")
    return said


def _overview(review: Review) -> str:
    """What is said of the whole game."""
    said = [f"Reviewed by Keima {__version__}: {review.means}."]
    for color, score in review.summary.whole.items():
        if score.accuracy is not None:
            accuracy, first = f"accuracy {score.accuracy:.0f}", f"first choices {100 * (score.first_choices or 0):.0f}%"
            said.append(f"{review.player(color)}: {accuracy}, mean loss {mean_loss(score)} {review.unit}, {first}.")
    costly = [f"#{move.number} ({review.amount(move.counted)})" for move in review.summary.costly]
    if costly:
        said.append(f"Most costly: {', '.join(costly)}.")
    return "\n".join(said)


def _line(review: Review, move: Move, line: list[int]) -> list[Node]:
    """The nodes of a variation."""
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
    """A position's KT; empty where something is not known that it must hold."""
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
    # Without a time, so that the same analysis gives the same file.
    return [base64.b64encode(gzip.compress(data, mtime=0)) for data in (*halves, text.encode())]


def lz_value(turn: Turn, size: int) -> str:
    """A position's LZ; empty where no move has been searched."""
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
        # Whole hundredths of a percent, as engines write them.
        told = f"move {to_vertex(move.point, size)} visits {move.visits} winrate {round(10_000 * rate(move, sign))}"
        lead = "" if move.lead_black is None else f" scoreMean {sign * move.lead_black + 0.0:.2f}"
        line = " ".join(to_vertex(point, size) for point in move.line[:LIZZIE_LINE])
        # LizGoban takes what stands before the last "info".
        moves += f"{told} prior {round(10_000 * move.prior)}{lead} pv {line} info "
    return f"{' '.join(first)}\n{moves}"
