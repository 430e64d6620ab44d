"""What a GPU's batches look like, tried on the CPU; and on a GPU, that graphs and streams change no result."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from engine.nets.architectures.registry import new_spec
from engine.nets.compute import cuda
from engine.nets.compute.by_torch import TorchNetwork
from engine.nets.compute.cuda import ROWS, CudaRunner, fill, rows_for
from engine.nets.compute.precision import learns_in_bfloat16, reduced_dtype
from engine.nets.compute.runner import PlainRunner, is_out_of_memory, release_memory
from engine.nets.model import plain_of
from engine.nets.network import Heads
from engine.nets.on_device import AlphaGoPair
from tests.nets.models import inputs, network_of, toy, toy_network


def test_a_graph_is_the_smallest_that_holds_the_batch():
    for count in range(1, ROWS[-1] + 1):
        assert rows_for(count) == min(rows for rows in ROWS if rows >= count)
        assert rows_for(count) < 2 * count
    assert rows_for(ROWS[-1] + 5) == ROWS[-1] + 5


def test_parts_fill_the_first_rows_and_leave_the_others():
    target = torch.full((6, 2), -1.0)
    fill(target, [np.zeros((1, 2), np.float32), np.ones((3, 2), np.float32)])
    assert target[:, 0].tolist() == [0, 1, 1, 1, -1, -1]


def test_only_the_rows_asked_for_come_out():
    heads = Heads(policy=torch.zeros(8, 26), value=torch.arange(8.0)).each(lambda head: head[:3])
    assert heads.policy.shape == (3, 26) and heads.value.tolist() == [0, 1, 2]
    assert heads.score is None and heads.ownership is None


def test_a_plain_runner_joins_what_several_callers_ask():
    network = toy_network("keima-resnet")
    planes, globals_ = (one.numpy() for one in inputs("keima-resnet", 5))
    found = PlainRunner(network).run([planes[:2], planes[2:]], [globals_[:2], globals_[2:]])
    np.testing.assert_array_equal(found.policy, network.evaluate(planes, globals_).policy)


def test_running_out_of_memory_is_known_by_class_or_words():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA"))
    assert is_out_of_memory(RuntimeError("MPS backend out of memory (allocated 9 GB)"))
    assert not is_out_of_memory(RuntimeError("an illegal memory access"))


class Stream:
    """Stands for a stream, as a context, and for an event."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def record(self, stream):
        pass

    def synchronize(self):
        pass


def runner_of_fakes(monkeypatch, holds: int):
    """A runner on no GPU, whose memory holds graphs of so many rows; and the rows that it has made graphs for."""
    runner, made = CudaRunner.__new__(CudaRunner), []

    def new_plan(rows, channels, height, width, n_globals):
        if rows > holds:
            raise torch.OutOfMemoryError("CUDA out of memory")
        made.append((rows, channels, height, width, n_globals))
        return made[-1]

    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    runner._plans, runner._stream, runner._done, runner._new_plan = {}, Stream(), Stream(), new_plan
    return runner, made


def test_every_number_of_rows_has_its_graph_before_it_is_needed(monkeypatch):
    runner, made = runner_of_fakes(monkeypatch, holds=1024)
    assert runner.prepare(9, 22, 19, 200) == 200
    assert [rows for rows, *_ in made] == list(ROWS[: ROWS.index(256) + 1])
    assert all(key[1:] == (22, 9, 9, 19) for key in made)
    assert all((rows_for(count), 22, 9, 9, 19) in runner._plans for count in range(1, 201))
    assert runner.prepare(9, 22, 19, 200) == 200 and len(made) == len(ROWS[: ROWS.index(256) + 1])
    assert runner.prepare(13, 22, 19, 5000) == 5000 and len(made) == 14 + len(ROWS)


def test_graphs_that_memory_does_not_hold_lower_the_limit(monkeypatch):
    runner, made = runner_of_fakes(monkeypatch, holds=48)
    assert runner.prepare(9, 22, 19, 256) == 48 and made[-1][0] == 48
    runner, _ = runner_of_fakes(monkeypatch, holds=0)
    with pytest.raises(torch.OutOfMemoryError):
        runner.prepare(9, 22, 19, 256)


def test_nothing_waits_for_the_whole_device_while_a_graph_is_captured(monkeypatch):
    """CUDA would end the capture: :data:`engine.nets.compute.cuda._CAPTURING`."""
    were_held = []
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: were_held.append(cuda._CAPTURING.locked()))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "Event", lambda blocking: Stream())
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    CudaRunner(toy_network("keima-resnet"))
    release_memory()
    assert were_held == [True, True] and not cuda._CAPTURING.locked()


def test_no_network_learns_in_emulated_bfloat16(monkeypatch):
    """On GPUs before Ampere; such learn in float32, and play in float16."""
    gpu = torch.device("cuda")
    for has_units in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, found=has_units: found)
        assert learns_in_bfloat16(gpu) == has_units
        assert reduced_dtype(gpu) == (torch.bfloat16 if has_units else torch.float16)


@pytest.mark.gpu
@pytest.mark.parametrize("use_graphs", [True, False])
def test_a_cuda_runner_gives_the_networks_own_outputs(use_graphs):
    model, device = toy("keima-resnet"), "cuda:0"
    exact = network_of(model, new_spec(model, "toy"), reduced=False)
    network = TorchNetwork(plain_of(model), new_spec(model, "toy"), device, reduced=False)
    runners = [CudaRunner(network, use_graphs) for _ in range(2)]

    def agrees(seed: int) -> bool:
        runner = runners[seed % 2]
        for count in (1, 3, 7, 8, 40):
            planes, globals_ = inputs("keima-resnet", count, size=7 + seed % 2, seed=seed)
            parts = [1, count - 1] if count > 1 else [1]
            found = runner.run(*([one.numpy() for one in both.split(parts)] for both in (planes, globals_)))
            for head, expected in zip(found, exact.evaluate(planes, globals_), strict=True):
                # Convolutions may run in TF32.
                torch.testing.assert_close(torch.from_numpy(head), expected, rtol=2e-2, atol=2e-3)
        return True

    with ThreadPoolExecutor(2) as threads:
        assert all(thread.result() for thread in [threads.submit(agrees, seed) for seed in range(2)])
    assert all(agrees(seed) for seed in range(4))


@pytest.mark.gpu
def test_reduced_precision_on_a_gpu_stays_close():
    model, device = toy("keima-resnet"), "cuda:0"
    planes, globals_ = inputs("keima-resnet", 16)
    exact = network_of(model, new_spec(model, "toy"), reduced=False).evaluate(planes, globals_)
    rough = (
        CudaRunner(TorchNetwork(plain_of(model), new_spec(model, "toy"), device))
        .run([planes.numpy()], [globals_.numpy()])
        .each(torch.from_numpy)
    )
    assert (exact.policy.softmax(1) - rough.policy.softmax(1)).abs().max() < 0.02
    assert (exact.value - rough.value).abs().max() < 0.05


def test_alphagos_pair_has_a_plan_too(monkeypatch):
    """Its two networks are evaluated as one graph."""
    parts = (plain_of(toy(f"alphago-{name}")) for name in ("policy", "value"))
    pair = AlphaGoPair(*(TorchNetwork(part, new_spec(part, "toy"), "cpu", reduced=False) for part in parts))
    monkeypatch.setattr(cuda, "_pinned_like", torch.empty_like)
    runner = CudaRunner.__new__(CudaRunner)
    runner._network, runner._use_graphs = pair, False
    plan = runner._new_plan(2, 49, 7, 7, 0)
    assert plan.call().policy.shape == (2, 50) and plan.staged.value.shape == (2,)
