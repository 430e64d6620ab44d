"""What the size-independent network promises beyond the other architectures."""

import pytest
import torch

from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.layers import Drawn
from engine.nets.model import TorchForward, model_of
from tests.nets.models import inputs, toy_network


@pytest.mark.parametrize("size", [7, 8, 9, 13, 19])
def test_one_network_evaluates_every_board_size(size):
    output = toy_network("keima-resnet").evaluate(*inputs("keima-resnet", 3, size))
    assert output.policy.shape == (3, size * size + 1)
    assert output.value.shape == output.score.shape == (3,)
    assert output.ownership.shape == (3, size, size)
    assert all(torch.isfinite(part).all() for part in output)


def test_nested_bottlenecks_begin_as_the_identity_and_learn():
    model = model_of(ResNet(ResNetShape(4, 2, blocks=3, channels=8, inner=4, head_channels=4), Drawn(1)))
    x = torch.rand(2, 8, 9, 9)
    for block in model.blocks:
        forward = TorchForward(x, torch.zeros(2, 0))
        block.describe(forward, forward.planes)
        assert torch.equal(forward.planes.value, x)
        assert [layer.weight.shape[:2] for layer in (block.narrow, block.blocks[0].first, block.widen)] == [
            (4, 8), (4, 4), (8, 4)
        ]  # fmt: skip
    assert [block.blocks[0].pool is not None for block in model.blocks] == [False, False, True]
    sum(head.sum() for head in model(torch.rand(2, 4, 9, 9), torch.rand(2, 2))[:4]).backward()
    assert model.blocks[0].widen.weight.grad.abs().max() > 0


def test_raw_heads_come_in_the_order_that_training_unpacks():
    model = model_of(ResNet(ResNetShape(4, 2, blocks=1, channels=8), Drawn(1)))
    policy, value, score, ownership, reply = model(torch.zeros(3, 4, 9, 9), torch.zeros(3, 2))
    assert reply is None
    assert policy.shape == (3, 82) and value.shape == score.shape == (3,) and ownership.shape == (3, 9, 9)
