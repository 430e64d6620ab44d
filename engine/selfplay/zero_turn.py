"""What the loop of AlphaGo Zero writes down of a turn, tells of it, and goes by."""

from dataclasses import asdict, dataclass, field
from typing import Any

from engine.config import TrainOptions
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.zero_options import ZeroOptions

LEARNING = (
    "optimizer", "rate", "warmup", "weight_decay", "clip", "ema", "policy_weight", "value_weight", "score_weight",
    "ownership_weight", "reply_weight", "workers",
)  # fmt: skip
"""Options of training that say something here"""
PLAY, TRAIN, CHECK = "play", "train", "check"
"""What a turn is at"""


@dataclass
class Turn:
    """One turn, as the manifest has it."""

    number: int = 0
    phase: str = PLAY
    network: int = 0
    """the step of the network that plays"""
    wanted: int = 0
    """rows in all when self-play ends"""
    komi: float = 0.0
    resign: float = 0.0
    first_step: int = 0
    last_step: int = 0
    rate: float = 0.0
    shards: list[str] = field(default_factory=list)
    """of the window, oldest first"""


class Watch:
    """Told what a run does and waits for; this one ignores it."""

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """Some of a phase is done, of what there is to do; called about every second."""

    def say(self, line: str) -> None:
        """Something worth a line."""

    def measured(self) -> None:
        """A network was trained and measured."""


@dataclass(frozen=True)
class Ways:
    """All options of a run."""

    loop: ZeroOptions
    play: SearchPlayOptions
    train: TrainOptions
    shape: dict[str, int]
    """of a new network"""
    rest: dict[str, Any] = field(default_factory=dict)
    """options that are not the loop's own, by group: those of its checks"""

    @property
    def settings(self) -> dict[str, Any]:
        """For the manifest: what a later start goes on with unless it is given anew."""
        learning = {name: getattr(self.train, name) for name in LEARNING}
        return {"loop": asdict(self.loop), "play": asdict(self.play), "train": learning} | self.rest
