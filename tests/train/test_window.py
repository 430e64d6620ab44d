"""The window over rows of self-play: how it grows, which shards it holds, and how often its rows are drawn."""

import numpy as np
import pytest

from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.records.schema import join
from engine.selfplay.search_games import SelfPlay
from engine.selfplay.search_options import SearchPlayOptions
from engine.train.turns import WindowBatches, newest, window_rows


@pytest.mark.parametrize(
    ("rows", "scale", "power", "expected"),
    [
        # KataGo's formula, worked out by hand for shards/facts of other settings.
        (50_000, 50_000, 0.75, 50_000), (200_000, 20_000, 0.65, 62_700), (1_000_000, 50_000, 0.75, 275_500),
        (2_500_000, 250_000, 0.75, 866_500), (100, 20_000, 0.65, 100),
    ],
)  # fmt: skip
def test_the_window_grows_by_a_power_law(rows, scale, power, expected):
    assert window_rows(rows, scale, power, 0.4) == pytest.approx(expected, rel=0.01)


def test_the_window_never_goes_back():
    """What has left it does not come again, so old shards may be deleted."""
    counts = np.arange(1, 400_000, 997)
    first = [count - window_rows(int(count), 20_000, 0.65, 0.4) for count in counts.tolist()]
    assert first == sorted(first)
    assert min(first) == 0


def test_the_window_has_the_newest_shards():
    assert [newest([10, 20, 30], wanted) for wanted in (1, 30, 31, 50, 60, 99)] == [1, 1, 2, 2, 3, 3]
    assert newest([], 5) == 0


@pytest.fixture(scope="module")
def rows():
    options = SearchPlayOptions(size=3, visits=8, fast_visits=4, full_share=0.5, komi=2.0)
    with InferenceServer(HashNetwork("keima-1"), threads=1) as server:
        return join(list(SelfPlay(server, options, 4).play(iter(range(12)))))


def test_rows_are_drawn_by_their_weights(rows):
    weight = np.zeros(len(rows.game), np.float32)
    weight[[3, 10]] = 1.0, 3.0
    data = WindowBatches(ENCODERS["keima-1"], rows._replace(weight=weight), 400, 1)
    batch = data.batch_at(0)
    of_second = (np.abs(batch.policy.max(axis=1) - (rows.policy[10] / rows.policy[10].sum()).max()) < 1e-6).mean()
    assert 0.68 < of_second < 0.82


def test_a_batch_is_a_function_of_seed_step_and_window(rows):
    def batch(seed, step):
        return WindowBatches(ENCODERS["keima-1"], rows, 16, seed).batch_at(step)

    again, other = batch(1, 7), batch(1, 8)
    assert all(np.array_equal(one, two) for one, two in zip(batch(1, 7), again, strict=True))
    assert not np.array_equal(other.planes, again.planes)
    assert not np.array_equal(batch(2, 7).planes, again.planes)


def test_rows_without_any_weight_are_refused(rows):
    nothing = rows._replace(weight=np.zeros_like(rows.weight))
    with pytest.raises(ValueError, match="no rows to train on"):
        WindowBatches(ENCODERS["keima-1"], nothing, 4, 1)
