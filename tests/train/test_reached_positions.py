"""Positions that searches reached, as training sees them: without moves and results of their own."""

from dataclasses import replace

import numpy as np
import pytest

from engine.features.encoder import KEIMA
from engine.go.rules import RULE_FIELDS
from engine.nets.fakes import HashNetwork
from engine.records.games import select
from engine.train.batches import BatchBuilder
from engine.train.dataset import reached_weights
from engine.train.teacher import Teacher
from tests.train.made import made_games, mixture


def made_reached(games, count=2):
    """Games as ``keima data reached`` keeps them."""
    nothing = np.zeros(count, np.int8), np.full(count, np.nan, np.float32)
    some = select(games, np.arange(count))
    return some._replace(position=np.arange(3, 3 + count, dtype=np.int16), result=nothing[0], margin=nothing[1])


def test_a_reached_position_has_no_move_of_its_own_and_is_the_teachers_in_every_step():
    reached = made_reached(made_games(), 8)
    rows, zeros = np.arange(3), np.zeros(3, np.int64)
    batch = BatchBuilder(KEIMA).from_games(reached, rows, reached.position[rows].astype(np.int64), zeros > 0, zeros)
    assert not batch.policy.any() and not batch.value_known.any()
    teacher = Teacher(HashNetwork(KEIMA.name), threads=1)
    try:
        source = mixture([reached], teacher=teacher, teacher_share=0.0)
        for step in range(4):
            np.testing.assert_allclose(source.batch_at(step).policy.sum(axis=1), 1.0, atol=1e-4)
        assert not source.shows_games, "nothing to measure on"
        assert mixture([reached, made_games()], teacher=teacher).seen_positions(20)[0].result.any()
    finally:
        teacher.close()
    with pytest.raises(ValueError, match="reached have no moves and results of their own: add a --teacher"):
        mixture([reached])


def test_what_a_teacher_does_not_say_counts_for_nothing_under_drawn_rules():
    class PolicyAlone(HashNetwork):
        def evaluate(self, planes, globals_):
            return super().evaluate(planes, globals_)._replace(value=None, score=None, ownership=None)

    def draw_rules(numbers, size):
        return np.zeros((len(numbers), RULE_FIELDS), np.int64)

    network = PolicyAlone(KEIMA.name)
    network.spec = replace(network.spec, heads=("policy",))
    teacher = Teacher(network, threads=1)
    try:
        given = {"teacher": teacher, "teacher_share": 1.0}
        assert mixture([made_games()], **given).batch_at(0).value_known.all()
        batch = mixture([made_games()], draw_rules=draw_rules, **given).batch_at(0)
    finally:
        teacher.close()
    assert not batch.value_known.any() and not batch.score_ownership_weight.any() and batch.policy.any()


def test_positions_that_searches_reached_are_drawn_as_often_as_is_said():
    games = made_games()
    reached = made_reached(games)
    whole = np.concatenate(reached_weights([games, reached], 0.75)), np.concatenate([games.size, reached.size])
    is_reached = np.arange(len(whole[0])) >= len(games.size)
    for size in np.unique(reached.size):
        of_size = whole[1] == size
        assert whole[0][of_size & is_reached].sum() == pytest.approx(0.75 * of_size.sum())
        assert whole[0][of_size].sum() == pytest.approx(of_size.sum())
    assert reached_weights([games], 0.75) is None
    alone = reached_weights([reached], 0.75)
    assert [weights.tolist() for weights in alone] == [[1.0, 1.0]]
