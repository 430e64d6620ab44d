"""A slow reader of ladders in plain Python, and ladders on diagrams."""

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE
from engine.go.geometry import EMPTY, on_board_points


class UnfinishedError(Exception):
    """The twin reached its limit of moves."""


class LadderTwin:
    """The definition of engine/go/ladder.py read by plain recursion on dictionaries of stones; no pruning, no undo."""

    def __init__(self, board, nodes=20000):
        self.stride = int(board.meta[META_SIZE]) + 1
        self.stones = {int(p): int(board.color[p]) for p in on_board_points(self.stride - 1)}
        self.ko = (int(board.meta[META_KO_POINT]), int(board.meta[META_KO_COLOR]))
        self.nodes = nodes

    def around(self, point):
        near = (point - self.stride, point - 1, point + 1, point + self.stride)
        return [p for p in near if p in self.stones]

    def chain(self, stones, point):
        """Stones and liberties of the chain at a point."""
        chain, liberties, todo = {point}, set(), [point]
        while todo:
            for near in self.around(todo.pop()):
                if stones[near] == EMPTY:
                    liberties.add(near)
                elif stones[near] == stones[point] and near not in chain:
                    chain.add(near)
                    todo.append(near)
        return chain, liberties

    def played(self, stones, point, color):
        """Stones after a move, and whether it captured into a ko; None if it is a suicide."""
        stones = {**stones, point: color}
        taken = set()
        for near in self.around(point):
            if stones[near] == 3 - color:
                chain, liberties = self.chain(stones, near)
                if not liberties:
                    taken |= chain
        stones.update(dict.fromkeys(taken, EMPTY))
        chain, liberties = self.chain(stones, point)
        if not liberties:
            return None
        return stones, len(taken) == len(chain) == len(liberties) == 1

    def atari_neighbours(self, stones, chain, color):
        """Last liberties of the colour's chains in atari that touch a chain."""
        found = set()
        for stone in chain:
            for near in self.around(stone):
                if stones[near] == color:
                    liberties = self.chain(stones, near)[1]
                    if len(liberties) == 1:
                        found |= liberties
        return found

    def works(self, stones, ko, prey, hunts, ply=0):
        """Whether the prey is captured; ``ko`` tells whether the last move captured into a ko."""
        self.nodes -= 1
        if self.nodes < 0 or ply == 200:  # a ko fought for ever
            raise UnfinishedError
        runner = stones[prey]
        chain, liberties = self.chain(stones, prey)
        if not hunts and ko:
            return False
        if not hunts:
            moves = liberties | self.atari_neighbours(stones, chain, 3 - runner)
            after = [self.played(stones, move, runner) for move in sorted(moves)]
            return all(self.works(*position, prey, True, ply + 1) for position in after if position)
        if len(liberties) == 1:
            return not self.played(stones, next(iter(liberties)), 3 - runner)[1]
        if len(liberties) > 2:
            return False
        after = [self.played(stones, move, 3 - runner) for move in sorted(liberties)]
        return any(self.works(*position, prey, False, ply + 1) for position in after if position)

    def first_move(self, point, color):
        """As ``played``, on the real board; None also where simple ko forbids."""
        if self.stones[point] != EMPTY or self.ko == (point, color):
            return None
        return self.played(self.stones, point, color)

    def is_capture(self, point, color):
        after = self.first_move(point, color)
        if after is None:
            return False
        preys = [p for p in self.around(point) if self.stones[p] == 3 - color]
        preys = [p for p in preys if len(self.chain(self.stones, p)[1]) == 2]
        return any(self.works(*after, prey, False) for prey in preys)

    def is_escape(self, point, color):
        after = self.first_move(point, color)
        if after is None:
            return False
        for prey in [p for p, there in self.stones.items() if there == color]:
            chain, liberties = self.chain(self.stones, prey)
            saving = liberties | self.atari_neighbours(self.stones, chain, 3 - color)
            if len(liberties) == 1 and point in saving and not self.works(*after, prey, True):
                return True
        return False


POSITIONS = {
    "into the corner": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . a . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "broken by a stone on the way": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . O . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "not broken by a stone off the way": """
        . . . . . . . . .
        . . . . . . . . .
        . . O . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . a . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "a maker before the breaker": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . O . . .
        . . . . X . . . .
        . . . . . . . . .
        . . . a . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "out of atari towards a friend": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . O . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . X . . . . .
        . . X O 1 . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "out of atari to nowhere": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . X . . . . .
        . . X O . . . . .
        . . X O X . . . .
        . . . X . . . . .
    """,
    "two ways to hunt": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . X . . . .
        . . . a O b . . .
        . . . X X X . . .
        . . . . . . . . .
    """,
    "two ways to hunt, one broken": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . O .
        . . . . X . . . .
        . . . . O b . . .
        . . . X X X . . .
        . . . . . . . . .
    """,
    "two ways to hunt, both broken": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . O . . . . . O .
        . . . . X . . . .
        . . . . O . . . .
        . . . X X X . . .
        . . . . . . . . .
    """,
    "a hunting stone falls on the way": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . X O . . . . .
        . . X O X O . . .
        . . . X . . . . .
    """,
    "out of atari by capturing": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . O X X . . . .
        . 1 X O . X . . .
        . O X O X . . . .
        . O O X . . . . .
        . . . . . . . . .
    """,
    "along the edge": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . X X . . . . .
        . . X O a . . . .
        . . . . . . . . .
    """,
    "a throw-in that is captured and captures": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        X X X X X . . . .
        X O O O X . . . .
        X O a b X . . . .
    """,
    "a net needs a quiet move": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . X . . . . .
        . . X O . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
    """,
    "a capture into a ko does not count": """
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . . .
        . . . . . . . X a
        . . . . . . X X O
        . . . . . . X O .
    """,
}
"""Black hunts. Letters are all of Black's ladder captures with Black to move, digits all of White's ladder escapes with
White to move: nothing else may be marked."""
