"""Our size-independent residual network: policy with pass, value, score and ownership from one trunk.

Nothing in it depends on the board's size: convolutions are padded with zeros, the plane of ones tells where the
board is, and the heads see the board through global pooling (mean and maximum; the mean also scaled by the size of
the board, as in Wu, "Accelerating Self-Play Learning in Go", 2019, section 3.3), so one network plays 7x7 to 19x19.
There is no batch normalisation: training batches hold one board size each, whose statistics differ. Instead each
block begins as the identity (its last convolution starts at zero; Zhang et al., "Fixup Initialization", 2019).
"""

import threading
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.nets.network import NetOutput, NetworkSpec

CENTRE_SIZE = 14.0
"""Board size at which the size-scaled mean is zero, the middle of 9 and 19."""
SCORE_SCALE = 20.0
"""Points per unit of the raw score output, so that it starts in a trainable range."""


@dataclass(frozen=True)
class ResNetShape:
    """What fixes the parameters of a :class:`ResNet`."""

    planes: int
    globals: int
    blocks: int = 6
    channels: int = 64
    head_channels: int = 32
    value_hidden: int = 64
    pool_every: int = 3
    """every how many blocks one gets a global pooling branch"""


def pooled(x: Tensor) -> Tensor:
    """float32[B, 3C]: mean, mean scaled by board size, maximum over the points of x[B, C, N, N]."""
    mean = x.mean(dim=(2, 3))
    return torch.cat([mean, mean * ((x.shape[2] - CENTRE_SIZE) / 10.0), x.amax(dim=(2, 3))], dim=1)


class Block(nn.Module):
    """Pre-activation residual block; with pooling, part of the first convolution becomes a bias for the whole board."""

    def __init__(self, channels: int, pool_channels: int = 0):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.pool = nn.Conv2d(channels, pool_channels, 3, padding=1) if pool_channels else None
        self.pool_bias = nn.Linear(3 * pool_channels, channels) if pool_channels else None
        nn.init.kaiming_normal_(self.first.weight, nonlinearity="relu")
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out as in."""
        ready = F.relu(x)
        inner = self.first(ready)
        if self.pool is not None:
            inner = inner + self.pool_bias(pooled(F.relu(self.pool(ready))))[:, :, None, None]
        return x + self.second(F.relu(inner))


class ResNet(nn.Module):
    """The parameters and the forward pass; :class:`TorchNetwork` gives it the Network interface."""

    def __init__(self, shape: ResNetShape):
        super().__init__()
        self.shape = shape
        channels, head = shape.channels, shape.head_channels
        self.stem = nn.Conv2d(shape.planes, channels, 3, padding=1)
        self.stem_globals = nn.Linear(shape.globals, channels)
        self.blocks = nn.ModuleList(
            Block(channels, head if (i + 1) % shape.pool_every == 0 else 0) for i in range(shape.blocks)
        )
        self.policy_pool = nn.Conv2d(channels, head, 1)
        self.policy_local = nn.Conv2d(channels, head, 1)
        self.policy_bias = nn.Linear(3 * head, head)
        self.policy_out = nn.Conv2d(head, 1, 1)
        self.pass_hidden = nn.Linear(3 * head, head)
        self.pass_out = nn.Linear(head, 1)
        self.value_local = nn.Conv2d(channels, head, 1)
        self.value_hidden = nn.Linear(3 * head + shape.globals, shape.value_hidden)
        self.value_out = nn.Linear(shape.value_hidden, 2)
        self.ownership_out = nn.Conv2d(head, 1, 1)

    def forward(self, planes: Tensor, globals_: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Raw outputs for planes[B, C, N, N] and globals_[B, G].

        Returns:
            policy logits [B, N*N+1]; value logit [B] (tanh gives the value); score in points [B]; ownership
            logits [B, N, N] (tanh gives ownership). All from the view of the side to move.
        """
        x = self.stem(planes) + self.stem_globals(globals_)[:, :, None, None]
        for block in self.blocks:
            x = block(x)
        x = F.relu(x)
        context = pooled(F.relu(self.policy_pool(x)))
        local = F.relu(self.policy_local(x) + self.policy_bias(context)[:, :, None, None])
        passing = self.pass_out(F.relu(self.pass_hidden(context)))
        policy = torch.cat([self.policy_out(local).flatten(1), passing], dim=1)
        local = F.relu(self.value_local(x))
        hidden = F.relu(self.value_hidden(torch.cat([pooled(local), globals_], dim=1)))
        value = self.value_out(hidden)
        return policy, value[:, 0], value[:, 1] * SCORE_SCALE, self.ownership_out(local)[:, 0]


class TorchNetwork:
    """A trained :class:`ResNet` behind the Network interface, frozen for one device.

    On CUDA, and on processors with bfloat16 instructions, it runs in bfloat16 (about twice as fast; win rates move
    by less than 0.01); outputs are float32 either way. On the CPU each board size is traced and frozen once, which
    lets oneDNN keep packed weights.
    """

    def __init__(self, model: ResNet, spec: NetworkSpec, device: torch.device, reduced: bool | None = None):
        self.spec = spec
        self.device = device
        if reduced is None:
            reduced = device.type == "cuda" or (device.type == "cpu" and torch.cpu._is_avx512_bf16_supported())
        self.dtype = torch.bfloat16 if reduced else torch.float32
        self._model = model.eval().to(device=device, dtype=self.dtype, memory_format=torch.channels_last)
        self._frozen: dict[int, torch.nn.Module] = {}
        self._freezing = threading.Lock()

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`."""
        with torch.inference_mode():
            x = planes.to(dtype=self.dtype, memory_format=torch.channels_last)
            policy, value, score, ownership = self._for_size(planes.shape[2])(x, globals_.to(self.dtype))
            return NetOutput(policy.float(), value.float().tanh(), score.float(), ownership.float().tanh())

    def _for_size(self, size: int) -> torch.nn.Module:
        """The model to call for one board size; traced at the first call on the CPU."""
        if self.device.type != "cpu":
            return self._model
        if size not in self._frozen:
            with self._freezing, warnings.catch_warnings(), torch.inference_mode():
                warnings.simplefilter("ignore")
                shape = self._model.shape
                planes = torch.zeros(2, shape.planes, size, size, dtype=self.dtype)
                globals_ = torch.zeros(2, shape.globals, dtype=self.dtype)
                example = (planes.to(memory_format=torch.channels_last), globals_)
                self._frozen[size] = torch.jit.freeze(torch.jit.trace(self._model, example, check_trace=False))
        return self._frozen[size]
