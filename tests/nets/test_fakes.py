"""The networks without weights keep their promises."""

import numpy as np
import pytest

from engine.nets.fakes import HashNetwork, SerialNetwork, UniformNetwork


def inputs(count: int, size: int = 5, seed: int = 0):
    """Planes of zeros and ones, and any globals."""
    random = np.random.default_rng(seed)
    planes = random.integers(0, 2, (count, 4, size, size)).astype(np.float32)
    return planes, random.standard_normal((count, 3), np.float32)


def test_the_hash_network_is_a_function_of_each_row_alone():
    network = HashNetwork("test")
    planes, globals_ = inputs(6)
    together = network.evaluate(planes, globals_)
    for row in range(6):
        alone = network.evaluate(planes[row : row + 1], globals_[row : row + 1])
        for part, whole in zip(alone, together, strict=True):
            assert np.array_equal(part[0], whole[row])
    assert len(set(together.value.tolist())) == 6


def test_any_change_of_input_changes_the_hash_networks_outputs():
    network = HashNetwork("test")
    planes, globals_ = inputs(1)
    first = network.evaluate(planes, globals_).policy
    for index in range(planes.size):
        changed = planes.copy()
        changed.flat[index] = 1 - changed.flat[index]
        assert not np.array_equal(network.evaluate(changed, globals_).policy, first)
    assert not np.array_equal(network.evaluate(planes, globals_ + 0.01).policy, first)
    assert not np.array_equal(HashNetwork("test", seed=2).evaluate(planes, globals_).policy, first)


def test_hash_outputs_fill_their_ranges():
    output = HashNetwork("test").evaluate(*inputs(500))
    assert -3 <= output.policy.min() < -2.9 and 2.9 < output.policy.max() <= 3
    assert -0.9 <= output.value.min() < -0.85 and 0.85 < output.value.max() <= 0.9
    assert abs(output.value.mean()) < 0.1


def test_the_uniform_network_prefers_nothing():
    output = UniformNetwork("test").evaluate(*inputs(3))
    assert output.policy.shape == (3, 26) and not output.policy.any() and not output.value.any()
    assert output.ownership.shape == (3, 5, 5)


def test_the_serial_network_works_one_batch_after_another():
    now, slept = [10.0], []
    network = SerialNetwork("test", batch_s=0.002, rows=4, clock=lambda: now[0], sleep=slept.append)
    for count in (1, 4, 5):
        assert len(np.unique(network.evaluate(*inputs(count)).value)) == count
    # All three came at once: the second waits for the first, and the third is two batches.
    assert slept == pytest.approx([0.002, 0.004, 0.008])
    assert network.idle_s == 0.0 and (network.calls, network.positions) == (3, 10)
    now[0] += 0.009
    network.evaluate(*inputs(1))
    assert slept[-1] == pytest.approx(0.002) and network.idle_s == pytest.approx(0.001)
