"""Batches: what they show, what they ask for, and which positions a run draws."""

import numpy as np
import pytest
import torch

from engine.config import TrainOptions
from engine.features import keima
from engine.features.encoder import KEIMA
from engine.features.symmetry import apply_symmetry
from engine.go.geometry import WHITE
from engine.go.rules import RULE_FIELDS, RULE_KOMI_X2
from engine.nets.fakes import HashNetwork
from engine.records.final_owners import FinalOwners
from engine.records.games import Games, read_games
from engine.records.labels import CHINESE_FLAGS, read_labels
from engine.records.replay import komi_of
from engine.records.search_rows import SearchRows
from engine.train.batches import BatchBuilder
from engine.train.dataset import Material, Mixture, sample_games
from engine.train.ranks import Ranks
from engine.train.teacher import Teacher
from tests.train.made import made_games, made_labels, mixture


def same(first, second):
    """Compare two batches array by array."""
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_game_positions_show_the_board_before_the_move_and_target_the_move_and_the_result():
    games = made_games()
    rows, plies, symmetries = np.array([0, 1, 2]), np.array([0, 7, 20]), np.array([0, 5, 3])
    batch = BatchBuilder(KEIMA).from_games(games, rows, plies, games.territory[rows], symmetries, None, 0.25)
    for i in range(3):
        move = games.moves[games.offsets[rows[i]] + plies[i]]
        assert batch.policy[i, apply_symmetry(int(move), 9, int(symmetries[i]))] == 1
        reply = games.moves[games.offsets[rows[i]] + plies[i] + 1]
        assert batch.reply[i, apply_symmetry(int(reply), 9, int(symmetries[i]))] == batch.reply[i].sum() == 1
        assert batch.planes[i, keima.RECENT].sum() == (plies[i] > 0)
    assert batch.globals[:, keima.TERRITORY].tolist() == [1, 0, 1]
    assert batch.value.tolist() == [-1, -1, 1], "White won the first, Black the others; Black, White, Black to move"
    assert batch.value_known.tolist() == [0.25] * 3
    assert batch.score_ownership_weight.tolist() == [0] * 3


def test_the_last_move_of_a_game_has_no_reply():
    games = made_games()
    last = np.diff(games.offsets)[[2, 4]] - 1
    arguments = np.array([2, 4]), last - np.array([0, 1]), np.zeros(2, bool), np.zeros(2, np.int64)
    assert BatchBuilder(KEIMA).from_games(games, *arguments).reply.sum(axis=1).tolist() == [0, 1]


def test_a_game_without_a_winner_teaches_no_value():
    games = made_games()
    games.result[5] = 0
    batch = BatchBuilder(KEIMA).from_games(games, np.array([5]), np.array([3]), np.array([False]), np.array([0]))
    assert batch.value_known.tolist() == [0]


def test_stones_set_up_are_on_the_board_and_white_may_begin():
    games = Games(
        size=np.array([9]), komi=np.array([0.5], np.float32), offsets=np.array([0, 2]),
        moves=np.array([40, 41], np.uint16), result=np.array([1], np.int8), territory=np.array([False]),
        first=np.array([WHITE], np.uint8), setup_offsets=np.array([0, 2]),
        setup=np.array([2 * 20, 2 * 60], np.uint16),
    )  # fmt: skip
    arguments = np.array([0, 0]), np.array([0, 1]), np.array([False, False]), np.array([0, 0])
    batch = BatchBuilder(KEIMA).from_games(games, *arguments)
    assert np.flatnonzero(batch.planes[0, keima.OPPONENT]).tolist() == [20, 60]
    assert batch.value.tolist() == [-1, 1], "White to move, then Black"


def test_final_owners_teach_score_and_ownership_turned_and_from_the_movers_view():
    games = made_games()
    ownership = np.zeros((2, 81), np.int8)
    ownership[0, 0], ownership[0, 80] = 1, -1
    row = np.full(40, -1)
    row[3] = 0
    lead = np.where(np.arange(40) == 3, np.float32(4.5), np.float32(0))
    rows, plies, symmetries = np.array([3, 3, 4]), np.array([0, 1, 0]), np.array([0, 1, 0])
    batch = BatchBuilder(KEIMA).from_games(
        games, rows, plies, np.zeros(3, bool), symmetries, FinalOwners(row, lead, ownership)
    )  # fmt: skip
    assert batch.score_ownership_weight.tolist() == [1, 1, 0]
    assert batch.score.tolist() == [4.5, -4.5, 0]
    assert batch.ownership[0, 0, 0] == 1 and batch.ownership[0, 8, 8] == -1
    corner = apply_symmetry(0, 9, 1)
    assert batch.ownership[1, corner // 9, corner % 9] == -1
    assert not batch.ownership[2].any()


def test_label_positions_are_seen_from_the_side_to_move_and_turned():
    labels = made_labels()
    rows = np.arange(20)
    symmetries = np.resize(np.arange(8), 20)
    batch = BatchBuilder(KEIMA).from_labels(labels, rows, symmetries)
    for i, row in enumerate(rows):
        sign = 1 if labels.ply[row] % 2 == 0 else -1
        assert batch.value[i] == pytest.approx(sign * labels.value_black[row])
        assert batch.score[i] == pytest.approx(sign * labels.lead_black[row])
        first, second = (apply_symmetry(int(index), 9, int(symmetries[i])) for index in labels.policy_index[row, :2])
        assert batch.policy[i, [first, second]] == pytest.approx([0.75, 0.25])
        corner = apply_symmetry(0, 9, int(symmetries[i]))
        assert batch.ownership[i, corner // 9, corner % 9] == pytest.approx(-0.4 * sign)


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_depend_only_on_seed_and_step(workers):
    first, second = (mixture([made_games()], [made_labels()], workers=workers) for _ in range(2))
    for step in (0, 3, 11):
        same(first.batch_at(step), second.batch_at(step))
    stream = first.stream(3, lambda batch: batch)
    for step in range(3, 12):
        same(next(stream), second.batch_at(step))
    stream.close()


def test_ranks_share_a_batch_between_them():
    games = [made_games(), made_games(seed=1)]
    whole = mixture(games, batch=16)
    halves = [mixture(games, batch=8, ranks=Ranks(rank, 2)) for rank in (0, 1)]
    for step in range(4):
        expected, parts = whole.batch_at(step), [half.batch_at(step) for half in halves]
        for name in expected._fields:
            joined = np.empty_like(getattr(expected, name))
            joined[0::2], joined[1::2] = (getattr(part, name) for part in parts)
            np.testing.assert_array_equal(joined, getattr(expected, name))


def test_a_batch_of_one_has_one_position_of_a_larger_board_too():
    for ranks in (1, 2):
        data = Mixture(KEIMA, Material([made_games(size=25)]), TrainOptions(batch=1), ranks=Ranks(count=ranks))
        assert len(data.batch_at(0).planes) == 1


@pytest.mark.parametrize("size", [7, 9, 13])
def test_a_batch_has_the_same_number_of_positions_on_every_board(size):
    data = Mixture(KEIMA, Material([made_games(size=size)]), TrainOptions(batch=20))
    assert len(data.batch_at(0).planes) == 20


def test_positions_of_weaker_or_unknown_movers_are_left_out():
    ranks = {"rank_black": np.array([6, 6, 5, 0, -1]), "rank_white": np.array([6, 5, 7, 21, 0])}
    games = made_games(count=5, length=7)._replace(first=np.array([1, 1, 1, 2, 1], np.uint8), **ranks)
    source, rng = mixture([games], mover_rank=6), np.random.default_rng(0)
    drawn = [set(source._plies(games, np.full(300, game), 0, rng)) for game in range(4)]
    assert drawn == [{*range(7)}, {0, 2, 4, 6}, {1, 3, 5}, {0, 2, 4, 6}]
    assert set(source._game_sizes.draw(rng, 500)[2]) == {0, 1, 2, 3}
    only = games._replace(position=np.array([3, 3, 3, 3, 3], np.int16))
    source = mixture([only], mover_rank=6)
    assert set(source._game_sizes.draw(rng, 500)[2]) == {0, 2}, "positions of a mover of that rank"
    assert set(source._plies(only, np.array([0, 2]), 0, rng)) == {3}


def test_few_positions_a_game_are_always_the_same_ones():
    games = made_games(count=5)
    source = mixture([games], positions_per_game=2, batch=64)
    seen = {}
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = rng.integers(0, 5, 64)
        for row, ply in zip(rows, source._plies(games, rows, 0, rng), strict=True):
            seen.setdefault(int(row), set()).add(int(ply))
    assert [len(plies) for plies in seen.values()] == [2] * 5
    assert len(set().union(*seen.values())) > 4, "different ones in different games"


def test_all_positions_are_drawn_when_all_may_be():
    games = made_games(count=1, length=10)
    source, rng = mixture([games]), np.random.default_rng(0)
    assert set(source._plies(games, np.zeros(500, np.int64), 0, rng)) == set(range(10))


def test_boards_that_the_network_does_not_play_are_left_out():
    shards = [made_games(size=9), made_games(size=13, length=40)]
    source = mixture(shards, sizes=(13, 13))
    assert all(source.batch_at(step).planes.shape[2] == 13 for step in range(10))
    with pytest.raises(ValueError, match="no training data"):
        mixture(shards, sizes=(19, 19))
    with pytest.raises(ValueError, match="no training data"):
        mixture()


def test_steps_are_on_the_boards_that_are_asked_for():
    shards = [made_games(size=9), made_games(size=13, length=40), made_games(size=13, length=50), made_games(size=19)]
    source = mixture(shards, boards={9: 0.2, 13: 0.6})
    sizes = np.array([source.batch_at(step).planes.shape[2] for step in range(400)])
    # Five standard deviations of a binomial count.
    assert set(sizes) == {9, 13} and abs((sizes == 13).sum() - 300) < 5 * np.sqrt(400 * 0.25 * 0.75)
    # 13x13 has no labels, 9x9 both: the shares are those of all steps.
    source = mixture([*shards], [made_labels()], boards={9: 0.2, 13: 0.8}, label_share=0.5)
    drawn = [source._draw(np.random.default_rng(k), 1)[:2] for k in range(1000)]
    shares = {which: drawn.count(which) / 1000 for which in set(drawn)}
    assert shares == pytest.approx({(False, 13): 0.8, (False, 9): 0.1, (True, 9): 0.1}, abs=0.04)
    with pytest.raises(ValueError, match="no training data for boards of 11x11"):
        mixture(shards, boards={9: 1.0, 11: 1.0})


def test_labels_of_decided_positions_are_drawn_as_often_as_is_said():
    labels = made_labels()
    decided = np.abs(labels.value_black) > 0.95
    seen = {}
    for weight in (1.0, 0.1):
        source = Mixture(KEIMA, Material(labels=[labels]), TrainOptions(batch=64, decided_weight=weight))
        values = np.concatenate([source.batch_at(step).value for step in range(40)])
        seen[weight] = (np.abs(values) > 0.95).mean()
    share = decided.mean()
    assert share > 0.02
    assert seen[1.0] == pytest.approx(share, abs=0.03)
    assert 0.0 < seen[0.1] < 0.5 * share


def test_a_teacher_says_of_turned_positions_what_it_would_say_of_them():
    network = HashNetwork(KEIMA.name)
    teacher = Teacher(network, threads=1)
    try:
        batch = mixture([made_games()], teacher=teacher, teacher_share=1.0).batch_at(2)
        plain = mixture([made_games()]).batch_at(2)
    finally:
        teacher.close()
    np.testing.assert_array_equal(batch.planes, plain.planes)

    expected = network.evaluate(batch.planes, batch.globals)
    legal = np.ones(batch.policy.shape, bool)
    legal[:, :-1] = (batch.planes[:, 1] + batch.planes[:, 2] == 0).reshape(len(legal), -1)
    masked = torch.from_numpy(np.where(legal, expected.policy, -np.inf))
    np.testing.assert_allclose(batch.policy, torch.softmax(masked, dim=1), atol=1e-5)
    assert not batch.policy[~legal].any()
    np.testing.assert_array_equal(batch.value, expected.value)
    np.testing.assert_array_equal(batch.ownership, expected.ownership)
    assert (batch.value_known == 1).all() and (batch.score_ownership_weight == 1).all()


def test_pupil_and_teacher_see_a_position_under_the_rules_and_the_komi_that_are_drawn():
    def draw_rules(numbers, size):
        rules = np.zeros((len(numbers), RULE_FIELDS), np.int64)
        rules[:, RULE_KOMI_X2] = 2 * size + numbers % 2
        drawn.append(rules)
        return rules

    network, drawn = HashNetwork(KEIMA.name), []
    teacher = Teacher(network, threads=1)
    try:
        source = mixture([made_games()], teacher=teacher, teacher_share=1.0, draw_rules=draw_rules)
        batch, again = source.batch_at(2), source.batch_at(2)
    finally:
        teacher.close()
    same(batch, again)
    komi = drawn[0][:, RULE_KOMI_X2] / 2
    assert set(komi) == {9.0, 9.5}
    shown = batch.globals[:, keima.KOMI] * keima.KOMI_SCALE
    np.testing.assert_allclose(np.abs(shown), komi, atol=1e-5)
    expected = network.evaluate(batch.planes, batch.globals)
    np.testing.assert_array_equal(batch.value, expected.value)


def test_a_run_that_echoes_sees_the_same_batches_when_it_goes_on():
    source = mixture([made_games()], echo=2, workers=2)
    stream, later = (source.stream(step, lambda batch: batch) for step in (0, 3))
    batches = [next(stream) for _ in range(5)]
    for expected in batches[3:]:
        same(expected, next(later))
    stream.close(), later.close()


def test_sample_is_fixed_and_spread_over_all_games():
    games = made_games()
    rows, plies = sample_games(games, 80, 7)
    assert np.bincount(rows, minlength=40).tolist() == [2] * 40
    assert ((plies >= 0) & (plies < 30)).all()
    np.testing.assert_array_equal(sample_games(games, 80, 7)[1], plies)


@pytest.mark.shared
def test_real_shards_replay(shared_path):
    games = read_games(shared_path / "data" / "validation.npz.xz")
    assert len(games.size) == 10000 and len(games.moves) == 2132848
    labels = read_labels(shared_path / "labels" / "labels-07.npz.xz")
    assert len(labels.game) == 38291 and len(labels.ownership_black) == labels.own_offsets[-1]
    batch = mixture([games], [labels], batch=16).batch_at(0)
    np.testing.assert_allclose(batch.policy.sum(axis=1), 1, atol=1e-4)


def test_a_territory_game_shown_by_area_has_the_areas_lead_and_winner():
    """The record says Black lost by half a point; by area, with the same komi, Black wins by half a point."""
    games = made_games()._replace(
        margin=np.full(40, 0.5, np.float32), result=np.full(40, -1, np.int8), territory=np.ones(40, bool)
    )
    ownership = np.zeros((2, 81), np.int8)
    ownership[0, :7] = 1
    row = np.full(40, -1)
    row[0] = 0
    owners = FinalOwners(row, np.where(row == 0, np.float32(-0.5), np.float32(0)), ownership)
    rows, plies, symmetries = np.array([0, 0]), np.array([0, 1]), np.array([0, 0])
    batch = BatchBuilder(KEIMA).from_games(games, rows, plies, np.array([True, False]), symmetries, owners)
    assert batch.score.tolist() == [-0.5, -0.5], "Black to move by territory; White to move by area"
    assert batch.value.tolist() == [-1, -1]


def test_a_drawn_game_teaches_a_draw():
    games = made_games()._replace(margin=np.zeros(40, np.float32), result=np.zeros(40, np.int8))
    batch = BatchBuilder(KEIMA).from_games(games, np.array([5]), np.array([3]), np.array([False]), np.array([0]))
    assert (batch.value.tolist(), batch.value_known.tolist()) == ([0], [1])


def test_a_game_that_cannot_be_replayed_is_one_clear_error():
    games = made_games()
    games.moves[games.offsets[3] + 4] = games.moves[games.offsets[3]]
    rows, nothing = np.array([2, 3]), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="game 3 of its shard has a move on a stone before move 9"):
        BatchBuilder(KEIMA).from_games(games, rows, np.array([9, 9]), np.zeros(2, bool), nothing)


def test_komi_that_nobody_noted_is_the_usual_one():
    games = made_games()._replace(komi=np.full(40, np.nan, np.float32), handicap=np.arange(40, dtype=np.uint8))
    assert komi_of(games, np.array([0, 1, 2, 9])).tolist() == [7.5, 7.5, 0.5, 0.5]


@pytest.mark.parametrize("seed", [1, 2**50, 2**63 - 1])
def test_any_seed_spreads_the_positions_of_games(seed):
    games = made_games()
    source = mixture([games], positions_per_game=1, seed=seed)
    assert len(set(source._plies(games, np.arange(40), 0, np.random.default_rng(0)).tolist())) > 15


@pytest.mark.parametrize("few", [0, 2])
def test_the_training_error_is_measured_on_positions_that_batches_show(few):
    """Others of the same games would not tell what was learnt by heart."""
    source = mixture([made_games(count=6, length=20)], positions_per_game=few, batch=64)
    games, rows, plies = source.seen_positions(50)
    sample = set(zip(rows.tolist(), plies.tolist(), strict=True))
    assert len(sample) == len(rows) > (8 if few else 30)
    rng, shown = np.random.default_rng(1), set()
    for _ in range(50):
        drawn = rng.integers(0, 6, 64)
        shown |= set(zip(drawn.tolist(), source._plies(games, drawn, 0, rng).tolist(), strict=True))
    assert sample <= shown
    only = games._replace(position=np.full(6, 7, np.int16))
    assert set(mixture([only]).seen_positions(50)[2].tolist()) == {7}


def test_the_training_error_is_measured_on_all_boards():
    """It was once measured on one shard, and so on one board size."""
    shards = [made_games(size=9), made_games(size=13), made_games(size=9, seed=1)]
    games, rows, plies = mixture(shards, boards={9: 1.0, 13: 1.0}).seen_positions(400)
    sizes = games.size[rows]
    assert 100 < (sizes == 13).sum() < 300 and 100 < (sizes == 9).sum() < 300
    assert len(set(zip(rows.tolist(), plies.tolist(), strict=True))) == len(rows)
    for row in np.unique(rows).tolist():
        moves = games.moves[games.offsets[row] : games.offsets[row + 1]].tolist()
        assert any(moves == shard.moves[30 * game : 30 * game + 30].tolist() for shard in shards for game in range(40))


def test_a_sample_keeps_to_the_one_position_of_games_that_have_one():
    games = made_games(count=4, length=20)
    games = games._replace(position=np.array([7, -1, 3, -1], np.int16))
    for count in (4, 9, 500):
        rows, plies = sample_games(games, count, 1)
        assert (rows == 0).sum() == (rows == 2).sum() == 1
        assert plies[rows == 0] == 7 and plies[rows == 2] == 3
        assert len(rows) == min(count, 42)
        assert ((plies >= 0) & (plies < 20)).all()


def test_a_sample_holds_no_position_twice():
    games = made_games(count=3, length=20)
    for count in (2, 7, 30, 60, 5000):
        rows, plies = sample_games(games, count, 1)
        assert len(rows) == min(count, 60)
        assert len(set(zip(rows.tolist(), plies.tolist(), strict=True))) == len(rows)
        assert np.ptp(np.bincount(rows, minlength=3)) <= 1


def test_rows_of_self_play_show_the_position_and_target_search_result_score_and_owners():
    games = Games(
        size=np.array([3]), komi=np.array([2.5], np.float32), offsets=np.array([0, 3]),
        moves=np.array([4, 1, 9], np.uint16), result=np.array([1], np.int8), margin=np.array([4.5], np.float32),
    )  # fmt: skip
    policy = np.zeros((2, 10), np.uint16)
    policy[0, [4, 1]], policy[1, [1, 9]] = (30, 10), (1, 3)
    rows = SearchRows(
        games=games, flags=CHINESE_FLAGS[None], owner=np.array([[1, 1, 1, 1, 1, 1, 1, 1, -1]], np.int8),
        network=np.zeros(1, np.uint64), step=np.zeros(1, np.int64), resigner=np.zeros(1, np.uint8),
        quits=np.zeros(1, bool), lowest=np.ones((1, 2), np.float32), game=np.array([0, 0]), ply=np.array([0, 1]),
        policy=policy, value_black=np.array([0.6, -0.2], np.float32), weight=np.ones(2, np.float32),
    )  # fmt: skip
    symmetries = np.array([0, 3])
    batch = BatchBuilder(KEIMA).from_search_rows(rows, np.array([0, 1]), symmetries)
    assert batch.reply[0, [1, 9]].tolist() == [0.25, 0.75], "the next position was searched in full too"
    assert batch.reply[1].tolist() == [0] * 9 + [1], "only the move is known: a pass"
    assert batch.policy[0, [4, 1]].tolist() == [0.75, 0.25]
    assert batch.policy[1, [apply_symmetry(1, 3, 3), 9]].tolist() == [0.25, 0.75]
    assert batch.policy.sum(axis=1).tolist() == [1, 1]
    assert (batch.value.tolist(), batch.score.tolist()) == ([1, -1], [4.5, -4.5]), "Black, then White to move"
    at = apply_symmetry(8, 3, 3)
    assert (batch.ownership[0, 2, 2], batch.ownership[1, at // 3, at % 3]) == (-1, 1)
    assert batch.score_ownership_weight.tolist() == [1, 1]
    games.margin[0] = np.nan
    batch = BatchBuilder(KEIMA).from_search_rows(rows, np.array([0, 1]), symmetries)
    assert batch.score_ownership_weight.tolist() == [0, 0], "a resigned game has no score"
    assert batch.value.tolist() == [1, -1]
