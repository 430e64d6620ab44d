"""Cutting batches: every position travels once, in order, and batches are as full as may be."""

from hypothesis import given
from hypothesis import strategies as st

from engine.inference.device import Piece, cut, positions_of
from engine.inference.slots import Request


def requests_of(counts):
    """Requests with so many filled slots."""
    requests = [Request(2, count, 1, 0) for count in counts]
    for request in requests:
        request.count = len(request.planes)
    return requests


def whole(requests):
    """A piece a request."""
    return [Piece(request, 0, request.count) for request in requests]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 12))
def test_cutting_keeps_order_and_fills_batches(counts, limit):
    requests = requests_of(counts)
    batches = cut(whole(requests), limit)
    slots = [(id(piece.request), row) for batch in batches for piece in batch for row in range(piece.start, piece.stop)]
    assert slots == [(id(request), row) for request in requests for row in range(request.count)]
    assert all(positions_of(batch) == limit for batch in batches[:-1])
    assert 0 < positions_of(batches[-1]) <= limit


def test_a_batch_can_be_cut_again():
    halves = cut(cut(whole(requests_of([3, 5])), 8)[0], 4)
    assert [[(piece.start, piece.stop) for piece in half] for half in halves] == [[(0, 3), (0, 1)], [(1, 5)]]
