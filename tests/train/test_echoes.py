"""Batches that several steps learn from."""

from collections import Counter

import numpy as np
import pytest
import torch

from engine.features.encoder import KEIMA
from engine.features.symmetry import symmetry_table
from engine.train.batches import OF_BOARDS, OF_MOVES, BatchBuilder, under_symmetry
from engine.train.dataset import SPAN, Echoes, batch_of
from tests.train.made import made_games


@pytest.mark.parametrize("first_step", [0, SPAN + 3])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_each_batch_is_learnt_from_in_several_steps(times, first_step):
    made = []
    echoes = Echoes(lambda number: made.append(number) or number, times)
    seen = [echoes(step) for step in range(first_step, 6 * SPAN)]
    assert seen == [batch_of(step, times)[0] for step in range(first_step, 6 * SPAN)], "also when a run goes on"
    assert max(Counter(made).values()) == 1, "each is made once"
    counts = Counter(batch_of(step, times)[0] for step in range(6 * SPAN))
    assert {counts[number] for number in range(SPAN, 6 * SPAN // times)} == {times} and echoes.held <= SPAN
    if times > 1:
        steps = [step for step in range(6 * SPAN) if batch_of(step, times)[0] == SPAN]
        assert [batch_of(step, times)[1] for step in steps] == list(range(times))
        assert all(SPAN <= gap < SPAN + 2 * times for gap in np.diff(steps))


def test_new_batches_come_at_a_steady_pace():
    new = [step for step in range(SPAN, 6 * SPAN) if batch_of(step, 3)[1] == 0]
    assert set(np.diff(new)) == {3}


def test_every_field_of_a_batch_is_turned_that_shows_the_board():
    games, zeros = made_games(), np.zeros(2, np.int64)
    rows = np.flatnonzero(games.size == games.size[0])[:2]
    batch = BatchBuilder(KEIMA).from_games(games, rows, zeros, zeros > 0, zeros)
    sides, size = {}, batch.planes.shape[-1]
    for name, field in batch._asdict().items():
        sides[name] = "board" if field.shape[-2:] == (size, size) else field.shape[1:] == (size * size + 1,)
    assert {name for name, side in sides.items() if side == "board"} == OF_BOARDS
    assert {name for name, side in sides.items() if side is True} == OF_MOVES


@pytest.mark.parametrize("symmetry", range(8))
def test_a_batch_is_turned_as_positions_are(symmetry):
    size, table = 5, torch.from_numpy(symmetry_table(5)[symmetry].astype(np.int64))
    policy = torch.arange(2 * 26.0).view(2, 26)
    points = policy[:, :-1].view(2, size, size)
    held = {"planes": points[:, None].repeat(1, 3, 1, 1), "ownership": points, "policy": policy, "reply": -policy}
    found = under_symmetry(held | {"value": torch.ones(2)}, symmetry)
    expected = torch.empty_like(policy)
    expected[:, table] = policy
    shown = expected[:, :-1].view(2, size, size)
    torch.testing.assert_close(found["policy"], expected)
    torch.testing.assert_close(found["reply"], -expected)
    torch.testing.assert_close(found["ownership"], shown)
    torch.testing.assert_close(found["planes"], shown[:, None].expand(2, 3, 5, 5))
    assert found["value"].tolist() == [1.0, 1.0]
