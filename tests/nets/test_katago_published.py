"""KataGo's own networks against KataGo's own words: 47 positions of three sizes, komis and rule sets each.

Inputs come from the same place, so this asks for reading and computing alone. Outputs were printed with six digits,
points with three.
"""

import numpy as np
import pytest
import torch

from engine.nets.compute.by_torch import TorchNetwork
from engine.nets.katago.model import ROOT_OPTIMISM, load_katago
from tests.nets.models import InTensors, network_of, raw
from tests.references import rows

pytestmark = pytest.mark.shared
NETS = ("g170-b6c96-s175395328-d26788732", "b7c96h3tfrs-test5-cnorm", "b10c384h6nbttflrs")
PARAMETERS = {NETS[0]: 1_027_911, NETS[1]: 818_953, NETS[2]: 10_545_753}
WORDS = {
    NETS[0]: "4 residual, 2 global pooling blocks; trunk of 96 channels; ReLU",
    NETS[1]: "7 attention, 7 feed-forward blocks; trunk of 96 channels; SiLU",
    NETS[2]: "10 nested bottleneck, 20 attention, 20 feed-forward blocks; trunk of 384 channels; SiLU",
}
POSITIONS = 47


@pytest.fixture(scope="module")
def features(shared_path):
    """Position's id -> planes[1, 22, N, N] and globals[1, 19]."""
    found = {}
    for row in rows(shared_path / "refs" / "features_v7.jsonl.gz"):
        size = row["boardsize"]
        planes = torch.zeros(22, size * size)
        for plane, points in row["spatial"].items():
            planes[int(plane), slice(None) if points == "all" else points] = 1.0
        found[row["id"]] = planes.view(1, 22, size, size), torch.tensor([row["global"]])
    return found


@pytest.fixture(scope="module")
def load(shared_path):
    """From a network's name to its model."""
    loaded = {}

    def load(name):
        if name not in loaded:
            loaded[name] = load_katago(shared_path / "nets" / f"{name}.bin.gz")
            loaded[name][0].policy_optimism = ROOT_OPTIMISM
        return loaded[name]

    return load


def policy_error(logits, row):
    """Largest difference of a legal move's probability from a row's."""
    printed = [*row["policy"], row["policyPass"]]
    legal = [move for move, chance in enumerate(printed) if chance is not None]
    chances = logits[0, legal].double().softmax(0).numpy()
    return np.abs(chances - [printed[move] for move in legal]).max()


def side(row):
    """1 where White is to move, whose view the printed outputs have, else -1."""
    return 1 if row["to_move"] == "W" else -1


@pytest.mark.parametrize("name", NETS)
def test_files_are_described(name, load):
    model, spec, record = load(name)
    assert spec.name == record["name"] == name
    assert (spec.encoder, record["parameters"], record["architecture"]) == ("katago-v7", PARAMETERS[name], WORDS[name])
    assert (model.shape.planes, model.shape.globals) == (22, 19)


@pytest.mark.parametrize(
    ("name", "step"), [(NETS[0], 1), (NETS[1], 1), (NETS[2], 6), pytest.param(NETS[2], 1, marks=pytest.mark.slow)]
)
def test_all_outputs_are_katagos(name, step, load, features, shared_path):
    model, *_ = load(name)
    read = rows(shared_path / "refs" / f"{name}.jsonl.gz")
    assert len(read) == POSITIONS
    for row in read[::step]:
        told = raw(model, *features[row["id"]])
        assert row["policyOptimism"] == ROOT_OPTIMISM
        assert policy_error(told.policy, row) < 2e-5
        numbers = {field: values.numpy() for field, values in told._asdict().items()}
        white = side(row)
        win, loss = ("win", "loss") if white == 1 else ("loss", "win")
        for field, key, bound in (
            (win, "whiteWin", 2e-5), (loss, "whiteLoss", 2e-5), ("no_result", "noResult", 2e-6),
            ("variance_time", "varTimeLeft", 2e-3), ("value_error", "shorttermWinlossError", 1e-3),
            ("score_error", "shorttermScoreError", 1e-3),
        ):  # fmt: skip
            assert abs(numbers[field][0] - row[key]) < bound, (row["id"], key)
        assert abs(white * numbers["lead"][0] - row["whiteLead"]) < 0.003
        assert abs(white * numbers["score"][0] - row["whiteScoreSelfplay"]) < 0.003
        assert numbers["score_square"][0] == pytest.approx(row["whiteScoreSelfplaySq"], rel=2e-4, abs=2e-3)
        assert np.abs(white * numbers["ownership"].reshape(-1) - row["ownership"]).max() < 3e-5


@pytest.mark.parametrize("optimism", [0, 1])
def test_policies_are_katagos_at_any_optimism(optimism, load, features, shared_path):
    model, *_ = load(NETS[2])
    for row in rows(shared_path / "refs" / f"{NETS[2]}.jsonl.gz")[::16]:
        told = raw(model, *features[row["id"]], optimism)
        assert policy_error(told.policy, row[f"policyOptimism{optimism}"]) < 2e-5


@pytest.mark.parametrize("name", [NETS[0], pytest.param(NETS[2], marks=pytest.mark.slow)])
def test_katago_sees_symmetries_as_flips_and_then_a_transposition(name, load, features, shared_path):
    model, *_ = load(name)
    for row in rows(shared_path / "refs" / f"sym_{name}.jsonl.gz")[1:2]:
        planes, globals_ = features[row["id"]]
        for view in row["symmetries"]:
            symmetry = int(view["symmetry"])
            axes = [axis for axis, bit in ((2, 1), (3, 2)) if symmetry & bit]
            turned = planes.flip(axes)
            told = raw(model, turned.transpose(2, 3) if symmetry & 4 else turned, globals_)
            moves = told.policy[:, :-1].view(1, 1, *planes.shape[2:])
            moves = (moves.transpose(2, 3) if symmetry & 4 else moves).flip(axes)
            logits = torch.cat([moves.flatten(1), told.policy[:, -1:]], dim=1)
            assert policy_error(logits, view) < 2e-5
            assert abs(side(row) * float(told.lead[0]) - view["whiteLead"]) < 0.003


@pytest.mark.parametrize(
    ("name", "win_rate", "chance"), [(NETS[0], 0.015, 0.02), pytest.param(NETS[2], 0.03, 0.05, marks=pytest.mark.slow)]
)
def test_bfloat16_on_the_cpu_stays_near(name, win_rate, chance, load, features, shared_path):
    model, spec, _ = load(name)
    _stays_near(network_of(model, spec, reduced=True), features, shared_path, win_rate, chance)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NETS)
def test_float16_on_a_gpu_stays_nearer(name, load, features, shared_path):
    model, spec, _ = load(name)
    network = InTensors(TorchNetwork(model, spec, "cuda:0", reduced=True))
    assert network.dtype == "float16"
    _stays_near(network, features, shared_path, 0.01, 0.05)


def _stays_near(network, features, shared_path, win_rate, chance):
    """Whether fewer bits change little, in some of the positions."""
    for row in rows(shared_path / "refs" / f"{network.spec.name}.jsonl.gz")[::8]:
        found = network.evaluate(*features[row["id"]])
        wins = side(row) * (row["whiteWin"] - row["whiteLoss"])
        assert abs(float(found.value[0]) - wins) / 2 < win_rate
        assert policy_error(found.policy, row) < chance
