"""Splitting batches: every position is evaluated once, in order, and only the last batch may be smaller."""

from hypothesis import given
from hypothesis import strategies as st

from engine.inference.device import Rows, split
from engine.inference.slots import Request


def requests_of(counts):
    """Requests with these numbers of filled slots."""
    requests = [Request(2, count, 1, 0) for count in counts]
    for request in requests:
        request.count = len(request.planes)
    return requests


def whole(requests):
    """All slots of each request."""
    return [Rows(request, 0, request.count) for request in requests]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 12))
def test_splitting_keeps_order_and_fills_batches(counts, limit):
    requests = requests_of(counts)
    batches = split(whole(requests), limit)
    slots = [(id(rows.request), row) for batch in batches for rows in batch for row in range(rows.start, rows.stop)]
    assert slots == [(id(request), row) for request in requests for row in range(request.count)]
    counted = [sum(rows.stop - rows.start for rows in batch) for batch in batches]
    assert all(count == limit for count in counted[:-1])
    assert 0 < counted[-1] <= limit


def test_a_batch_can_be_split_again():
    halves = split(split(whole(requests_of([3, 5])), 8)[0], 4)
    assert [[(rows.start, rows.stop) for rows in half] for half in halves] == [[(0, 3), (0, 1)], [(1, 5)]]
