"""What a move does, told without playing it, against moves played by the slow twin."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reliability.rules_twin import after, chain_and_liberties
from engine.features.common import after_move
from engine.features.keima import new_scratch
from engine.go.geometry import point_at
from engine.system.jit import kernel
from tests.features.twin import random_game


@kernel
def told(board, point, color, most, scratch):
    """``after_move`` is inlined, so only a kernel can call it."""
    return after_move(board, point, color, most, scratch)


@settings(max_examples=60)
@given(st.integers(4, 9), st.integers(0, 120), st.integers(0, 2**32), st.integers(1, 30))
def test_captures_stones_and_liberties_of_every_legal_move(size, moves, seed, most):
    game = random_game(size, moves, seed, suicide=True)
    stones, board, scratch = game.twin.stones, game.position.board, new_scratch(size)
    before = board.buffer.copy()
    for cell in game.legal_cells():
        result, captured, lost = after(stones, size, cell, game.color)
        chain, liberties = chain_and_liberties(result, size, cell)
        expected = (captured, lost or len(chain), 0 if lost else min(len(liberties), most))
        assert told(board, point_at(*cell, size), game.color, most, scratch) == expected
    assert (board.buffer == before).all()
