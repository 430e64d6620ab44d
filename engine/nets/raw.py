"""All outputs of a network in float32 on the CPU, for comparison with other engines; searches have no use for them.

What only KataGo's networks compute is :class:`engine.nets.katago.model.KataGoOutput`; it is unknown of others.
"""

import numpy as np
import torch

from engine.nets.compute.adapter import exact_output
from engine.nets.files.read import read_network
from engine.nets.katago.model import KataGoNet, KataGoOutput
from engine.nets.network import NetOutput
from engine.nets.on_device import pair_spec
from weights import NetworkPath, files_of

UNKNOWN = -1.0
"""What KataGo shows for what a network does not compute"""


RawOutput = KataGoOutput[np.ndarray | None, float]
"""A network's outputs for one position, from the view of the side to move: NaN = no such head; score_square and the
errors are ``UNKNOWN`` where only KataGo's networks have them, and the score is then the lead"""


class RawNetwork:
    """See the module's text. Reading the file again costs time and memory, so make one only when it is wanted."""

    def __init__(self, path: NetworkPath):
        """Read a file, or AlphaGo's two.

        Raises:
            ValueError: as :func:`engine.nets.files.read.read_network`.
        """
        read = [read_network(one)[:2] for one in files_of(path)]
        self._models = [model.eval() for model, _ in read]
        self.spec = read[0][1] if len(read) == 1 else pair_spec(read[0][1], read[1][1])

    def ask(self, planes: np.ndarray, globals_: np.ndarray, optimism: float) -> RawOutput:
        """The network's outputs for one position.

        Args:
            planes: float32[1, C, N, N] as the spec's encoder writes them; ``globals_`` float32[1, G] likewise.
            optimism: 0 to 1, between KataGo's two policies where a network has two.
        Raises:
            ValueError: a board that the network does not play; one line.
        """
        self.spec.check_sizes(planes.shape[2:3])
        inputs, model = (torch.from_numpy(planes), torch.from_numpy(globals_)), self._models[0]
        if not isinstance(model, KataGoNet):
            outputs = [exact_output(one, inputs[0][:, : one.shape.planes], inputs[1]) for one in self._models]
            return _plain(outputs[0] if len(outputs) == 1 else NetOutput(outputs[0].policy, outputs[1].value))
        with torch.inference_mode():
            policy, *numbers, ownership = (part[0].numpy() for part in model.raw(*inputs, optimism))
        return RawOutput._make([policy, *map(float, numbers), ownership])


def _plain(found: NetOutput) -> RawOutput:
    """The outputs of a network that has no output for games without result."""
    nan = float("nan")
    value = nan if found.value is None else float(found.value)
    lead = nan if found.score is None else float(found.score)
    policy, ownership = (None if head is None else head[0].numpy() for head in (found.policy, found.ownership))
    unknown = (UNKNOWN,) * 4
    return RawOutput(policy, (1.0 + value) / 2.0, (1.0 - value) / 2.0, 0.0, lead, lead, *unknown, ownership)
