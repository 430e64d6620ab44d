"""``keima.Board`` against GNU Go and the slow twin: legal moves, ko rules, captures, stones, undo and score.

The library is imported by its name, as programs import it. Kinds of cases:

* twin: after every move of a random game, under every rule set, the legal moves of both colours, the stones, the
  captures and, if the rules have no tax, the area score equal those of :mod:`bench.reliability.rules_twin`; moves that
  are not legal are refused; undo and copies lead to equal boards;
* count: the number of games of a few moves from the empty board equals the twin's;
* gnugo: after every move of a random game, GNU Go lists the same legal moves and captures, under simple ko and both
  superkos, with and without suicide;
* score: finished games have GNU Go's score after its dead stones were taken off, by area and by territory.
"""

from itertools import compress, cycle
from typing import Any

import numpy as np
import pytest

import keima
from bench.reliability.campaign import Outcome, Part
from bench.reliability.legality import GNU_GO, Script, ask, compare
from bench.reliability.rules_twin import Twin
from engine.go.board import is_eye
from engine.go.geometry import BLACK, WHITE, other
from engine.go.points import color_word
from engine.go.rules import BONUS_N, BONUS_N_MINUS_ONE, RULE_SETS, SCORING_AREA, TAX_NONE, Rules, rules_from
from keima.moves import moves_of

PART = Part(
    title="The library's board: legal moves, ko rules, captures, undo and score, against GNU Go and a slow twin",
    unit="positions",
    wanted="100,000 positions, 0 differences",
)
TWIN_CASES, TWIN_POSITIONS = 20, 250
"""Cases of each rule set, positions of a case"""
GNU_GO_CASES, GNU_GO_POSITIONS = 6, 2000
"""Cases of each of ``GNU_GO_OPTIONS``, positions of a case"""
SCORE_CASES, SCORE_GAMES = 10, 20
"""Cases of each of ``SCORE_RULES``, games of a case"""
SMALL, LARGE = (2, 3, 4, 5, 7, 9), (3, 4, 5, 7, 9, 13, 19)
LENGTH = 6
"""Maximum number of moves of a game on a small board, as a multiple of the points"""
PASSES = 0.02
GNU_GO_OPTIONS = {
    "chinese": ("--forbid-suicide",),
    "chinese-ogs": ("--forbid-suicide", "--positional-superko"),
    "aga": ("--forbid-suicide", "--situational-superko"),
    "koSIMPLEscoreAREAtaxNONEsui1": ("--allow-suicide",),
}
"""Rules -> GNU Go's options for the same moves. With superko it lets suicides repeat positions."""
SCORE_RULES = {"chinese": "--chinese-rules", "japanese": "--japanese-rules"}
SCORE_SIZES = (5, 7, 9, 13)
DEPTHS = {2: 8, 3: 4, 4: 3}
"""Board size -> number of moves of the games that are counted"""
GAMES = {
    2: {"chinese": 6457, "chinese-ogs": 6049, "aga": 6177, "tromp-taylor": 6049, "new-zealand": 6537},
    3: dict.fromkeys(("chinese", "tromp-taylor", "new-zealand"), 5453),
    4: dict.fromkeys(("chinese", "tromp-taylor", "new-zealand"), 4129),
}
"""Board size -> rules -> number of games"""


def new_board(size: int, rules: str) -> Any:
    """A ``keima.Board`` without komi."""
    return keima.Board(size, rules=rules, komi=0)


def cells_of(mask: np.ndarray) -> set[tuple[int, int]]:
    """Row and column of each point of a mask."""
    return {(int(row), int(column)) for row, column in np.argwhere(mask)}


def random_move(board: Any, rng: np.random.Generator) -> Any:
    """A random legal move, rarely a pass."""
    moves = board.legal_moves
    return moves[-1] if len(moves) == 1 or rng.random() < PASSES else moves[int(rng.integers(len(moves) - 1))]


def differences(board: Any, twin: Twin) -> list[str]:
    """Differences between a board and its twin; empty = none."""
    rules, found = rules_from(board.rules), []
    for color in (BLACK, WHITE):
        legal = cells_of(board.legal_mask(color))
        if legal != (theirs := twin.legal_cells(color, [(rules.ko, rules.suicide)])[0]):
            found.append(f"legal for {color_word(color)}: {sorted(legal ^ theirs)} in one of the two only")
        if (taken := board.captures(color)) != (lost := twin.lost[other(color)]):
            found.append(f"captures of {color_word(color)}: {taken}, expected {lost}")
    if {cell: int(board.stones[cell]) for cell in cells_of(board.stones > 0)} != twin.stones:
        found.append("the stones differ")
    if (rules.scoring, rules.tax, rules.button) == (SCORING_AREA, TAX_NONE, False):
        owners = list(twin.area().values())
        bonus = {BONUS_N: board.handicap, BONUS_N_MINUS_ONE: max(0, board.handicap - 1)}.get(rules.handicap_bonus, 0)
        expected = owners.count(BLACK) - owners.count(WHITE) - bonus
        if (lead := board.score().black) != expected:
            found.append(f"score {lead}, expected {expected}")
    return found


def refusals(board: Any) -> list[str]:
    """Moves that the board plays although it does not list them, or that change it although they are refused."""
    found, before = [], str(board)
    for move in sorted({*moves_of(board.size)} - {*board.legal_moves}):
        try:
            board.play(move)
            return [f"{move} is played, but not listed"]
        except ValueError as error:
            if not str(error).startswith("illegal move: ") or str(board) != before:
                found.append(f"{move}: {error}")
    return found


def play_beside_twin(size: int, rules: str, seed: int, most: int) -> tuple[int, list[str]]:
    """Play one random game of at most ``most`` moves, up to the first difference.

    Returns:
        (int, list[str]): positions compared, and differences.
    """
    board, twin, rng = new_board(size, rules), Twin(size), np.random.default_rng(seed)
    button = RULE_SETS[rules].button
    for number in range(min(most, LENGTH * size * size)):
        move, color, before = random_move(board, rng), int(board.to_move), board.copy()
        board.play(move)
        # A position without the button differs from all earlier ones, so these cannot recur.
        twin.play(None if move.is_pass else (move.row, move.column), color)
        if move.is_pass and button:
            del twin.situations[:-1]
            button = False
        found = differences(board, twin)
        if number % 10 == 0:
            found += refusals(board)
            undone = board.copy()
            if undone.undo() != move or undone != before or undone.legal_moves != before.legal_moves:
                found.append("undo leads to another position")
        if found:
            line = " ".join(move for _, move in board.moves)
            return number + 1, [f"{rules}, {size}x{size}: {one}, after {line}" for one in found]
    return min(most, LENGTH * size * size), []


def n_games(board: Any, moves: int) -> int:
    """Number of games of this many further moves by the board, which is played and undone."""
    if moves == 0:
        return 1
    found = 0
    for move in board.legal_moves:
        board.play(move)
        found += n_games(board, moves - 1)
        board.undo()
    return found


def n_games_of_twin(twin: Twin, rules: Rules, moves: int) -> int:
    """Number of games of this many further moves by the twin."""
    if moves == 0:
        return 1
    found, color = 0, twin.to_move
    for cell in [*twin.legal_cells(color, [(rules.ko, rules.suicide)])[0], None]:
        below = Twin(twin.size)
        below.stones, below.situations = twin.stones, twin.situations[:]
        below.play(cell, color)
        found += n_games_of_twin(below, rules, moves - 1)
    return found


def gnu_go_script(rules: str, seed: int, most: int) -> Script:
    """GTP commands of random games of ``most`` moves in all, and the board's own answers."""
    script: Script = []
    rng, first = np.random.default_rng(seed), seed % len(LARGE)
    for size in cycle(LARGE[first:] + LARGE[:first]):
        board = new_board(size, rules)
        script += [(f"boardsize {size}", None), ("clear_board", None)]
        for _ in range(min(most, 2 * size**2)):
            color = color_word(board.to_move)
            script.append((f"play {color} {board.play(random_move(board, rng))}", ""))
            for side in (BLACK, WHITE):
                legal = compress(moves_of(size), board.legal_mask(side).ravel().tolist())
                script.append((f"all_legal {color_word(side)}", " ".join(legal)))
                script.append((f"captures {color_word(side)}", str(board.captures(side))))
            most -= 1
        if most == 0:
            return script
    return script


def finished_game(size: int, rules: str, rng: np.random.Generator) -> Any:
    """A board after a random game in which both sides pass when only their own eyes are left to fill."""
    board = new_board(size, rules)
    while not board.is_over and board.n_moves < 4 * size * size:
        cells, color = board._game.position.board, board._game.to_move
        moves = [move for move in board.legal_moves[:-1] if not is_eye(cells, move.point, color)]
        board.play(moves[int(rng.integers(len(moves)))] if moves else "pass")
    return board


def score_differences(boards: list[Any], option: str) -> list[str]:
    """Boards whose score is not GNU Go's, each after GNU Go's dead stones are taken off.

    Args:
        option: GNU Go's option for the rules.
    """
    commands = []
    for board in boards:
        commands += [f"boardsize {board.size}", "clear_board", "komi 0"]
        commands += [f"play {color_word(color)} {move}" for color, move in board.moves]
        commands += ["final_status_list dead", "final_score"]
    answers = iter(zip(commands, ask(commands, option), strict=True))
    results = [answer.removeprefix("=").strip() for command, answer in answers if command.startswith("final_")]
    found = []
    for board, dead, score in zip(boards, results[::2], results[1::2], strict=True):
        ours, theirs = board.score(dead.split()).black, float(score.replace("B+", "").replace("W+", "-"))
        if ours != theirs:
            found.append(f"{board.rules}: score {ours}, GNU Go {score}, dead {dead.split()}, {board.to_sgf()}")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cases of each kind; in the quick campaign one of each."""
    quick = metafunc.config.option.campaign["quick"]
    cases = [("twin", rules, seed, TWIN_POSITIONS) for seed in range(1 if quick else TWIN_CASES) for rules in RULE_SETS]
    cases += [("count", rules, size, amount) for size, found in GAMES.items() for rules, amount in found.items()]
    seeds = range(1 if quick else GNU_GO_CASES)
    cases += [("gnugo", rules, seed, GNU_GO_POSITIONS) for seed in seeds for rules in GNU_GO_OPTIONS]
    seeds = range(1 if quick else SCORE_CASES)
    cases += [("score", rules, seed, SCORE_GAMES) for seed in seeds for rules in SCORE_RULES]
    metafunc.parametrize(("kind", "rules", "seed", "amount"), cases)


@pytest.mark.skipif(not GNU_GO, reason="GNU Go")
def test_board(kind: str, rules: str, seed: int, amount: int, outcome: Outcome) -> None:
    """Compare the boards of a case."""
    if kind == "count":
        outcome.amount, expected = n_games(new_board(seed, rules), DEPTHS[seed]), amount
        theirs = n_games_of_twin(Twin(seed), RULE_SETS[rules], DEPTHS[seed])
        if not outcome.amount == theirs == expected:
            outcome.faults.append(f"{outcome.amount} games on {seed}x{seed}, {theirs} by the twin, expected {expected}")
    elif kind == "gnugo":
        outcome.faults += compare(gnu_go_script(rules, seed, amount), *GNU_GO_OPTIONS[rules])
    elif kind == "score":
        rng = np.random.default_rng(seed)
        boards = [finished_game(int(rng.choice(SCORE_SIZES)), rules, rng) for _ in range(amount)]
        outcome.faults += score_differences(boards, SCORE_RULES[rules])
    else:
        left, number = amount, 0
        while left > 0:
            size = SMALL[(seed + number) % len(SMALL)]
            done, found = play_beside_twin(size, rules, 1000 * seed + number, left)
            left, number, outcome.faults = left - done, number + 1, outcome.faults + found
