"""Noise, temperature, forced playouts, pruned targets and sequential halving at the root, against their formulas."""

import math

import numpy as np
import pytest

from engine.go.random import seed_state
from engine.search.backup import complete
from engine.search.leaves import NEW, new_batch
from engine.search.priors import to_prior_code
from engine.search.root_targets import (
    best_candidate,
    cool,
    draw_candidates,
    draw_gamma,
    forced_edge,
    improved_policy,
    improved_value,
    mix_dirichlet,
    next_candidate,
    read_priors,
    temper,
    visit_target,
    write_priors,
)
from engine.search.selection import select
from engine.search.tree import META_ROOT, META_ROOT_VISITS, add_edge, new_tree
from tests.search.tree_tools import give_moves
from tests.search.tree_twin import tuning_of

SIZE = 3
EVERY = np.ones((1, 64), np.uint8)
TUNING = tuning_of(1.0, 0.2, 0.0, 1, virtual_loss=0.0, is_plain=True)


def opened(priors, value=0.0):
    """A tree whose root has these priors by policy index."""
    tree, batch = new_tree(SIZE), new_batch(SIZE, 1)
    assert select(tree, batch, 1, TUNING, EVERY, False) == 1
    assert batch.kind[0] == NEW
    give_moves(batch, 0, {move: int(to_prior_code(-math.log(prior))) for move, prior in priors.items()})
    batch.value[0] = value
    complete(tree, batch, 1, 0.0, True, False)
    return tree


def visited(tree, found):
    """Give the root's first edges, in the order of their priors, visits and mean values."""
    for visits, mean in found:
        edge = add_edge(tree, tree.meta[META_ROOT])
        tree.N_v[edge], tree.W_v[edge] = visits, visits * mean
        tree.meta[META_ROOT_VISITS] += visits


def read(tree):
    priors = np.zeros(SIZE * SIZE + 1)
    read_priors(tree, SIZE, priors)
    return priors


def test_priors_of_edges_and_other_moves_are_read_and_written_alike():
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    add_edge(tree, tree.meta[META_ROOT])
    assert read(tree)[[0, 4, 9]] == pytest.approx([0.5, 0.3, 0.2], abs=3e-4)
    wanted = np.zeros(10)
    wanted[[0, 4, 9]] = 0.1, 0.2, 0.7
    write_priors(tree, wanted, np.zeros(10, np.uint16))
    assert read(tree) == pytest.approx(wanted, abs=3e-4)
    assert tree.edge_prior_mass[0] == pytest.approx(0.1, abs=3e-4)


def test_a_temperature_flattens_priors():
    priors = np.array([0.64, 0.36, 0.0])
    temper(priors, 2.0)
    assert priors == pytest.approx([0.8 / 1.4, 0.6 / 1.4, 0.0])


def test_gamma_variables_have_their_mean_and_variance():
    state = seed_state(3, 1)
    for shape in (0.13, 1.0, 4.0):
        found = np.array([draw_gamma(state, shape) for _ in range(20_000)])
        assert found.mean() == pytest.approx(shape, rel=0.06)
        assert found.var() == pytest.approx(shape, rel=0.12)


def test_dirichlet_noise_is_spread_over_moves_alone():
    state, noise = seed_state(3, 2), np.zeros(4)
    found = []
    for _ in range(4000):
        priors = np.array([0.5, 0.3, 0.0, 0.2])
        mix_dirichlet(priors, 1.0, 6.0, state, noise)
        found.append(priors)
    means, variances = np.mean(found, axis=0), np.var(found, axis=0)
    assert means == pytest.approx([1 / 3, 1 / 3, 0.0, 1 / 3], abs=0.02)
    # Of three parameters of 2: a * (s - a) / (s * s * (s + 1)).
    assert variances[[0, 1, 3]] == pytest.approx([2 * 4 / (36 * 7)] * 3, rel=0.1)
    priors = np.array([0.5, 0.3, 0.0, 0.2])
    mix_dirichlet(priors, 0.25, 6.0, state, noise)
    assert priors.sum() == pytest.approx(1.0)
    assert (priors >= 0.75 * np.array([0.5, 0.3, 0.0, 0.2])).all()


def test_a_visited_move_is_forced_up_to_the_root_of_its_share():
    # Of 50 visits sqrt(2 * P * 50) are forced: 7.1, 5.5, 4.5.
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    visited(tree, [(40, 0.1), (5, -0.5), (5, -0.5)])
    assert tree.move[forced_edge(tree, 2.0)] == tree.point[4]
    assert forced_edge(tree, 0.5) == -1
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    visited(tree, [(49, 0.1)])
    assert forced_edge(tree, 2.0) == -1  # An unvisited move is not forced.


def test_visits_of_a_move_without_a_prior_are_no_part_of_the_target():
    tree, target = opened({0: 0.5, 4: 0.3, 9: 0.2}), np.zeros(10)
    visited(tree, [(40, 0.2), (8, 0.1), (2, -0.9)])
    priors = read(tree)
    priors[0] = 0.0
    assert visit_target(tree, SIZE, TUNING, 0.0, priors, target) == 10
    assert target[[0, 4, 9]].tolist() == [0, 8, 2]


def test_pruning_takes_forced_visits_as_long_as_the_move_stays_worse():
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    visited(tree, [(40, 0.2), (8, 0.1), (2, -0.9)])
    target = np.zeros(10)
    assert visit_target(tree, SIZE, TUNING, 0.0, read(tree), target) == 50
    assert target[[0, 4, 9]].tolist() == [40, 8, 2]
    # By hand: sqrt(50) = 7.071; the best scores 0.2 + 7.071 * 0.5 / 41 = 0.286. The second scores less as long as
    # 7.071 * 0.3 / (1 + n) < 0.186, n > 10.4: none is taken. The third loses sqrt(2 * 0.2 * 50) = 4 of 2: -0.9 + 1.414
    # is more than 0.286 at none, -0.9 + 0.707 less at one; left with one it loses that too.
    assert visit_target(tree, SIZE, TUNING, 2.0, read(tree), target) == 48
    assert target[[0, 4, 9]].tolist() == [40, 8, 0]
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    visited(tree, [(40, 0.2), (8, -0.2), (2, -0.9)])
    # Now 7.071 * 0.3 / (1 + n) < 0.486 from n = 4 on: four of at most five go.
    assert visit_target(tree, SIZE, TUNING, 2.0, read(tree), target) == 44
    assert target[[0, 4, 9]].tolist() == [40, 4, 0]


def test_pruning_counts_points_where_selection_did():
    tuning = TUNING._replace(score_weight=0.5, is_plain=False)
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2})
    visited(tree, [(40, 0.2), (8, 0.1), (2, -0.9)])
    first, target = tree.first_edge[tree.meta[META_ROOT]], np.zeros(10)
    tree.W_lead[first + 1] = 8 * -20.0
    # By hand: the root's lead is -160 / 51 = -3.137, and half of the weight counts at sqrt(10) = 3.162 points. The best
    # is 3.137 points above it: 0.2 + 0.5 * 3.137 / 6.299 + 7.071 * 0.5 / 41 = 0.535. The second is 16.863 below: 0.1 -
    # 0.5 * 16.863 / 20.025 = -0.321, so that it scores less from 7.071 * 0.3 / (1 + n) < 0.856, n = 2, on: five of the
    # at most five that were forced go.
    assert visit_target(tree, SIZE, tuning, 2.0, read(tree), target) == 43
    assert target[[0, 4, 9]].tolist() == [40, 3, 0]


def test_the_improved_policy_completes_what_was_not_visited():
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2}, value=0.4)
    visited(tree, [(6, 0.5), (2, -0.5)])
    priors, target = read(tree), np.zeros(10)
    improved_policy(tree, SIZE, TUNING, priors, 1.25, 0.1, target)
    p = priors[[0, 4, 9]]
    mixed = (0.4 + 8 * (p[0] * 0.5 + p[1] * -0.5) / (p[0] + p[1])) / 9
    logits = np.log(p) / 1.25 + (50 + 6) * 0.1 * (np.array([0.5, -0.5, mixed]) + 1) / 2
    wanted = np.exp(logits) / np.exp(logits).sum()
    assert target[[0, 4, 9]] == pytest.approx(wanted)
    assert target.sum() == pytest.approx(1.0)


def test_the_improved_policy_counts_points():
    tuning = TUNING._replace(score_weight=0.5, is_plain=False)
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2}, value=0.4)
    visited(tree, [(6, 0.5), (2, -0.5)])
    first = tree.first_edge[tree.meta[META_ROOT]]
    tree.W_lead[first], tree.W_lead[first + 1] = 6 * 12.0, 2 * -3.0
    priors, target = read(tree), np.zeros(10)
    improved_policy(tree, SIZE, tuning, priors, 1.0, 0.1, target)
    p, points = priors[[0, 4, 9]], np.array([12.0, -3.0]) - 66.0 / 9
    q = np.array([0.5, -0.5]) + 0.5 * points / (np.abs(points) + math.sqrt(10))
    mixed = (0.4 + 8 * (p[0] * q[0] + p[1] * q[1]) / (p[0] + p[1])) / 9
    logits = np.log(p) + (50 + 6) * 0.1 * (np.array([*q, mixed]) + 1) / 2
    assert target[[0, 4, 9]] == pytest.approx(np.exp(logits) / np.exp(logits).sum())


def test_the_improved_value_is_that_of_the_visited_moves_as_the_improved_policy_plays_them():
    tree = opened({0: 0.5, 4: 0.3, 9: 0.2}, value=0.4)
    visited(tree, [(6, 0.5), (2, -0.5)])
    policy = np.zeros(10)
    policy[[0, 4, 9]] = 0.6, 0.2, 0.2
    assert improved_value(tree, SIZE, policy) == pytest.approx((0.6 * 0.5 - 0.2 * 0.5) / 0.8)
    assert improved_value(opened({0: 0.5, 4: 0.5}, value=0.4), SIZE, policy) == pytest.approx(0.4)


def test_too_few_visits_go_to_the_likeliest_of_the_drawn_moves():
    tree, base, left = opened(dict.fromkeys(range(10), 0.1)), np.zeros(10), np.zeros(10, np.uint8)
    goal = np.zeros(1, np.int64)
    drawn = draw_candidates(tree, read(tree), 1.0, 6, seed_state(5, 1), base, left)
    for _ in range(3):
        tree.N_v[next_candidate(tree, SIZE, TUNING, base, left, drawn, 3, goal, 1.0)] += 1
    visits = np.zeros(10)
    visit_target(tree, SIZE, TUNING, 0.0, read(tree), visits)
    assert set(np.flatnonzero(visits)) == set(base.argsort()[-3:])


@pytest.mark.parametrize("counts_points", [False, True])
def test_halving_gives_every_candidate_its_share_and_leaves_the_best(counts_points):
    """Where points count, the best of moves that win alike is the one that leads by more."""
    tuning = TUNING._replace(score_weight=0.5, is_plain=False) if counts_points else TUNING
    moves = dict.fromkeys(range(10), 0.1)
    tree, base, left, goal = opened(moves), np.zeros(10), np.zeros(10, np.uint8), np.zeros(1, np.int64)
    priors = read(tree)
    drawn = draw_candidates(tree, priors, 1.0, 4, seed_state(5, 1), base, left)
    assert drawn == left.sum() == 4
    candidates = np.flatnonzero(left).tolist()
    value = {move: 0.9 if counts_points or move == candidates[2] else -0.9 for move in candidates}
    lead = {move: 9.0 if move == candidates[2] else -9.0 for move in candidates}
    for _ in range(16):
        edge = next_candidate(tree, SIZE, tuning, base, left, drawn, 16, goal, 1.0)
        move = int(np.flatnonzero(tree.point == tree.move[edge])[0])
        tree.N_v[edge] += 1
        tree.W_v[edge] += value[move]
        tree.W_lead[edge] += lead[move]
        tree.meta[META_ROOT_VISITS] += 1
    visits = np.zeros(10)
    visit_target(tree, SIZE, TUNING, 0.0, read(tree), visits)
    # Two rounds of eight visits: two each for four moves, four each for two.
    assert sorted(visits[candidates].tolist()) == [2, 2, 6, 6]
    assert visits[candidates[2]] == 6
    assert best_candidate(tree, SIZE, tuning, base, left, 1.0) == candidates[2]


def test_cooled_draws_are_as_likely_as_priors_to_a_power_and_look_at_the_same_moves():
    state, base, left = seed_state(5, 3), np.zeros(10), np.zeros(10, np.uint8)
    tree, first, drawn_first = opened({0: 0.6, 4: 0.3, 9: 0.1}), np.zeros(10), np.zeros(10)
    priors = read(tree)
    for _ in range(3000):
        draw_candidates(tree, priors, 1.0, 2, state, base, left)
        drawn_first[base.argmax()] += 1
        drawn = left.copy()
        cool(priors, 1.0, 0.5, base)
        first[base.argmax()] += 1
        assert (left == drawn).all() and np.isneginf(base[priors == 0.0]).all()
    p = priors[[0, 4, 9]]
    # Five standard deviations of a binomial count.
    assert first[[0, 4, 9]] == pytest.approx(3000 * p**2 / (p**2).sum(), abs=5 * math.sqrt(3000 / 4))
    assert drawn_first[[0, 4, 9]] == pytest.approx(3000 * p, abs=5 * math.sqrt(3000 / 4))


def test_candidates_are_drawn_as_likely_as_their_priors():
    state, base, left = seed_state(5, 2), np.zeros(10), np.zeros(10, np.uint8)
    tree, counts = opened({0: 0.6, 4: 0.3, 9: 0.1}), np.zeros(10)
    for _ in range(3000):
        draw_candidates(tree, read(tree), 1.0, 1, state, base, left)
        counts += left
    assert counts[[0, 4, 9]] / 3000 == pytest.approx([0.6, 0.3, 0.1], abs=0.03)
