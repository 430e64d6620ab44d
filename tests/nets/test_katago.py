"""KataGo's networks: every kind of block, head and version, in either encoding, against a plain NumPy twin."""

import numpy as np
import pytest
import torch

from engine.features.profiles import DEFAULT_PROFILE, profile_values
from engine.nets.compute.precision import reduced_dtype
from engine.nets.files.header import expected_input
from engine.nets.katago.model import load_katago
from engine.nets.layers import named_arrays
from engine.nets.model import model_of
from engine.nets.network import RawHeads
from tests.nets import katago_twin
from tests.nets.katago_files import NETWORKS, random_network, saved
from tests.nets.models import exact_output, network_of, raw

CPU = torch.device("cpu")


def inputs(count, size, seed=0, human=None):
    """Planes and globals as KataGo's, the rules of the first position without, of the second with endless games.

    Args:
        human: a human profile among the globals.
    """
    random = np.random.default_rng(seed)
    planes = (random.random((count, 22, size, size)) < 0.3).astype(np.float32)
    globals_ = random.standard_normal((count, 19)).astype(np.float32)
    globals_[:, 6], globals_[:, 9] = np.arange(count) % 2 == 0, np.arange(count) % 3 == 2
    if human:
        rows = np.tile(profile_values(human, size)[:1].astype(np.float32), (count, 1))
        globals_ = np.concatenate([globals_, rows], axis=1)
    return torch.from_numpy(planes), torch.from_numpy(globals_)


def expected(network, planes, globals_, optimism=0.0):
    """What the twin says of several positions."""
    rows = [
        katago_twin.evaluate(network, planes.numpy(), globals_[:19].numpy(), globals_[19:].numpy(), optimism)
        for planes, globals_ in zip(planes, globals_, strict=True)
    ]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def profile_of(name):
    """The human profile to ask a network of ``NETWORKS`` for; None if it knows none."""
    return DEFAULT_PROFILE if "human" in name else None


@pytest.mark.parametrize("name", NETWORKS)
def test_every_output_is_what_the_twin_says(name, tmp_path):
    model, spec, record = load_katago(saved(tmp_path, NETWORKS[name]))
    encoder = "katago-v7-human" if "human" in name else "katago-v7"
    assert (spec.name, spec.encoder, spec.min_size, spec.max_size) == ("tiny-b1c6", encoder, 2, 19)
    assert "policy" in spec.heads and "value" in spec.heads and "score" in spec.heads and "ownership" in spec.heads
    assert record["version"] == NETWORKS[name]["version"]
    for size in (2, 7):
        planes, globals_ = inputs(3, size, human=profile_of(name))
        optimism = 0.0 if "human" in name else 0.3
        found = raw(model, planes, globals_, 0.3)._asdict()
        for output, values in expected(NETWORKS[name], planes, globals_, optimism).items():
            np.testing.assert_allclose(found[output].numpy(), values, rtol=2e-4, atol=2e-5, err_msg=f"{output}, {size}")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("name", ["v8", "v15-human", "v17-hybrid"])
def test_every_encoding_holds_the_same_network(name, is_binary, packed, tmp_path):
    one, *_ = load_katago(saved(tmp_path, NETWORKS[name]))
    other, *_ = load_katago(saved(tmp_path, NETWORKS[name], is_binary, packed))
    one, other = dict(named_arrays(one)), dict(named_arrays(other))
    assert one.keys() == other.keys() and len(one) > 20
    assert all(np.array_equal(values, other[key]) for key, values in one.items())


@pytest.mark.parametrize("name", NETWORKS)
def test_heads_for_the_search_agree_with_all_that_is_told(name, tmp_path):
    model, *_ = load_katago(saved(tmp_path, NETWORKS[name]))
    model.policy_optimism = 0.7
    planes, globals_ = inputs(4, 5, human=profile_of(name))
    with torch.no_grad():
        heads, told = model_of(model).eval()(planes, globals_), raw(model, planes, globals_, 0.7)
    assert isinstance(heads, RawHeads)
    torch.testing.assert_close(heads.value.tanh(), told.win - told.loss)
    torch.testing.assert_close(heads.score, told.lead)
    torch.testing.assert_close(heads.ownership.tanh(), told.ownership)
    if "human" not in name:
        torch.testing.assert_close(heads.policy, told.policy)


def test_values_near_the_ends_keep_their_logit(tmp_path):
    network = random_network(8)
    _, _, _, _, _, _, matrix, bias, *_ = network["value"]["layers"]
    matrix["weight"] *= 0
    bias["weight"][:] = 40, -40, -30
    model, *_ = load_katago(saved(tmp_path, network))
    with torch.no_grad():
        logits = model_of(model)(*inputs(2, 5)).value
    # Odds of e^80 without a result; with one, what is not won is half of e^-30 / e^40.
    assert logits.tolist() == pytest.approx([40.0, (70 + np.log(2)) / 2], rel=1e-5)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_interface_shows_what_the_model_computes(name, reduced, tmp_path):
    model, spec, _ = load_katago(saved(tmp_path, NETWORKS[name]))
    network = network_of(model, spec, reduced)
    before = {key: values.copy() for key, values in named_arrays(model)}
    for size, count in ((5, 3), (13, 1), (5, 1)):
        planes, globals_ = inputs(count, size, seed=size, human=profile_of(name))
        exact, found = exact_output(model, planes, globals_), network.evaluate(planes, globals_)
        bounds = (0.05, 0.05, 0.8, 0.1) if reduced else (1e-4, 1e-5, 1e-3, 1e-5)
        for one, other, bound in zip(exact, found, bounds, strict=True):
            assert other.dtype == torch.float32
            assert (one - other).abs().max() < bound * max(1.0, float(one.abs().max()))
    assert all(np.array_equal(values, before[key]) for key, values in named_arrays(model))


def test_values_are_summed_up_in_float32_whatever_the_rest_is_in(tmp_path):
    model = model_of(load_katago(saved(tmp_path, NETWORKS["v17-hybrid"]))[0])
    kept = {key: values.clone() for key, values in model.value.sums.state_dict().items()}
    model.to(torch.float16)
    assert {values.dtype for values in model.value.hidden.state_dict().values()} == {torch.float32}
    assert {values.dtype for values in model.blocks.state_dict().values()} == {torch.float16}
    assert all(torch.equal(values, kept[key]) for key, values in model.value.sums.state_dict().items())


def test_its_16_bits_on_cuda_are_float16():
    device = torch.device("cuda")
    assert reduced_dtype(device, prefers_float16=True) == torch.float16
    assert reduced_dtype(CPU, prefers_float16=True) == torch.bfloat16


def test_a_network_of_human_play_follows_its_profile(tmp_path):
    model, *_ = load_katago(saved(tmp_path, NETWORKS["v15-human"]))
    outputs = []
    for profile in ("rank_9d", "rank_20k", "preaz_20k", "rank_20k_9d", "proyear_1800", "proyear_2023"):
        planes, globals_ = inputs(1, 9, human=profile)
        found = raw(model, planes, globals_).lead
        (twin,) = expected(NETWORKS["v15-human"], planes, globals_)["lead"]
        assert float(found[0]) == pytest.approx(float(twin), rel=1e-4, abs=1e-4)
        outputs.append(round(float(found[0]), 5))
    assert len(set(outputs)) == len(outputs)


@pytest.mark.parametrize("version", [15, 17])
@pytest.mark.parametrize("human", [False, True])
@pytest.mark.parametrize(
    ("suicide", "atari", "encoder"),
    [(0, 0, ""), (1, 0, "-suicide"), (0, 1, "-atari"), (1, 1, "-suicide-atari")],
)
def test_what_a_file_says_of_its_inputs_asks_for_another_encoder(version, human, suicide, atari, encoder, tmp_path):
    network, encoder = random_network(version, human=human), "katago-v7" + "-human" * human + encoder
    network["options"][1:3] = suicide, atari
    for is_binary in (False, True):
        path = saved(tmp_path, network, is_binary)
        assert load_katago(path)[1].encoder == encoder
        assert expected_input(path).encoder == encoder, "what is compiled before the file is read"


def test_a_file_that_counts_no_point_beside_atari_computes_what_it_did(tmp_path):
    network = random_network(17, ("residual",))
    before, *_ = load_katago(saved(tmp_path, network))
    network["options"][2] = 1
    after, *_ = load_katago(saved(tmp_path, network))
    found, expected = raw(after, *inputs(2, 5)), raw(before, *inputs(2, 5))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
