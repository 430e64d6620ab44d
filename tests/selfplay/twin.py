"""A slow twin of games between policies: one game, one move and one point at a time, rules by the twin of the board."""

import math

import numpy as np

from bench.reliability.rules_twin import Twin, neighbours
from engine.features.encoder import ENCODERS, encode
from engine.features.symmetry import SYMMETRIES, symmetry_table
from engine.go.geometry import BLACK, PASS, WHITE, other, point_of
from engine.go.position import new_position, play_move
from engine.go.random import next_below, next_unit, seed_state
from engine.go.rules import RULE_KO, RULE_KOMI_X2, RULE_SUICIDE


def fills_eye(twin, cell, color):
    """Whether an empty cell is a single-point eye of the colour."""
    if any(twin.stones.get(beside) != color for beside in neighbours(twin.size, cell)):
        return False
    row, column = cell
    diagonals = [(row + r, column + c) for r in (-1, 1) for c in (-1, 1)]
    inside = [(r, c) for r, c in diagonals if 0 <= r < twin.size and 0 <= c < twin.size]
    held = sum(twin.stones.get(one) == other(color) for one in inside)
    return held + (len(inside) < 4) < 2


class SlowGame:
    """A game of one number; :meth:`play` takes it to its end."""

    def __init__(self, networks, size, number, config, setups, k):
        self.networks, self.size, self.config = networks, size, config
        self.rules = setups.rules[k]
        self.temperature, self.may_resign, self.switch = (
            np.broadcast_to(given, len(setups.rules))[k].item()
            for given in (setups.temperatures, setups.may_resign, setups.switches)
        )
        alternating = (number + np.arange(2)) % len(networks)
        self.players = np.stack([alternating] * 2) if setups.players is None else setups.players[k]
        self.state = seed_state(config.seed, number)
        self.twin = Twin(size)
        self.position = new_position(size, config.limit + 8)
        self.position.rules[:] = self.rules
        self.moves = []
        self.hopeless = {BLACK: 0, WHITE: 0}
        self.resigner = 0

    def legal(self, sensible=False):
        """The cells where the side to move may play; a suicide is never sensible."""
        pair = (int(self.rules[RULE_KO]), bool(self.rules[RULE_SUICIDE]) and not sensible)
        return sorted(self.twin.legal_cells(self.twin.to_move, [pair])[0])

    def enter(self, cell):
        """Play a cell, or pass with None."""
        color = self.twin.to_move
        self.moves.append(self.size**2 if cell is None else cell[0] * self.size + cell[1])
        play_move(self.position, PASS if cell is None else point_of(self.moves[-1], self.size), color)
        self.twin.play(cell, color)

    def is_over(self):
        """Whether both have passed, or the limit is reached."""
        passes = self.moves[-2:] == [self.size**2] * 2
        return passes or len(self.moves) >= self.config.limit

    def ask(self, symmetry):
        """Logits in policy order and the value, of the network that moves."""
        player = self.players[int(len(self.moves) > self.switch), self.twin.to_move - BLACK]
        network = self.networks[player]
        encoder = ENCODERS[network.spec.encoder]
        planes = np.zeros((1, encoder.planes, self.size, self.size), np.float32)
        globals_ = np.zeros((1, encoder.globals), np.float32)
        encode(self.position, symmetry, encoder.new_scratch(self.size), planes[0], globals_[0])
        output = network.evaluate(planes, globals_)
        return output.policy[0][symmetry_table(self.size)[symmetry]].tolist(), float(output.value[0])

    def choose(self, logits):
        """The move drawn: a cell or None."""
        config, color, area = self.config, self.twin.to_move, self.size**2
        is_bound = len(self.moves) < config.sensible_moves
        weights = [-math.inf] * (area + 1)
        for row, column in self.legal(is_bound):
            if not is_bound or not fills_eye(self.twin, (row, column), color):
                weights[row * self.size + column] = logits[row * self.size + column]
        if not is_bound:
            weights[area] = logits[area]
        largest = max(weights)
        if largest == -math.inf:
            return None
        if len(self.moves) >= config.free_moves and config.least_share > 0:
            least = largest + math.log(config.least_share)
            weights = [one if one >= least else -math.inf for one in weights]
        weights = [math.exp((one - largest) / self.temperature) for one in weights]
        left = next_unit(self.state) * sum(weights)
        for index, weight in enumerate(weights):
            left -= weight
            if weight and left < 0:
                return None if index == area else divmod(index, self.size)
        raise AssertionError("nothing drawn")

    def random_move(self):
        """The random move where the players change."""
        legal = self.legal()
        self.enter(legal[next_below(self.state, len(legal))])

    def play(self):
        """Play on until the game is over; returns the colour that resigned, or 0."""
        if self.switch == 0:
            self.random_move()
        while not self.is_over():
            color = self.twin.to_move
            logits, value = self.ask(next_below(self.state, SYMMETRIES))
            self.hopeless[color] = self.hopeless[color] + 1 if value < self.config.resign_below else 0
            if self.hopeless[color] >= self.config.resign_count:
                self.resigner = self.resigner or color
                if self.may_resign:
                    self.resigner = color
                    return color
            self.enter(self.choose(logits))
            if not self.is_over() and len(self.moves) == self.switch:
                self.random_move()
        return 0

    def lead_black(self):
        """By area, all stones alive."""
        owners = self.twin.area().values()
        return sum(1 if owner == BLACK else -1 for owner in owners) - self.rules[RULE_KOMI_X2] / 2
