"""Networks without weights, for tests and measurements: they wear the real interface and cost next to nothing."""

import torch
from torch import Tensor

from engine.nets.network import NetOutput, NetworkSpec

MASK_BITS = 20


class UniformNetwork:
    """Knows nothing: equal logits, value 0, score 0, nobody's points."""

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25):
        self.spec = NetworkSpec("uniform", encoder, min_size, max_size, has_score=True, has_ownership=True)
        self.device = torch.device("cpu")

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        value = torch.zeros(count)
        return NetOutput(torch.zeros(count, size * size + 1), value, value, torch.zeros(count, size, size))


class HashNetwork:
    """Outputs that look random but are a function of the input alone, in exact integer arithmetic.

    Any change of an input value changes every output; batch size and order change nothing. Outputs are not
    symmetric: a turned board is another board.
    """

    def __init__(self, encoder: str, min_size: int = 2, max_size: int = 25, seed: int = 1):
        self.spec = NetworkSpec("hash", encoder, min_size, max_size, has_score=True, has_ownership=True)
        self.device = torch.device("cpu")
        self._seed = seed

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        count, size = planes.shape[0], planes.shape[2]
        inputs = torch.cat([planes.reshape(count, -1), globals_], dim=1)
        words = (inputs * 1024.0).to(torch.int64)
        places = _mix(torch.arange(words.shape[1]) + self._seed)
        digest = _mix((words * (places | 1)).sum(dim=1) + self._seed)
        outputs = 2 * size * size + 3
        units = _unit(_mix(digest[:, None] + torch.arange(outputs)))
        points = size * size
        return NetOutput(
            policy=3.0 * units[:, : points + 1],
            value=0.9 * units[:, points + 1],
            score=10.0 * units[:, points + 2],
            ownership=units[:, points + 3 :].reshape(count, size, size),
        )


def _mix(words: Tensor) -> Tensor:
    """Scramble int64 words (xor-shift and multiply, wrapping around)."""
    words = (words ^ ((words >> 29) & 0x7FFFFFFFF)) * -0x40A7B892E31B1A47
    words = (words ^ ((words >> 32) & 0xFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return words ^ ((words >> 32) & 0xFFFFFFFF)


def _unit(words: Tensor) -> Tensor:
    """float32 from -1 to 1 from the low bits of words."""
    return (words & ((1 << MASK_BITS) - 1)).to(torch.float32) / (1 << (MASK_BITS - 1)) - 1.0
