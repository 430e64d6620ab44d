"""Each batch in several steps, for where batches take longer to make than to learn from.

Old batches take turns with new ones: of every ``times`` steps one is on a new batch, the others on such as were new
:data:`SPAN` steps ago, twice that, and so on. So the threads that make batches are asked for one at a steady pace. An
old batch is shown under another symmetry of the board (:func:`turned`): its positions are none that were seen before.

Source: Choi et al., "Faster Neural Network Training with Data Echoing", 2019.
"""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

import torch
from torch import Tensor

from engine.train.batches import OF_BOARDS, OF_MOVES

T = TypeVar("T")
SPAN = 200
"""Steps between two on the same batch, less than ``times`` more"""


def batch_of(step: int, times: int) -> tuple[int, int]:
    """The number of the batch that a step is on, and how often earlier steps were; the first batches are seen less."""
    turn, age = divmod(step, times)
    return turn + (times - 1 - age) * -(-SPAN // times), age


class Echoes(Generic[T]):
    """The batches of all steps. Threads: any."""

    def __init__(self, make: Callable[[int], T], times: int) -> None:
        """Make batches by their number when they are first needed.

        Args:
            times: steps that each batch is for.
        """
        self._make, self._times = make, times
        self._made: dict[int, T] = {}
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Batches that later steps are waiting for."""
        return len(self._made)

    def __call__(self, step: int) -> T:
        """The batch of one step."""
        number, age = batch_of(step, self._times)
        is_last = age == self._times - 1
        with self._lock:
            made = self._made.pop(number, None) if is_last else self._made.get(number)
        if made is None:
            # A run that begins, or goes on, has none yet; the same ones come of their numbers.
            made = self._make(number)
            if not is_last:
                with self._lock:
                    self._made[number] = made
        return made


def turned(tensors: dict[str, Tensor], symmetry: int) -> dict[str, Tensor]:
    """A batch as another symmetry of the board shows it.

    Args:
        tensors: by the names of :class:`engine.train.batches.TrainingBatch`.
        symmetry: 0 to 7, as of :mod:`engine.features.symmetry`; 0 = as it is.
    """
    if not symmetry:
        return tensors
    size = tensors["planes"].shape[-1]

    def shown(points: Tensor) -> Tensor:
        points = points.mT if symmetry & 4 else points
        return points.flip([axis for axis, bit in ((-2, 1), (-1, 2)) if symmetry & bit])

    def shown_moves(moves: Tensor) -> Tensor:
        points = shown(moves[:, :-1].view(-1, size, size)).reshape(len(moves), -1)
        return torch.cat([points, moves[:, -1:]], dim=1)

    return (
        tensors
        | {name: shown(tensors[name]) for name in OF_BOARDS}
        | {name: shown_moves(tensors[name]) for name in OF_MOVES}
    )
