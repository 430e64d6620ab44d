"""A slow twin of KataGo's input: games kept move by move in dictionaries, planes written down from the definitions.

Where the kernels look back from a position, this follows the game forwards, as KataGo itself does. Chains, liberties
and captures are those of ``tests/go/twin.py``; life, areas and ladders are worked out on sets, by recursion and without
any pruning.
"""

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from bench.reliability.rules_twin import Cell, Stones, Twin, after, chain_and_liberties, flood, neighbours
from engine.go.board import play
from engine.go.geometry import BLACK, PASS, WHITE, other, point_at
from engine.go.position import apply_rules, begin, hide_course, new_position, play_move
from engine.go.rules import (
    BONUS_N,
    BONUS_N_MINUS_ONE,
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    Rules,
)

ROOM = 2000


class UnreadError(Exception):
    """A ladder is too long for the twin."""


class KatagoGame:
    """A position and its twin, played side by side."""

    def __init__(
        self, size: int, rules: Rules, komi: float, stones: Stones | None = None, to_move: int = BLACK
    ) -> None:
        self.size, self.rules, self.komi = size, rules, komi
        self.position, self.twin = new_position(size, ROOM), Twin(size)
        for (row, column), color in (stones or {}).items():
            play(self.position.board, point_at(row, column, size), color)
        begin(self.position, to_move)
        apply_rules(self.position, rules, komi)
        self.start, self.moves = dict(stones or {}), []
        self.twin.stones, self.twin.to_move = dict(stones or {}), to_move
        self.twin.situations = [(frozenset(self.start.items()), to_move)]
        self.seen_from, self.hidden, self.button_points = 0, 0, 0.0
        self.has_button = rules.button
        self._forget()

    def _forget(self) -> None:
        """A record begins."""
        self.record: list[Cell | None] = []
        self.boards = [(self.stones, None)]
        """stones and ko of every position of the record"""
        self.passes = self.valid = 0
        self.is_over = False
        self.passed_in: set = set()
        """stones and colour of every pass"""
        self.since_pass = Counter({self._situation(): 1})

    @property
    def color(self) -> int:
        """The side to move."""
        return self.twin.to_move

    @property
    def stones(self) -> Stones:
        return self.twin.stones

    def _situation(self) -> tuple:
        return frozenset(self.stones.items()), self.color

    def play(self, cell: Cell | None, color: int) -> None:
        """Play a move, None for a pass, of either side."""
        play_move(self.position, PASS if cell is None else point_at(*cell, self.size), color)
        if color != self.color:
            self.twin.to_move = color
            self._forget()
        if self.is_over:
            self.valid = 1
        before, situation, repeats_pass = self.stones, self._situation(), False
        self.moves.append((cell, color))
        self.twin.play(cell, color)
        if cell is not None:
            self.passes = 0
        elif self.has_button:
            self.has_button, self.passes = False, 0
            self.button_points = 0.5 if color == WHITE else -0.5
            self.seen_from = len(self.twin.situations) - 1
            self.passed_in, self.since_pass = set(), Counter()
        else:
            repeats_pass = self.rules.ko == KO_SIMPLE and situation in self.passed_in
            self.passes += 1
            self.passed_in.add(situation)
            self.since_pass = Counter()
        self.since_pass[self._situation()] += 1
        cycles = self.rules.ko == KO_SIMPLE and cell is not None and self.since_pass[self._situation()] >= 3
        self.is_over = self.passes >= 2 or repeats_pass or cycles
        self.valid += 1
        self.record.append(cell)
        self.boards.append((self.stones, ko_taken(before, self.stones, self.size, cell)))

    def hide(self) -> None:
        """Let this position be shown without the moves so far."""
        self.hidden = len(self.moves)
        hide_course(self.position)

    def course(self) -> tuple[int, bool]:
        """Moves shown, and whether a pass would end the game."""
        again = self.rules.ko == KO_SIMPLE and self._situation() in self.passed_in
        if self.passes == 1 and not again and self.rules.friendly_pass and self.rules.scoring == SCORING_AREA:
            return 0, False
        shown = 0 if len(self.moves) == self.hidden else min(1 if self.is_over else 5, self.valid)
        return shown, self.passes >= 1 or again

    def forbidden(self) -> set[Cell]:
        """Where only ko and superko forbid the side to move to play."""
        found = {self.boards[-1][1]} - {None}
        earlier = self.twin.situations[self.seen_from :]
        for cell in self.twin.empty_cells():
            result, _, lost = after(self.stones, self.size, cell, self.color)
            if lost and not (self.rules.suicide and lost > 1):
                continue
            result = frozenset(result.items())
            if self.rules.ko == KO_POSITIONAL and any(result == stones for stones, _ in earlier):
                found.add(cell)
            if self.rules.ko == KO_SITUATIONAL and (result, other(self.color)) in earlier:
                found.add(cell)
        return found

    def handicap(self) -> int:
        """Black's stones before White's first; 0 if they are not several, or White has some from the start.

        Where White moves twice in a row by then, the position was set up move by move: its stones are none.
        """
        played, end = 0, len(self.moves)
        for n, (cell, color) in enumerate(self.moves):
            if cell is not None and color == WHITE:
                end = n + 2
                break
            played += cell is not None
        colors = [color for _, color in self.moves[:end]]
        if any(pair == (WHITE, WHITE) for pair in pairwise(colors)):
            played = 0
        stones = len(self.start) + played
        return stones if stones > 1 and WHITE not in self.start.values() else 0

    def own_komi(self) -> float:
        """What the side to move is given, in area terms."""
        komi = self.komi + self.button_points
        if self.rules.handicap_bonus == BONUS_N:
            komi += self.handicap()
        elif self.rules.handicap_bonus == BONUS_N_MINUS_ONE:
            komi += max(0, self.handicap() - 1)
        if self.rules.scoring == SCORING_TERRITORY:
            played = [*self.start.values(), *(color for cell, color in self.moves if cell is not None)]
            komi += played.count(BLACK) - played.count(WHITE)
        most = self.size**2 + 20
        return max(-most, min(most, komi if self.color == WHITE else -komi))


def ko_taken(before: Stones, stones: Stones, size: int, cell: Cell | None) -> Cell | None:
    """Where a move took a ko: it captured one stone, and stands alone with that one liberty."""
    if cell is None or cell not in stones:
        return None
    taken = [place for place in before if place not in stones]
    chain, liberties = chain_and_liberties(stones, size, cell)
    return taken[0] if len(taken) == len(chain) == len(liberties) == 1 else None


class Ladders:
    """KataGo's ladders on one board size, by recursion."""

    def __init__(self, size: int, nodes: int, two_kos: bool = True) -> None:
        self.size, self.nodes, self.two_kos = size, nodes, two_kos

    def played(self, stones: Stones, cell: Cell, color: int) -> tuple[Stones, Cell | None] | None:
        """Stones after a move, and the ko it took; None if it is suicide."""
        self.nodes -= 1
        if self.nodes < 0:
            raise UnreadError
        result, _, lost = after(stones, self.size, cell, color)
        return None if lost else (result, ko_taken(stones, result, self.size, cell))

    def in_atari(self, stones: Stones, chain: set[Cell], color: int) -> set[Cell]:
        """Last liberties of a colour's chains in atari that touch a chain."""
        found = set()
        for beside in {b for stone in chain for b in neighbours(self.size, stone) if stones.get(b) == color}:
            liberties = chain_and_liberties(stones, self.size, beside)[1]
            found |= liberties if len(liberties) == 1 else set()
        return found

    def is_cornered(self, stones: Stones, prey: Cell, ko: Cell | None) -> bool:
        """Whether a chain in atari is lost with the runner to move."""
        if ko is not None:
            return False
        runner = stones[prey]
        chain, liberties = chain_and_liberties(stones, self.size, prey)
        moves = liberties | self.in_atari(stones, chain, other(runner))
        results = [self.played(stones, move, runner) for move in sorted(moves)]
        return all(self.is_hunted(result, prey, taken) for result, taken in filter(None, results))

    def is_hunted(self, stones: Stones, prey: Cell, ko: Cell | None) -> bool:
        """Whether a chain is lost with the hunter to move."""
        hunter = other(stones[prey])
        chain, liberties = chain_and_liberties(stones, self.size, prey)
        if len(liberties) != 2:
            return len(liberties) == 1
        two_kos = self.two_kos and all(self.is_vain_ko(stones, liberty, hunter) for liberty in liberties)
        if two_kos and not self.in_atari(stones, chain, hunter):
            return True
        results = [self.played(stones, move, hunter) for move in sorted(liberties - {ko})]
        return any(self.is_cornered(result, prey, taken) for result, taken in filter(None, results))

    def is_vain_ko(self, stones: Stones, cell: Cell, hunter: int) -> bool:
        """Whether the hunter could take a ko at a cell where connecting leaves the runner two liberties at most."""
        around = neighbours(self.size, cell)
        if any(stones.get(beside) != other(hunter) for beside in around):
            return False
        chains = [chain_and_liberties(stones, self.size, beside) for beside in around]
        short = [chain for chain, liberties in chains if len(liberties) == 1]
        connected = after(stones, self.size, cell, other(hunter))[0]
        return [len(chain) for chain in short] == [1] and len(chain_and_liberties(connected, self.size, cell)[1]) <= 2

    def caught(self, stones: Stones, ko: Cell | None) -> tuple[set[Cell], dict[int, set[Cell]]]:
        """Stones of all chains caught, and the ataris that work on chains of two liberties, by hunter."""
        found, working, seen = set(), {BLACK: set(), WHITE: set()}, set()
        for prey, color in stones.items():
            chain, liberties = chain_and_liberties(stones, self.size, prey)
            if prey in seen or len(liberties) > 2:
                continue
            seen |= chain
            if len(liberties) == 1:
                found |= chain if self.is_cornered(stones, prey, None) else set()
                continue
            for move in sorted(liberties - {ko}):
                result = self.played(stones, move, other(color))
                if result and self.is_cornered(result[0], prey, None):
                    found |= chain
                    working[other(color)].add(move)
        return found, working


def dead_regions(stones: Stones, size: int, color: int, suicide: bool) -> set[Cell]:
    """Regions between pass-alive chains of a colour in which no two eyes fit, stones of the opponent included."""
    cells = [(row, column) for row in range(size) for column in range(size)]
    held = {cell: 1 for cell in cells if stones.get(cell) == color}
    chains = {frozenset(flood(held, size, cell)[0]) for cell in held}
    regions = {frozenset(flood(held, size, cell)[0]) for cell in cells if cell not in held}

    def near(region: frozenset) -> set[Cell]:
        return {beside for cell in region for beside in neighbours(size, cell)}

    def is_vital(region: frozenset, chain: frozenset) -> bool:
        counted = [cell for cell in region if suicide or cell not in stones]
        return bool(near(region) & chain) and all(chain.intersection(neighbours(size, cell)) for cell in counted)

    while True:
        kept = {chain for chain in chains if sum(is_vital(region, chain) for region in regions) >= 2}
        left = {region for region in regions if not any(near(region) & chain for chain in chains - kept)}
        if (kept, left) == (chains, regions):
            break
        chains, regions = kept, left
    inner = {region: sum(not held.keys() & set(neighbours(size, cell)) for cell in region) for region in regions}
    return set().union(*(region for region in regions if held and inner[region] <= 1))


def areas(game: KatagoGame, suicide: bool) -> dict[Cell, int]:
    """Owner of every cell that has one."""
    size, stones = game.size, game.stones
    if game.rules.scoring == SCORING_TERRITORY:
        return {}
    owner = game.twin.area()
    for color in (BLACK, WHITE):
        owner.update(dict.fromkeys(dead_regions(stones, size, color, suicide), color))
    if game.rules.tax == TAX_NONE:
        return owner
    shown = {}
    for cell, color in owner.items():
        area = flood(owner, size, cell)[0]
        dame = {b for c in area for b in neighbours(size, c) if b not in owner and b not in stones}
        atari = [c for c in area if stones.get(c) == color and len(chain_and_liberties(stones, size, c)[1]) == 1]
        if stones.get(cell) == color or not (dame or atari):
            shown[cell] = color
    return shown


def katago_input(game: KatagoGame, as_if_suicide: bool, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The 22 planes and 19 global values.

    Raises:
        UnreadError: a ladder takes the twin more moves than it may read.
    """
    size, color, rules = game.size, game.color, game.rules
    planes, globals_ = np.zeros((22, size, size), np.float32), np.zeros(19, np.float32)
    planes[0] = 1
    for cell, stone in game.stones.items():
        planes[(1 if stone == color else 2, *cell)] = 1
        liberties = len(chain_and_liberties(game.stones, size, cell)[1])
        if liberties <= 3:
            planes[(2 + liberties, *cell)] = 1
    for cell in game.forbidden():
        planes[(6, *cell)] = 1
    shown, ends = game.course()
    for age in range(shown):
        cell = game.record[-1 - age]
        if cell is None:
            globals_[age] = 1
        else:
            planes[(9 + age, *cell)] = 1
    ladders = Ladders(size, nodes)
    for age in range(3):
        stones, ko = game.boards[-1 - min(age, shown)]
        caught, working = ladders.caught(stones, ko)
        for cell in caught:
            planes[(14 + age, *cell)] = 1
        for cell in working[color] if age == 0 else ():
            planes[(17, *cell)] = 1
    for cell, owner in areas(game, as_if_suicide or rules.suicide).items():
        planes[(18 if owner == color else 19, *cell)] = 1
    komi = game.own_komi()
    globals_[5] = komi / 20
    globals_[6] = rules.ko != KO_SIMPLE
    globals_[7] = {KO_SIMPLE: 0, KO_POSITIONAL: 0.5, KO_SITUATIONAL: -0.5}[rules.ko]
    globals_[8] = rules.suicide
    globals_[9] = rules.scoring == SCORING_TERRITORY
    globals_[10], globals_[11] = rules.tax != TAX_NONE, rules.tax == TAX_ALL
    globals_[14], globals_[17] = ends, game.has_button
    if rules.scoring == SCORING_AREA:
        above = (komi - size % 2) - 2 * math.floor((komi - size % 2) / 2)
        globals_[18] = {0.0: 0, 0.5: 0.5, 1.0: 0, 1.5: -0.5}[above]
    return planes, globals_
