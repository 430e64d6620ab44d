"""Heaps of candidates, and priors from logits, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.rollout.random import seed_state
from engine.search.candidates import candidate_point, candidate_prior, make_heap, pack_candidate, take_top
from engine.search.priors import exponential, rank, rank_evenly


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=70), st.integers(0, 5))
def test_a_heap_gives_its_values_back_in_order(values, start):
    array = np.array([7] * start + values, np.uint32)
    make_heap(array, start, len(values))
    assert [int(take_top(array, start, n)) for n in range(len(values), 0, -1)] == sorted(values)
    assert array[:start].tolist() == [7] * start


@settings(deadline=None)
@given(st.floats(1e-13, 1.0), st.integers(0, 728))
def test_a_candidate_keeps_its_point_and_nearly_its_prior(prior, point):
    packed = np.uint32(pack_candidate(-np.log(prior), point))
    assert candidate_point(packed) == point
    assert candidate_prior(packed) == pytest.approx(prior, rel=3e-4)


def test_the_exponential_is_exact_to_float32():
    x = np.concatenate([-np.logspace(-6, 1.93, 3000), [0.0]]).astype(np.float32)
    found = np.array([exponential(one) for one in x], np.float64)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(found / exact - 1.0) < 3e-7 + 1e-7 * np.abs(x)).all()
    assert 0.0 <= exponential(np.float32(-200.0)) < 1e-37


def listed_moves(rng, moves: int) -> np.ndarray:
    """Some policy indices in order, each with a point made from it."""
    chosen = np.sort(rng.choice(moves, rng.integers(1, moves + 1), replace=False)).astype(np.uint32)
    return (chosen << 16) | (chosen + 20)


@pytest.mark.parametrize("moves", [2, 26, 82, 362, 626])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_ranking_is_a_softmax_over_the_listed_moves(moves, temperature):
    rng = np.random.default_rng(moves)
    listed, logits = listed_moves(rng, moves), rng.normal(0.0, 3.0, moves).astype(np.float32)
    n = len(listed)
    candidates = np.zeros(moves, np.uint32)
    rank(listed, n, logits, temperature, np.zeros(moves, np.float32), np.zeros(moves, np.float32), candidates)
    weights = np.exp(logits[listed >> 16].astype(np.float64) / temperature)
    expected = dict(zip((listed & 0xFFFF).tolist(), weights / weights.sum(), strict=True))
    found = {int(candidate_point(one)): float(candidate_prior(one)) for one in candidates[:n]}
    assert found.keys() == expected.keys()
    for point, prior in found.items():
        assert prior == pytest.approx(expected[point], rel=1e-3, abs=1e-12)
    assert all(candidates[(i - 1) // 2] <= candidates[i] for i in range(1, n))


def test_without_any_opinion_priors_are_equal_and_no_place_comes_first():
    listed = (np.arange(82, dtype=np.uint32) << 16) | np.arange(20, 102, dtype=np.uint32)
    tops = set()
    for seed in range(20):
        candidates = np.zeros(82, np.uint32)
        rank_evenly(listed, 82, seed_state(seed, 0), candidates)
        assert [float(candidate_prior(one)) for one in candidates] == pytest.approx([1 / 82] * 82, rel=0.01)
        tops.add(int(candidate_point(candidates[0])))
    assert len(tops) > 10
