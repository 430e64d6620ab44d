"""Moves before they are chosen, and their priors from logits, against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.go.random import seed_state
from engine.search.priors import (
    GONE,
    NO_MOVE,
    exponential,
    index_of_best,
    is_move,
    likeliest,
    prior_of,
    prior_of_best,
    to_prior_code,
    write_codes,
    write_equal_codes,
)


@given(st.lists(st.one_of(st.integers(0, GONE), st.sampled_from((5, GONE))), min_size=1, max_size=700))
def test_the_likeliest_move_has_the_fewest_steps_and_the_first_of_several_is_taken(steps):
    top = likeliest(np.array(steps, np.uint16))
    assert is_move(top) == (min(steps) != GONE)
    if is_move(top):
        assert index_of_best(top) == steps.index(min(steps))
        assert prior_of_best(top) == prior_of(min(steps))
    assert not is_move(NO_MOVE)


@given(st.floats(1e-13, 1.0))
def test_steps_nearly_keep_a_prior(prior):
    assert prior_of(to_prior_code(-np.log(prior))) == pytest.approx(prior, rel=3e-4)


def test_a_hopeless_move_is_still_a_move():
    assert to_prior_code(1000.0) < GONE
    assert prior_of(to_prior_code(1000.0)) > 0.0


def test_the_exponential_is_exact_to_float32():
    x = np.concatenate([-np.logspace(-6, 1.93, 3000), [0.0]]).astype(np.float32)
    found = np.array([exponential(one) for one in x], np.float64)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(found / exact - 1.0) < 3e-7 + 1e-7 * np.abs(x)).all()
    assert 0.0 <= exponential(np.float32(-200.0)) < 1e-37


def listed_moves(rng, moves: int) -> np.ndarray:
    """Some policy indices in order."""
    return np.sort(rng.choice(moves, rng.integers(1, moves + 1), replace=False)).astype(np.uint16)


@pytest.mark.parametrize("moves", [2, 26, 82, 362, 626])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_ranking_is_a_softmax_over_the_listed_moves(moves, temperature):
    rng = np.random.default_rng(moves)
    listed, logits = listed_moves(rng, moves), rng.normal(0.0, 3.0, moves).astype(np.float32)
    n = len(listed)
    steps = np.zeros(moves, np.uint16)
    write_codes(listed, n, logits, temperature, np.zeros(moves, np.float32), np.zeros(moves, np.float32), steps)
    weights = np.exp(logits[listed].astype(np.float64) / temperature)
    expected = dict(zip(listed.tolist(), weights / weights.sum(), strict=True))
    found = {index: prior_of(few) for index, few in enumerate(steps.tolist()) if few != GONE}
    assert found.keys() == expected.keys()
    for index, prior in found.items():
        assert prior == pytest.approx(expected[index], rel=1e-3, abs=1e-12)


def test_without_any_opinion_priors_are_equal_and_no_place_comes_first():
    listed = np.arange(82, dtype=np.uint16)
    tops = set()
    for seed in range(20):
        steps = np.zeros(82, np.uint16)
        write_equal_codes(listed, 82, seed_state(seed, 0), steps)
        assert [prior_of(few) for few in steps] == pytest.approx([1 / 82] * 82, rel=0.01)
        tops.add(int(index_of_best(likeliest(steps))))
    assert len(tops) > 10
