"""Reasons why a move lost: one sentence for each move that the review's data prove, none for the others.

Proofs use the ownership of the searches before and after the move, the PV after the move, and the ladder search. In
order of precedence:

1. *A chain died*: its owner changed, and the PV captures it, or begins a ladder that does.
2. *A ladder*: the player's chain runs though a ladder captures it; the player hunts a chain that escapes; or the first
   choice captures a chain in a ladder, and the move gives it back to the opponent.
3. *A chain lives*: stones of the opponent that were dead are alive.
4. *A region changed its owner*: connected points went from the player to the opponent.
5. *Tenuki*: the first choice is near the opponent's last move, where most of the search's visits went, and the move
   played is far from both.

Start at :func:`reason_of`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.go.board import META_SIZE, META_STRIDE, Board, copy_board, is_legal, new_board, play
from engine.go.geometry import BLACK, EMPTY, PASS, on_board_points, other, to_vertex
from engine.go.points import color_word
from engine.insight.overlays import ladders
from engine.insight.review.games import GameToReview
from engine.insight.review.losses import A_POINT, KINDS, Move, unit_of
from engine.insight.review.turns import Turn

BLAMED = KINDS.index("inaccuracy")
"""Mildest kind of move that gets a reason"""
LARGE = KINDS.index("mistake")
"""Mildest kind of move that is called tenuki"""
OWNED = 0.3
"""Absolute ownership from which on a point has an owner"""
LEAST_REGION = 4
"""Minimum number of points of a region, and of stones that live"""
EXPLAINED = 0.5
"""Minimum share of a move's loss that a change of owners explains; each point that changes its owner is worth 2"""
NEAR = (2, 6)
"""Maximum distance of points that are near each other, in lines: the first number, or the board's size divided by the
second if this is larger"""
URGENT = 0.7
"""Minimum share of the visits near an urgent point"""


class Scene(NamedTuple):
    """A move, and what a review knows about the positions before and after it. Points are as on the board."""

    move: Move
    lost: float
    """the move's loss in points"""
    size: int
    boards: tuple[Board, Board]
    """before and after the move"""
    turns: tuple[Turn, Turn]
    """analyses of these positions"""
    owners: tuple[np.ndarray, np.ndarray] | None
    """float[cells] by point: ownership of these positions, 1 = the player's; None = unknown"""
    last: int
    """the opponent's last move; PASS = none"""
    then: list[tuple[Board, int]]
    """for each of the next two moves of the game the board after it and its point"""

    @property
    def best(self) -> int:
        """The first choice."""
        return self.turns[0].moves[0].point

    @property
    def reply(self) -> int:
        """First move of the PV after the move; PASS if there is none."""
        return self.turns[1].moves[0].point if self.turns[1].moves else PASS

    def vertex(self, point: int) -> str:
        """GTP vertex of a point."""
        return to_vertex(point, self.size)

    def distance(self, one: int, two: int) -> int:
        """Distance of two points in lines: the larger of those in rows and in columns."""
        rows, columns = zip(divmod(one, self.size + 1), divmod(two, self.size + 1), strict=True)
        return max(abs(rows[0] - rows[1]), abs(columns[0] - columns[1]))


def reasons_of(game: GameToReview, turns: Sequence[Turn], moves: Sequence[Move]) -> dict[int, str]:
    """By number of the move: the reasons of a game's moves that have one."""
    return {move.number: reason for move in moves if (reason := reason_of(game, turns, move))}


def reason_of(game: GameToReview, turns: Sequence[Turn], move: Move) -> str:
    """Why a move lost, as one sentence; empty if it is not blamed or nothing is proven.

    Args:
        turns: the analyses of all positions of the game.
    """
    if move.kind is None or move.kind < BLAMED or move.is_first_choice:
        return ""
    scene = _scene_of(game, turns, move)
    for find in PROOFS:
        if reason := find(scene):
            return reason
    return ""


def _scene_of(game: GameToReview, turns: Sequence[Turn], move: Move) -> Scene:
    n, size = move.number, game.record.size
    boards = [position.board for position in game.positions[n - 1 : n + 3]]
    found = [_owners(turn, move.color, size) for turn in turns[n - 1 : n + 1]]
    before, after = found
    previous = game.steps[n - 2] if n > 1 else None
    last = previous.point if previous is not None and previous.color != move.color else PASS
    then = list(zip(boards[2:], (step.point for step in game.steps[n : n + 2]), strict=True))
    owners = None if before is None or after is None else (before, after)
    lost = move.counted / A_POINT[unit_of(turns)]
    return Scene(move, lost, size, (boards[0], boards[1]), (turns[n - 1], turns[n]), owners, last, then)


def _owners(turn: Turn, color: int, size: int) -> np.ndarray | None:
    """Ownership by point, float[cells], 1 = the colour's; None = unknown."""
    if turn.ownership_black is None:
        return None
    points = on_board_points(size)
    found = np.zeros(int(points[-1]) + 1)
    found[points] = turn.ownership_black * (1.0 if color == BLACK else -1.0)
    return found


def _chains(board: Board, size: int, color: int) -> Iterator[list[int]]:
    """Yield the chains of a colour as lists of points."""
    points = on_board_points(size).astype(np.int64)
    own = points[board.color[points] == color]
    for head in np.unique(board.head[own]):
        yield own[board.head[own] == head].tolist()


def _stones(scene: Scene, stones: Sequence[int], color: int) -> str:
    """Stones in words: ``the 5 black stones at D4``, the stone named being the one nearest to their middle."""
    stride = scene.size + 1
    rows, columns = np.divmod(np.array(stones), stride)
    middle = int(np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2))
    count = f"{len(stones)} {color_word(color)} stones" if len(stones) > 1 else f"{color_word(color)} stone"
    return f"the {count} at {scene.vertex(stones[middle])}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lost(scene: Scene, stones: Sequence[int]) -> bool:
    """Whether most points of a chain are :func:`_flipped`."""
    flipped = set(_flipped(scene))
    return 2 * len(flipped.intersection(stones)) > len(stones)


def _off_the_board(board: Board, line: Iterable[int], color: int, stone: int) -> int | None:
    """Number of the moves of a line after which a stone of the board is captured; None = it stays.

    Args:
        color: colour of the line's first move; the line ends at its first illegal move.
    """
    copy = new_board(int(board.meta[META_SIZE]))
    copy_board(copy, board)
    for number, point in enumerate(line, 1):
        if point != PASS and not is_legal(copy, point, color, False):
            return None
        play(copy, point, color)
        if copy.color[stone] == EMPTY:
            return number
        color = other(color)
    return None


def _chain_died(scene: Scene) -> str:
    """The player's largest chain whose owner changed and that the PV captures, or a ladder that the PV begins."""
    color, after = scene.move.color, scene.boards[1]
    line = scene.turns[1].moves[0].line if scene.turns[1].moves else []
    caught = _captures(after, other(color))
    for chain in sorted(_chains(scene.boards[0], scene.size, color), key=len, reverse=True):
        if not _lost(scene, chain):
            continue
        stones, verb = _stones(scene, chain, color), "die" if len(chain) > 1 else "dies"
        if count := _off_the_board(after, line, other(color), chain[0]):
            return f"{_capital(stones)} {verb}, captured by {' '.join(map(scene.vertex, line[:count]))}."
        if scene.reply in caught and _has_liberty(after, chain[0], scene.reply):
            return f"{_capital(stones)} {verb} in a ladder that begins with {scene.vertex(scene.reply)}."
    return ""


def _flipped(scene: Scene) -> list[int]:
    """The points that were the player's before the move and are the opponent's after it, if they explain the loss."""
    if scene.owners is None:
        return []
    before, after = scene.owners
    points: list[int] = np.nonzero((before >= OWNED) & (after <= -OWNED))[0].tolist()
    return points if 2 * len(points) >= EXPLAINED * scene.lost else []


def _captures(board: Board, color: int) -> set[int]:
    """Points where a colour captures by a ladder."""
    return set(ladders(board, color)[0])


def _has_liberty(board: Board, stone: int, point: int) -> bool:
    """Whether a point is a liberty of a stone's chain."""
    stride = int(board.meta[META_STRIDE])
    beside = (point - stride, point - 1, point + 1, point + stride)
    head = board.head[stone]
    return head != 0 and board.color[point] == EMPTY and any(board.head[at] == head for at in beside)


def _chased(before: Board, after: Board, point: int, color: int, size: int) -> list[int]:
    """The opponent's chain of two liberties that a move puts into atari; empty if there is none."""
    for chain in _chains(before, size, other(color)):
        head = before.head[chain[0]]
        if before.libs[head] == 2 and _has_liberty(before, chain[0], point) and after.color[chain[0]] != EMPTY:
            return chain
    return []


def _ladder(scene: Scene) -> str:
    """A chain that runs from a ladder that works, a ladder that does not work, or one that was not begun."""
    color, point, (before, after) = scene.move.color, scene.move.point, scene.boards
    enemy = other(color)
    if point == PASS:
        return ""
    # The player's chain was in atari, and has two liberties now.
    for chain in _chains(before, scene.size, color):
        if before.libs[before.head[chain[0]]] == 1 and after.libs[after.head[chain[0]]] == 2:
            for capture in sorted(_captures(after, enemy)):
                if _has_liberty(after, chain[0], capture):
                    stones = _capital(_stones(scene, chain, color))
                    they = "them" if len(chain) > 1 else "it"
                    return f"{stones} cannot run: {scene.vertex(capture)} captures {they} in a ladder."
    # The player chased a chain in the game: atari, escape, atari.
    chain = _chased(before, after, point, color, scene.size)
    if chain and point not in _captures(before, color) and len(scene.then) == 2:
        (fled, escape), (chased, _) = scene.then
        stone = chain[0]
        escapes = escape in ladders(after, enemy)[1] and fled.libs[fled.head[stone]] == 2
        if escapes and chased.color[stone] == enemy and chased.libs[chased.head[stone]] == 1:
            stones = _stones(scene, chain, enemy)
            return f"The ladder does not work: {stones} escape{'' if len(chain) > 1 else 's'}."
    # The first choice was a ladder, and its prey has become the opponent's.
    if scene.best in _captures(before, color):
        for prey in _chains(before, scene.size, enemy):
            if _has_liberty(before, prey[0], scene.best) and _lost(scene, prey):
                captures = f"{scene.vertex(scene.best)} captures {_stones(scene, prey, enemy)} in a ladder"
                return f"{captures}; now {'they live' if len(prey) > 1 else 'it lives'}."
    return ""


def _chain_lives(scene: Scene) -> str:
    """The opponent's dead stones that live after the move; none if fewer than the smallest region."""
    enemy = other(scene.move.color)
    alive = [chain for chain in _chains(scene.boards[0], scene.size, enemy) if _lost(scene, chain)]
    if sum(map(len, alive)) < LEAST_REGION:
        return ""
    largest = max(alive, key=len)
    verb = "were dead and live" if len(largest) > 1 else "was dead and lives"
    return f"{_capital(_stones(scene, largest, enemy))} {verb} now."


def _region_lost(scene: Scene) -> str:
    """The largest region whose owner changed, if it explains the loss."""
    region = max(_regions(scene, _flipped(scene)), key=len, default=[])
    if len(region) < LEAST_REGION or 2 * len(region) < EXPLAINED * scene.lost:
        return ""
    color = scene.move.color
    stones = sum(int(scene.boards[1].color[at]) == color for at in region)
    among = f", {stones} {color_word(color)} stone{'s' * (stones != 1)} among them," if stones else ""
    owners = f"from {_capital(color_word(color))} to {_capital(color_word(other(color)))}"
    return f"{len(region)} points {_place(scene, region)}{among} go {owners}."


def _regions(scene: Scene, points: Sequence[int]) -> Iterator[list[int]]:
    """Split points into regions; neighbours are points of which one touches the other, diagonally too."""
    stride, left = scene.size + 1, set(points)
    around = (-stride - 1, -stride, -stride + 1, -1, 1, stride - 1, stride, stride + 1)
    while left:
        region, waiting = [], [left.pop()]
        while waiting:
            at = waiting.pop()
            region.append(at)
            beside = {at + step for step in around} & left
            left -= beside
            waiting += beside
        yield sorted(region)


def _place(scene: Scene, region: Sequence[int]) -> str:
    """Where a region is: the part of the board, and the point of the region nearest to its middle."""
    rows, columns = (np.array(values) - 1 for values in np.divmod(np.array(region), scene.size + 1)[:2])
    row, column = rows.mean(), columns.mean() + 0.0
    high = ("upper", "", "lower")[min(2, int(3 * row / scene.size))]
    wide = ("left", "", "right")[min(2, int(3 * column / scene.size))]
    if high and wide:
        part = f"in the {high} {wide}"
    else:
        part = f"on the {high or wide} side" if high or wide else "in the centre"
    middle = region[int(np.argmin((rows - row) ** 2 + (columns - column) ** 2))]
    return f"{part} around {scene.vertex(middle)}"


def _tenuki(scene: Scene) -> str:
    """The urgent point near the opponent's last move that the player left."""
    best, last, played = scene.best, scene.last, scene.move.point
    if scene.move.kind is None or scene.move.kind < LARGE or PASS in (best, last, played):
        return ""
    close, far = max(NEAR[0], scene.size // NEAR[1]), max(4, scene.size // 3)
    if scene.distance(best, last) > close or min(scene.distance(played, best), scene.distance(played, last)) < far:
        return ""
    moves = scene.turns[0].moves
    visits = sum(move.visits for move in moves)
    near = sum(
        move.visits for move in moves
        if move.point != PASS and min(scene.distance(move.point, best), scene.distance(move.point, last)) <= close
    )  # fmt: skip
    if near < URGENT * visits:
        return ""
    urgent = f"{scene.vertex(best)}, near {scene.vertex(last)}, is urgent"
    return f"{urgent}: {100 * near / visits:.0f}% of the visits are near it, and {scene.vertex(played)} is far away."


PROOFS: tuple[Callable[[Scene], str], ...] = (_chain_died, _ladder, _chain_lives, _region_lost, _tenuki)
"""Functions that return a reason, or the empty string; the first reason counts"""
