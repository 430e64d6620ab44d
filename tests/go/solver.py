"""Small boards solved by proof, from the rules alone: area scoring, positional superko, suicide allowed.

A side has proved a result when it can force it within a number of moves, whatever the other side does; positions that
came before on the path may not come again. The value is known when both sides have proved their halves.
"""

BLACK, WHITE = 1, -1
PASS = -1


class Solver:
    """Boards are tuples of 1, -1 and 0 in row order, moves their indices."""

    def __init__(self, size):
        self.size, self.area = size, size * size
        self.near = [
            [k for k in (i - size, i + size, i - 1, i + 1) if self._touch(i, k)] for i in range(self.area)
        ]  # fmt: skip
        middle = (size - 1) / 2
        self.order = sorted(range(self.area), key=lambda i: abs(i // size - middle) + abs(i % size - middle))
        self._after, self._listed, self._scores, self._hints = {}, {}, {}, {}

    def _touch(self, i, k):
        size = self.size
        return 0 <= k < self.area and abs(i // size - k // size) + abs(i % size - k % size) == 1

    def _reached(self, board, start):
        """The points of the area of one colour around a point, and the colours that it touches."""
        seen, waiting, colors = {start}, [start], set()
        while waiting:
            for k in self.near[waiting.pop()]:
                if board[k] != board[start]:
                    colors.add(board[k])
                elif k not in seen:
                    seen.add(k)
                    waiting.append(k)
        return seen, colors

    def after(self, board, move, color):
        """The board after a move on an empty point."""
        found = self._after.get((board, move, color))
        if found is None:
            cells = [*board]
            cells[move] = color
            for k in [k for k in self.near[move] if cells[k] == -color] + [move]:
                stones, colors = self._reached(cells, k)
                if cells[k] and 0 not in colors:
                    for stone in stones:
                        cells[stone] = 0
            found = self._after[board, move, color] = tuple(cells)
        return found

    def _moves(self, board, color):
        """The moves on a board and the boards after them, captures first."""
        found = self._listed.get((board, color))
        if found is None:
            boards = [(i, self.after(board, i, color)) for i in self.order if board[i] == 0]
            found = self._listed[board, color] = sorted(boards, key=lambda move: -color * sum(move[1]))
        return found

    def score(self, board):
        """Black's area less White's."""
        if board not in self._scores:
            owned = sum(board)
            for i in range(self.area):
                colors = self._reached(board, i)[1]
                if board[i] == 0 and len(colors) == 1:
                    owned += colors.pop()
            self._scores[board] = owned
        return self._scores[board]

    def _proves(self, side, goal, board, color, passed, path, depth):
        """Whether a side can force its half within ``depth`` moves: Black's score is at least the goal, or is not."""
        is_own = color == side
        if passed and is_own == ((self.score(board) >= goal) == (side == BLACK)):
            # The side to move ends the game by a pass, and has what it wants.
            return is_own
        if depth == 0:
            return False
        hint = self._hints.get((side, board, color, passed))
        moves = sorted(self._moves(board, color), key=lambda move: move[0] != hint)
        if not passed:
            moves.insert(len(moves) if is_own and hint != PASS else 0, (PASS, board))
        for move, then in moves:
            if move != PASS and then in path:
                continue
            proved = self._proves(side, goal, then, -color, move == PASS, path | {then}, depth - 1)
            if proved == is_own:
                self._hints[side, board, color, passed] = move
                return proved
        return not is_own

    def _reaches(self, goal, board, color, path):
        """Whether Black's score comes to the goal under best play."""
        depth = 1
        self._hints.clear()
        while True:
            for side in (BLACK, WHITE):
                if self._proves(side, goal, board, color, False, path, depth):
                    return side == BLACK
            depth += 1

    def value(self, moves):
        """Black's score under best play after some moves, Black's first."""
        board, color, path = (0,) * self.area, BLACK, {(0,) * self.area}
        for move in moves:
            board, color = board if move == PASS else self.after(board, move, color), -color
            path = path | {board}
        low, high = -self.area, self.area
        while low < high:
            middle = (low + high + 1) // 2
            if self._reaches(middle, board, color, path):
                low = middle
            else:
                high = middle - 1
        return low
