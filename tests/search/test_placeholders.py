"""Nodes that open with placeholder priors while the network thinks."""

import math

import pytest

from engine.go.geometry import index_of, point_of
from engine.search.alphago_2016 import expand_with_placeholders
from engine.search.backup import complete, release
from engine.search.leaves import NEW, new_batch
from engine.search.priors import to_prior_code
from engine.search.selection import select
from engine.search.tree import AWAITED, EXPANDED, PROVISIONAL, new_tree
from engine.search.values import node_value
from tests.search.tree_tools import check_at_rest, give_moves, moves_of, root_of
from tests.search.tree_twin import BOTH, EVERY, POINTS, SIZE, fill, tuning_of

TUNING = tuning_of(1.4, 0.2, 0.5, 1)


def test_playouts_pass_through_a_node_that_awaits_the_network():
    """One root move: the second playout has to go through the first one's leaf, or collide."""
    tree, batch, second = new_tree(SIZE), new_batch(SIZE, 1), new_batch(SIZE, 1)
    assert select(tree, batch, 1, TUNING, EVERY, False) == 1
    only = POINTS[1]
    give_moves(batch, 0, {index_of(only, SIZE): to_prior_code(0.0)})
    complete(tree, batch, 1, TUNING.rollout_weight, *BOTH)
    assert select(tree, batch, 1, TUNING, EVERY, False) == 1
    assert select(tree, second, 1, TUNING, EVERY, False) == 0
    batch.request_slot[0] = 0
    give_moves(
        batch, 0, {0: to_prior_code(-math.log(0.5)), 1: to_prior_code(-math.log(0.3)), 2: to_prior_code(-math.log(0.2))}
    )
    expand_with_placeholders(tree, batch, 1, 0.5)
    leaf = batch.leaf[0]
    assert tree.state[leaf] == AWAITED
    assert tree.value[leaf] == pytest.approx(-node_value(tree, root_of(tree), 0.5))
    assert select(tree, second, 1, TUNING, EVERY, False) == 1
    first, other, third = (point_of(index, SIZE) for index in range(3))
    assert second.move[0, :2].tolist() == [only, first]
    give_moves(
        batch, 0, {0: to_prior_code(-math.log(0.3)), 1: to_prior_code(-math.log(0.1)), 2: to_prior_code(-math.log(0.6))}
    )
    batch.value[0] = batch.rollout[0] = 0.25
    complete(tree, batch, 1, TUNING.rollout_weight, *BOTH)
    assert tree.state[leaf] == EXPANDED
    assert tree.value[leaf] == 0.25
    assert [point for point, _ in moves_of(tree, leaf)] == [first, third, other], "a move with an edge keeps its place"
    assert tree.P[tree.first_edge[leaf]] == pytest.approx(0.3, rel=1e-3)
    release(tree, second, 1)
    check_at_rest(tree, placeholders=True)


def test_a_node_released_with_placeholders_is_evaluated_later():
    tree, batch = new_tree(SIZE), new_batch(SIZE, 1)
    select(tree, batch, 1, TUNING, EVERY, False)
    fill(batch, 0)
    complete(tree, batch, 1, TUNING.rollout_weight, *BOTH)
    select(tree, batch, 1, TUNING, EVERY, False)
    fill(batch, 0)
    batch.request_slot[0] = 0
    expand_with_placeholders(tree, batch, 1, 0.5)
    leaf = batch.leaf[0]
    release(tree, batch, 1)
    assert tree.state[leaf] == PROVISIONAL
    check_at_rest(tree, placeholders=True)
    assert select(tree, batch, 1, TUNING, EVERY, False) == 1
    assert batch.leaf[0] == leaf and batch.kind[0] == NEW and tree.state[leaf] == AWAITED
    fill(batch, 0)
    complete(tree, batch, 1, TUNING.rollout_weight, *BOTH)
    assert tree.state[leaf] == EXPANDED
    check_at_rest(tree, placeholders=True)
