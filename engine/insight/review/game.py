"""A game as it is reviewed: its record, the position before each move, and what each move does to the board."""

from dataclasses import dataclass, field, replace

from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import BLACK, EMPTY, PASS, index_of, on_board_points
from engine.go.position import META_TO_MOVE, Position, hide_course, with_capacity
from engine.go.rules import RULE_SETS, Rules
from engine.go.sgf import SgfGame
from engine.records.sgf_records import komi_meant, rules_meant

MOST_MOVES = 2000
"""A game of more is no game that people played"""


@dataclass(frozen=True)
class Step:
    """What a move does, in policy indices."""

    color: int
    point: int
    index: int
    """-1 = a pass"""
    captured: list[int]


@dataclass
class GameToReview:
    """A record, replayed."""

    record: SgfGame
    rules: Rules
    komi: float
    handicap: int
    positions: list[Position] = field(repr=False)
    """before each move, the colour that made it to move; then the last one"""
    steps: list[Step] = field(repr=False)
    first: int = BLACK
    """the colour to move at the start"""

    @property
    def size(self) -> int:
        return self.record.size

    @property
    def start(self) -> list[int]:
        """Colour of each point before the first move, in policy order."""
        return self.colors(0)

    @property
    def played(self) -> list[tuple[int, int]]:
        """Colour and point of each move."""
        return [(step.color, step.point) for step in self.steps]

    @property
    def handicap_moves(self) -> int:
        """Number of moves at the beginning that are handicap stones; some servers write them so."""
        stones = [number for number, (color, point) in enumerate(self.played, 1) if color == BLACK and point != PASS]
        left = self.handicap - len(self.record.black)
        return stones[left - 1] if left > 0 else 0

    def colors(self, turn: int) -> list[int]:
        """Colour of each point after some moves, in policy order."""
        found: list[int] = self.positions[turn].board.color[on_board_points(self.size)].tolist()
        return found


def game_to_review(
    record: SgfGame, rules: Rules = RULE_SETS[DEFAULT_RULES], komi: float = DEFAULT_KOMI
) -> GameToReview:
    """Replay a record.

    Moves out of turn are played as they are. Komi and rules are those which the server meant. The stones that Black
    places before White's first are a handicap, as the position itself knows them.

    Args:
        rules, komi: those in force where the file does not name them.
    Raises:
        ValueError: an impossible move or setup, or too many moves; one line.
    """
    if len(record.moves) > MOST_MOVES:
        raise ValueError(f"{len(record.moves)} moves, at most {MOST_MOVES} are reviewed")
    # The whole game first, whose errors say where they are.
    meant = replace(record, komi=komi_meant(record), rules=rules_meant(record))
    meant.to_game(rules, komi)
    game = replace(meant, moves=[]).to_game(rules, komi)
    points = on_board_points(record.size)
    positions, steps = [], []
    for color, point in record.moves:
        positions.append(_with_to_move(game, color))
        before = game.position.board.color[points].copy()
        game.play(color, point)
        after = game.position.board.color[points]
        index = -1 if point == PASS else int(index_of(point, record.size))
        # A stone that takes its own chain off leaves its point empty too, though it was so before.
        gone = [int(at) for at in ((before != EMPTY) & (after == EMPTY)).nonzero()[0]]
        if index >= 0 and after[index] == EMPTY:
            gone.append(index)
        steps.append(Step(color, point, index, gone))
    positions.append(_with_to_move(game, game.to_move))
    first = record.moves[0][0] if record.moves else game.to_move
    return GameToReview(record, game.rules, game.komi, game.handicap, positions, steps, first)


def _with_to_move(game: Game, color: int) -> Position:
    """A copy of the game's position with a colour to move, to be analysed by itself."""
    copy = with_capacity(game.position, game.n_moves)
    copy.meta[META_TO_MOVE] = color
    hide_course(copy)
    return copy
