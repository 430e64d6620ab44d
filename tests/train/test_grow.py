"""A network that grows keeps its outputs."""

import pytest
import torch
from click.testing import CliRunner

from engine.features.encoder import KEIMA, KEIMA_1
from engine.nets.architectures.registry import new_spec
from engine.nets.architectures.resnet import ResNetShape
from engine.nets.files.checkpoint import save_network
from engine.nets.model import load_model, new_model
from engine.records.games import write_games
from engine.train.grow import grown, on_newest_inputs
from gtp.cli.train import train
from tests.train.made import made_games

SMALL = ResNetShape(planes=5, globals=3, blocks=3, channels=8, head_channels=4, value_hidden=6)


def trained(shape):
    """A network none of whose weights is zero by construction."""
    torch.manual_seed(3)
    model = new_model("keima-resnet", vars(shape)).eval()
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(std=0.1)
    return model


@pytest.mark.parametrize("inner", [0, 6])
@pytest.mark.parametrize(("blocks", "channels"), [(3, 8), (3, 12), (5, 8), (7, 20)])
def test_a_grown_network_gives_the_same_outputs(blocks, channels, inner):
    shape = vars(SMALL) | {"inner": inner}
    small = trained(ResNetShape(**shape))
    large = grown(small, ResNetShape(**(shape | {"blocks": blocks, "channels": channels}))).eval()
    planes, globals_ = torch.rand(2, 5, 9, 9), torch.rand(2, 3)
    with torch.inference_mode():
        for before, after in zip(small(planes, globals_)[:4], large(planes, globals_)[:4], strict=True):
            torch.testing.assert_close(after, before, atol=1e-4, rtol=1e-4)


def test_a_network_grows_outputs_for_the_reply():
    """Used in training alone: whoever plays is not asked for the time that they would take."""
    small = trained(SMALL)
    large = grown(small, ResNetShape(**(vars(SMALL) | {"reply": 1})))
    planes, globals_ = torch.rand(2, 5, 9, 9), torch.rand(2, 3)
    assert large.train()(planes, globals_).reply.shape == (2, 82)
    for before, after in zip(small(planes, globals_)[:4], large.eval()(planes, globals_)[:4], strict=True):
        torch.testing.assert_close(after, before)
    assert large(planes, globals_).reply is None


def test_a_network_of_keima_1_goes_on_as_one_of_keima_2():
    small = trained(ResNetShape(**(vars(SMALL) | {"planes": KEIMA_1.planes, "globals": KEIMA_1.globals})))
    large, spec = on_newest_inputs(small, new_spec(small, "old", KEIMA_1.name))
    assert spec == new_spec(large, "old") and spec.encoder == KEIMA.name
    planes, globals_ = torch.rand(2, KEIMA.planes, 9, 9), torch.rand(2, KEIMA.globals)
    with torch.inference_mode():
        before, after = small(planes, globals_[:, : KEIMA_1.globals]), large.eval()(planes, globals_)
    for one, other in zip(before[:4], after[:4], strict=True):
        torch.testing.assert_close(one, other)
    assert on_newest_inputs(large, spec) == (large, spec)


def test_new_channels_learn_from_the_first_step():
    """All that old channels read of new ones is zero, yet its gradient is not."""
    large = grown(trained(SMALL), ResNetShape(**(vars(SMALL) | {"channels": 12})))
    sum(output.sum() for output in large(torch.rand(2, 5, 9, 9), torch.rand(2, 3))[:4]).backward()
    assert large.blocks[0].second.weight.grad[:8, 8:].abs().max() > 0


@pytest.mark.parametrize("change", [{"channels": 4}, {"blocks": 2}, {"head_channels": 8}])
def test_shrinking_or_another_shape_is_refused(change):
    with pytest.raises(ValueError, match="only globals, blocks, channels, reply may increase"):
        grown(trained(SMALL), ResNetShape(**(vars(SMALL) | change)))


def test_other_architectures_do_not_grow():
    policy = new_model("alphago-policy", {"filters": 4, "size": 5})
    with pytest.raises(ValueError, match="cannot grow: only keima-resnet can"):
        grown(policy, policy.shape)


@pytest.mark.parametrize(
    ("begun", "games", "more", "plays"),
    [
        ((9, 9), (9,), (), (9, 9)), ((9, 9), (9, 13), (), (9, 13)), ((9, 9), (9, 13), ("--boards", "9=1"), (9, 9)),
        ((5, 5), (5,), (), (5, 5)), ((7, 19), (9,), (), (7, 19)), ((9, 9), (9, 25), (), (9, 9)),
    ],
)  # fmt: skip
def test_a_network_claims_the_boards_it_began_with_and_those_it_is_shown(tmp_path, begun, games, more, plays):
    """One of keima zero for 9x9 alone, trained on for a while, claimed 7x7 to 19x19."""
    shape = {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 1, "channels": 4}
    model = new_model("keima-resnet", shape)
    save_network(tmp_path / "start.safetensors", model, new_spec(model, "start", sizes=begun), {})
    for size in games:
        write_games(tmp_path / f"games{size}.npz.xz", made_games(size=size, length=20))
    words = [word for size in games for word in ("--games", str(tmp_path / f"games{size}.npz.xz"))]
    write_games(held := tmp_path / "held.npz.xz", made_games(count=5, size=games[0], length=20))
    words += ["--validation", str(held), "--start", str(tmp_path / "start.safetensors")]
    words += ["--steps", "1", "--batch", "4", "--out", str(tmp_path / "run"), *more]
    found = CliRunner().invoke(train, ["dual", *words])
    assert found.exit_code == 0 and "training in " in found.stderr, found.output
    assert load_model(tmp_path / "run" / "network.safetensors")[1].sizes == plays
