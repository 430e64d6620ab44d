"""Values with their perspective: a win rate, a lead and ownership that are asked for a colour.

None of these types is a number, so no program can mix the perspectives up: it names one, as in ``info.lead.black`` or
``info.win_rate.pov(board.to_move)``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.go.scoring import result_text
from keima.moves import BLACK, Color, ColorLike

T = TypeVar("T")


class _Sided(ABC, Generic[T]):
    """A value that each colour sees from its own side."""

    black: T
    to_move: Color

    @property
    @abstractmethod
    def white(self) -> T:
        """White's value."""

    @property
    def relative(self) -> T:
        """The value of the side to move."""
        return self.pov(self.to_move)

    def pov(self, color: ColorLike) -> T:
        """The value of a colour."""
        return self.black if Color.of(color) is BLACK else self.white


@dataclass(frozen=True)
class WinRate(_Sided[float]):
    """The probability that a colour wins, 0 to 1; half a draw counts as a win."""

    black: float
    """Black's probability"""
    to_move: Color
    """the side to move, of :attr:`relative`"""

    @property
    def white(self) -> float:
        """White's probability."""
        return 1.0 - self.black

    def __str__(self) -> str:
        return f"{self.black:.1%} for Black"


@dataclass(frozen=True)
class Lead(_Sided[float]):
    """The expected lead of a colour in points, komi counted; negative if it is behind."""

    black: float
    """Black's lead"""
    to_move: Color
    """the side to move, of :attr:`relative`"""

    @property
    def white(self) -> float:
        """White's lead."""
        return 0.0 - self.black

    def __str__(self) -> str:
        return result_text(round(self.black, 1))


@dataclass(frozen=True, eq=False)
class Ownership(_Sided[NDArray[np.float32]]):
    """The expected owner of each point at the end of the game: 1 = certainly the colour's, -1 = the opponent's."""

    black: NDArray[np.float32]
    """float32[N, N], read only, row 0 at the top: 1 = Black's, -1 = White's"""
    to_move: Color
    """the side to move, of :attr:`relative`"""

    @property
    def white(self) -> NDArray[np.float32]:
        """float32[N, N]: 1 = White's, -1 = Black's."""
        return -self.black
