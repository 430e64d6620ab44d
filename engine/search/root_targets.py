"""Self-play at the root: noise, forced playouts, sequential halving, and the policy targets.

With PUCT the target is the distribution of visits, without forced playouts. With sequential halving (Gumbel search) it
is the improved policy, softmax(log prior / T + sigma(Q)), where unvisited moves have a completed Q and Q includes the
score utility (:func:`engine.search.selection.edge_worth`); below the root PUCT selects. One leaf at a time is in
flight. Threads: no other thread uses the tree.

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
from engine.search.tree import META_ROOT, META_ROOT_VISITS, NONE, add_edge, edge_visits, follow, replace_priors
from engine.search.values import edge_mean, most_visited, node_value
from engine.system.jit import kernel

VISIT_OFFSET = 50.0
"""c_visit of Danihelka et al., in :func:`sigma`"""


@kernel
def read_priors(tree, size, priors):
    """Read the priors of the root, which must be expanded.

    Args:
        size: board size.
        priors: float64[N*N + 1] in policy order, overwritten; 0 = no move.
    """
    root = tree.meta[META_ROOT]
    for index in range(len(priors)):
        code = tree.prior_codes[root, index]
        priors[index] = 0.0 if code == GONE else prior_of(code)
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        priors[index_of(np.int64(tree.move[edge]), size)] = tree.P[edge]


@kernel
def read_losses(tree, size, losses):
    """Read the points that each of the root's moves loses, by its mean lead, compared with the best one.

    Args:
        size: board size.
        losses: float64[N*N + 1] in policy order, overwritten; inf = a move without visits. If no move has a visit, all
            are 0.
    """
    root = tree.meta[META_ROOT]
    first, most = np.int64(tree.first_edge[root]), -math.inf
    for edge in range(first, first + tree.n_edges[root]):
        if edge_visits(tree, edge) > 0:
            most = max(most, tree.W_lead[edge] / edge_visits(tree, edge))
    losses[:] = 0.0 if most == -math.inf else math.inf
    for edge in range(first, first + tree.n_edges[root]):
        if edge_visits(tree, edge) > 0:
            losses[index_of(np.int64(tree.move[edge]), size)] = most - tree.W_lead[edge] / edge_visits(tree, edge)


@kernel
def write_priors(tree, priors, codes):
    """Replace the root's priors.

    Args:
        priors: as from :func:`read_priors`, for the same moves.
        codes: uint16[N*N + 1], working memory, overwritten.
    """
    for index in range(len(priors)):
        codes[index] = GONE if priors[index] <= 0.0 else to_prior_code(-math.log(priors[index]))
    replace_priors(tree, tree.meta[META_ROOT], codes)


@kernel
def temper(priors, temperature):
    """Replace priors, float64[A], by P ** (1 / temperature), normalised to the sum 1."""
    total = 0.0
    for index in range(len(priors)):
        if priors[index] > 0.0:
            priors[index] = priors[index] ** (1.0 / temperature)
            total += priors[index]
    for index in range(len(priors)):
        priors[index] /= total


@kernel
def _normal(state):
    """Draw a standard normal variable by the Box-Muller transform; ``state``: uint64[4], random state."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_unit(state)))
    return radius * math.cos(2.0 * math.pi * next_unit(state))


@kernel
def draw_gamma(state, shape):
    """Draw a gamma variable of scale 1.

    Args:
        state: uint64[4], random state.
        shape: above 0.
    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, with their note on shapes
    below 1.
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
    """Mix Dirichlet noise into the priors above 0, in place: P = (1 - share) * P + share * noise.

    Args:
        priors: float64[A].
        concentration: sum of the Dirichlet distribution's parameters, which are the same for every move.
        state: uint64[4], random state.
        noise: float64[A], working memory, overwritten.
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
    """Visits that forced playouts give a visited edge of the root: sqrt(factor * P * N), N = visits of all edges."""
    return math.sqrt(factor * tree.P[edge] * (tree.meta[META_ROOT_VISITS] - 1))


@kernel
def forced_edge(tree, factor):
    """The root's first visited edge that has fewer visits than :func:`_forced_visits`; NONE if there is none."""
    root = tree.meta[META_ROOT]
    first = np.int64(tree.first_edge[root])
    for edge in range(first, first + tree.n_edges[root]):
        if 0 < tree.N_v[edge] < _forced_visits(tree, edge, factor):
            return edge
    return NONE


@kernel
def visit_target(tree, size, tuning, factor, priors, visits):
    """Write the visits of the root's moves after policy target pruning; returns their sum.

    Every move except the most visited one loses visits, at most its forced ones, as long as its PUCT score without them
    stays below the most visited move's; a single remaining visit is dropped too.

    Args:
        size: board size.
        factor: of :func:`_forced_visits`; 0 = no pruning.
        priors: float64[N*N + 1]; moves without a prior get no visits, even if a kept tree has some.
        visits: float64[N*N + 1] in policy order, overwritten.
    """
    root = tree.meta[META_ROOT]
    first = np.int64(tree.first_edge[root])
    end = first + tree.n_edges[root]
    best, _, _ = most_visited(tree, root)
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
    """Draw the candidates of sequential halving, and give all moves of the root edges.

    Moves are drawn without replacement with probabilities proportional to priors ** (1 / policy_temperature).

    Args:
        priors: float64[A]; 0 = no move.
        width: maximum number of moves to draw.
        state: uint64[4], random state.
        base: float64[A], overwritten: log prior / policy_temperature plus a Gumbel variable; -inf = no move.
        left: uint8[A], overwritten: 1 = drawn, a candidate.
    Returns:
        int: number of moves drawn.
    """
    root = tree.meta[META_ROOT]
    while is_move(tree.best_without_edge[root]):
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
    """Multiply the Gumbel variables in ``base`` by a temperature, after the candidates were drawn.

    The move that remains after sequential halving then has the distribution improved policy ** (1 / temperature).

    Args:
        priors, policy_temperature, base: as for :func:`draw_candidates`; ``base`` changes in place.
    """
    for index in range(len(priors)):
        if priors[index] > 0.0:
            likely = math.log(priors[index]) / policy_temperature
            base[index] = likely + temperature * (base[index] - likely)


@kernel
def sigma(q, most_visits, sigma_scale):
    """sigma(Q) of Danihelka et al. for Q from -1 to 1: the term that a value adds to a logit.

    Args:
        most_visits: visits of the root's most visited move.
        sigma_scale: c_scale of Danihelka et al.
    """
    return (VISIT_OFFSET + most_visits) * sigma_scale * 0.5 * (q + 1.0)


@kernel
def _extreme_candidate(tree, size, tuning, base, left, sigma_scale, sign):
    """Policy index of the candidate with the largest (``sign`` 1) or smallest (-1) base + sigma(Q).

    An unvisited candidate has Q = -1. Without candidates the result is NONE.
    """
    root, best, highest = tree.meta[META_ROOT], NONE, -math.inf
    _, most, _ = most_visited(tree, root)
    stats = root_stats(tree, tuning, len(base))
    for index in range(len(base)):
        if left[index]:
            edge = follow(tree, root, point_of(index, size))
            q = edge_worth(tree, edge, tree.N_v[edge], stats, tuning) if edge != NONE and tree.N_v[edge] > 0 else -1.0
            preference = sign * (base[index] + sigma(q, most, sigma_scale))
            if best == NONE or preference > highest:
                best, highest = index, preference
    return best


@kernel
def best_candidate(tree, size, tuning, base, left, sigma_scale):
    """Policy index of the candidate with the largest base + sigma(Q); an unvisited candidate has Q = -1.

    Args:
        base, left: as for :func:`draw_candidates`.
        sigma_scale: as for :func:`sigma`.
    """
    return _extreme_candidate(tree, size, tuning, base, left, sigma_scale, 1.0)


@kernel
def next_candidate(tree, size, tuning, base, left, drawn, visits, goal, sigma_scale):
    """The root's edge to visit next by sequential halving: the least visited candidate's, at equal visits that with the
    largest base.

    When every candidate has the round's visits, the worse half is dropped and the next round begins.

    Args:
        base, left: as for :func:`draw_candidates`; ``left`` becomes 0 for dropped candidates.
        drawn: number of moves drawn by :func:`draw_candidates`.
        visits: number of visits of all rounds together.
        goal: int64[1], kept from call to call: visits of each candidate at the end of the round; 0 before the first.
        sigma_scale: as for :func:`sigma`.
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
        for _ in range(count // 2):
            left[_extreme_candidate(tree, size, tuning, base, left, sigma_scale, -1.0)] = 0
        goal[0] += max(1, visits // (rounds * (count - count // 2)))


@kernel
def improved_value(tree, size, policy):
    """The root's value under the improved policy: the mean of the visited moves' values, weighted by this policy.

    The mean over all visits would be too low, since sequential halving visits bad candidates too.

    Args:
        policy: float64[A], from :func:`improved_policy`.
    """
    root, mass, mean = tree.meta[META_ROOT], 0.0, 0.0
    for edge in range(tree.first_edge[root], tree.first_edge[root] + tree.n_edges[root]):
        share = policy[index_of(np.int64(tree.move[edge]), size)]
        if tree.N_v[edge] > 0:
            mass += share
            mean += share * edge_mean(tree, edge, 0.0)
    return mean / mass if mass > 0.0 else node_value(tree, root, 0.0)


@kernel
def improved_policy(tree, size, tuning, priors, policy_temperature, sigma_scale, target):
    """Write softmax(log prior / policy_temperature + sigma(completed Q)) into ``target``, float64[N*N + 1].

    An unvisited move has v_mix as Q: the mean of the root's own value, counted as one visit, and of the visited moves'
    prior-weighted mean value, counted as all their visits.

    Args:
        priors: float64[N*N + 1], the network's; 0 = no move.
        policy_temperature: T. With T = 1 a policy trained on its own targets sharpens without limit; a larger T
            balances the effect of Q (KataGo's ``rootPolicyTemperature``).
        sigma_scale: as for :func:`sigma`.
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
    _, most, _ = most_visited(tree, root)
    highest = -math.inf
    for index in range(len(priors)):
        target[index] = -math.inf
        if priors[index] > 0.0:
            target[index] = math.log(priors[index]) / policy_temperature + sigma(unvisited, most, sigma_scale)
    for edge in range(first, end):
        index = index_of(np.int64(tree.move[edge]), size)
        if tree.N_v[edge] > 0 and priors[index] > 0.0:
            q = edge_worth(tree, edge, tree.N_v[edge], stats, tuning)
            target[index] = math.log(priors[index]) / policy_temperature + sigma(q, most, sigma_scale)
    for index in range(len(priors)):
        highest = max(highest, target[index])
    total = 0.0
    for index in range(len(priors)):
        target[index] = math.exp(target[index] - highest)
        total += target[index]
    for index in range(len(priors)):
        target[index] /= total
