"""The options of ``keima zero``: loop, ladder, network, and a recipe of settings for each board size.

Sources: AGZ = Silver et al., "Mastering the game of Go without human knowledge", 2017, Methods; KG = Wu, "Accelerating
Self-Play Learning in Go", 2019 (arXiv 1902.10565), and KataGo's ``SelfplayTraining.md`` and ``synchronous_loop.sh``.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from engine.config import TrainOptions
from engine.config.declaration import Checked, option
from engine.selfplay.search_options import SearchPlayOptions
from engine.train.turns import window_rows

WEIGHTS = tuple(item.name for item in fields(TrainOptions) if item.name.endswith("_weight"))
LEARNING = (
    *("optimizer", "momentum", "rate", "drop_factor", "drop_at", "warmup", "weight_decay", "clip", "ema", "workers"),
    "value_loss",
    *(name for name in WEIGHTS if name not in ("result_weight", "decided_weight")),
)
"""Training options of ``keima zero``; the two excluded loss weights are for results and labels from other sources"""


@dataclass(frozen=True)
class ZeroOptions(Checked):
    """Options of the loop, which alternates self-play and training."""

    heading = "The loop"
    first_rows: int = option(10_000, "rows that the network with random weights plays before any training", low=1)
    rows: int = option(5_000, "new training rows per turn, from self-play between one training and the next", low=1)
    samples: float = option(
        4.0, "mean number of training samples per row (KG: 4, small loops at most 8)", low=0.01, high=100.0
    )
    batch: int = option(128, "positions in a training step", low=1, high=65536)
    window: int = option(20_000, "initial size of the training window: with fewer rows, all are in it (KG c)", low=1)
    window_power: float = option(
        0.65, "exponent of the training window's growth beyond its first size (KG alpha)", low=0.01, high=1
    )
    window_slope: float = option(
        0.4, "growth of the training window for each new row beyond its first size (KG beta)", low=0.0, high=1.0
    )
    fair_komi: bool = option(True, "adapt the mean komi of self-play to the fair komi of its games (after KG)")
    first_sensible: float = option(
        2.0,
        "value of the setting sensible while the network is random, so that its games are played out (Minigo)",
        low=0.0,
        high=2.0,
    )
    first_visits: float = option(
        0.25, "share of --visits while the network is random: its searches find little, its games teach ownership",
        low=0.0, high=1.0,
    )  # fmt: skip
    resigns: bool = option(
        False, "resign below the value at which fewer than 5% of the played-out games would be resigned wrongly "
        "(AGZ); a resigned game has no ownership and no score, so small boards do without (KG: never)",
    )  # fmt: skip
    gate: float = option(
        0.0,
        "gate: win rate against the self-play network that a new one needs to replace it; 0 = off (AGZ: 0.55)",
        low=0.0,
        high=1.0,
    )
    gate_games: int = option(100, "games of a gate match", low=2)
    cooldown: float = option(
        0.15, "share of --minutes at the end in which the learning rate is a tenth (KG)", low=0.0, high=1.0
    )
    side_by_side: str = option(
        "auto", "self-play of the next turn, by the previous network, in parallel to training; auto = on a GPU and "
        "with Ray", choices=("auto", "on", "off"),
    )  # fmt: skip
    at_once: int = option(32, "batch size of self-play, in games; two or three batches run at once", low=1, high=4096)
    disk_gib: float = option(
        10.0, "disk space for rows; beyond it the oldest rows outside the window are deleted",
        low=0.0, high=1e6, unit="GiB",
    )  # fmt: skip

    def window_of(self, rows: int) -> int:
        """Number of rows in the training window when there are ``rows`` rows in all."""
        return window_rows(rows, self.window, self.window_power, self.window_slope)


@dataclass(frozen=True)
class LadderOptions(Checked):
    """Options of the matches that rate the networks of a run."""

    heading = "The ladder"
    ladder_share: float = option(
        0.05,
        "share of the run's time for matches against random moves and earlier networks; 0 = none",
        low=0.0,
        high=0.9,
    )
    ladder_games: int = option(40, "games of a ladder match", low=2)
    ladder_visits: int = option(
        16, "visits of the networks' searches in ladder and GNU Go matches; 1 = policy only", low=1, high=30000
    )
    gnugo_share: float = option(0.03, "share of the run's time for matches against GNU Go", low=0.0, high=0.9)
    gnugo_games: int = option(10, "games of a match against GNU Go", low=2)
    gnugo_level: int = option(10, "level of GNU Go", low=0, high=10)


@dataclass(frozen=True)
class NetworkShape(Checked):
    """Options of the shape of a new network; all recipes set it."""

    heading = "The network"
    network: str = option("keima-resnet", "architecture of a new network", choices=("keima-resnet", "alphago-zero"))
    blocks: int = option(6, "residual blocks of a new network", low=1)
    channels: int = option(64, "channels of a new network", low=1)
    reply: int = option(
        1, "opponent policy head, used in training alone, that predicts the opponent's reply (KG); 0 = none",
        low=0, high=1,
    )  # fmt: skip


SHAPE = tuple(item.name for item in fields(NetworkShape))


@dataclass(frozen=True)
class ZeroConfig:
    """All options of a run."""

    loop: ZeroOptions
    play: SearchPlayOptions
    train: TrainOptions
    shape: dict[str, Any]
    """fields of :class:`NetworkShape` for a new network"""
    ladder: LadderOptions = field(default_factory=LadderOptions)

    @property
    def settings(self) -> dict[str, Any]:
        """Options by group, for the manifest; a resumed run keeps them unless they are given anew."""
        learning = {name: getattr(self.train, name) for name in LEARNING}
        return {"loop": asdict(self.loop), "play": asdict(self.play), "train": learning, "ladder": asdict(self.ladder)}


GUMBEL: dict[str, Any] = {"candidates": 8, "visits": 16, "full_share": 1.0}
"""Settings of Gumbel search, which at equal time on 7x7 was ahead of playout caps and of fixed visits
(docs/lab/2026-11-25-ways-of-searching.md)"""

# On 9x9 fast searches play two of three moves: twice as many results for the value, at the same strength of the policy
# (docs/lab/2026-11-26-caps-and-gumbel.md).
RECIPES: dict[int, dict[str, Any]] = {
    5: {
        **GUMBEL, "blocks": 4, "channels": 32, "first_rows": 4_000, "rows": 3_000, "window": 8_000,
        "batch": 128, "at_once": 64, "rate": 2e-3, "warmup": 100, "ema": 0.99,
    },
    7: {
        **GUMBEL, "blocks": 4, "channels": 48, "first_rows": 8_000, "rows": 6_000, "window": 16_000,
        "temperature": 0.65, "early_share": 0.03, "batch": 128, "at_once": 48, "rate": 2e-3, "warmup": 200,
        "ema": 0.995, "cooldown": 0.25, "ladder_share": 0.03, "gnugo_share": 0.02,
    },
    9: {
        **GUMBEL, "blocks": 6, "channels": 64, "full_share": 0.33, "fast_visits": 6, "first_rows": 10_000,
        "rows": 10_000, "window": 25_000, "batch": 128, "at_once": 32, "rate": 1e-3, "warmup": 300, "ema": 0.998,
    },
    13: {
        "blocks": 6, "channels": 96, "visits": 128, "fast_visits": 24, "first_rows": 20_000, "rows": 20_000,
        "window": 50_000, "batch": 128, "at_once": 32, "warmup": 300, "ema": 0.999,
    },
    19: {
        "blocks": 10, "channels": 128, "visits": 600, "fast_visits": 100, "first_rows": 100_000, "rows": 50_000,
        "window": 250_000, "window_power": 0.75, "batch": 256, "at_once": 64, "warmup": 1000, "ema": 0.999,
    },
}  # fmt: skip
"""Recipes: settings that differ from the defaults, by the largest board size that each recipe is for"""
PUBLISHED: dict[str, Any] = {
    # Network: 17 planes, a residual trunk of 19 blocks, heads for policy and value.
    "size": 19, "network": "alphago-zero", "blocks": 19, "channels": 256, "reply": 0,
    # Searches: every position is a row with the visits as target; no random komi, no help for random networks.
    "visits": 1600, "fast_visits": 1, "full_share": 1.0, "decided_share": 1.0, "candidates": 0, "forced": 0.0,
    "target_temperature": 1.0, "score_utility": 0.0, "surprise_weight": 0.0, "early_share": 0.0, "sensible": 0.0,
    "first_sensible": 0.0, "first_visits": 1.0, "temperature": 1.0, "final_temperature": 0.05, "half_life": 30.0,
    "komi": 7.5, "komi_sd": 0.0, "wide_komi_share": 0.0, "fair_komi": False, "resigns": True, "played_out": 0.1,
    # Training: (z - v)^2 - pi log p + 1e-4 |weights|^2, by SGD; 25,000 games a turn, the last 500,000 in the window.
    "optimizer": "sgd", "momentum": 0.9, "rate": 0.01, "drop_factor": 0.1, "drop_at": (400_000, 600_000), "warmup": 0,
    "weight_decay": 2e-4, "clip": 0.0, "ema": 0.0, "value_loss": "mse", "policy_weight": 1.0, "value_weight": 1.0,
    "batch": 2048, "first_rows": 5_000_000, "rows": 5_000_000, "samples": 1.5, "window": 100_000_000,
    "window_slope": 0.0, "cooldown": 0.0, "gate": 0.55, "gate_games": 400,
}  # fmt: skip
"""AlphaGo Zero's settings for 19x19 as published (AGZ: 700,000 steps on 4.9 million games). c_puct and first play
urgency are not published and stay Keima's; the temperature falls by half-lives instead of at move 30."""
NAMED = {"published": PUBLISHED}
"""Recipes by name, which override that of the board size"""
KOMI = {2: 1.0, 3: 9.0, 4: 2.0, 5: 24.0, 6: 4.0, 7: 9.0}
"""Approximately fair komi by board size; 7 on other boards. On 5x5 perfect play gives Black all 25 points: at 25 Black
could not win, so it is 24."""


def recipe_for(size: int) -> dict[str, Any]:
    """The recipe for a board size: that of the smallest board in :data:`RECIPES` that is at least as large, or of the
    largest board, with the komi of this size and a reply head."""
    recipe = next((recipe for largest, recipe in RECIPES.items() if size <= largest), RECIPES[max(RECIPES)])
    return {"komi": KOMI.get(size, 7.0), "network": NetworkShape.network, "reply": NetworkShape.reply} | recipe
