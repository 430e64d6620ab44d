"""What self-play does to a root and learns from it: exploration that is forced, and policy targets without it.

By PUCT the target is the visits; by sequential halving it is the improved policy, softmax(log prior / T + sigma(Q)), Q
completed and as PUCT compares moves, the score's part included (:func:`engine.search.selection.edge_worth`); below the
root PUCT selects. One leaf at a time is in flight. Threads: the tree is the caller's alone.

Sources: AlphaGo Zero (Methods, "Self-play": noise at the root, moves by visit counts); Wu, "Accelerating Self-Play
Learning in Go", 2019 (arXiv 1902.10565), section 3.2: forced playouts and policy target pruning; appendix D: the root's
policy temperature; Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022, sections 3 and 4 and
appendix D (v_mix, sigma): halving.
"""

import math

import numpy as np

from engine.go.geometry import index_of, point_of
from engine.go.random import next_unit
from engine.search.priors import GONE, is_move, prior_of, to_prior_code
from engine.search.selection import edge_worth, exploration, puct, root_stats
from engine.search.tree import META_ROOT, META_ROOT_VISITS, NONE, add_edge, follow, replace_priors
from engine.search.values import edge_mean, node_value
from engine.system.jit import kernel

VISIT_OFFSET = 50.0
"""c_visit of the paper"""


@kernel
def read_priors(tree, size, priors):
    """The priors of the root, which must be expanded: float64[N*N + 1] in policy order, overwritten; 0 = no move."""
    root = tree.meta[META_ROOT]
    for index in range(len(priors)):
        code = tree.prior_codes[root, index]
        priors[index] = 0.0 if code == GONE else prior_of(code)
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        priors[index_of(np.int64(tree.move[edge]), size)] = tree.P[edge]


@kernel
def write_priors(tree, priors, codes):
    """Give the root's moves their priors anew; uint16[N*N + 1] is overwritten. See :func:`read_priors`."""
    for index in range(len(priors)):
        codes[index] = GONE if priors[index] <= 0.0 else to_prior_code(-math.log(priors[index]))
    replace_priors(tree, tree.meta[META_ROOT], codes)


@kernel
def temper(priors, temperature):
    """P ** (1 / temperature), normalised, in place: float64[A]."""
    total = 0.0
    for index in range(len(priors)):
        if priors[index] > 0.0:
            priors[index] = priors[index] ** (1.0 / temperature)
            total += priors[index]
    for index in range(len(priors)):
        priors[index] /= total


@kernel
def _normal(state):
    """A standard normal variable, by Box and Muller."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_unit(state)))
    return radius * math.cos(2.0 * math.pi * next_unit(state))


@kernel
def draw_gamma(state, shape):
    """A gamma variable of scale 1. Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Args:
        state: uint64[4], random state.
        shape: above 0; below 1 by their remark on such shapes.
    """
    factor = 1.0
    if shape < 1.0:
        factor = (1.0 - next_unit(state)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(state)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(1.0 - next_unit(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return factor * d * v


@kernel
def mix_dirichlet(priors, share, concentration, state, noise):
    """P = (1 - share) * P + share * noise, in place, over the moves that have a prior.

    Args:
        priors: float64[A].
        concentration: sum of the noise's parameters, which are the same for every move.
        state: uint64[4], random state.
        noise: float64[A], overwritten.
    """
    count = 0
    for index in range(len(priors)):
        count += priors[index] > 0.0
    total = 0.0
    for index in range(len(priors)):
        noise[index] = draw_gamma(state, concentration / count) if priors[index] > 0.0 else 0.0
        total += noise[index]
    if total <= 0.0:
        return
    for index in range(len(priors)):
        priors[index] = (1.0 - share) * priors[index] + share * noise[index] / total


@kernel
def _forced_visits(tree, edge, factor):
    """sqrt(factor * P * N): visits that an edge of the root is forced to have once it has one."""
    return math.sqrt(factor * tree.P[edge] * (tree.meta[META_ROOT_VISITS] - 1))


@kernel
def forced_edge(tree, factor):
    """The first edge of the root that has visits, but fewer than are forced; NONE if there is none."""
    root = tree.meta[META_ROOT]
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        if 0 < tree.N_v[edge] < _forced_visits(tree, edge, factor):
            return edge
    return NONE


@kernel
def visit_target(tree, size, tuning, factor, priors, visits):
    """Visits of the root's moves without those that only the forcing explains; returns the sum.

    From every move but the most visited one up to as many visits are taken as were forced, while its PUCT score stays
    below that of the most visited one; a move that is left with one has none.

    Args:
        factor: of the forced playouts; 0 = nothing is taken.
        priors: float64[N*N + 1]; a move without one, of which a kept tree may have visits, has none.
        visits: float64[N*N + 1] in policy order, overwritten.
    """
    root = tree.meta[META_ROOT]
    first, best = np.int64(tree.first_edge[root]), NONE
    end = first + tree.n_edges[root]
    for edge in range(first, end):
        if tree.N_v[edge] > 0 and (best == NONE or tree.N_v[edge] > tree.N_v[best]):
            best = edge
    visits[:] = 0.0
    if best == NONE:
        return 0.0
    stats = root_stats(tree, tuning, len(visits))
    scale = exploration(tuning, stats)
    bar = puct(edge_worth(tree, best, tree.N_v[best], stats, tuning), tree.P[best], tree.N_v[best], 0, tuning, scale)
    total = 0.0
    for edge in range(first, end):
        kept = np.int64(tree.N_v[edge])
        if kept > 0 and edge != best and factor > 0.0:
            worth = edge_worth(tree, edge, kept, stats, tuning)
            least = kept - np.int64(_forced_visits(tree, edge, factor))
            while kept > 0 and kept > least and puct(worth, tree.P[edge], kept - 1, 0, tuning, scale) < bar:
                kept -= 1
            if kept == 1:
                kept = np.int64(0)
        index = index_of(np.int64(tree.move[edge]), size)
        if priors[index] > 0.0:
            visits[index] = kept
            total += kept
    return total


@kernel
def draw_candidates(tree, priors, policy_temperature, width, state, base, left):
    """Draw moves without replacement, as likely as priors ** (1 / policy_temperature); the root's moves all get edges.

    Args:
        priors: float64[A]; 0 = no move.
        width: moves to draw at most.
        state: uint64[4], random state.
        base: float64[A], overwritten: log prior / policy_temperature plus Gumbel variable; -inf = no move.
        left: uint8[A], overwritten: 1 = drawn.
    Returns:
        int: moves drawn.
    """
    root = tree.meta[META_ROOT]
    while is_move(tree.best_unexpanded[root]):
        if add_edge(tree, root) == NONE:
            break
    for index in range(len(priors)):
        base[index], left[index] = -math.inf, 0
        if priors[index] > 0.0:
            base[index] = math.log(priors[index]) / policy_temperature - math.log(-math.log(next_unit(state)))
    drawn = 0
    while drawn < width:
        best = NONE
        for index in range(len(base)):
            if left[index] == 0 and base[index] > -math.inf and (best == NONE or base[index] > base[best]):
                best = index
        if best == NONE:
            break
        left[best] = 1
        drawn += 1
    return drawn


@kernel
def cool(priors, policy_temperature, temperature, base):
    """Multiply the Gumbel variables of drawn moves by a temperature.

    Which moves are looked at is left as it was drawn; the one that the race leaves is then played as often as the
    improved policy ** (1 / temperature) says.

    Args:
        priors, policy_temperature: as for :func:`draw_candidates`.
        base: float64[A], in place.
    """
    for index in range(len(priors)):
        if priors[index] > 0.0:
            likely = math.log(priors[index]) / policy_temperature
            base[index] = likely + temperature * (base[index] - likely)


@kernel
def sigma(q, most_visits, scale):
    """What a value of -1 to 1 adds to a logit."""
    return (VISIT_OFFSET + most_visits) * scale * 0.5 * (q + 1.0)


@kernel
def _most_visits(tree):
    """Visits of the root's most visited move."""
    root, most = tree.meta[META_ROOT], 0
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        most = max(most, tree.N_v[edge])
    return most


@kernel
def best_candidate(tree, size, tuning, base, left, scale):
    """Policy index of the move that is left and preferred: by base + sigma(Q); an unvisited one counts as Q = -1."""
    root, most, best, highest = tree.meta[META_ROOT], _most_visits(tree), NONE, -math.inf
    stats = root_stats(tree, tuning, len(base))
    for index in range(len(base)):
        if left[index]:
            edge = follow(tree, root, point_of(index, size))
            q = edge_worth(tree, edge, tree.N_v[edge], stats, tuning) if edge != NONE and tree.N_v[edge] > 0 else -1.0
            if best == NONE or base[index] + sigma(q, most, scale) > highest:
                best, highest = index, base[index] + sigma(q, most, scale)
    return best


@kernel
def _halve(tree, size, tuning, base, left, count, scale):
    """Leave the preferred half of the moves that are left, at least one; returns how many they are."""
    keep, stats = (count + 1) // 2, root_stats(tree, tuning, len(base))
    for _ in range(count - keep):
        root, most, worst, lowest = tree.meta[META_ROOT], _most_visits(tree), NONE, math.inf
        for index in range(len(base)):
            if left[index]:
                edge = follow(tree, root, point_of(index, size))
                preferred = base[index] + sigma(edge_worth(tree, edge, tree.N_v[edge], stats, tuning), most, scale)
                if worst == NONE or preferred < lowest:
                    worst, lowest = index, preferred
        left[worst] = 0
    return keep


@kernel
def next_candidate(tree, size, tuning, base, left, drawn, visits, goal, scale):
    """The edge of the root that is visited next: of the moves left one with the fewest visits, the likeliest first.

    When each has its share of a round, the worse half leaves and the next round begins.

    Args:
        base: float64[A], as of :func:`draw_candidates`: with too few visits for all, those of the largest get theirs.
        drawn: moves that :func:`draw_candidates` drew.
        visits: to be shared out.
        goal: int64[1]: visits that each move left has when the round is over; 0 at first.
    """
    rounds = np.int64(math.ceil(math.log2(max(drawn, 2))))
    while True:
        count, edge, fewest, likeliest = 0, NONE, np.int64(0), -math.inf
        for index in range(len(base)):
            if left[index]:
                one = follow(tree, tree.meta[META_ROOT], point_of(index, size))
                if one == NONE:
                    continue
                count, done = count + 1, np.int64(tree.N_v[one])
                if edge == NONE or done < fewest or (done == fewest and base[index] > likeliest):
                    edge, fewest, likeliest = one, done, base[index]
        if count <= 1:
            return edge
        if goal[0] == 0:
            goal[0] = max(1, visits // (rounds * count))
        if fewest < goal[0]:
            return edge
        count = _halve(tree, size, tuning, base, left, count, scale)
        goal[0] += max(1, visits // (rounds * count))


@kernel
def improved_value(tree, size, policy):
    """The root's value under the improved policy: the mean of the visited moves' values, weighed by it.

    The mean of all visits is as low as the moves that had to be looked at.

    Args:
        policy: float64[A], as :func:`improved_policy` left it.
    """
    root, mass, mean = tree.meta[META_ROOT], 0.0, 0.0
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        share = policy[index_of(np.int64(tree.move[edge]), size)]
        if tree.N_v[edge] > 0:
            mass += share
            mean += share * edge_mean(tree, edge, 0.0)
    return mean / mass if mass > 0.0 else node_value(tree, root, 0.0)


@kernel
def improved_policy(tree, size, tuning, priors, policy_temperature, scale, target):
    """softmax(log prior / policy_temperature + sigma(completed Q)): float64[N*N + 1] in policy order, overwritten.

    An unvisited move has v_mix as Q: the root's own value and the visited moves' mean under the prior, weighed as one
    visit and as all of theirs.

    Args:
        priors: float64[N*N + 1], of the network; 0 = no move.
        policy_temperature: T. With 1 a policy that learns from itself grows sharper without end, however little better
            a move is; with more it ends where this and what Q adds are level (KataGo's rootPolicyTemperature).
    """
    root = tree.meta[META_ROOT]
    first = np.int64(tree.first_edge[root])
    end, mass, mean, visits = first + tree.n_edges[root], 0.0, 0.0, 0
    stats = root_stats(tree, tuning, len(priors))
    for edge in range(first, end):
        if tree.N_v[edge] > 0:
            prior = priors[index_of(np.int64(tree.move[edge]), size)]
            mass += prior
            mean += prior * edge_worth(tree, edge, tree.N_v[edge], stats, tuning)
            visits += tree.N_v[edge]
    unvisited = float(tree.value[root])
    if mass > 0.0:
        unvisited = (unvisited + visits * mean / mass) / (1.0 + visits)
    most, highest = _most_visits(tree), -math.inf
    for index in range(len(priors)):
        target[index] = -math.inf
        if priors[index] > 0.0:
            target[index] = math.log(priors[index]) / policy_temperature + sigma(unvisited, most, scale)
    for edge in range(first, end):
        index = index_of(np.int64(tree.move[edge]), size)
        if tree.N_v[edge] > 0 and priors[index] > 0.0:
            q = edge_worth(tree, edge, tree.N_v[edge], stats, tuning)
            target[index] = math.log(priors[index]) / policy_temperature + sigma(q, most, scale)
    for index in range(len(priors)):
        highest = max(highest, target[index])
    total = 0.0
    for index in range(len(priors)):
        target[index] = math.exp(target[index] - highest)
        total += target[index]
    for index in range(len(priors)):
        target[index] /= total
