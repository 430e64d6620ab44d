"""Options of self-play by search, each with its source, and the initial state of its games.

Sources: AGZ = Silver et al., "Mastering the game of Go without human knowledge", 2017, Methods; KG = Wu, "Accelerating
Self-Play Learning in Go", 2019 (arXiv 1902.10565), with KataGo's ``selfplay1_maxsize9.cfg`` for small boards; Gumbel =
Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022. Defaults are those for 9x9 on few cores.
"""

from dataclasses import dataclass

import numpy as np

from engine.config.declaration import Checked, option
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.go.position import apply_rules, new_position
from engine.go.rules import RULE_KOMI_X2, RULE_SETS, SCORING_TERRITORY, twice_komi
from engine.search.choosing import CONCENTRATION
from engine.selfplay.game_distribution import unit_of
from engine.selfplay.games import Setups
from engine.selfplay.plan import move_limit, resignation_threshold
from engine.selfplay.table import GameConfig

PLAYED_OUT, EARLY_MOVES, KOMI = 21, 22, 23
"""Streams of random numbers for games to play out, numbers of early moves, and komi, which uses the next two as well"""
MOST_KOMI = 150.0


@dataclass(frozen=True)
class SearchPlayOptions(Checked):
    """Options of self-play by search: games and searches."""

    heading = "Self-play"
    size: int = option(9, "board size", low=MIN_SIZE, high=MAX_SIZE)
    rules: str = option(
        "tromp-taylor", "rule set (AGZ); area rules only, since self-play does not agree on dead stones",
        choices=tuple(name for name, rules in RULE_SETS.items() if rules.scoring != SCORING_TERRITORY),
    )  # fmt: skip
    visits: int = option(
        64, "visits of a full search, a kept subtree's included; full searches give the training rows",
        low=2, high=30000,
    )  # fmt: skip
    fast_visits: int = option(
        12, "visits of a fast search, which gives a move and no training row (KG 3.1)", low=1, high=30000
    )
    full_share: float = option(0.25, "share of full searches: playout cap randomization (KG 3.1)", low=0.0, high=1.0)
    decided_share: float = option(
        0.25, "factor of --full-share in a decided game: one whose values are beyond 0.9 for --resign-count moves of "
        "either side in a row (after KG)", low=0.0, high=1.0,
    )  # fmt: skip
    c_puct: float = option(1.1, "exploration constant of PUCT (KG)", low=0.0, high=20.0)
    fpu_reduction: float = option(
        0.2, "first play urgency: how far an unvisited move's value is below its parent's, except at the root (KG)",
        low=0.0, high=2.0,
    )  # fmt: skip
    score_utility: float = option(
        0.2, "score utility: maximum that a lead in points, relative to the root's, adds to a move's value in PUCT, "
        "for networks with a score (KG F)", low=0.0, high=1.0,
    )  # fmt: skip
    noise: float = option(0.25, "share of Dirichlet noise in a full PUCT search's root priors (AGZ)", low=0.0, high=1.0)
    concentration: float = option(
        CONCENTRATION, "total concentration of the Dirichlet noise: 0.03 a point of 19x19 (AGZ, KG)", low=1e-3, high=1e4
    )
    target_temperature: float = option(
        1.1, "policy temperature at the root of a full search, which keeps the policy from sharpening itself without "
        "end (KG: 1.25 at first, then 1.1)", low=0.1, high=10.0,
    )  # fmt: skip
    forced: float = option(
        2.0, "forced playouts: factor k of the sqrt(k * prior * visits) visits of a visited root move in a full PUCT "
        "search, pruned from the policy target (KG 3.2); 0 = off",
        low=0.0, high=100.0,
    )  # fmt: skip
    temperature: float = option(
        0.8, "temperature of the move choice at the start of a game (KG), and scale of the Gumbel variables",
        low=0.05, high=10.0,
    )  # fmt: skip
    final_temperature: float = option(
        0.2, "final temperature of the move choice, late in a game (KG)", low=0.05, high=10.0
    )
    half_life: float = option(
        0.0, "half-life, in moves, of the difference between temperature and final temperature; 0 = the board's width "
        "(KG)", low=0.0, high=1000.0,
    )  # fmt: skip
    early_share: float = option(
        0.04, "mean number of opening moves drawn from the policy alone, as a share of the board's points (KG D)",
        low=0.0, high=1.0,
    )  # fmt: skip
    sensible: float = option(
        0.0, "number of moves, as a share of the board's points, before which no side passes, fills an own eye or "
        "commits suicide if it has another move; random networks would learn early passes (Minigo, pull request 928)",
        low=0.0, high=2.0,
    )  # fmt: skip
    komi: float = option(7.0, "mean komi", low=-MOST_KOMI, high=MOST_KOMI, unit="points")
    komi_sd: float = option(1.0, "standard deviation of komi (KG D)", low=0.0, high=100.0, unit="points")
    wide_komi_share: float = option(0.06, "share of games with a wide range of komi (KG D)", low=0.0, high=1.0)
    wide_komi_sd: float = option(
        12.0, "standard deviation of komi in games with a wide range of it (KG D)", low=0.0, high=100.0, unit="points"
    )
    resign: float = option(
        0.0, "win rate below which a move is hopeless (AGZ); 0 = games are played out (KG)", low=0.0, high=0.5
    )
    resign_count: int = option(3, "hopeless moves of a colour in a row after which it resigns", low=1, high=8)
    played_out: float = option(
        0.1, "share of games played out without resigning, to count wrong resignations (AGZ)", low=0.0, high=1.0
    )
    surprise_weight: float = option(
        0.5, "policy surprise weighting: share of a game's weight spread over its rows by the divergence of policy "
        "target and prior (KG)", low=0.0, high=1.0,
    )  # fmt: skip
    keep_tree: bool = option(True, "reuse the subtree of the move played in the next search of a game (AGZ)")
    candidates: int = option(
        0, "Gumbel search: moves that sequential halving begins with in a full search (published: 16); 0 = PUCT",
        low=0, high=1024,
    )  # fmt: skip
    sigma_scale: float = option(
        0.5, "Gumbel search: c_scale; with 1, as published, one visit is too noisy, and 0.1 hardly sharpens a policy",
        low=0.0, high=100.0,
    )  # fmt: skip
    limit: int = option(0, "move limit, at which a game is stopped and counted; 0 = twice the board's points", low=0)
    seed: int = option(1, "random seed", low=0, high=2**62)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full_share * self.decided_share < 1.0 and self.fast_visits > self.visits:
            raise ValueError(f"fast_visits is {self.fast_visits}, expected at most visits, {self.visits}")
        twice_komi(self.komi)

    @property
    def most_moves(self) -> int:
        """The move limit of a game."""
        return move_limit(self.size, self.limit)

    def config(self) -> GameConfig:
        """The options as kernels read them."""
        same = {name: getattr(self, name) for name in GameConfig._fields if hasattr(self, name)}
        return GameConfig(**same | {
            "limit": self.most_moves,
            "half_life": self.half_life or float(self.size),
            "resign_below": resignation_threshold(self.resign),
            "sensible_moves": round(self.sensible * self.size**2),
        })  # fmt: skip

    def set_up(self, numbers: np.ndarray) -> Setups:
        """Initial state of games, given their numbers (int64[K]); a function of the seed and each number alone.

        The komi is normally distributed and rounded to half points, the number of early moves exponentially distributed
        and rounded down.
        """
        position = new_position(MIN_SIZE)
        apply_rules(position, RULE_SETS[self.rules], 0.0)
        rules = np.repeat(position.rules[None], len(numbers), axis=0)
        wide, radius, angle = (unit_of(self.seed, numbers, KOMI + i) for i in range(3))
        normal = np.sqrt(-2.0 * np.log1p(-radius)) * np.cos(2.0 * np.pi * angle)
        spread = np.where(wide < self.wide_komi_share, self.wide_komi_sd, self.komi_sd)
        rules[:, RULE_KOMI_X2] = np.rint(2.0 * np.clip(self.komi + spread * normal, -MOST_KOMI, MOST_KOMI))
        mean = self.early_share * self.size**2
        return Setups(
            rules=rules,
            may_resign=(unit_of(self.seed, numbers, PLAYED_OUT) >= self.played_out).astype(np.int64),
            early=(-mean * np.log1p(-unit_of(self.seed, numbers, EARLY_MOVES))).astype(np.int64),
        )
