"""How the loop of AlphaGo Zero goes round: when a network is trained, on which rows, and who plays next.

Sources: AGZ = Silver et al., "Mastering the game of Go without human knowledge", 2017, Methods; KG = Wu, "Accelerating
Self-Play Learning in Go", 2019 (arXiv 1902.10565), and KataGo's ``SelfplayTraining.md`` and ``synchronous_loop.sh``.
"""

from dataclasses import dataclass

from engine.config.declaration import Checked, option
from engine.train.window import window_rows


@dataclass(frozen=True)
class ZeroOptions(Checked):
    """How self-play and training take turns. What a run began with goes on unless it is given anew."""

    heading = "The loop"
    first_rows: int = option(10_000, "of the network with random weights, before any training", low=1)
    rows: int = option(5_000, "new ones of a network, before the next one is trained", low=1)
    samples: float = option(
        4.0, "times that a row is trained on in the mean (KG: 4, small loops at most 8)", low=0.01, high=100.0
    )
    batch: int = option(128, "positions of a step", low=1, high=65536)
    window: int = option(20_000, "rows up to which all are trained on (KG c)", low=1)
    window_power: float = option(0.65, "how the window grows beyond that (KG alpha)", low=0.01, high=1.0)
    window_slope: float = option(0.4, "rows it grows by for a new one at first (KG beta)", low=0.0, high=1.0)
    fair_komi: bool = option(True, "the mean komi of self-play follows what its games come to (after KG)")
    first_sensible: float = option(
        2.0, "--sensible while the network is random: its games are played out (Minigo)", low=0.0, high=2.0
    )
    first_visits: float = option(
        0.25, "share of the visits while the network is random: its searches find little, its games say who owns what",
        low=0.0, high=1.0,
    )  # fmt: skip
    resigns: bool = option(
        False, "resign where fewer than 5% of the games played out say it is wrong (AGZ); the owners of points and the "
        "score of a resigned game are not known, so small boards do without (KG: never)",
    )  # fmt: skip
    gate: float = option(
        0.0, "share that a network must win to play next; 0 = each does (AGZ: 0.55)", low=0.0, high=1.0
    )
    gate_games: int = option(100, "played for that", low=2)
    cooldown: float = option(
        0.15, "share of --minutes at the end in which the learning rate is a tenth (KG)", low=0.0, high=1.0
    )
    side_by_side: str = option(
        "auto", "begin the next turn's games while the network is trained, with the one before; auto: on a GPU, and "
        "where Ray's actors play", choices=("auto", "on", "off"),
    )  # fmt: skip
    at_once: int = option(32, "games of a group; two or three groups play at once", low=1, high=4096)
    disk_gib: float = option(
        10.0,
        "most that rows take on disk; the oldest that are trained on no more are deleted beyond it",
        low=0.0,
        high=1e6,
        unit="GiB",
    )

    def window_of(self, rows: int) -> int:
        """Rows to train on when there are ``rows`` in all."""
        return window_rows(rows, self.window, self.window_power, self.window_slope)
