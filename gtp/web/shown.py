"""The state of the game, which every tab shows, as JSON.

Points are policy indices, row by row from the top left, and -1 for a pass. Colours are ``black`` and ``white``.
"""

from typing import Any

from engine.go.board import META_KO_COLOR, META_KO_POINT
from engine.go.geometry import BLACK, WHITE, on_board_points
from engine.go.points import color_word
from engine.go.rules import RULE_SETS
from engine.live.record import Node
from gtp.web.live_search import index
from gtp.web.table import Table

NO_REVIEW = {"state": "none", "text": "", "url": None}
SIGNS = ".bw"


def state_of(table: Table) -> dict[str, Any]:
    """The state of the game: what every tab shows."""
    game, settings, node = table.game, table.settings, table.node
    size, board = game.size, game.position.board
    moves = [one for one in node.line() if one.move]
    ko = int(board.meta[META_KO_POINT])
    is_ko = bool(ko) and int(board.meta[META_KO_COLOR]) == game.to_move
    is_counted = table.phase != "play" and node is table.end
    count = table.count if is_counted else None
    return {
        "rev": table.rev,
        "id": table.id,
        "size": size,
        "rules": game.rules.name,
        "komi": game.komi,
        "handicap": game.handicap,
        "players": {color_word(color): table.player(color) for color in (BLACK, WHITE)},
        "phase": table.phase,
        "result": table.result or None,
        "board": "".join(SIGNS[board.color[point]] for point in on_board_points(size)),
        "toMove": color_word(BLACK if table.placing else game.to_move),
        "last": index(moves[-1].move[1], size) if moves and moves[-1].move else None,
        "ko": index(ko, size) if is_ko else None,
        "captures": {color_word(color): game.captures(color) for color in (BLACK, WHITE)},
        "node": node.id,
        "number": len(moves),
        "path": [row(one, size) for one in table.line if one.move or (one.parent and one.sets_up)],
        "branches": [row(one, size) for one in node.children] if len(node.children) > 1 else [],
        "atEnd": node is table.line[-1],
        "engine": table.opponent.state(),
        "network": table.network,
        "clock": table.clock.state() if table.clock else None,
        "dead": sorted(index(point, size) for point in table.dead) if is_counted else [],
        "owners": count.owners if count else None,
        "count": {"black": count.black, "white": count.white, "text": count.text} if count else None,
        "graph": graph_of(table),
        "help": dict(table.opponent.help),
        "level": settings.level,
        "levels": table.levels,
        "ruleSets": list(RULE_SETS),
        "sizes": table.sizes,
        "placing": table.placing,
        "undoes": table.can_undo,
        "said": table.said,
        "warning": table.warning or None,
        "review": table.reviews.get(table.id, NO_REVIEW),
    }


def row(node: Node, size: int) -> list[Any]:
    """A node as the page shows it: id, colour, index; an empty colour for a change of stones without a move."""
    if node.move is None:
        return [node.id, "", None]
    return [node.id, SIGNS[node.move[0]], index(node.move[1], size)]


def graph_of(table: Table) -> list[list[Any]]:
    """Number of moves, Black's win rate and Black's lead of the positions of the current line that have values."""
    found, number = [], 0
    for node in table.line:
        number += node.move is not None
        if node.id in table.opponent.values:
            found.append([number, *table.opponent.values[node.id]])
    return found
