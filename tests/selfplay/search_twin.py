"""A slow twin of self-play by search: one game, a dictionary of moves a node, one playout at a time.

What a position is, its moves and the network's output for it are the engine's; the tree, PUCT, noise, forced playouts,
pruning, the choice of moves and the end of games are written from their formulas.
"""

import math

import numpy as np

from engine.features.encoder import ENCODERS, cache_key, encode
from engine.features.symmetry import symmetry_table
from engine.go.geometry import BLACK, point_of
from engine.go.position import META_N_MOVES, META_PASSES, META_TO_MOVE, copy_position, new_position, play_move
from engine.go.random import GOLDEN, next_unit, seed_state
from engine.go.scoring import final_score_black
from engine.inference.cache import LOGIT_STEPS
from engine.records.games import COUNTED, LIMIT, RESIGNED
from engine.rollout.run import is_sensible
from engine.search.leaves import list_moves
from engine.search.priors import GONE, prior_of, to_prior_code, write_codes
from engine.search.root_targets import draw_gamma
from engine.selfplay.searches import LARGEST


class Node:
    """A position: what the network says, and by policy index the moves' priors, visits, sums and children."""

    def __init__(self, value, lead, priors):
        self.value, self.lead, self.priors = value, lead, priors
        self.is_over = priors is None
        self.visits, self.sums, self.leads, self.children, self.mass = {}, {}, {}, {}, np.float32(0)

    def mean(self, move):
        return self.sums[move] / self.visits[move]

    def mean_of_all(self):
        return (self.value + sum(self.sums.values())) / (1 + sum(self.visits.values()))

    def lead_of_all(self):
        return (self.lead + sum(self.leads.values())) / (1 + sum(self.visits.values()))


class SlowSearchGame:
    """A game of one number; :meth:`play` takes it to its end."""

    def __init__(self, network, options, number):
        self.network, self.o, self.config = network, options, options.config()
        setups = options.set_up(np.array([number]))
        self.size, self.may_resign, self.early = options.size, int(setups.may_resign[0]), int(setups.early[0])
        self.state = seed_state(options.seed, number)
        self.position = new_position(self.size, 2000)
        self.position.rules[:] = setups.rules[0]
        self.encoder = ENCODERS[network.spec.encoder]
        self.scratch = self.encoder.new_scratch(self.size)
        self.moves, self.rows, self.resigner, self.root = [], [], 0, None
        self.values = {1: [], 2: []}
        self.lowest = {1: 1.0, 2: 1.0}

    def evaluate(self, position):
        """A new node for a position that is not over."""
        moves, size = self.size**2 + 1, self.size
        key = np.uint64(cache_key(position, self.scratch))
        with np.errstate(over="ignore"):
            symmetry = int(((key ^ np.uint64(self.o.seed)) * GOLDEN) >> np.uint64(61))
        planes = np.zeros((1, self.encoder.planes, size, size), np.float32)
        globals_ = np.zeros((1, self.encoder.globals), np.float32)
        encode(position, symmetry, self.scratch, planes[0], globals_[0])
        output = self.network.evaluate(planes, globals_)
        logits = output.policy[0][symmetry_table(size)[symmetry]]
        logits = (np.rint(logits.astype(np.float64) * LOGIT_STEPS) / LOGIT_STEPS).astype(np.float32)
        listed, codes = np.zeros(moves, np.uint16), np.zeros(moves, np.uint16)
        count = list_moves(position, listed)
        write_codes(listed, count, logits, 1.0, np.zeros(moves, np.float32), np.zeros(moves, np.float32), codes)
        priors = {i: prior_of(codes[i]) for i in range(moves) if codes[i] != GONE}
        return Node(float(output.value[0]), float(output.score[0]), priors)

    def worth(self, node, move, lead):
        """A visited move's mean value, and what its lead beyond the root's, for the same side, adds."""
        points = node.leads[move] / node.visits[move] - lead
        return node.mean(move) + self.o.score_utility * points / (abs(points) + math.sqrt(self.size**2 + 1))

    def choose(self, node, mean, lead, visits, at_root):
        """PUCT."""
        unvisited = mean if at_root else mean - self.o.fpu_reduction * math.sqrt(node.mass)
        scale = self.o.c_puct * math.sqrt(max(visits, 1))
        best, best_score = None, -math.inf
        for move, prior in node.priors.items():
            n = node.visits.get(move, 0)
            score = (self.worth(node, move, lead) if n else unvisited) + scale * prior / (1 + n)
            if score > best_score:
                best, best_score = move, score
        return best

    def forced_visits(self, move):
        total = sum(self.root.visits.values())
        return math.sqrt(self.o.forced * self.root.priors[move] * total)

    def playout(self, is_full, first):
        """Down the tree to a leaf, and back up; the first move may be given."""
        position = new_position(self.size, 2000)
        copy_position(position, self.position)
        node, path = self.root, []
        mean, lead, visits = node.mean_of_all(), node.lead_of_all(), sum(node.visits.values())
        while True:
            move = first if node is self.root else None
            if node is self.root and is_full and self.o.forced and first is None:
                move = next((m for m in node.visits if node.visits[m] < self.forced_visits(m)), None)
            if move is None:
                move = self.choose(node, mean, lead, visits, node is self.root)
            if move not in node.visits:
                node.visits[move], node.sums[move], node.leads[move] = 0, 0.0, 0.0
                node.priors[move] = float(np.float32(node.priors[move]))
                node.mass += np.float32(node.priors[move])
            path.append((node, move))
            play_move(position, point_of(move, self.size), position.meta[META_TO_MOVE])
            child = node.children.get(move)
            if child is None:
                node.children[move] = child = self.new_leaf(position)
                break
            if child.is_over:
                break
            mean, lead, visits = -self.worth(node, move, lead), -lead, node.visits[move] - 1
            node = child
        result, points = child.value, child.lead
        for node, move in reversed(path):
            result, points = -result, -points
            node.visits[move] += 1
            node.sums[move] += result
            node.leads[move] += points

    def new_leaf(self, position):
        if position.meta[META_PASSES] >= 2:
            lead = final_score_black(position) * (1 if position.meta[META_TO_MOVE] == BLACK else -1)
            return Node(float(np.sign(lead)), lead, None)
        return self.evaluate(position)

    def allowed(self, ply):
        """The priors of the moves that the root may play: early in the game the sensible ones alone, normalised."""
        priors, passing = dict(self.root.priors), self.size**2
        if ply >= self.config.sensible_moves:
            return priors
        board, color = self.position.board, self.position.meta[META_TO_MOVE]
        kept = {m: p for m, p in priors.items() if m != passing and is_sensible(board, point_of(m, self.size), color)}
        total = sum(kept[move] for move in sorted(kept))
        return {move: prior / total for move, prior in kept.items()} if kept else {passing: 1.0}

    def explore(self, allowed, is_full, ply):
        """Temperature and noise at the root, and the move filter."""
        o, root = self.o, self.root
        explores = is_full and (o.noise > 0 or o.target_temperature != 1)
        if not explores and ply >= self.config.sensible_moves:
            return
        order = sorted(allowed)
        priors = np.array([allowed[move] for move in order])
        if explores:
            priors **= 1 / o.target_temperature
            priors /= priors.sum()
        if explores and o.noise > 0:
            noise = np.array([draw_gamma(self.state, o.concentration / len(order)) for _ in order])
            priors = (1 - o.noise) * priors + o.noise * noise / noise.sum()
        root.mass = np.float32(0)
        # Filtered moves are no moves any more, but for those that a kept tree has visited.
        root.priors = {move: prior_of(GONE) for move in root.visits if move not in allowed}
        for move, prior in zip(order, priors, strict=True):
            root.priors[move] = prior_of(to_prior_code(-math.log(prior)))
        for move in root.visits:
            root.priors[move] = float(np.float32(root.priors[move]))
            root.mass += np.float32(root.priors[move])

    def pruned(self):
        """Visits without those that only the forcing explains."""
        root = self.root
        total = sum(root.visits.values())
        scale = self.o.c_puct * math.sqrt(max(total, 1))
        best = max(root.visits, key=lambda move: root.visits[move])
        lead = root.lead_of_all()
        bar = self.worth(root, best, lead) + scale * root.priors[best] / (1 + root.visits[best])
        kept = {}
        for move, visits in root.visits.items():
            left = visits
            if move != best:
                while (
                    left > max(0, visits - int(self.forced_visits(move)))
                    and self.worth(root, move, lead) + scale * root.priors[move] / left < bar
                ):
                    left -= 1
                left = 0 if left == 1 else left
            kept[move] = left
        return kept

    def draw(self, weights):
        """A key drawn in proportion to its weight, the keys in order."""
        order = sorted(move for move in weights if weights[move] > 0)
        left, chosen = next_unit(self.state) * sum(weights[move] for move in order), None
        for chosen in order:
            left -= weights[chosen]
            if left < 0:
                break
        return chosen

    def play(self):
        """Play to the end; returns moves, ending, lead (NaN = resigned), rows (ply, visits), resigner."""
        o = self.o
        while True:
            ply, color = int(self.position.meta[META_N_MOVES]), int(self.position.meta[META_TO_MOVE])
            share = o.full_share * o.decided_share if self.is_decided() else o.full_share
            is_full = bool(next_unit(self.state) < share)
            is_early = ply < self.early
            halves = is_full and not is_early and o.candidates > 0
            if self.root is None or halves:
                self.root = self.evaluate(self.position)
            priors = self.allowed(ply)
            halving = SlowHalving(self, priors, ply) if halves else None
            if halving is None:
                self.explore(priors, is_full and not is_early, ply)
            wanted = 1 if is_early else o.visits if is_full else o.fast_visits
            while 1 + sum(self.root.visits.values()) < wanted:
                self.playout(is_full and not is_early, halving.next() if halving else None)
            move = None
            if not is_early:
                value = self.root.mean_of_all()
                if any(self.root.visits.values()):
                    move = halving.finish(ply) if halving else self.pick(ply, is_full, priors)
                if self.is_hopeless(color, halving.value() if halving else value):
                    self.resigner = self.resigner or color
                    if self.may_resign:
                        return self.found(RESIGNED)
            if move is None:
                move = self.draw(priors)
            play_move(self.position, point_of(move, self.size), color)
            self.moves.append(move)
            if self.position.meta[META_PASSES] >= 2:
                return self.found(COUNTED)
            if len(self.moves) >= self.config.limit:
                return self.found(LIMIT)
            child = self.root.children.get(move) if o.keep_tree else None
            self.root = child

    def pick(self, ply, is_full, allowed):
        """The move of a search, whose row is noted if it was full; None if it has visited no move that is allowed."""
        weights = dict(self.root.visits)
        if is_full and self.o.forced:
            weights = self.pruned()
        weights = {move: visits for move, visits in weights.items() if move in allowed}
        if not any(weights.values()):
            return None
        if is_full:
            self.rows.append((ply, {move: n for move, n in weights.items() if n}))
        temperature, most = self.temperature(ply), max(weights.values())
        return self.draw({move: (n / most) ** (1 / temperature) if n else 0.0 for move, n in weights.items()})

    def temperature(self, ply):
        o, fading = self.o, 0.5 ** (ply / self.config.half_life)
        return o.final_temperature + (o.temperature - o.final_temperature) * fading

    def is_decided(self):
        """Whether the latest values of both sides, 1 where there are none yet, agree on who wins."""
        count = self.o.resign_count
        black, white = (([1.0] * count + self.values[color])[-count:] for color in (1, 2))
        return (min(black) > 0.9 and max(white) < -0.9) or (max(black) < -0.9 and min(white) > 0.9)

    def is_hopeless(self, color, value):
        """Whether the latest values of a colour, as many as count, are all below the bound."""
        self.values[color].append(float(np.float32(value)))
        if len(self.values[color]) < self.o.resign_count:
            return False
        highest = max(self.values[color][-self.o.resign_count :])
        self.lowest[color] = min(self.lowest[color], highest)
        return highest < self.config.resign_below

    def found(self, ending):
        lead = math.nan if ending == RESIGNED else float(final_score_black(self.position))
        return self.moves, ending, lead, self.rows, self.resigner


class SlowHalving:
    """Sequential halving at one root, and the policy that it improves."""

    def __init__(self, game, priors, ply):
        self.game, self.root, self.priors = game, game.root, {m: p for m, p in sorted(priors.items()) if p > 0}
        likely = {move: math.log(prior) / game.o.target_temperature for move, prior in self.priors.items()}
        drawn = {move: likely[move] - math.log(-math.log(next_unit(game.state))) for move in likely}
        width, self.visits = min(game.o.candidates, game.o.visits - 1), game.o.visits - 1
        self.left = sorted(drawn, key=drawn.__getitem__, reverse=True)[:width]
        temperature = game.temperature(ply)
        self.base = {move: likely[move] + temperature * (drawn[move] - likely[move]) for move in likely}
        self.rounds, self.goal = max(1, math.ceil(math.log2(max(len(self.left), 2)))), 0

    def sigma(self, q):
        return (50 + max(self.root.visits.values(), default=0)) * self.game.o.sigma_scale * 0.5 * (q + 1)

    def worth(self, move):
        return self.game.worth(self.root, move, self.root.lead_of_all())

    def preferred(self, move):
        return self.base[move] + self.sigma(self.worth(move) if self.root.visits.get(move) else -1.0)

    def next(self):
        """The move of the root that is visited next."""
        while len(self.left) > 1:
            self.goal = self.goal or self.share()
            fewest = min(self.left, key=lambda move: (self.root.visits.get(move, 0), -self.base[move]))
            if self.root.visits.get(fewest, 0) < self.goal:
                return fewest
            self.left = sorted(self.left, key=self.preferred, reverse=True)[: (len(self.left) + 1) // 2]
            self.goal += self.share()
        return self.left[0]

    def share(self):
        return max(1, self.visits // (self.rounds * len(self.left)))

    def improved(self):
        """softmax(log prior + sigma(completed Q))."""
        visited = [move for move in self.root.visits if self.root.visits[move]]
        mass, total = sum(self.priors[move] for move in visited), sum(self.root.visits[move] for move in visited)
        mean = sum(self.priors[move] * self.worth(move) for move in visited) / mass
        mixed = (self.root.value + total * mean) / (1 + total)
        flat = {move: math.log(prior) / self.game.o.target_temperature for move, prior in self.priors.items()}
        logits = {move: one + self.sigma(self.worth(move) if move in visited else mixed) for move, one in flat.items()}
        highest = max(logits.values())
        odds = {move: math.exp(logit - highest) for move, logit in logits.items()}
        return {move: one / sum(odds.values()) for move, one in odds.items()}

    def value(self):
        policy = self.improved()
        visited = [move for move in self.root.visits if self.root.visits[move]]
        return sum(policy[m] * self.root.mean(m) for m in visited) / sum(policy[m] for m in visited)

    def finish(self, ply):
        """The move to play; the row is noted."""
        policy = self.improved()
        shares = {move: int(one / max(policy.values()) * LARGEST + 0.5) for move, one in policy.items()}
        self.game.rows.append((ply, {move: share for move, share in shares.items() if share}))
        return max(self.left, key=self.preferred)
