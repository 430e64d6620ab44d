"""What everyone above relies on, asked of every registered architecture and of AlphaGo's pair."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import ARCHITECTURES, new_spec
from engine.nets.architectures.resnet import ResNet, ResNetShape
from engine.nets.files.checkpoint import save_network
from engine.nets.layers import Drawn, named_arrays
from engine.nets.model import load_model, model_of, new_model, plain_of
from engine.nets.network import PASS_GAP, RawHeads
from engine.nets.on_device import load_network
from tests.nets.models import NETWORKS, SHAPES, InTensors, inputs, network_of, toy, toy_network

COUNT, SIZE = 5, 7
HEADS = {
    "keima-resnet": {"policy", "value", "score", "ownership"},
    "alphago-policy": {"policy"},
    "alphago-value": {"value"},
    "alphago-zero": {"policy", "value"},
    "elf-opengo": {"policy", "value"},
    "alphago-policy+alphago-value": {"policy", "value"},
}


def heads_of(output):
    """The heads that are there."""
    return {name: head for name, head in output._asdict().items() if head is not None}


def rows_of(output, rows):
    """Some rows of every head."""
    return {name: head[rows] for name, head in heads_of(output).items()}


def test_every_architecture_is_asked():
    assert set(SHAPES) == set(ARCHITECTURES)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_have_their_shapes_types_and_ranges(name, reduced):
    output = toy_network(name, reduced).evaluate(*inputs(name, COUNT))
    shapes = {"policy": (SIZE**2 + 1,), "value": (), "score": (), "ownership": (SIZE, SIZE)}
    for head, values in heads_of(output).items():
        assert values.shape == (COUNT, *shapes[head])
        assert values.dtype == torch.float32 and torch.isfinite(values).all()
        assert values.flatten(1).std(dim=0).max() > 1e-3 if values.ndim > 1 else values.std() > 1e-3
        if head in ("value", "ownership"):
            assert values.abs().max() <= 1


@pytest.mark.parametrize("name", NETWORKS)
def test_absent_heads_are_none_and_the_spec_says_so(name):
    network = toy_network(name)
    assert set(heads_of(network.evaluate(*inputs(name, 1)))) == HEADS[name]
    assert set(network.spec.heads) == HEADS[name]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_position_is_worth_the_same_alone_and_in_a_batch(name):
    network = toy_network(name)
    planes, globals_ = inputs(name, COUNT)
    together = network.evaluate(planes, globals_)
    for row in range(COUNT):
        alone = network.evaluate(planes[row : row + 1], globals_[row : row + 1])
        torch.testing.assert_close(rows_of(alone, 0), rows_of(together, row), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_no_row_reads_another(name):
    network = toy_network(name)
    planes, globals_ = inputs(name, COUNT)
    before = network.evaluate(planes, globals_)
    planes[1:], globals_[1:] = 1 - planes[1:], 1 - globals_[1:]
    after = network.evaluate(planes, globals_)
    torch.testing.assert_close(rows_of(before, 0), rows_of(after, 0), rtol=1e-4, atol=1e-5)
    assert not any(torch.allclose(head[1:], heads_of(after)[name][1:]) for name, head in heads_of(before).items())


@pytest.mark.parametrize("name", NETWORKS)
def test_every_plane_and_every_global_is_read(name):
    network = toy_network(name)
    planes, globals_ = inputs(name, 1)
    before = heads_of(network.evaluate(planes, globals_))
    for row in range(planes.shape[1] + globals_.shape[1]):
        changed = planes.clone(), globals_.clone()
        if row < planes.shape[1]:
            changed[0][:, row] = 1 - planes[:, row]
        else:
            changed[1][:, row - planes.shape[1]] += 1
        after = heads_of(network.evaluate(*changed))
        assert any(not torch.equal(before[head], after[head]) for head in before), row


@pytest.mark.parametrize("name", NETWORKS)
def test_reduced_precision_stays_close(name):
    planes, globals_ = inputs(name, 16)
    exact = heads_of(toy_network(name).evaluate(planes, globals_))
    rough = heads_of(toy_network(name, reduced=True).evaluate(planes, globals_))
    for head, values in exact.items():
        if head == "policy":
            assert (values.softmax(1) - rough[head].softmax(1)).abs().max() < 0.02
        else:
            assert (values - rough[head]).abs().max() < (0.5 if head == "score" else 0.05)


@pytest.mark.parametrize("name", NETWORKS)
def test_any_number_of_threads_may_call_at_once(name):
    network = toy_network(name)
    batches = [inputs(name, COUNT, seed=seed) for seed in range(4)]
    alone = [heads_of(toy_network(name).evaluate(*batch)) for batch in batches]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda i: heads_of(network.evaluate(*batches[i % 4])), range(32)))
    for i, output in enumerate(found):
        torch.testing.assert_close(output, alone[i % 4], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", ["keima-resnet", "alphago-zero", "alphago-policy+alphago-value"])
def test_with_one_thread_of_torch_and_with_two_outputs_agree(name, reduced):
    network, tensors, threads = toy_network(name, reduced=reduced), inputs(name, COUNT), torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(heads_of(network.evaluate(*tensors)))
    finally:
        torch.set_num_threads(threads)
    tolerance = 0.1 if reduced else 1e-5
    torch.testing.assert_close(*found, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_inference_server_serves_it(name):
    planes, globals_ = inputs(name, COUNT)
    with InferenceServer(toy_network(name), threads=1) as server:
        request = server.new_request(SIZE, COUNT, planes.shape[1], globals_.shape[1])
        request.planes[:], request.globals[:], request.count = planes.numpy(), globals_.numpy(), COUNT
        server.submit(request)
        server.wait(request)
    for head, values in toy_network(name).evaluate(planes, globals_)._asdict().items():
        expected = torch.zeros_like(torch.from_numpy(request.arrays[head])) if values is None else values
        torch.testing.assert_close(torch.from_numpy(request.arrays[head]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_another_encoder_wrote_is_refused_in_one_line(name):
    network = toy_network(name)
    planes, globals_ = inputs(name, 2)
    wrong = [
        (planes[:, 1:], globals_, "planes"),
        (planes[0], globals_, "planes"),
        (planes[:, :, 1:], globals_, "planes"),
        (planes, torch.zeros(2, globals_.shape[1] + 1), "global values"),
        (planes, globals_[:1], "global values"),
    ]
    for case in wrong:
        with pytest.raises(ValueError, match=f"^toy takes .* {case[2]}") as caught:
            network.evaluate(*case[:2])
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NETWORKS)
def test_boards_that_it_does_not_play_are_refused_in_one_line(name):
    network = toy_network(name)
    size = network.spec.max_size + 1
    with pytest.raises(ValueError, match=rf"^network toy plays boards of .*, not {size}$"):
        network.evaluate(*inputs(name, 1, size))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_brings_the_same_network_back(name, tmp_path):
    paths = []
    for part in name.split("+"):
        model = toy(part)
        paths.append(tmp_path / f"{part}.safetensors")
        save_network(paths[-1], model, new_spec(model, part), {"step": 5})
        read, spec, record = load_model(paths[-1])
        assert (read.shape, spec, record) == (model.shape, new_spec(model, part), {"step": 5})
        assert all(torch.equal(value, model.state_dict()[key]) for key, value in read.state_dict().items())
    network = InTensors(load_network(tuple(paths) if len(paths) == 2 else paths[0], "cpu"))
    assert network.spec.name == name
    planes, globals_ = inputs(name, COUNT)
    expected = toy_network(name, reduced=None).evaluate(planes, globals_)
    torch.testing.assert_close(heads_of(network.evaluate(planes, globals_)), heads_of(expected), rtol=0, atol=0)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_interface_shows_what_the_model_computes(name):
    model = toy(name)
    planes, globals_ = inputs(name, COUNT)
    with torch.no_grad():
        raw = model(planes, globals_)
    assert isinstance(raw, RawHeads)
    output = network_of(model, new_spec(model, "toy"), reduced=False).evaluate(planes, globals_)
    expected = {
        "policy": raw.policy,
        "value": None if raw.value is None else raw.value.tanh(),
        "score": raw.score,
        "ownership": None if raw.ownership is None else raw.ownership.tanh(),
    }
    for head, values in heads_of(output).items():
        points = expected[head].shape[1] if head == "policy" else None
        torch.testing.assert_close(values[:, :points] if points else values, expected[head], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_model_stays_as_it_was(name):
    model = toy(name).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    network_of(model, new_spec(model, "toy"), reduced=True).evaluate(*inputs(name, 2))
    assert model.training
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in before.items())


def test_networks_are_traced_one_at_a_time(monkeypatch):
    """Tracing silences the process's warnings; two at once would undo that for each other, and people saw them."""
    both = threading.Barrier(2)

    def trace(model, *_, **__):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.3)
            met.append(model)
        return model

    met = []
    monkeypatch.setattr(torch.jit, "trace", trace)
    monkeypatch.setattr(torch.jit, "freeze", lambda model: model)
    networks = [toy_network("alphago-policy", seed=seed) for seed in range(2)]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda network: network.evaluate(*inputs("alphago-policy", 2)), networks))
    assert not met


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_all_state_is_floating_point_and_all_parameters_learn(name):
    model = toy(name).train()
    assert all(value.is_floating_point() for value in model.state_dict().values())
    heads = [head for head in model(*inputs(name, COUNT)) if head is not None]
    sum(head.square().sum() for head in heads).backward()
    assert all(value.grad is not None and value.grad.any() for value in model.parameters())


def test_without_a_pass_output_the_pass_is_the_last_choice():
    policy = toy_network("alphago-policy").evaluate(*inputs("alphago-policy", COUNT)).policy
    torch.testing.assert_close(policy[:, -1], policy[:, :-1].min(dim=1).values - PASS_GAP)
    assert policy.softmax(1)[:, -1].max() < 1e-5


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_no_architecture_needs_globals():
    model = toy("keima-resnet", globals=0)
    planes, _ = inputs("keima-resnet", 2)
    network = network_of(model, new_spec(model, "toy"), reduced=False)
    assert len(heads_of(network.evaluate(planes, torch.zeros(2, 0)))) == 4


@pytest.mark.parametrize(
    ("architecture", "shape", "message"),
    [
        ("alphago", {}, "unknown architecture 'alphago', expected keima-resnet, alphago-policy"),
        (["alphago-policy"], {}, "unknown architecture"),
        ("alphago-policy", {"colour": 4}, "the shape has unknown colour, expected planes, filters, size"),
        ("alphago-policy", [1], "the shape has"),
        ("alphago-policy", None, "the shape has None, expected planes"),
        ("keima-resnet", {"planes": 4}, "the shape has no globals, expected planes, globals, blocks"),
        ("alphago-value", {"filters": 8.0}, "filters is '8.0', expected a whole number"),
        ("alphago-value", {"filters": True}, "filters is 'True', expected a whole number"),
        ("alphago-value", {"filters": "8" * 10000}, "filters is '8{40}', expected a whole number"),
        ("alphago-value", {"filters": 0}, "filters is 0, expected 1 to 1024"),
        ("alphago-zero", {"blocks": 10**9}, "blocks is 1000000000, expected 1 to 256"),
        ("alphago-zero", {"size": 26}, "size is 26, expected 2 to 25"),
        ("alphago-zero", {"blocks": 256, "channels": 2048}, r"19,\d{3},\d{3},\d{3} parameters, expected at most"),
    ],
)
def test_an_impossible_shape_is_refused_before_memory_is_taken(architecture, shape, message):
    with pytest.raises(ValueError, match=message) as caught:
        new_model(architecture, shape)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("sizes", [(0, 19), (9, 7), (7, 26), ("7", 9), (7.0, 9)])
def test_board_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="expected two from 2 to 25"):
        new_spec(toy("keima-resnet"), "toy", sizes=sizes)


def test_a_model_of_one_board_size_claims_no_other():
    with pytest.raises(ValueError, match="expected 7 alone"):
        new_spec(toy("alphago-zero"), "toy", sizes=(7, 19))


def test_a_strange_module_has_no_architecture():
    with pytest.raises(ValueError, match="Linear is no registered architecture"):
        save_network(None, torch.nn.Linear(1, 1), None, {})


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_layers_and_their_model_share_no_memory(name):
    """A network that plays would otherwise follow the training of its model."""
    model = toy(name).train()
    plain = plain_of(model)
    before = {key: values.copy() for key, values in named_arrays(plain)}
    for other in (model, model_of(plain).train()):
        other(*inputs(name, COUNT))
        with torch.no_grad():
            for values in other.parameters():
                values.add_(1.0)
    assert all(np.array_equal(values, before[key]) for key, values in named_arrays(plain))


def test_a_kind_of_a_kind_is_no_registered_architecture():
    class Mine(ResNet):
        pass

    with pytest.raises(ValueError, match="Mine is no registered architecture"):
        new_spec(Mine(ResNetShape(4, 2, blocks=1, channels=8), Drawn(1)), "mine")
