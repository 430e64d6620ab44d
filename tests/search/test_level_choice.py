"""The weights of a level's moves against a slow twin, the moves that no person plays, and the draw."""

import math
import random

import numpy as np
import pytest

from bench.reliability.rules_twin import after, chain_and_liberties, flood, neighbours
from engine.go.diagram import parse
from engine.go.geometry import BLACK, EMPTY, WHITE, from_vertex, index_of
from engine.go.position import META_TO_MOVE, begin, is_legal_move, new_position, play_move
from engine.go.random import seed_state
from engine.search import level_choice
from engine.search.level_choice import Level, draw_by_level, new_level_scratch, weigh_moves

WEAK = Level(visits=1, temperature=3.0, least=0.0, points=1.0, locality=1.0)


def is_absurd(stones, size, cell, color, n_moves, last):
    """Whether no person plays the move; ``last`` is the cell of the opponent's last move, or None."""
    result, captured, _ = after(stones, size, cell, color)
    liberties = chain_and_liberties(result, size, cell)[1] if cell in result else set()
    if not captured and len(liberties) < 2:
        return True
    owners = {stones[one] for one in flood(stones, size, cell)[1]}
    if n_moves > 2 and owners == {color}:
        return not captured
    line = 1 + min(*cell, size - 1 - cell[0], size - 1 - cell[1])
    far = last is None or math.dist(cell, last) > level_choice.NEAR
    return line <= level_choice.EDGE and n_moves < level_choice.OPENING * size**2 and far


def twin(position, priors, losses, level):
    """The weights of all moves, from a dict of stones."""
    size, color = int(position.board.meta[0]), int(position.meta[META_TO_MOVE])
    cells = [(row, column) for row in range(size) for column in range(size)]
    on_board = {cell: int(position.board.color[(cell[0] + 1) * (size + 1) + cell[1] + 1]) for cell in cells}
    stones = {cell: found for cell, found in on_board.items() if found != EMPTY}
    worth = [prior * math.exp(-loss / level.points) for prior, loss in zip(priors, losses, strict=True)]
    best, total, weights = max(range(len(worth)), key=worth.__getitem__), sum(worth), [0.0] * len(worth)
    if best == size * size or worth[best] >= level_choice.SURE * total:
        weights[best] = 1.0
        return weights
    n_moves = int(position.meta[0])
    point = int(position.moves[n_moves - 1]) if n_moves else 0
    last = cells[index_of(point, size)] if point else None
    for index, cell in enumerate(cells):
        if worth[index] <= worth[-1] or worth[index] < level.least * worth[best]:
            continue
        is_meant = index == best or worth[index] >= level_choice.CLEAR * total
        if not is_meant and is_absurd(stones, size, cell, color, n_moves, last):
            continue
        result, captured, _ = after(stones, size, cell, color)
        own = [chain_and_liberties(stones, size, one) for one in neighbours(size, cell) if stones.get(one) == color]
        saves = cell in result and len(chain_and_liberties(result, size, cell)[1]) > 1
        saved = max((len(chain) for chain, liberties in own if len(liberties) == 1), default=0) if saves else 0
        near = math.exp(-0.5 * (math.dist(cell, last) / level_choice.NEAR) ** 2) if last else 0.0
        weights[index] = (worth[index] / worth[best]) ** (1.0 / level.temperature)
        weights[index] *= (1.0 + level.locality * near) * (1.0 + level_choice.EAGER * (captured + saved))
    return weights


def scattered(seed, size=7):
    """A position after random legal moves."""
    drawn, position = random.Random(seed), new_position(size, 200)
    for _ in range(drawn.randrange(60)):
        color = int(position.meta[META_TO_MOVE])
        points = [point for point in legal(position) if drawn.random() < 0.98]
        play_move(position, drawn.choice(points) if points else 0, color)
    return position


def legal(position):
    size, color = int(position.board.meta[0]), int(position.meta[META_TO_MOVE])
    points = [(row + 1) * (size + 1) + column + 1 for row in range(size) for column in range(size)]
    return [point for point in points if is_legal_move(position, point, color)]


def given(position, seed, searched):
    """Random priors of the legal moves and the pass, some far larger than others, and random losses."""
    drawn, size = np.random.default_rng(seed), int(position.board.meta[0])
    priors, losses = np.zeros(size * size + 1), np.zeros(size * size + 1)
    indices = [index_of(point, size) for point in legal(position)]
    priors[indices] = drawn.dirichlet(np.full(len(indices), 0.4)) * 0.98 if indices else 0.0
    priors[-1] = 0.02
    if searched:
        losses[:] = np.where(drawn.random(len(losses)) < 0.3, drawn.exponential(2.0, len(losses)), math.inf)
        losses[-1] = 0.0
    return priors, losses


@pytest.mark.parametrize("searched", [False, True])
def test_weights_are_those_of_the_twin(searched):
    for seed in range(60):
        position = scattered(seed)
        priors, losses = given(position, seed, searched)
        level = WEAK._replace(least=0.02 if seed % 2 else 0.0, points=0.5 + seed % 3)
        scratch = new_level_scratch(7)
        # What an earlier draw left must not matter: a pass that it chose once stayed the choice of all later games.
        scratch.weights[:] = 1.0
        weigh_moves(position, priors, losses, level, scratch)
        assert scratch.weights.tolist() == pytest.approx(twin(position, priors, losses, level)), seed


def weighed(text, to_move, vertices, level=WEAK, last=None):
    """The weights of some moves, whose priors are alike, beside a better one at the first vertex."""
    board = parse(text).board
    size = int(board.meta[0])
    position = new_position(size, 300)
    position.board.buffer[:] = board.buffer
    begin(position, to_move)
    position.meta[0] = 40
    position.moves[39] = from_vertex(last, size) if last else 0
    priors, scratch = np.zeros(size * size + 1), new_level_scratch(size)
    for vertex in vertices:
        priors[index_of(from_vertex(vertex, size), size)] = 0.1
    priors[index_of(from_vertex(vertices[0], size), size)] = 0.2
    weigh_moves(position, priors, np.zeros(len(priors)), level, scratch)
    return {vertex: scratch.weights[index_of(from_vertex(vertex, size), size)] for vertex in vertices}


BOARD = """
    . X . X . . .
    X X X X . O .
    . X O O O O .
    . . . . . . .
    . O X . . . .
    . . O O . . .
    . . . . . . .
"""


def test_nobody_fills_his_eye_or_plays_into_atari():
    weights = weighed(BOARD, BLACK, ("E4", "A7", "C7", "D3", "F2", "G3", "B4"))
    assert [vertex for vertex, weight in weights.items() if not weight] == ["A7", "C7"]
    weights = weighed(BOARD, BLACK, ("E4", "E7", "A5", "G7", "G5", "A2", "A1"), WEAK)
    assert weights["G5"] > 0.0


def test_a_move_that_the_network_means_may_be_absurd():
    assert weighed(BOARD, BLACK, ("A7", "E4", "F2", "B4"))["A7"] == 1.0


def test_answers_are_near_and_captures_tempt():
    weights = weighed(BOARD, BLACK, ("E1", "D4", "G3", "A4"), last="C4")
    assert weights["D4"] > weights["G3"]
    board = "\n".join([". . . . . . .", ". O X . . . .", ". O X X . . ."] + [". O O O . . ."] + [". . . . . . ."] * 3)
    weights = weighed(board.replace(". O X . .", "O X X . ."), WHITE, ("F2", "G4", "B1"), WEAK._replace(locality=0.0))
    assert weights["G4"] == weights["B1"]


def test_a_forced_answer_is_given_at_every_level():
    position, scratch = new_position(7, 100), new_level_scratch(7)
    priors = np.full(50, 0.15 / 49)
    priors[24] = 0.85
    for seed in range(20):
        found = draw_by_level(
            position, priors, np.zeros(50), WEAK._replace(temperature=9.0), scratch, seed_state(seed, 0)
        )
        assert found == 24


def test_a_pass_is_played_only_if_nothing_is_worth_more():
    position, scratch = new_position(7, 100), new_level_scratch(7)
    priors = np.full(50, 0.5 / 49)
    priors[49] = 0.5
    assert draw_by_level(position, priors, np.zeros(50), WEAK, scratch, seed_state(1, 0)) == 49
    priors[[16, 18]], priors[49] = 0.55 / 2, 0.2
    found = {draw_by_level(position, priors, np.zeros(50), WEAK, scratch, seed_state(seed, 0)) for seed in range(40)}
    # The other moves are worth less than the pass.
    assert found == {16, 18}


def test_moves_are_drawn_by_their_weights():
    position, scratch = new_position(7, 100), new_level_scratch(7)
    priors = np.zeros(50)
    priors[[16, 18, 30]] = 0.5, 0.3, 0.2
    level, state = Level(visits=1, temperature=2.0), seed_state(3, 0)
    drawn = [draw_by_level(position, priors, np.zeros(50), level, scratch, state) for _ in range(4000)]
    roots = np.sqrt([0.5, 0.3, 0.2])
    shares = [drawn.count(index) / 4000 for index in (16, 18, 30)]
    assert shares == pytest.approx((roots / roots.sum()).tolist(), abs=0.03)
