"""All outputs of a network in float32 on the CPU, for comparison with other engines; searches have no use for them.

What only KataGo's networks compute is :class:`engine.nets.katago.heads.KataGoOutput`; it is unknown of others.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.nets.compute.adapter import exact_output
from engine.nets.files.read import read_network
from engine.nets.katago.model import KataGoNet
from engine.nets.network import Model, NetOutput, NetworkSpec
from engine.nets.pair import AlphaGoPair
from weights import NetworkPath, files_of

CPU = torch.device("cpu")
UNKNOWN = -1.0
"""What KataGo shows for what a network does not compute"""


class RawOutput(NamedTuple):
    """A network's outputs for one position, from the view of the side to move; nan = no such head."""

    policy: np.ndarray | None
    """float32[N*N+1]: logits, pass last, not masked for legality"""
    win: float
    """probability, as ``loss`` and ``no_result``; together 1"""
    loss: float
    no_result: float
    lead: float
    """points"""
    score: float
    """points at the end of a game of the network with itself, on average; the lead where it has no such output"""
    score_square: float
    """mean of its square; -1 = unknown, as the three that follow"""
    variance_time: float
    value_error: float
    score_error: float
    ownership: np.ndarray | None
    """float32[N, N]: 1 = surely the mover's"""


@dataclass
class _Exact:
    """A model behind :class:`engine.nets.network.Network`, computed the plain way."""

    model: Model
    spec: NetworkSpec
    device: torch.device = CPU
    merges: bool = False

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        return exact_output(self.model, planes, globals_)


class RawNetwork:
    """See the module's text. Reading the file again costs time and memory, so make one only when it is wanted."""

    def __init__(self, path: NetworkPath):
        """Read a file, or AlphaGo's two.

        Raises:
            ValueError: as :func:`engine.nets.files.read.read_network`.
        """
        networks = [_Exact(*read_network(one)[:2]) for one in files_of(path)]
        self._network = AlphaGoPair(*networks) if len(networks) == 2 else networks[0]
        self._model = networks[0].model.eval()
        self.spec = self._network.spec

    def ask(self, planes: np.ndarray, globals_: np.ndarray, optimism: float) -> RawOutput:
        """The network's outputs for one position.

        Args:
            planes: float32[1, C, N, N] as the spec's encoder writes them; ``globals_`` float32[1, G] likewise.
            optimism: 0 to 1, between KataGo's two policies where a network has two.
        Raises:
            ValueError: a board that the network does not play; one line.
        """
        self.spec.check_sizes(planes.shape[2:3])
        inputs = torch.from_numpy(planes), torch.from_numpy(globals_)
        if not isinstance(self._model, KataGoNet):
            return _plain(self._network.evaluate(*inputs))
        with torch.inference_mode():
            found = self._model.raw(*inputs, optimism)
        policy, *numbers, ownership = (part[0].numpy() for part in found)
        named = dict(zip(RawOutput._fields[1:-1], map(float, numbers), strict=True))
        return RawOutput(policy=policy, ownership=ownership, **named)


def _plain(found: NetOutput) -> RawOutput:
    """The outputs of a network that has no output for games without result."""
    nan = float("nan")
    value = nan if found.value is None else float(found.value)
    lead = nan if found.score is None else float(found.score)
    policy, ownership = (None if head is None else head[0].numpy() for head in (found.policy, found.ownership))
    unknown = (UNKNOWN,) * 4
    return RawOutput(policy, (1.0 + value) / 2.0, (1.0 - value) / 2.0, 0.0, lead, lead, *unknown, ownership)
