"""All outputs of a network in float32 on the CPU, for comparison with other engines and for pictures; searches do not
use them.

Some outputs of :class:`engine.nets.katago.model.KataGoOutput` exist only for KataGo's networks.
"""

import numpy as np

from engine.nets.files.read import read_networks
from engine.nets.katago.model import KataGoNet, KataGoOutput
from engine.nets.network import NetArrays
from engine.nets.on_device import Reference
from engine.nets.trace import Trace, trace
from weights import NetworkPath

UNKNOWN = -1.0
"""KataGo's value for outputs that a network does not compute"""


RawOutput = KataGoOutput[np.ndarray | None, float]
"""A network's outputs for one position, from the view of the side to move; None or NaN = no such head. For networks
that are not KataGo's, score_square, variance_time and the errors are ``UNKNOWN``, and the score is the lead."""


class RawNetwork:
    """Computes a network's reference outputs from its own copy of the network, which takes time and memory."""

    def __init__(self, path: NetworkPath):
        """Read a network file, or the files of AlphaGo's policy network and value network.

        Raises:
            ValueError: as :func:`engine.nets.files.read.read_network`.
        """
        self.networks, self.spec, self.records = read_networks(path)
        self._references = [Reference(network) for network in self.networks]

    def ask(self, planes: np.ndarray, globals_: np.ndarray, optimism: float) -> RawOutput:
        """The network's outputs for one position.

        Args:
            planes: float32[1, C, N, N] of the spec's encoder; ``globals_`` float32[1, G].
            optimism: 0 to 1, weight of the optimistic policy in KataGo's networks that have one.
        Raises:
            ValueError: a board size that the network does not play; one line.
        """
        self.spec.check_sizes(planes.shape[2:3])
        network = self.networks[0]
        if not isinstance(network, KataGoNet):
            pairs = zip(self.networks, self._references, strict=True)
            outputs = [reference(planes[:, : one.shape.planes], globals_) for one, reference in pairs]
            return _plain(outputs[0] if len(outputs) == 1 else NetArrays(outputs[0].policy, outputs[1].value))
        found = network.raw(self._references[0].outputs(planes, globals_), globals_, optimism)
        policy, *numbers, ownership = (part[0] for part in found)
        return RawOutput._make([policy, *map(float, numbers), ownership])

    def trace(self, planes: np.ndarray, globals_: np.ndarray) -> Trace:
        """What the network's layers compute (:func:`engine.nets.trace.trace`); of AlphaGo's pair the layers of both,
        ``policy.`` or ``value.`` before their names.

        Args:
            planes: float32[B, C, N, N] of the spec's encoder; ``globals_`` float32[B, G].
        Raises:
            ValueError: a board size that the network does not play, or torch is missing; one line.
        """
        self.spec.check_sizes(planes.shape[2:3])
        traces = [trace(one, planes[:, : one.shape.planes], globals_) for one in self.networks]
        if len(traces) == 1:
            return traces[0]
        policy, value = traces
        named = (("policy", policy), ("value", value))
        layers = {f"{prefix}.{name}": made for prefix, one in named for name, made in one.layers.items()}
        return Trace(layers, NetArrays(policy.heads.policy, value.heads.value))


def _plain(found: NetArrays) -> RawOutput:
    """The outputs of a network that is not KataGo's, in the form of KataGo's."""
    nan = float("nan")
    value = nan if found.value is None else float(found.value[0])
    lead = nan if found.score is None else float(found.score[0])
    policy, ownership = (None if head is None else head[0] for head in (found.policy, found.ownership))
    unknown = (UNKNOWN,) * 4
    return RawOutput(policy, (1.0 + value) / 2.0, (1.0 - value) / 2.0, 0.0, lead, lead, *unknown, ownership)
