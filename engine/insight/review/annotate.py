"""A review inside the game's own SGF: graphs, marks, comments and lines, as the usual programs show them.

All of the file stays. What is added to a node is named in its property ``KEIMA``, and what is added to a comment stands
between two invisible signs, so that the next review replaces what this one wrote and nothing else. Nodes that a person
has marked as good or bad moves keep that mark.
"""

from engine import __version__
from engine.go.geometry import PASS, other, to_sgf
from engine.go.notation import color_letter
from engine.go.sgf_tree import Node, SgfTree, raw, read_trees
from engine.insight.review.judgement import KINDS, Move
from engine.insight.review.katrain import VERSION, kt_values
from engine.insight.review.lizzie import lz_value
from engine.insight.review.review import WORTH_A_LINE, Review, amount, lead_text, standing, with_error
from engine.insight.review.turns import Turn

MARK = "KEIMA"
"""On each node: the properties that are ours; on nodes of our lines ``LINE``"""
LINE = b"LINE"
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
        _put(nodes[0], "KTV", [VERSION])
    if "AP" not in nodes[0]:
        nodes[0]["AP"] = [raw(f"Keima:{__version__}")]
    _comment(nodes[0], _overview(review))
    for n, (move, at) in enumerate(zip(review.moves, places, strict=True)):
        # A node with two moves, which the standard forbids, has no place between them.
        if move.kind is not None and move.kind >= WORTH_A_LINE and at and (n == 0 or places[n - 1] != at):
            for line in review.better(move, lines):
                tree.add_variation(at - 1, _line(review, move, line))


def is_review(data: bytes) -> bool:
    """Whether a file holds what a review wrote: a game whose first node names a comment of ours."""
    if MARK.encode() not in data:
        return False
    trees = (tree for _, tree in read_trees(data))
    return any(isinstance(tree, SgfTree) and b"C" in tree.main_line()[0].get(MARK, []) for tree in trees)


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
    _put(node, "SBKV", [f"{100 * turn.winrate_black:.2f}".encode()])
    if turn.lead_black is not None:
        _put(node, "SBKS", [f"{turn.lead_black:.2f}".encode()])
    if katrain:
        _put(node, "KT", kt_values(turn, size))
    if lines := lz_value(turn, size):
        _put(node, "LZ" if turn.number else "LZOP", [raw(lines)])


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
    vertex, letter = review.vertex(move.point), color_letter(move.color)
    if move.is_first_choice:
        return [f"{KINDS[move.kind].capitalize()}: {vertex} is the first choice."]
    said = [f"{KINDS[move.kind].capitalize()}: {vertex} lost {amount(move.loss, review.unit)}."]
    if not move.counted:
        said = [f"{KINDS[move.kind].capitalize()}: {vertex} is as good as the first choice, as far as can be told."]
    for line in review.better(move):
        best = review.turns[move.number - 1].moves[0]
        lead = "" if best.lead_black is None else f", {lead_text(best.lead_black)}"
        word = "Better" if move.counted else "First choice"
        said.append(f"{word}: {review.vertex(line[0])} (Black {100 * best.winrate_black:.1f}%{lead}).")
        shown = line[: line.index(PASS)] if PASS in line else line
        if len(shown) >= SHORTEST_LINE:
            said.append(" ".join([letter, *map(review.vertex, shown)]))
    return said


def _overview(review: Review) -> str:
    """What is said of the whole game."""
    said, unit = [f"Reviewed by Keima {__version__}: {review.means}."], review.unit
    for color, score in review.summary.whole.items():
        if score.accuracy is not None and score.first_choices is not None:
            accuracy, first = f"accuracy {score.accuracy:.0f}", f"first choices {100 * score.first_choices:.0f}%"
            mean = with_error(score.mean_loss, score.mean_loss_error, 2)
            said.append(f"{review.player(color)}: {accuracy}, mean loss {mean} {unit}, {first}.")
    costly = [f"#{move.number} ({amount(move.counted, unit)})" for move in review.summary.costly]
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
        _put(nodes[0], "SBKV", [f"{100 * candidate.winrate_black:.2f}".encode()])
        lead = ""
        if candidate.lead_black is not None:
            _put(nodes[0], "SBKS", [f"{candidate.lead_black:.2f}".encode()])
            lead = f", {lead_text(candidate.lead_black)}"
        rate = f"Black {100 * candidate.winrate_black:.1f}%{lead}"
        visits = f"{candidate.visits} visit{'s' * (candidate.visits != 1)}"
        _comment(nodes[0], f"Instead of #{move.number}: {rate}, {visits}.")
    return nodes
