"""The record of one turn of ``keima zero``, and the reports that a run makes."""

from dataclasses import dataclass, field, replace

from engine.zero.options import ZeroOptions

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
    rows_before: int = 0
    """rows in all when the window before was fixed"""
    komi: float = 0.0
    resign: float = 0.0
    first_step: int = 0
    last_step: int = 0
    rate: float = 0.0
    batch: int = 0
    """of the steps up to the last one; --batch counts from the next window on, as --rate does"""
    trained: int = 0
    """samples of all steps up to the last one, those of earlier turns included"""
    owed: float = 0.0
    """samples that rows are worth and no step was taken for; less than 0 = steps were taken too early"""
    shards: list[str] = field(default_factory=list)
    """of the window, oldest first"""

    @property
    def rows(self) -> int:
        """New rows that this turn wants, or has once its window is fixed."""
        return self.wanted - self.rows_before

    def in_training(self, rows: int, step: int, loop: ZeroOptions) -> "Turn":
        """The turn with as many steps before it as its own rows are worth.

        Args:
            rows: in all.
            step: the last one that was taken.
        """
        owed = self.owed + loop.samples * (rows - self.rows_before)
        steps = max(1, int(owed / loop.batch))
        samples = steps * loop.batch
        return replace(
            self, phase=TRAIN, wanted=rows, first_step=step, last_step=step + steps, batch=loop.batch,
            trained=self.trained + samples, owed=owed - samples,
        )  # fmt: skip


class Progress:
    """Told what a run does and waits for; this one ignores it."""

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """Some of a phase is done, of what there is to do; called about every second."""

    def say(self, line: str) -> None:
        """Something worth a line."""

    def measured(self) -> None:
        """A network was trained and measured."""
