"""Self-play by search: each game as its slow twin plays it, whatever shares its table, and what its rows say."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from engine.features.keima import KOMI
from engine.go.geometry import cell_count, on_board_points
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork, UniformNetwork
from engine.records.games import COUNTED, RESIGNED, Games
from engine.records.schema import join
from engine.records.search_rows import SearchRows, replies, targets
from engine.search.backup import complete
from engine.search.selection import select
from engine.search.tree import META_IN_FLIGHT, META_ROOT_VISITS, Tree
from engine.selfplay.search_games import Origin, SelfPlay, false_resignations, resignation_bound, surprise_weights
from engine.selfplay.search_options import SearchPlayOptions
from engine.selfplay.searches import clear_searches, new_searches, new_tuning
from engine.system.arrays import row_of
from tests.search.tree_tools import check_at_rest, give_moves
from tests.selfplay.search_twin import SlowSearchGame

PLAIN = SearchPlayOptions(
    size=3, visits=20, fast_visits=8, full_share=0.5, noise=0.0, target_temperature=1.0, forced=0.0, early_share=0.0,
    komi=2.0, keep_tree=False, score_utility=0.0,
)  # fmt: skip
WHOLE = replace(
    PLAIN, noise=0.25, target_temperature=1.2, forced=2.0, early_share=0.2, resign=0.4, resign_count=2, played_out=0.5,
    keep_tree=True, score_utility=0.3,
)  # fmt: skip


@pytest.fixture
def group():
    """Self-play, each with a server and a result cache of its own, of a network of hashed outputs."""
    with ExitStack() as stack:

        def make(options, slots=4, network=None):
            server = InferenceServer(network or HashNetwork("keima-1"), threads=1)
            return SelfPlay(stack.enter_context(server), options, slots, Origin(7, 100))

        yield make


def by_number(rows):
    """Each game's moves, ending, lead, rows (ply, target) and resigner, by number."""
    found, games = {}, rows.games
    for k, number in enumerate(games.number.tolist()):
        lead = float(games.margin[k] * games.result[k])
        its = np.flatnonzero(rows.game == k)
        targets_ = [(int(rows.ply[r]), {int(m): int(rows.policy[r, m]) for m in np.flatnonzero(rows.policy[r])})
                    for r in its]  # fmt: skip
        moves = games.moves[games.offsets[k] : games.offsets[k + 1]].tolist()
        assert number not in found
        found[number] = (moves, int(games.ending[k]), lead, targets_, int(rows.resigner[k]))
    return found


def played(group, numbers):
    return join(list(group.play(iter(numbers))))


def test_a_row_of_the_searches_is_a_tree_of_its_own():
    searches = new_searches(3, 3, capacity=20, visits=20)
    clear_searches(searches, np.arange(3))
    tree, leaf = row_of(searches.forest, 1), row_of(searches.leaves, 1)
    assert select(tree, leaf, 1, new_tuning(1.0, 0.2), np.ones((1, cell_count(3)), np.uint8), False) == 1
    give_moves(leaf, 0, {0: 100})
    complete(tree, leaf, 1, 0.0, True, False)
    assert searches.forest.meta[:, META_ROOT_VISITS].tolist() == [0, 1, 0]
    assert tree.point.tolist() == [*on_board_points(3).tolist(), 0]


BOUND = replace(WHOLE, sensible=0.7)
HALVED = replace(BOUND, candidates=6)
TWINS = {
    "plain": PLAIN, "kept": replace(PLAIN, keep_tree=True), "whole": WHOLE, "bound": BOUND, "halved": HALVED,
    "halved with few visits": replace(HALVED, visits=4, fast_visits=4, full_share=0.9),
}  # fmt: skip


@pytest.mark.parametrize("options", TWINS.values(), ids=TWINS)
def test_a_game_is_as_its_slow_twin_plays_it(group, options):
    rows = played(group(options), range(12))
    network, found = HashNetwork("keima-1"), by_number(rows)
    assert found.keys() == set(range(12))
    for number, (moves, ending, lead, its, resigner) in found.items():
        twin = SlowSearchGame(network, options, number)
        moves_, ending_, lead_, its_, resigner_ = twin.play()
        assert (number, moves, ending, its, resigner) == (number, moves_, ending_, its_, resigner_)
        assert lead == pytest.approx(lead_, nan_ok=True)
        at = rows.games.number.tolist().index(number)
        assert rows.lowest[at] == pytest.approx([twin.lowest[1], twin.lowest[2]], abs=1e-6)


class CertainNetwork(HashNetwork):
    """Who the komi favours wins, it says, and hardly doubts it."""

    def evaluate(self, planes, globals_):
        output = super().evaluate(planes, globals_)
        sign = np.where(globals_[:, KOMI] > 0, np.float32(0.95), np.float32(-0.95))
        return output._replace(value=sign + np.float32(0.01) * output.value)


def test_few_searches_of_a_decided_game_are_full(group):
    options = replace(WHOLE, size=4, komi=60.0, komi_sd=0.0, wide_komi_share=0.0, resign=0.0, full_share=1.0)
    options = replace(options, decided_share=0.25)
    network = CertainNetwork("keima-1")
    rows = played(group(options, network=network), range(12))
    found = by_number(rows)
    for number, (moves, _, _, its, _) in found.items():
        assert (moves, its) == SlowSearchGame(network, options, number).play()[0:4:3]
    # The first two searches of each side say too little.
    is_late = rows.ply >= 8
    late_moves = sum(max(0, len(moves) - 8) for moves, *_ in found.values())
    assert 0.15 < is_late.sum() / late_moves < 0.35


@pytest.mark.parametrize("options", [WHOLE, replace(WHOLE, candidates=4)], ids=["puct", "halving"])
def test_a_game_alone_is_the_same_as_among_16(group, options):
    together = by_number(played(group(options, slots=16), range(16)))
    alone = group(options, slots=1)
    for number in (0, 5, 11):
        assert repr(by_number(played(alone, [number]))[number]) == repr(together[number])


def test_gumbel_games_follow_the_temperature(group):
    """With little of it, games from one network are alike where all moves are looked at."""
    plain = replace(PLAIN, size=4, full_share=1.0, candidates=17, sigma_scale=0.0, komi_sd=0.0, wide_komi_share=0.0)
    found = {}
    for temperature in (0.05, 1.0):
        rows = played(group(replace(plain, temperature=temperature, final_temperature=0.05)), range(32))
        found[temperature] = len({tuple(moves[:6]) for moves, *_ in by_number(rows).values()})
    # Not one game: the symmetry that the network is shown a position in is drawn too.
    assert found[0.05] < 12 < 24 < found[1.0]


def test_nothing_is_in_flight_when_games_have_ended_and_visits_add_up(group):
    one = group(replace(WHOLE, size=4, forced=0.0, noise=0.0, target_temperature=1.0))
    rows = played(one, range(8))
    assert (rows.policy.sum(axis=1) == WHOLE.visits - 1).all()
    for slot in range(4):
        tree = Tree(*(array[slot] for array in one.batch.searches.forest))
        assert tree.meta[META_IN_FLIGHT] == 0
        assert tree.meta[META_ROOT_VISITS] >= 1
        check_at_rest(tree)


def test_a_full_tree_ends_its_search_and_no_more(group):
    one = group(replace(PLAIN, keep_tree=True, full_share=1.0))
    small = one.batch.searches.forest
    pools = ("P", "N_v", "W_v", "N_r", "W_r", "W_sq", "W_lead", "in_flight", "child", "move")
    one.batch.searches = one.batch.searches._replace(
        forest=small._replace(**{name: np.ascontiguousarray(getattr(small, name)[:, :12]) for name in pools})
    )
    rows = played(one, range(6))
    assert len(rows.games.size) == 6
    assert (rows.policy.sum(axis=1) < PLAIN.visits - 1).mean() > 0.5


def test_rows_say_who_won_and_owned_what(group):
    rows = played(group(replace(PLAIN, size=4, full_share=1.0)), range(8))
    counted = np.flatnonzero(rows.games.ending == COUNTED)
    assert len(counted)
    lead = rows.owner.sum(axis=1) - rows.games.komi
    assert (np.sign(lead) == rows.games.result)[counted].all()
    assert (np.abs(lead) == rows.games.margin)[counted].all()
    assert set(rows.network.tolist()) == {7}
    assert set(rows.step.tolist()) == {100}
    # Every search was full: a row a move, and the reply is the next row's target.
    assert len(rows.game) == rows.games.offsets[-1]
    which = np.arange(len(rows.game))
    found = replies(rows, which)
    known = found.any(axis=1)
    is_last = rows.ply == np.diff(rows.games.offsets)[rows.game] - 1
    assert (known == ~is_last).all()
    assert found[known] == pytest.approx(targets(rows, which[known] + 1))
    assert not found[~known].any()


def test_the_reply_to_a_row_before_a_fast_search_is_the_move_played(group):
    rows = played(group(PLAIN), range(12))
    found = replies(rows, np.arange(len(rows.game)))
    full = set(zip(rows.game.tolist(), rows.ply.tolist(), strict=True))
    checked = 0
    for r, (game, ply) in enumerate(zip(rows.game.tolist(), rows.ply.tolist(), strict=True)):
        at = int(rows.games.offsets[game]) + ply + 1
        if (game, ply + 1) not in full and at < rows.games.offsets[game + 1]:
            assert found[r, rows.games.moves[at]] == 1.0
            checked += 1
    assert checked


def test_resignation_is_counted_where_games_are_played_out(group):
    rows = played(group(replace(WHOLE, resign=0.48, resign_count=1)), range(40))
    games, bound = rows.games, 2 * 0.48 - 1
    assert (games.ending[rows.quits & (rows.resigner != 0)] == RESIGNED).all()
    assert (games.ending[~rows.quits] != RESIGNED).all()
    assert ((rows.lowest < bound).any(axis=1) == (rows.resigner != 0)).all()
    would, wrong = false_resignations(rows, bound)
    assert would == ((rows.resigner != 0) & ~rows.quits).sum() > wrong
    assert np.isnan(games.margin[games.ending == RESIGNED]).all()
    assert not rows.owner[games.ending == RESIGNED].any()


def test_the_bound_of_resignation_is_where_few_are_wrong():
    games, count = Games(np.full(100, 3), offsets=np.zeros(101, np.int64), moves=np.zeros(0, np.uint16)), 100
    # White's values fall below -0.8 in all games, and Black wins those; below -0.7 they fall in one that White wins.
    lowest = np.full((count, 2), [0.5, -0.81], np.float32)
    lowest[:10, 1] = -0.71
    result = np.where(np.arange(count) < 10, -1, 1).astype(np.int8)
    games = games._replace(result=result, ending=np.full(count, COUNTED, np.uint8))
    rows = SearchRows(games, *[np.zeros(0)] * 4, np.zeros(count, np.uint8), np.zeros(count, bool), lowest,
                      *[np.zeros(0)] * 5)  # fmt: skip
    assert false_resignations(rows, -0.7) == (100, 10)
    assert false_resignations(rows, -0.75) == (90, 0)
    assert resignation_bound(rows) == pytest.approx(-0.71, abs=0.011)
    few = rows._replace(quits=np.arange(count) >= 15)
    assert resignation_bound(few) == -2.0


def test_surprise_shares_half_of_a_games_weight():
    weights = surprise_weights(np.array([0, 0, 1, 1]), np.array([3.0, 1.0, 0.0, 0.0], np.float32), 0.5)
    assert weights == pytest.approx([0.5 + 0.5 * 1.5, 0.5 + 0.5 * 0.5, 1.0, 1.0])


def test_rows_weigh_as_their_targets_surprise(group):
    rows = played(group(replace(PLAIN, surprise_weight=1.0)), range(8))
    counts = np.bincount(rows.game)
    assert np.bincount(rows.game, rows.weight) == pytest.approx(counts)
    assert rows.weight.std() > 0.1


def test_setups_follow_the_number_and_spread_as_they_should():
    options = SearchPlayOptions(komi=7.0)
    numbers = np.arange(20_000)
    setups = options.set_up(numbers)
    komi = setups.rules[:, -1] / 2
    assert (options.set_up(numbers[99:100]).rules[0] == setups.rules[99]).all()
    wide = np.abs(komi - 7.0) > 5.0
    assert komi.mean() == pytest.approx(7.0, abs=0.1)
    assert wide.mean() == pytest.approx(0.06 * 0.65, abs=0.01)
    assert komi[~wide].std() == pytest.approx(1.1, abs=0.15)
    assert setups.early.mean() == pytest.approx(0.04 * 81 - 0.5, abs=0.15)
    assert setups.may_resign.mean() == pytest.approx(0.9, abs=0.01)


def test_a_uniform_network_on_2x2_plays_to_the_end(group):
    options = replace(WHOLE, size=2, komi=1.0, visits=40)
    rows = played(group(options, network=UniformNetwork("keima-1")), range(6))
    assert len(rows.games.size) == 6


def test_fast_searches_are_not_larger_than_full_ones():
    with pytest.raises(ValueError, match="fast_visits is 100, expected at most visits, 50"):
        SearchPlayOptions(visits=50, fast_visits=100)


def test_a_network_without_a_value_is_refused(group):
    network = HashNetwork("keima-1")
    network.spec = replace(network.spec, heads=("policy",))
    with pytest.raises(ValueError, match="network hash has no value head, which searches need"):
        group(PLAIN, network=network)


def test_a_network_of_one_komi_is_asked_for_no_other(group):
    with pytest.raises(ValueError, match="network hash only supports komi 7"):
        group(PLAIN, network=HashNetwork("leela-18"))
    one = group(replace(PLAIN, komi=7.5, komi_sd=1.0, wide_komi_share=0.5), network=HashNetwork("leela-18"))
    assert one.options.komi_sd == one.options.wide_komi_share == 0.0, "all games are at the komi that it knows"


def test_nobody_passes_while_moves_are_bound_to_be_sensible(group):
    """Early passes of networks without any skill end games that have hardly begun."""
    options = replace(WHOLE, size=4, resign=0.0, sensible=1.0)
    free, bound = (played(group(replace(options, sensible=share)), range(16)).games for share in (0.0, 1.0))
    first_pass = [
        min([*np.flatnonzero(games.moves[games.offsets[k] : games.offsets[k + 1]] == 16), 99])
        for games in (free, bound)
        for k in range(16)
    ]
    assert min(first_pass[:16]) < 4
    # Only where every other move fills an own eye.
    assert min(first_pass[16:]) >= 10
