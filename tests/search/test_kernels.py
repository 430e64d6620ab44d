"""Selection, expansion and backup against a slow plain-Python twin, and what must hold after every batch."""

import numpy as np
import pytest

from engine.search.backup import complete, release
from engine.search.leaves import NEW, new_batch
from engine.search.priors import to_prior_code
from engine.search.selection import Tuning, select
from engine.search.tree import (
    META_FULL,
    META_IN_FLIGHT,
    META_N_NODES,
    META_ROOT_VISITS,
    META_USED_NODES,
    NONE,
    PENDING,
    TERMINAL,
    advance_root,
    clear,
    edge_visits,
    new_tree,
    reserve,
    used_bytes,
)
from engine.search.values import leaders, main_line, node_value
from tests.search.tree_tools import check_at_rest, dump, edges_of, give_moves, root_of, visits_of
from tests.search.tree_twin import BOTH, EVERY, LIMIT, SIZE, Twin, TwinNode, fill, fill_new, position_facts, tuning_of


def grown_tree(rounds: int, k: int, tuning: Tuning, sides=BOTH, flights: int = 1):
    """A tree grown by the kernels on the made-up game, with several batches in flight."""
    tree, flying = new_tree(SIZE), []
    for _ in range(rounds):
        reserve(tree, k, 4096, LIMIT)
        batch = new_batch(SIZE, k)
        count = select(tree, batch, k, tuning, EVERY, False)
        for i in range(count):
            if batch.kind[i] == NEW:
                fill(batch, i)
        flying.append((batch, count))
        if len(flying) == flights or count == 0:
            complete(tree, *flying.pop(0), tuning.rollout_weight, *sides)
    for one in flying:
        complete(tree, *one, tuning.rollout_weight, *sides)
    return tree


def compare(tree, node: int, twin: TwinNode) -> None:
    """Both trees hold the same statistics from here down."""
    for edge in edges_of(tree, node):
        move = int(tree.move[edge])
        assert tree.N_v[edge] == twin.n_v.get(move, 0)
        assert tree.N_r[edge] == twin.n_r.get(move, 0)
        assert tree.W_v[edge] == pytest.approx(twin.w_v.get(move, 0.0), abs=1e-5)
        assert tree.W_r[edge] == pytest.approx(twin.w_r.get(move, 0.0))
        if tree.child[edge] != NONE:
            compare(tree, int(tree.child[edge]), twin.children[move])


@pytest.mark.parametrize(
    ("tuning", "sides", "k"),
    [
        (tuning_of(1.4, 0.2, 0.0, 1), (True, False), 1),
        (tuning_of(1.4, 0.2, 0.0, 1), (True, False), 4),
        (tuning_of(1.4, 0.2, 0.0, 1, is_plain=True), (True, False), 4),
        (tuning_of(2.0, 0.4, 0.0, 3, is_plain=True), (True, False), 3),
        (tuning_of(1.4, 0.2, 0.0, 1, is_plain=True, virtual_loss=0.0), (True, False), 4),
        (tuning_of(1.4, 0.2, 0.5, 1, virtual_loss=0.0), (True, True), 4),
        (tuning_of(1.4, 0.2, 0.5, 3), (True, True), 4),
        (tuning_of(5.0, 0.0, 1.0, 1), (True, True), 3),
        (tuning_of(0.8, 0.5, 1.0, 2), (False, True), 2),
        (tuning_of(1.4, 0.2, 0.3, 0), (True, True), 2),
        (tuning_of(1.0, 0.2, 0.0, 1, wide_root_noise=0.3, is_plain=True), (True, False), 4),
        (tuning_of(1.0, 0.2, 0.5, 2, wide_root_noise=1.0), (True, True), 3),
        (tuning_of(1.4, 0.2, 0.3, 2, score_weight=0.3), (True, True), 3),
        (tuning_of(1.4, 0.2, 0.0, 1, score_weight=0.7), (True, False), 4),
        (tuning_of(1.4, 0.2, 0.5, 2, score_weight=0.7), (True, True), 3),
        (tuning_of(1.4, 0.2, 0.5, 2, expand_after=3), (True, True), 1),
        (tuning_of(5.0, 0.0, 0.5, 3, expand_after=3, fpu_base=0.0), (True, True), 4),
        (tuning_of(2.0, 0.0, 1.0, 1, expand_after=2), (True, True), 3),
    ],
)
def test_the_kernels_grow_the_twins_tree(tuning, sides, k):
    tree, twin = new_tree(SIZE), Twin(tuning, *sides)
    batch = new_batch(SIZE, k)
    for _ in range(120):
        reserve(tree, k, 4096, LIMIT)
        count = select(tree, batch, k, tuning, EVERY, False)
        leaves = twin.select(k)
        paths = [tuple(int(m) for m in batch.move[i, : batch.depth[i]]) for i in range(count)]
        assert paths == [tuple(move for _, move in path) for path, _, _ in leaves]
        assert tree.meta[META_IN_FLIGHT] == count
        fill_new(batch, count)
        complete(tree, batch, count, tuning.rollout_weight, *sides)
        twin.complete(leaves)
    compare(tree, root_of(tree), twin.root)
    check_at_rest(tree, rolled=tuning.expand_after > 0)


def test_backup_removes_virtual_loss():
    check_at_rest(grown_tree(200, 4, tuning_of(1.4, 0.2, 0.5, 3), flights=3))


def test_release_leaves_no_trace():
    tuning = tuning_of(1.4, 0.2, 0.5, 3)
    tree = grown_tree(50, 4, tuning)
    visits = [int(edge_visits(tree, edge)) for edge in edges_of(tree, root_of(tree))]
    batch = new_batch(SIZE, 6)
    reserve(tree, 6, 4096, LIMIT)
    count = select(tree, batch, 6, tuning, EVERY, False)
    assert count > 0 and tree.meta[META_IN_FLIGHT] == count
    release(tree, batch, count)
    assert tree.meta[META_IN_FLIGHT] == 0
    assert (tree.state[: tree.meta[META_N_NODES]] != PENDING).all()
    for node in range(int(tree.meta[META_N_NODES])):
        assert all(tree.in_flight[edge] == 0 for edge in edges_of(tree, node))
    assert visits == [int(edge_visits(tree, edge)) for edge in edges_of(tree, root_of(tree))][: len(visits)]


def test_a_batch_ends_at_the_first_collision():
    tree, batch = new_tree(SIZE), new_batch(SIZE, 4)
    reserve(tree, 8, 4096, LIMIT)
    tuning = tuning_of(1.4, 0.2, 0.0, 1)
    assert select(tree, batch, 4, tuning, EVERY, False) == 1, "only the root is there"
    assert select(tree, new_batch(SIZE, 4), 4, tuning, EVERY, False) == 0
    assert tree.meta[META_IN_FLIGHT] == 1


def test_values_change_sides_only_in_backup():
    """A reply that wins for the opponent counts as a loss at the edge of the move before."""
    tree, batch, tuning = new_tree(SIZE), new_batch(SIZE, 1), tuning_of(1.4, 0.2, 0.0, 1)
    for value in (0.5, -0.25, 1.0):
        reserve(tree, 1, 4096, LIMIT)
        assert select(tree, batch, 1, tuning, EVERY, False) == 1
        batch.value[0], batch.lead[0] = value, 4.0 * value
        give_moves(batch, 0, {4: to_prior_code(0.0)})
        complete(tree, batch, 1, tuning.rollout_weight, True, False)
    first = int(tree.first_edge[root_of(tree)])
    second = int(tree.first_edge[tree.child[first]])
    assert tree.W_v[second] == -1.0 and tree.N_v[second] == 1
    assert tree.W_v[first] == 0.25 + 1.0 and tree.N_v[first] == 2
    assert tree.W_lead[first] == 5.0
    assert node_value(tree, root_of(tree), 0.0) == pytest.approx((0.5 + 0.25 + 1.0) / 3)


def test_moves_that_the_filter_leaves_out_are_never_chosen_at_the_root():
    tuning = tuning_of(1.4, 0.2, 0.0, 1)
    moves = [move for move, _ in position_facts(()).moves]
    move_filter = np.zeros((1, 64), np.uint8)
    move_filter[0, [moves[2], moves[-1]]] = 1
    tree, batch = new_tree(SIZE), new_batch(SIZE, 3)
    for _ in range(60):
        reserve(tree, 3, 4096, LIMIT)
        count = select(tree, batch, 3, tuning, move_filter, False)
        for i in range(count):
            if batch.kind[i] == NEW:
                fill(batch, i)
        complete(tree, batch, count, tuning.rollout_weight, True, False)
    visited = {int(tree.move[edge]) for edge in edges_of(tree, root_of(tree)) if edge_visits(tree, edge)}
    assert visited == {moves[2], moves[-1]}
    check_at_rest(tree)
    assert select(tree, batch, 3, tuning, np.zeros((1, 64), np.uint8), False) == 0


def test_leaders_and_main_line_follow_the_visits():
    tree = grown_tree(150, 2, tuning_of(1.4, 0.2, 0.0, 1), (True, False))
    visits = sorted((int(edge_visits(tree, edge)) for edge in edges_of(tree, root_of(tree))), reverse=True)
    assert leaders(tree, 0.0, 0.25)[:2] == (visits[0], visits[1])
    line, counts = np.zeros(4, np.int16), np.zeros(4, np.int32)
    length = main_line(tree, root_of(tree), line, counts)
    best = max(edges_of(tree, root_of(tree)), key=lambda edge: edge_visits(tree, edge))
    assert length == 4 and line[0] == tree.move[best]
    assert counts[0] == visits[0] and counts.tolist() == sorted(counts.tolist(), reverse=True)


def best_edge(tree) -> int:
    """The most visited edge at the root."""
    return max(edges_of(tree, root_of(tree)), key=lambda edge: edge_visits(tree, edge))


def grow(tree, rounds: int, k: int, tuning: Tuning, path=(), limit: int = LIMIT) -> None:
    """Go on from where the game is after ``path``, network values only."""
    batch = new_batch(SIZE, k)
    for _ in range(rounds):
        reserve(tree, k, 256, limit)
        count = select(tree, batch, k, tuning, EVERY, False)
        for i in range(count):
            if batch.kind[i] == NEW:
                fill(batch, i, path)
        complete(tree, batch, count, tuning.rollout_weight, True, False)


def test_the_chosen_subtree_is_kept_whole_and_the_rest_given_back():
    tree = grown_tree(400, 4, tuning_of(1.4, 0.2, 0.5, 1))
    best = best_edge(tree)
    node, visits = int(tree.child[best]), int(edge_visits(tree, best))
    before, nodes = dump(tree, SIZE, node), int(tree.meta[META_USED_NODES])
    advance_root(tree, best)
    assert root_of(tree) == node and tree.meta[META_ROOT_VISITS] == visits
    assert dump(tree, SIZE) == before
    check_at_rest(tree)
    assert tree.meta[META_USED_NODES] < nodes


def test_a_kept_subtree_grows_on_the_same_whichever_rows_it_uses_again():
    """Which rows are used again, at once or one by one, changes row numbers only."""
    tuning = tuning_of(1.4, 0.2, 0.0, 1)
    tree, copy = (grown_tree(300, 4, tuning, (True, False)) for _ in range(2))
    move = int(tree.move[best_edge(tree)])
    for one in (tree, copy):
        advance_root(one, best_edge(one))
    check_at_rest(tree)
    for _ in range(20):
        for one in (tree, copy):
            grow(one, 10, 4, tuning, (move,))
        assert dump(tree, SIZE) == dump(copy, SIZE)
    for one in (tree, copy):
        check_at_rest(one)


def test_rows_are_used_again_so_that_a_long_game_needs_no_more_memory():
    tuning = tuning_of(1.4, 0.2, 0.0, 1)
    tree, path, used = new_tree(SIZE), (), []
    for _ in range(60):
        grow(tree, 100, 4, tuning, path)
        check_at_rest(tree) if len(path) % 7 == 0 else None
        used.append(used_bytes(tree))
        best = best_edge(tree)
        if tree.state[tree.child[best]] == TERMINAL:
            clear(tree)
            path = ()
        else:
            path = (*path, int(tree.move[best]))
            advance_root(tree, best)
    assert max(used[30:]) <= 1.1 * max(used[:30])


def test_a_full_tree_refuses_rows_and_stays_sound():
    tuning = tuning_of(20.0, 0.2, 0.0, 1)
    tree, batch = new_tree(SIZE), new_batch(SIZE, 4)
    for _ in range(2000):
        count = select(tree, batch, 4, tuning, EVERY, False)
        for i in range(count):
            if batch.kind[i] == NEW:
                fill(batch, i)
        complete(tree, batch, count, tuning.rollout_weight, True, False)
        if count == 0 and tree.meta[META_FULL]:
            break
    assert tree.meta[META_FULL] == 1
    assert tree.meta[META_N_NODES] <= len(tree.state)
    check_at_rest(tree)
    clear(tree)
    assert tree.meta[META_FULL] == 0 and tree.meta[META_N_NODES] == 1


def test_a_fixed_amount_of_work_grows_the_golden_tree():
    """Vertices and visits of a whole tree; any change of selection or backup shows here."""
    tree = grown_tree(30, 2, tuning_of(1.0, 0.2, 0.5, 1), flights=2)
    assert visits_of(dump(tree, SIZE)) == GOLDEN


GOLDEN = [
    (
        "B1",
        31,
        [
            (
                "C3",
                9,
                [
                    ("C3", 3, [("B3", 2, [("A1", 1, [])])]),
                    ("B2", 2, [("C3", 1, [])]),
                    ("A1", 3, [("A3", 2, [("B1", 1, [])])]),
                ],
            ),
            (
                "A2",
                21,
                [
                    ("B2", 5, [("A1", 4, [("A1", 1, []), ("B2", 1, []), ("C1", 1, [])])]),
                    ("A2", 3, [("B1", 1, []), ("A2", 1, [])]),
                    ("C2", 4, [("pass", 3, [("A2", 2, [])])]),
                    ("A1", 8, [("A2", 5, [("A3", 4, [])]), ("C2", 1, []), ("B3", 1, [])]),
                ],
            ),
        ],
    ),
    ("pass", 5, [("C1", 2, [("B3", 1, [])]), ("B3", 1, []), ("A1", 1, [])]),
    ("B2", 1, []),
    ("A2", 1, []),
    ("A3", 1, []),
    ("C1", 2, [("A3", 1, [])]),
    ("B3", 1, []),
    (
        "A1",
        14,
        [
            ("C1", 7, [("C1", 5, [("B3", 2, [("C1", 1, [])]), ("C3", 2, [("B3", 1, [])])]), ("B2", 1, [])]),
            ("pass", 4, [("C2", 3, [("B3", 2, [("C2", 1, [])])])]),
            ("B1", 2, [("A2", 1, [])]),
        ],
    ),
]
