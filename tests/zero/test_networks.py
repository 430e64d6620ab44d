"""The network files of the loop of AlphaGo Zero: what they know of rules, when they are ready, and which one plays."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.features.encoder import KEIMA
from engine.features.keima import OF_RULES, globals_of_rules
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.model import load_model, new_model
from engine.nets.on_device import load_network
from engine.selfplay.search_match import Outcome
from engine.zero.facts import look_at_empty_board
from engine.zero.loop import Zero
from engine.zero.networks import NETWORK
from engine.zero.turn import CHECK
from tests.zero.runs import CONFIG, CPU, run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two turns."""
    torch.set_num_threads(1)
    return run(tmp_path_factory.mktemp("zero") / "run", turns=2)


def empty_board(path, rules):
    """What a network file says of the empty board at komi 2."""
    with InferenceServer(load_network(path, CPU), threads=1) as server:
        board = look_at_empty_board(server, 3, rules, 2.0)
    return board.value, board.score, *board.policy


def test_a_network_of_one_rule_set_says_the_same_under_all(finished):
    """Self-play is under Tromp-Taylor rules alone: the inputs of others would be what it never saw."""
    network = finished.out / NETWORK
    expected = empty_board(network, "tromp-taylor")
    for rules in ("chinese", "japanese", "tromp-taylor"):
        np.testing.assert_allclose(empty_board(network, rules), expected, atol=1e-6)
    # Under its own rules it is the network that was learnt, in which these inputs have got weights.
    learnt = finished.learner.averaged()
    assert not learnt.ignores_globals(OF_RULES)
    kept, planes = load_model(network)[0], torch.zeros(1, learnt.shape.planes, 3, 3)
    globals_ = torch.zeros(1, learnt.shape.globals)
    globals_[0, list(OF_RULES)] = torch.tensor(list(globals_of_rules(RULE_SETS["tromp-taylor"]).values()))
    with torch.no_grad():
        for ours, theirs in zip(kept(planes, globals_)[:4], learnt(planes, globals_)[:4], strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_network_that_knew_rules_goes_on_knowing_them(tmp_path):
    model = new_model("keima-resnet", {"planes": KEIMA.planes, "globals": KEIMA.globals} | CONFIG.shape)
    torch.nn.init.normal_(model.stem_globals.weight)
    save_network(tmp_path / "start.safetensors", model, new_spec(model, "start", sizes=(3, 3)), {})
    zero = run(tmp_path / "run", turns=1, start=tmp_path / "start.safetensors")
    assert not load_model(zero.out / NETWORK)[0].ignores_globals(OF_RULES)


def test_the_newest_network_is_ready_to_play_before_its_matches(tmp_path):
    """A run whose time ends in a match would leave the network before it there."""

    def check(zero, path):
        if zero.turn.number == 1:
            zero.stop()

    zero = run(tmp_path / "run", turns=2, check=check)
    assert zero.turn.number == 1 and zero.turn.phase == CHECK
    assert (zero.out / NETWORK).read_bytes() == zero.networks.path(zero.learner.step).read_bytes()


@pytest.mark.parametrize(("won", "plays_new"), [(3, True), (1, False)])
def test_the_gate_counts_for_the_new_network(tmp_path, monkeypatch, won, plays_new):
    seen = []
    monkeypatch.setattr(Zero, "match", lambda zero, paths, *_: seen.append(paths) or Outcome(won, 0, 4 - won))
    zero = run(tmp_path, replace(CONFIG, loop=replace(CONFIG.loop, gate=0.55, first_rows=60)), turns=1)
    assert seen == [(zero.networks.path(zero.learner.step), zero.networks.path(0))]
    assert (zero.turn.network == zero.learner.step) == plays_new


def test_a_network_that_does_not_pass_the_gate_does_not_play(tmp_path):
    config = replace(CONFIG, loop=replace(CONFIG.loop, gate=1.0, gate_games=4, first_rows=60))
    zero = run(tmp_path, config, turns=1)
    assert "gate" in zero.progress.phases
    assert zero.turn.network == 0 < zero.learner.step
    assert load_model(tmp_path / NETWORK)[2]["step"] == 0


@pytest.mark.parametrize(("gate", "is_there"), [(0.0, True), (0.55, False)])
def test_a_turn_that_is_cut_off_leaves_what_it_has_learnt(tmp_path, gate, is_there):
    """The clock of --minutes may have ended the run for good. A network that is to pass a gate has not."""
    loop = replace(CONFIG.loop, gate=gate)
    zero = run(tmp_path / "run", replace(CONFIG, loop=loop), stop=("training", 10.0))
    assert 0 < zero.learner.step < zero.turn.last_step
    _, _, record = load_model(zero.out / NETWORK)
    assert record["step"] == (zero.learner.step if is_there else 0)
    assert sorted(path.stem for path in (zero.out / "networks").iterdir()) == ["00000000"]
    zero = run(tmp_path / "run", replace(CONFIG, loop=replace(loop, gate=0.0)), turns=1)
    assert load_model(zero.out / NETWORK)[2]["step"] == zero.learner.step == zero.turn.network
