"""Ladders on diagrams, and every verdict against a slow plain-Python reader."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.go.board import META_KO_COLOR, META_KO_POINT, META_SIZE, is_legal, new_board, play
from engine.go.diagram import parse
from engine.go.geometry import BLACK, EMPTY, WHITE, from_vertex, on_board_points, to_vertex
from engine.go.ladder import POSITION_NODES, READ_NODES, ladder_planes
from engine.go.ladder_search import new_ladder_scratch


class UnfinishedError(Exception):
    """The twin gave up a read."""


class Twin:
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


# Black hunts. Letters are all of Black's ladder captures with Black to move, digits all of White's ladder escapes with
# White to move: nothing else may be marked.
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


def marked(board, color):
    """Vertices of the ladder captures and of the ladder escapes of a colour, each sorted into one string."""
    size = int(board.meta[META_SIZE])
    capture, escape = np.full(size * size, 7, np.uint8), np.full(size * size, 7, np.uint8)
    ladder_planes(board, color, new_ladder_scratch(size), capture, escape)
    assert set(capture) | set(escape) <= {0, 1}
    points = on_board_points(size)
    return tuple(" ".join(sorted(to_vertex(int(p), size) for p in points[plane == 1])) for plane in (capture, escape))


@pytest.mark.parametrize("name", POSITIONS)
def test_ladders_on_diagrams(name):
    board, marks = parse(POSITIONS[name])
    captures = " ".join(sorted(to_vertex(point, 9) for sign, point in marks.items() if sign.isalpha()))
    escapes = " ".join(sorted(to_vertex(point, 9) for sign, point in marks.items() if sign.isdigit()))
    assert marked(board, BLACK)[0] == captures
    assert marked(board, WHITE)[1] == escapes


def assert_planes_agree(board, scratch):
    """Compare planes and the twin on every point, for both colours."""
    size = int(board.meta[META_SIZE])
    before = board.buffer.copy()
    for color in (BLACK, WHITE):
        capture, escape = np.empty(size * size, np.uint8), np.empty(size * size, np.uint8)
        ladder_planes(board, color, scratch, capture, escape)
        assert scratch.nodes_left[0] > READ_NODES  # nothing was cut short
        for index, point in enumerate(on_board_points(size).tolist()):
            twin = Twin(board)
            assert capture[index] == twin.is_capture(point, color)
            assert escape[index] == twin.is_escape(point, color)
    assert (board.buffer == before).all()


def test_planes_of_a_rotated_board_are_rotated():
    diagram, _ = parse(POSITIONS["two ways to hunt, one broken"])
    for quarter_turns in range(4):
        stones = np.rot90(diagram.color[on_board_points(9)].reshape(9, 9), quarter_turns)
        board = new_board(9)
        for point, color in zip(on_board_points(9), stones.ravel(), strict=True):
            if color:
                play(board, int(point), 3 - int(color))
        wanted = np.zeros((9, 9), np.uint8)
        wanted[6, 5] = 1
        capture, escape = np.empty(81, np.uint8), np.empty(81, np.uint8)
        ladder_planes(board, WHITE, new_ladder_scratch(9), capture, escape)
        assert (capture == np.rot90(wanted, quarter_turns).ravel()).all()


def test_simple_ko_holds_on_the_real_board():
    board, marks = parse("""
        . . . . . .
        . X O X . .
        X O a O . .
        . X O . . .
        . . . . . .
        . . . . . .
    """)
    play(board, marks["a"], BLACK)
    assert board.meta[META_KO_POINT] == from_vertex("B4", 6)
    assert "B4" not in marked(board, WHITE)[1]
    play(board, 0, WHITE)
    assert "B4" in marked(board, WHITE)[1]


def test_a_read_is_bounded():
    board, _ = parse(POSITIONS["into the corner"])
    scratch, planes = new_ladder_scratch(9), np.empty((2, 81), np.uint8)
    ladder_planes(board, BLACK, scratch, *planes)
    assert planes[0].sum() == 1
    used = POSITION_NODES - scratch.nodes_left[0]
    assert 10 < used <= READ_NODES


@pytest.mark.slow
def test_many_dense_boards_agree_with_the_twin():
    random = np.random.default_rng(7)
    for _ in range(4000):
        size = int(random.integers(3, 8))
        board, scratch = new_board(size), new_ladder_scratch(size)
        for point in random.choice(on_board_points(size), int(random.integers(5, 2 * size * size))):
            color = int(random.integers(BLACK, WHITE + 1))
            if is_legal(board, int(point), color, False):
                play(board, int(point), color)
        assert_planes_agree(board, scratch)


@settings(deadline=None, max_examples=100)
@given(
    size=st.integers(2, 6),
    moves=st.lists(st.tuples(st.integers(0, 35), st.sampled_from((BLACK, WHITE))), min_size=20, max_size=120),
)
def test_every_point_agrees_with_the_twin(size, moves):
    board, scratch = new_board(size), new_ladder_scratch(size)
    points = on_board_points(size).tolist()
    for index, color in moves:
        point = points[index % len(points)]
        if is_legal(board, point, color, False):
            play(board, point, color)
    assert_planes_agree(board, scratch)
