"""Networks of the library: outputs, inputs, layers and files."""

import gc
import threading

import numpy as np
import pytest
import torch

import keima
from engine.features.encoder import ENCODERS
from engine.features.symmetry import symmetry_table
from engine.insight.raw_outputs import raw_evaluation, raw_network
from engine.nets.files.read import read_network
from engine.nets.network import activated
from tests.nets.katago_files import NETWORKS, saved
from weights import find_network

MOVES = "E5 C3 G7 G3 C7 E3 pass E7"


@pytest.fixture(scope="module")
def network():
    with keima.Network(device="cpu") as network:
        yield network


@pytest.fixture(scope="module")
def zero():
    with keima.Network("zero-9", device="cpu") as network:
        yield network


def positions(size=9, moves=MOVES):
    """A board after each number of moves."""
    words = moves.split()
    return [keima.Board(size, moves=words[:count]) for count in range(len(words) + 1)]


def test_a_network_says_what_it_is(network):
    assert repr(network) == "Network('default', device='cpu')"
    assert (network.name, network.encoder, network.sizes) == ("default", "keima-2", (7, 19))
    assert network.heads == ("policy", "value", "score", "ownership")
    assert network.planes[3] == "liberties: 1" and len(network.planes) == 23
    assert network.globals[0] == "komi" and len(network.globals) == 9


@pytest.mark.parametrize("symmetry", [0, 5])
def test_outputs_are_those_of_the_reference_for_black(network, symmetry):
    boards = positions()
    found = network.evaluate(boards, symmetry)
    raw = raw_network(find_network("default"))
    for index, board in enumerate(boards):
        exact = raw_evaluation(raw, board._game.position, symmetry, 0.0)
        assert found.win_rate_black[index] == pytest.approx(exact.output.loss, abs=1e-4)
        assert found.lead_black[index] == pytest.approx(-exact.output.lead, abs=1e-3)
        np.testing.assert_allclose(found.policy[index], np.nan_to_num(exact.policy), atol=1e-4)
        np.testing.assert_allclose(found.ownership_black[index].reshape(-1), -exact.ownership_white, atol=1e-4)


def test_a_board_alone_has_the_row_of_many(network):
    boards = positions()
    many = network.evaluate(boards)
    assert len(many) == len(boards) and many.policy.shape == (9, 82) and many.ownership_black.shape == (9, 9, 9)
    for board, one in zip(boards, many, strict=True):
        alone = network.evaluate(board)
        assert (alone.size, alone.to_move) == (one.size, one.to_move) == (9, board.to_move)
        np.testing.assert_allclose(alone.policy, one.policy, atol=1e-5)
        np.testing.assert_allclose(alone.ownership.black, one.ownership.black, atol=1e-5)
        assert alone.win_rate.black == pytest.approx(one.win_rate.black, abs=1e-5)
        assert alone.lead.black == pytest.approx(one.lead.black, abs=1e-4)
        assert alone.win_rate.relative == alone.win_rate.pov(board.to_move)
    assert many[-1].to_move == boards[-1].to_move
    with pytest.raises(IndexError):
        many[len(boards)]


def test_many_boards_of_several_sizes_keep_their_order(network):
    boards = [
        keima.Board(size, moves=["D4", "C3"][:count]) for count in (0, 1, 2) for size in (9, 19, 7) for _ in "abcd"
    ]
    found = network.evaluate(boards * 3)
    assert len(found) == 3 * len(boards)
    for index in range(0, len(found), 5):
        alone = network.evaluate((boards * 3)[index])
        assert found[index].size == (boards * 3)[index].size
        np.testing.assert_allclose(found[index].policy, alone.policy, atol=1e-5)
        assert found.lead_black[index] == pytest.approx(alone.lead.black, abs=1e-4)
    for name in ("policy", "ownership_black"):
        with pytest.raises(ValueError, match=r"^boards of 9, 19, 7 have no common array, expected one size, or eval"):
            getattr(found, name)


def test_a_policy_is_over_the_legal_moves_of_the_rules(network):
    board = keima.Board(7, moves=["C4", "D4", "D3", "E3", "D5", "E5", "A1", "F4", "E4"])
    assert board.ko == "D4"
    policy = network.evaluate(board).policy
    legal = {move.policy_index for move in board.legal_moves}
    assert {*np.flatnonzero(policy).tolist()} <= legal and policy[keima.Move("D4", 7).policy_index] == 0.0
    assert policy.sum() == pytest.approx(1.0, abs=1e-5)


def test_the_best_moves_are_sorted(network):
    found = network.evaluate(keima.Board(9, moves=["E5"]))
    best = found.best(3)
    assert len(best) == 3 and [one for _, one in best] == sorted(found.policy.tolist())[:-4:-1]
    assert all(found.policy[move.policy_index] == probability for move, probability in best)
    assert len(found.best(1000)) <= 81 and found.best(0) == []


def test_networks_without_heads_have_none():
    board = keima.Board(9, moves=["E5"])
    with keima.Network("alphago-9-value", device="cpu") as network:
        found = network.evaluate([board, board])
        assert (found.policy, found.ownership_black, found.lead_black) == (None, None, None)
        assert found.win_rate_black[0] == found.win_rate_black[1]
        assert (found[0].policy, found[0].ownership, found[0].lead) == (None, None, None)
        with pytest.raises(ValueError, match=r"^the network has no policy, expected one with the head 'policy'$"):
            found[0].best()
    with keima.Network("alphago-9", device="cpu") as network:
        assert network.heads == ("policy", "value") and network.name == "alphago-9-sl+alphago-9-value"
        assert network.evaluate(board).win_rate.black == pytest.approx(float(found.win_rate_black[0]), abs=1e-6)
        assert {"policy.layers.0", "value.layers.0"} <= set(network.trace(board))
        for take in (network.module, lambda: network.save("pair.safetensors")):
            with pytest.raises(ValueError, match=r"is a pair, expected one network for a"):
                take()


def test_what_cannot_be_evaluated_is_told_in_one_line(network):
    cases = [
        (lambda: network.evaluate([]), "no boards, expected one or more"),
        (lambda: network.evaluate(keima.Board(5)), "network default plays boards of 7 to 19, not 5"),
        (lambda: network.evaluate([keima.Board(9), keima.Board(21)]), "network default plays boards of .*, not 21"),
        (lambda: network.evaluate(keima.Board(9), 8), "symmetry is 8, expected 0 to 7"),
        (lambda: network.trace(keima.Board(5)), "network default plays boards of .*, not 5"),
        (lambda: keima.encode([keima.Board(9), keima.Board(7)], "keima-2"),
         "boards of 7, 9 in one array, expected one size"),
        (lambda: keima.encode(keima.Board(9), "runes"), "unknown encoder 'runes', known are "),
        (lambda: keima.Network("nowhere"), "unknown network 'nowhere'"),
        (lambda: keima.Network(device="abacus"), "unknown device 'abacus', expected auto, cpu"),
        (lambda: keima.Network(human_profile="rank_5k"), "human profile rank_5k: the network knows none"),
    ]  # fmt: skip
    for take, message in cases:
        with pytest.raises(ValueError, match=f"^{message}") as caught:
            take()
        assert "\n" not in str(caught.value)


def test_a_closed_network_fails_in_one_line():
    network = keima.Network("alphago-9-value", device="cpu")
    network.close()
    network.close()
    with pytest.raises(ValueError, match=r"^the network is closed$"):
        network.evaluate(keima.Board(9))


def test_a_dropped_network_ends_its_threads():
    before = {*threading.enumerate()}
    network = keima.Network("alphago-9-value", device="cpu")
    network.evaluate(keima.Board(9))
    threads = {*threading.enumerate()} - before
    assert threads
    del network
    gc.collect()
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("name", ENCODERS)
def test_inputs_are_the_encoders_for_any_number_of_boards(name):
    boards = positions() * 5
    planes, globals_ = keima.encode(boards, name, 3)
    encoder = ENCODERS[name]
    assert planes.shape == (45, encoder.planes, 9, 9) and globals_.shape == (45, encoder.globals)
    for index in (0, 8, 44):
        alone = keima.encode(boards[index], name)
        home = planes[index].reshape(-1, 81)[:, symmetry_table(9)[3][:-1]]
        np.testing.assert_array_equal(alone[0].reshape(-1, 81), home)
        np.testing.assert_array_equal(alone[1][0], globals_[index])


def test_a_trace_has_the_layers_of_a_board_by_name(network):
    board = keima.Board(9, moves=["E5"])
    layers = network.trace(board)
    np.testing.assert_array_equal(layers["input planes"], network.encode(board)[0][0])
    assert {"stem", "blocks.2", "policy_out"} <= set(layers)
    assert all(values.shape[1:] == (9, 9) and values.dtype == np.float32 for values in layers.values())


def test_the_torch_module_computes_the_same(zero):
    boards = positions()
    planes, globals_ = (torch.from_numpy(values) for values in zero.encode(boards))
    module = zero.module()
    assert isinstance(module, torch.nn.Module) and not module.training
    with torch.inference_mode():
        heads = activated(module(planes, globals_))
    found = zero.evaluate(boards)
    sign = np.where(found.to_move == keima.BLACK, 1, -1)
    np.testing.assert_allclose(heads.score.numpy() * sign, found.lead_black, atol=1e-3)
    np.testing.assert_allclose((1 + heads.value.numpy() * sign) / 2, found.win_rate_black, atol=1e-4)


def test_a_saved_network_is_the_same(zero, tmp_path):
    zero.save(tmp_path / "copy.safetensors")
    _, spec, record = read_network(tmp_path / "copy.safetensors")
    assert spec.encoder == zero.encoder and record == read_network(find_network("zero-9"))[2]
    with keima.Network(tmp_path / "copy.safetensors", device="cpu") as copy:
        board = keima.Board(9, moves=["E5"])
        np.testing.assert_allclose(copy.evaluate(board).policy, zero.evaluate(board).policy, atol=1e-6)


def test_a_human_network_is_asked_for_a_profile(tmp_path):
    path = saved(tmp_path, NETWORKS["v15-human"])
    board, found = keima.Board(9, moves=["E5"]), {}
    for profile in ("", "rank_9d", "rank_20k"):
        with keima.Network(path, device="cpu", human_profile=profile) as network:
            found[profile] = network.evaluate(board).policy
            assert network.globals[19] == "human profile: 0" and len(network.globals) == 211
            with pytest.raises(ValueError, match=r"^network tiny-b1c6 cannot be saved: "):
                network.save(tmp_path / "net.safetensors")
    assert not (tmp_path / "net.safetensors").exists()
    np.testing.assert_array_equal(found[""], found["rank_9d"])
    assert np.abs(found["rank_9d"] - found["rank_20k"]).max() > 1e-4


def test_onnx_computes_the_same_from_the_same_inputs(zero, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    zero.to_onnx(tmp_path / "zero.onnx")
    session = runtime.InferenceSession(tmp_path / "zero.onnx", providers=["CPUExecutionProvider"])
    boards = positions()
    value, score = session.run(["value", "score"], dict(zip(("planes", "globals"), zero.encode(boards), strict=True)))
    found = zero.evaluate(boards)
    sign = np.where(found.to_move == keima.BLACK, 1, -1)
    np.testing.assert_allclose(score * sign, found.lead_black, atol=1e-3)
    np.testing.assert_allclose((1 + value * sign) / 2, found.win_rate_black, atol=1e-4)
