"""The state of an iteration (turn) of ``keima zero``, and the progress interface of a run."""

from dataclasses import dataclass, field, replace

from engine.zero.options import ZeroOptions

PLAY, TRAIN, CHECK = "play", "train", "check"
"""Phases of a turn"""


@dataclass
class Turn:
    """One turn (iteration) of the loop, as the manifest records it."""

    number: int = 0
    phase: str = PLAY
    network: int = 0
    """training steps of the network that plays"""
    wanted: int = 0
    """total number of rows at which self-play ends"""
    rows_before: int = 0
    """total number of rows when the previous window was fixed"""
    komi: float = 0.0
    resign: float = 0.0
    first_step: int = 0
    last_step: int = 0
    rate: float = 0.0
    batch: int = 0
    """batch size of this turn's training steps; a changed --batch takes effect when the next window is fixed"""
    trained: int = 0
    """number of samples of all training steps up to ``last_step``, earlier turns included"""
    owed: float = 0.0
    """training samples due for all rows so far minus those of all steps; below 0 = more were trained than due"""
    shards: list[str] = field(default_factory=list)
    """file names of the shards in the window, oldest first"""

    @property
    def rows(self) -> int:
        """Number of new rows of this turn: those wanted or, once its window is fixed, those present."""
        return self.wanted - self.rows_before

    def in_training(self, rows: int, step: int, loop: ZeroOptions) -> "Turn":
        """The turn in its training phase, with the number of steps due for its rows.

        Args:
            rows: total number of rows.
            step: number of training steps so far.
        """
        owed = self.owed + loop.samples * (rows - self.rows_before)
        steps = max(1, int(owed / loop.batch))
        samples = steps * loop.batch
        return replace(
            self, phase=TRAIN, wanted=rows, first_step=step, last_step=step + steps, batch=loop.batch,
            trained=self.trained + samples, owed=owed - samples,
        )  # fmt: skip


class Progress:
    """Base class of observers of a run, whose methods do nothing; the run calls them with its progress."""

    def at(self, phase: str, done: float, total: float, words: str) -> None:
        """Called about every second with the progress of a phase: ``done`` of ``total``, and a text for people."""

    def say(self, line: str) -> None:
        """Called with a line for the log."""

    def measured(self) -> None:
        """Called when a network has been trained and measured."""
